/// @file
/// The design space of partial fusion (stages 28 and 29): which tiles TBM x TBN x TBK of the batched matrix product a
/// GPU has room for, by the inequalities of Tong et al. (docs/references.md) and by those that they leave out. See
/// docs/explore.md.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/stage/stage.hpp"

namespace convladder {

/// What a GPU offers to partial fusion, and to a stage that is asked about it.
struct FusionGpu {
  std::string name;
  std::int64_t shared_bytes = 0;  ///< the most shared memory that one block may have
  std::int64_t l2_bytes = 0;
  std::int64_t multiprocessors = 0;
  int compute_capability = 0;  ///< 10 * major + minor; of those that are known by name alone

  /// As stages ask for them.
  DeviceLimits limits() const;
};

/// GPUs by public specifications.
std::span<const FusionGpu> known_gpus();
/// One of them by name: letters of either case, blanks and "NVIDIA" do not matter. @throws UsageError, with the names,
/// if there is none
const FusionGpu& known_gpu(std::string_view name);

/// A layer as the batched matrix product sees it.
struct FusionLayer {
  /// @param problem 3x3, stride 1 @param m outputs along a tile's side @param element_bytes 2 for fp16, 1 for int8
  FusionLayer(const ConvProblem& problem, int m, int element_bytes);

  int side;            ///< of an input tile, m + 2: warps of a block
  int element_bytes;   ///< of a transformed element
  std::int64_t tiles;  ///< of all images
  std::int64_t c, k;

  /// Bytes of one (tile, channel) pair: every element of its transform.
  std::int64_t pair_bytes() const { return std::int64_t{element_bytes} * side * side; }
  /// Whether the layer meets the conditions of Tong et al. for WMMA, which the stages of this project meet by padding:
  /// c a multiple of 16, tiles and k of 8, tiles x k of 256.
  bool meets_wmma_rules() const;
};

/// Where the transformed input of a block lies.
enum class Fusion {
  shmem,  ///< through shared memory
  llc,    ///< through the L2 cache
};

/// What may rule a tile out.
enum class FusionRule {
  shared_input,  ///< of Tong et al.: the input slice in shared memory
  few_blocks,    ///< of Tong et al.: at least a block for each multiprocessor
  l2_slices,     ///< of Tong et al.: the input slices of all running blocks in L2
  shared_both,   ///< left out: the filter slice, all channels long, beside the input slice in shared memory
  accumulators,  ///< left out: the sums of a warp in its threads' registers
  l2_channels,   ///< left out: all channels of the running blocks' tiles in L2, and the filter
};
/// All of them, in this order.
inline constexpr FusionRule kFusionRules[] = {FusionRule::shared_input, FusionRule::few_blocks,
                                              FusionRule::l2_slices,    FusionRule::shared_both,
                                              FusionRule::accumulators, FusionRule::l2_channels};
/// Its key in JSON: "shared_input".
const char* key_of(FusionRule rule);
/// In a few words, for tables: "shared memory".
const char* words_of(FusionRule rule);
/// Whether Tong et al. state it.
bool is_of_source(FusionRule rule);
/// Whether it concerns this form of the fusion.
bool concerns(FusionRule rule, Fusion fusion);

/// One tile. WMMA has a fragment for it.
struct FusionPoint {
  std::int64_t tbm, tbn, tbk;
  std::int64_t blocks;
  std::int64_t shared_input_bytes;  ///< tbm x tbk
  std::int64_t shared_both_bytes;   ///< and tbn x c
  std::int64_t l2_slice_bytes;      ///< tbm x tbk of all running blocks
  std::int64_t l2_channel_bytes;    ///< tbm x c of all running blocks, and c x k
  std::int64_t accumulators;        ///< registers of each thread
  std::vector<FusionRule> broken;   ///< of either form

  /// Whether no rule rules it out. @param source_only only rules that Tong et al. state
  bool remains(Fusion fusion, bool source_only) const;
};

/// Tiles beyond these are not looked at.
inline constexpr std::int64_t kMostTbm = 256;
/// The same for the other two sides.
inline constexpr std::int64_t kMostTbnAndTbk = 128;

/// Every tile with a WMMA fragment: tbm a multiple of 8 up to kMostTbm, tbn of 8 and tbk of 16 up to kMostTbnAndTbk,
/// none longer than the layer, padded, is. By tbm, then tbn, then tbk.
std::vector<FusionPoint> fusion_space(const FusionLayer& layer, const FusionGpu& gpu);

/// One of them, whether or not WMMA has a fragment for it.
FusionPoint fusion_point(const FusionLayer& layer, const FusionGpu& gpu, std::int64_t tbm, std::int64_t tbn,
                         std::int64_t tbk);

/// The layer of a --shape: 3x3 unless it says otherwise, at stride 1. @throws UsageError
ConvProblem parse_fusion_layer(std::string_view shape);

/// The tbm of the tiles that remain, ascending.
std::vector<std::int64_t> remaining_tbm(const std::vector<FusionPoint>& space, Fusion fusion, bool source_only);

}  // namespace convladder
