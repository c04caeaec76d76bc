// 29 winograd-pkf-llc: partial kernel fusion through the last-level cache.
//
// Since 28: the transformed tiles go to global memory again, but no more of them than the L2 cache holds. Each block
// has a piece that is its own, and overwrites it with the next tiles: nothing forces its lines out of L2 to DRAM.
// Shared memory no longer limits TBM.
//
//   1. As many blocks as multiprocessors, fewer if their pieces would not fit in L2 together. They take the parts of
//      the product, TBM tiles x TBN filters at all 36 positions, in turn.
//   2. A step transforms 64 channels of the tiles into the block's piece. A barrier orders these stores before the
//      loads of the other warps; no other block reads them. They are loaded by plain loads: the read-only path (__ldg)
//      may return what lay there before.
//   3. Each warp multiplies as in 28. A second barrier before the piece is overwritten.
//   4. The sums go out as halves.

#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

using Form = F4Fractions;

constexpr int kSize = kTileSize<Form>;
constexpr int kGroups = 2;  // warps of a column
constexpr int kWarps = kGroups * kSize, kThreads = 32 * kWarps;
constexpr int kStepBlocks = 4;  // channel blocks of a step
constexpr int kSums = 1024;     // of a block at a position

template <int Tiles>
constexpr int kFilters = kSums / Tiles;
// Halves of a block's piece: [position][channel block of the step][Tiles][16]
template <int Tiles>
constexpr int kPiece = kPositions<Form>* kStepBlocks* Tiles* kBlock;

template <int Tiles>
__global__ void __launch_bounds__(kThreads, 1) multiply(const half* input,  // [batch][height][width][channels]
                                                        const half* u,  // [position][channel block][padded filters][16]
                                                        half* pieces,   // [block][kPiece]
                                                        half* m,        // [position][padded tiles][padded filters]
                                                        Winograd w) {
  constexpr int kDown = Tiles / 16, kAcross = kFilters<Tiles> / 16 / kGroups;
  __shared__ __align__(32) float patches[kWarps][kPatch];
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_parts = blocks_for(filters, kFilters<Tiles>), parts = tiles / Tiles * filter_parts;
  const int thread = threadIdx.x, warp = thread / 32, column = warp % kSize;
  half* const piece = pieces + static_cast<int>(blockIdx.x) * kPiece<Tiles>;

  // 1.
  UNROLL_BY(1)
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    const int first_k = part % filter_parts * kFilters<Tiles> + warp / kSize * (kFilters<Tiles> / kGroups);
    const int first_t = part / filter_parts * Tiles;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[kSize][kDown][kAcross];
    UNROLL
    for (int i = 0; i < kSize * kDown * kAcross; ++i)
      wmma::fill_fragment(sums[i / kAcross / kDown][i / kAcross % kDown][i % kAcross], 0.0f);

    UNROLL_BY(1)
    for (int first_block = 0; first_block < blocks; first_block += kStepBlocks) {
      // 2. Eight threads take a channel block of a tile, four such groups four tiles: 128 bytes in one piece.
      const int step_blocks = min(kStepBlocks, blocks - first_block);
      UNROLL_BY(1)
      for (int i = thread; i < Tiles * step_blocks * kBlock / 2; i += kThreads) {
        const int pair = i % 8, block = i / 32 % step_blocks, t = i / 32 / step_blocks * 4 + i / 8 % 4;
        half2 tile[kSize][kSize];
        load_tile<Form>(input, w, first_t + t, (first_block + block) * kBlock + pair * 2, tile);
        half* out = piece + (block * Tiles + t) * kBlock + pair * 2;
        UNROLL
        for (int position = 0; position < kPositions<Form>; ++position)
          *reinterpret_cast<half2*>(out + position * kStepBlocks * Tiles * kBlock) =
              tile[position / kSize][position % kSize];
      }
      __syncthreads();
      // 3.
      UNROLL_BY(1)
      for (int block = 0; block < step_blocks; ++block) {
        UNROLL
        for (int row = 0; row < kSize; ++row) {
          const int position = row * kSize + column;
          wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[kDown];
          wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
          UNROLL
          for (int i = 0; i < kDown; ++i)
            wmma::load_matrix_sync(a[i], piece + ((position * kStepBlocks + block) * Tiles + 16 * i) * kBlock, kBlock);
          UNROLL
          for (int j = 0; j < kAcross; ++j) {
            if (first_k + 16 * j >= filters) continue;
            wmma::load_matrix_sync(
                b, u + ((position * blocks + first_block + block) * filters + first_k + 16 * j) * kBlock, kBlock);
            UNROLL
            for (int i = 0; i < kDown; ++i) wmma::mma_sync(sums[row][i][j], a[i], b, sums[row][i][j]);
          }
        }
      }
      __syncthreads();  // the piece is read
    }
    // 4.
    UNROLL
    for (int row = 0; row < kSize; ++row) {
      UNROLL
      for (int i = 0; i < kDown; ++i) {
        UNROLL
        for (int j = 0; j < kAcross; ++j) {
          if (first_k + 16 * j >= filters) continue;
          store_sums(sums[row][i][j], patches[warp],
                     m + ((row * kSize + column) * tiles + first_t + 16 * i) * filters + first_k + 16 * j, filters);
        }
      }
    }
  }
}

template <int Tiles>
std::int64_t parts(const Winograd& w) {
  return std::int64_t{padded_tiles(w) / Tiles} * blocks_for(padded_filters(w), kFilters<Tiles>);
}

// Blocks that are started: one for each multiprocessor, as long as their pieces together take at most half of L2.
template <int Tiles>
int resident_blocks(const Winograd& w) {
  const DeviceLimits limits = device_limits();
  const std::int64_t fitting = limits.l2_bytes / 2 / (kPiece<Tiles> * 2);
  std::int64_t blocks = limits.multiprocessors < fitting ? limits.multiprocessors : fitting;
  if (parts<Tiles>(w) < blocks) blocks = parts<Tiles>(w);
  return blocks < 1 ? 1 : static_cast<int>(blocks);
}

template <int Tiles>
void launch_multiply(const half* input, const half* u, half* pieces, half* m, const Winograd& w, Stream stream) {
  launch(multiply<Tiles>, dim3(resident_blocks<Tiles>(w)), dim3(kThreads), 0, stream)(input, u, pieces, m, w);
}

// The knob: TBM, the tiles of a block.
constexpr int kTileCounts[] = {16, 32};
constexpr Knob kKnobs[] = {{"tbm", kTileCounts, nullptr, 2}};

class WinogradPkfLlc final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 1}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration&) const override {
    return check(problem, limits);
  }
  Configuration default_configuration(const ConvProblem&, const DeviceLimits&) const override { return {{16}}; }
  bool searched() const override { return false; }
  void use(const Configuration& configuration) override { tbm_ = configuration.values[0]; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    u_.allocate<half>(filter_elements<Form>(w), "transformed filter");
    pieces_.allocate<half>(tbm_ == 16 ? resident_blocks<16>(w) * std::int64_t{kPiece<16>}
                                      : resident_blocks<32>(w) * std::int64_t{kPiece<32>},
                           "the blocks' transformed tiles");
    m_.allocate<half>(product_elements<Form>(w), "products");
    launch_transform_filters<Form>(tensors.filter, u_.as<half>(), w, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const auto multiply = tbm_ == 16 ? launch_multiply<16> : launch_multiply<32>;
    multiply(tensors.half_input, u_.as<half>(), pieces_.as<half>(), m_.as<half>(), w, stream);
    launch_transform_outputs<Form>(m_.as<half>(), tensors.half_output, w, stream);
  }

  std::int64_t workspace_bytes() const override { return u_.bytes() + pieces_.bytes() + m_.bytes(); }
  bool workspace_intact() const override { return u_.intact() && pieces_.intact() && m_.intact(); }
  WinogradForm winograd(const ConvProblem&) const override { return {kTileOutputs<Form>, true, Precision::fp16, true}; }

  Prediction predict(const ConvProblem& problem) const override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const std::int64_t filter_parts = blocks_for(padded_filters(w), kSums / tbm_), tile_parts = padded_tiles(w) / tbm_;
    const std::int64_t steps = blocks_for(channel_blocks(w), kStepBlocks), pairs = (w.filters + 1) / 2;
    const std::int64_t transformed = 2 * input_elements<Form>(w) * filter_parts;  // bytes, written for each part
    Prediction p;
    p.global_load_bytes = 2 * tile_reads(w) * filter_parts + kGroups * transformed +  // both warps of a column
                          2 * filter_elements<Form>(w) * tile_parts +
                          kPositions<Form> * std::int64_t{w.tiles} * pairs * 4;
    p.global_store_bytes = transformed + 2 * (product_elements<Form>(w) + problem.output_size());
    p.constant_load_requests = 0;
    p.barriers = tile_parts * filter_parts * steps * 2;
    p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
    return p;
  }

  int tbm_ = 16;
  Workspace u_, pieces_, m_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradPkfLlc)
