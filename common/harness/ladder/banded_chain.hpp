/// @file
/// A chain of equal layers on several devices, in bands of rows. Each layer's input needs rows around the band, its
/// halo, and there are two ways to have them.
#pragma once
#include <array>
#include <memory>

#include "common/harness/ladder/registry.hpp"
#include "common/kernel/tracks/several.hpp"

namespace convladder {

/// Where the rows around a band come from.
enum class Halo {
  exchanged,  ///< before each layer, from the ranks that own them
  grown,      ///< once, before the first layer, enough for all layers: each rank then computes its neighbours' rows too
};

/// One rank's part of a chain.
class BandedChain {
 public:
  /// @param stage 09, or one of fp16 in NHWC whose outputs do not depend on where a band begins, as long as that is an
  /// even row: 33
  /// @param problem of each layer: one image, with outputs of the input's size
  /// @throws UsageError for another stage, another problem, and padding other than zero where halos grow
  BandedChain(const StageInfo& stage, const ConvProblem& problem, int layers, Halo halo, int rank, int ranks);

  /// What the rank has of the first layer's input; its buffer and output are null.
  const Part& part() const { return part_; }
  /// Of each of three buffers with the part's rows: for the input, and for the outputs of layers by turns. Rows that
  /// are zeros in the part (source_row() of problem()) must be so in all of them.
  std::int64_t buffer_bytes() const { return part_.problem.n * part_.problem.h * part_.row_bytes; }
  /// That the part is a band of.
  const ConvProblem& problem() const { return exchanged_; }
  /// Which buffer has the chain's outputs in the rank's own rows.
  int last() const { return target_of(layers_ - 1); }
  /// Bytes that this rank receives in one launch.
  std::int64_t received_bytes() const;

  /// Transforms the filter, the same for all layers. @param whole the tensors of one layer, on the rank's device
  void prepare(const Tensors& whole, Stream stream);
  /// All layers, with their exchanges.
  void launch(const std::array<void*, 3>& buffers, Communicator& all, Stream stream);

 private:
  static int target_of(int layer) { return 1 + layer % 2; }
  void launch_layer(int layer, const void* input, void* output, Stream stream);

  ConvProblem problem_;    ///< of a layer
  ConvProblem exchanged_;  ///< whose halo an exchange fills: a layer's, or one with the rows of all layers
  int layers_;
  Halo halo_;
  bool alone_, halves_;
  std::int64_t step_;  ///< rows that a grown halo has for each layer, above and below
  Part part_;
  std::unique_ptr<Stage> exchanger_, stage_;
  const float* filter_ = nullptr;
};

}  // namespace convladder
