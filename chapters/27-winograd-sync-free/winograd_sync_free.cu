// 27 winograd-sync-free: a warp for each position of the Winograd tile, and no barrier.
//
// Since 26: the warps of a block have different positions, each that of its column. What a warp multiplies, it has
// loaded itself, from global memory into fragments: nothing is shared, and no warp waits for another. A channel block's
// rows lie in one piece (half_transforms.cuh), and fragments of the same tiles or filters that other blocks load are
// left to the caches.
//
//   1. A block computes TBM tiles x TBN filters at one row of positions; warp c has column c.
//   2. For each TBK channels: load fragments, multiply.
//   3. The sums are stored as halves.
//
// For comparison, "sync=block" has barriers where a kernel that shares its loads needs them: before the products, and
// before the next loads.

#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
#if !defined(__CUDACC_RTC__)
#include "chapters/26-winograd-tensor-core/design_space.hpp"
#include "common/stage/workspace.hpp"
#endif

namespace convladder {
namespace {

template <class Form, class Shape, class Block, bool Barriers>
__global__ void __launch_bounds__(32 * kTileSize<Form>)
    multiply(const half* u,  // [position][channel block][padded filters][16]
             const half* v,  // [position][channel block][padded tiles][16]
             half* m,        // [position][padded tiles][padded filters]
             Winograd w, Block b) {
  constexpr int kMostDown = Room<Block>::tbm / Shape::kTiles, kMostAcross = Room<Block>::tbn / Shape::kFilters;
  constexpr int kMostDeep = Room<Block>::tbk / kBlock;
  [[maybe_unused]] constexpr int kStepsTogether = 64 / Room<Block>::tbk;  // unrolled: loads ahead of products
  __shared__ __align__(32) float patches[kTileSize<Form>][kPatch];
  // 1.
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_blocks = blocks_for(filters, b.tbn), warp = threadIdx.x / 32;
  const int first_k = static_cast<int>(blockIdx.x) % filter_blocks * b.tbn;
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * b.tbm;
  const int down = b.tbm / Shape::kTiles, across = b.tbn / Shape::kFilters, deep = b.tbk / kBlock;
  const int position = static_cast<int>(blockIdx.y) * kTileSize<Form> + warp;
  const auto past_tiles = [&](int i) { return b.tbm > kTileUnit && first_t + Shape::kTiles * i >= tiles; };
  const auto past_filters = [&](int j) { return first_k + Shape::kFilters * j >= filters; };

  // 2.
  FragmentSums<Shape, float> sums[1][kMostDown][kMostAcross];
  fill_sums<Shape, float>(sums, down, across);
  const half* tile_rows = v + (position * blocks * tiles + first_t) * kBlock;
  const half* filter_rows = u + (position * blocks * filters + first_k) * kBlock;
  UNROLL_BY(kStepsTogether)
  for (int block = 0; block < blocks; block += deep) {
    FragmentA<Shape, half> of_tiles[kMostDeep][kMostDown];
    FragmentB<Shape, half> of_filters[kMostDeep][kMostAcross];
    const auto exists = [&](int d) { return deep == 1 || block + d < blocks; };
    UNROLL
    for (int d = 0; d < deep; ++d) {
      if (!exists(d)) continue;
      UNROLL
      for (int i = 0; i < down; ++i)
        if (!past_tiles(i))
          wmma::load_matrix_sync(of_tiles[d][i], tile_rows + (d * tiles + Shape::kTiles * i) * kBlock, kBlock);
      UNROLL
      for (int j = 0; j < across; ++j)
        if (!past_filters(j))
          wmma::load_matrix_sync(of_filters[d][j], filter_rows + (d * filters + Shape::kFilters * j) * kBlock, kBlock);
    }
    if (Barriers) __syncthreads();
    UNROLL
    for (int d = 0; d < deep; ++d) {
      if (!exists(d)) continue;
      UNROLL
      for (int j = 0; j < across; ++j) {
        if (past_filters(j)) continue;
        UNROLL
        for (int i = 0; i < down; ++i)
          if (!past_tiles(i)) wmma::mma_sync(sums[0][i][j], of_tiles[d][i], of_filters[d][j], sums[0][i][j]);
      }
    }
    if (Barriers) __syncthreads();
    tile_rows += deep * tiles * kBlock;
    filter_rows += deep * filters * kBlock;
  }
  // 3.
  UNROLL
  for (int i = 0; i < down; ++i) {
    if (past_tiles(i)) continue;
    UNROLL
    for (int j = 0; j < across; ++j) {
      if (past_filters(j)) continue;
      store_sums<Shape>(sums[0][i][j], patches[warp],
                        m + (position * tiles + first_t + Shape::kTiles * i) * filters + first_k + Shape::kFilters * j,
                        filters);
    }
  }
}

#if !defined(__CUDACC_RTC__)

// The knobs: those of 26 to 30; and whether the warps of a block wait for each other.
enum { kWarpSync, kBlockSync };
constexpr int kSyncs[] = {kWarpSync, kBlockSync};
constexpr const char* kSyncWords[] = {"warp", "block"};
constexpr Knob kKnobs[] = {{"tbm", kBlockNumbers, 32},
                           {"tbn", kBlockNumbers, 64},
                           {"tbk", kBlockNumbers, 16},
                           {"m", kOutputSides, 4},
                           {"fragment", kFragments, kFragmentWords, k16x16x16},
                           {"sync", kSyncs, kSyncWords, kWarpSync}};
constexpr int kMostRegisters = 224;  // of a thread's 255, for sums and fragments

using Usual = FixedPoint<F4Fractions, 16, 16, 32, 64, 16>;  // compiled with the program

class WinogradSyncFree final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const Point p = point_of(configuration, configuration["m"]);
    const BlockTile& b = p.block;
    const int registers = b.tbm * b.tbn / 32 + b.tbk * (b.tbm + b.tbn) / 64;  // of floats, and of pairs of halves
    if (registers > kMostRegisters)
      return Verdict::refuse("tbm={},tbn={},tbk={} takes {} registers a thread for sums and fragments; at most {}",
                             b.tbm, b.tbn, b.tbk, registers, kMostRegisters);
    if (!is_built_in(p, configuration["sync"]) && *cannot_compile()) return Verdict::refuse("{}", cannot_compile());
    return check_point(problem, p, b.tbm, b.tbn);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kOutputSides[0], kTileUnit);
  }

  static bool is_built_in(const Point& p, int sync) { return Usual::is(p) && sync == kWarpSync; }

  Point point() const { return point_of(configuration(), knob("m")); }
  bool barriers() const { return knob("sync") == kBlockSync; }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Point p = point();
    const Winograd w = winograd_of(problem, p.m);
    with_form(p.m, [&](auto form) {
      using Form = decltype(form);
      u_.allocate<half>(filter_elements<Form>(w));
      v_.allocate<half>(input_elements<Form>(w));
      m_.allocate<half>(product_elements<Form>(w));
      launch_transform_filters<Form>(tensors.filter, u_.as<half>(), w, stream);
    });
    if (!is_built_in(p, knob("sync")))
      compile_point(kernel_, p, "27-winograd-sync-free/winograd_sync_free.cu", "multiply", form_text(p),
                    barriers() ? ", true" : ", false");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Point p = point();
    const Winograd w = winograd_of(problem, p.m);
    const dim3 grid(static_cast<unsigned>(p.parts(w)), p.size()), threads(32 * p.size());
    half *const u = u_.as<half>(), *const v = v_.as<half>(), *const m = m_.as<half>();
    with_form(p.m, [&](auto form) { launch_transform_inputs<decltype(form)>(tensors.half_input, v, w, stream); });
    if (kernel_.compiled()) {
      kernel_.launch(grid, threads, 0, stream)(u, v, m, w, p.block);
    } else {
      with_kernel_types<Usual>(p, [&](auto form, auto shape, auto block) {
        auto kernel = multiply<decltype(form), decltype(shape), decltype(block), false>;
#if !defined(__CUDACC__)
        if (barriers()) kernel = multiply<decltype(form), decltype(shape), decltype(block), true>;
#endif
        convladder::launch(kernel, grid, threads, 0, stream)(u, v, m, w, block);
      });
    }
    with_form(p.m, [&](auto form) { launch_transform_outputs<decltype(form)>(m, tensors.half_output, w, stream); });
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    return WinogradForm{knob("m"), true, Precision::fp16, true};
  }

  template <class Form>
  Prediction predict_form(const ConvProblem& problem) const {
    const Point point = this->point();
    const Winograd w = winograd_of(problem, point.m);
    const std::int64_t pairs = (w.filters + 1) / 2;
    Prediction p;
    p.global_load_bytes =
        2 * tile_reads(w) +
        2 * (input_elements<Form>(w) * point.filter_parts(w) + filter_elements<Form>(w) * point.tile_parts(w)) +
        kPositions<Form> * std::int64_t{w.tiles} * pairs * 4;
    p.global_store_bytes = 2 * (input_elements<Form>(w) + product_elements<Form>(w) + problem.output_size());
    p.constant_load_requests = 0;
    p.barriers = barriers() ? point.parts(w) * kTileSize<Form> * point.steps(w) * 2 : 0;
    p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
    return p;
  }

  Prediction predict(const ConvProblem& problem) const override {
    Prediction p;
    with_form(knob("m"), [&](auto form) { p = predict_form<decltype(form)>(problem); });
    return p;
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace m_{*this, "products"};
  CompiledKernel kernel_;
};

#endif

}  // namespace
}  // namespace convladder

#if !defined(__CUDACC_RTC__)
CONVLADDER_STAGE(convladder::WinogradSyncFree)
#endif
