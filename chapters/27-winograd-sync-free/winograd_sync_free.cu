// 27 winograd-sync-free: a warp for each position of the Winograd tile, and no barrier.
//
// Since 26: the warps of a block have different positions, each that of its column. What a warp multiplies, it has
// loaded itself, from global memory into fragments: nothing is shared, so nobody waits. A channel block's rows lie in
// one piece (half_transforms.cuh), and fragments of the same tiles or filters that other blocks load are left to the
// caches.
//
//   1. A block computes 32 tiles x 64 filters at one row of positions; warp c has column c.
//   2. For each channel block: load fragments, multiply.
//   3. The sums go out as halves.

#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

using Form = F4Fractions;

constexpr int kSize = kTileSize<Form>;
constexpr int kThreads = 32 * kSize;
constexpr int kTiles = 32, kFilters = 64;  // of a block
constexpr int kDown = kTiles / 16, kAcross = kFilters / 16;

__global__ void __launch_bounds__(kThreads) multiply(const half* u,  // [position][channel block][padded filters][16]
                                                     const half* v,  // [position][channel block][padded tiles][16]
                                                     half* m,        // [position][padded tiles][padded filters]
                                                     Winograd w) {
  __shared__ __align__(32) float patches[kSize][kPatch];
  // 1.
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_blocks = blocks_for(filters, kFilters), warp = threadIdx.x / 32;
  const int first_k = static_cast<int>(blockIdx.x) % filter_blocks * kFilters;
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * kTiles;

  const int position = static_cast<int>(blockIdx.y) * kSize + warp;

  // 2.
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[kDown][kAcross];
  UNROLL
  for (int i = 0; i < kDown * kAcross; ++i) wmma::fill_fragment(sums[i / kAcross][i % kAcross], 0.0f);
  const half* tile_rows = v + (position * blocks * tiles + first_t) * kBlock;
  const half* filter_rows = u + (position * blocks * filters + first_k) * kBlock;
  for (int block = 0; block < blocks; ++block) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[kDown];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    UNROLL
    for (int i = 0; i < kDown; ++i) wmma::load_matrix_sync(a[i], tile_rows + i * 16 * kBlock, kBlock);
    UNROLL
    for (int j = 0; j < kAcross; ++j) {
      if (first_k + 16 * j >= filters) continue;
      wmma::load_matrix_sync(b, filter_rows + j * 16 * kBlock, kBlock);
      UNROLL
      for (int i = 0; i < kDown; ++i) wmma::mma_sync(sums[i][j], a[i], b, sums[i][j]);
    }
    tile_rows += tiles * kBlock;
    filter_rows += filters * kBlock;
  }
  // 3.
  UNROLL
  for (int i = 0; i < kDown; ++i) {
    UNROLL
    for (int j = 0; j < kAcross; ++j) {
      if (first_k + 16 * j >= filters) continue;
      store_sums(sums[i][j], patches[warp], m + (position * tiles + first_t + 16 * i) * filters + first_k + 16 * j,
                 filters);
    }
  }
}

// Of a row of positions.
std::int64_t blocks(const Winograd& w) {
  return std::int64_t{blocks_for(padded_filters(w), kFilters)} * (padded_tiles(w) / kTiles);
}

class WinogradSyncFree final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    u_.allocate<half>(filter_elements<Form>(w));
    v_.allocate<half>(input_elements<Form>(w));
    m_.allocate<half>(product_elements<Form>(w));
    launch_transform_filters<Form>(tensors.filter, u_.as<half>(), w, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    launch_transform_inputs<Form>(tensors.half_input, v_.as<half>(), w, stream);
    convladder::launch(multiply, dim3(static_cast<unsigned>(blocks(w)), kSize), dim3(kThreads), 0, stream)(
        u_.as<half>(), v_.as<half>(), m_.as<half>(), w);
    launch_transform_outputs<Form>(m_.as<half>(), tensors.half_output, w, stream);
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    return WinogradForm{kTileOutputs<Form>, true, Precision::fp16, true};
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const std::int64_t pairs = (w.filters + 1) / 2;
    Prediction p;
    p.global_load_bytes = 2 * tile_reads(w) +
                          2 * (input_elements<Form>(w) * blocks_for(padded_filters(w), kFilters) +
                               filter_elements<Form>(w) * (padded_tiles(w) / kTiles)) +
                          kPositions<Form> * std::int64_t{w.tiles} * pairs * 4;
    p.global_store_bytes = 2 * (input_elements<Form>(w) + product_elements<Form>(w) + problem.output_size());
    p.constant_load_requests = p.barriers = 0;
    p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
    return p;
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace m_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradSyncFree)
