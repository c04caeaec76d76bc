// 26 winograd-tensor-core: the batched product in fp16, on Tensor Cores.
//
//   M[position] = V[position] x U[position]      [tiles][filters] = [tiles][channels] x [channels][filters]
//
// Since 24: numbers of 16 bits, half the bytes; and the multiply-adds of a 16 x 16 x 16 product are one instruction of
// a warp, on matrix fragments that lie spread over its registers (WMMA). Products are exact in fp32, and summed there.
//
//   1. A block of 4 warps computes TBM tiles x TBN filters of one position, a warp half x half of them.
//   2. All threads copy the next TBK channels of both matrices to shared memory. A barrier: what a warp multiplies has
//      been copied by others.
//   3. Each warp loads fragments and multiplies. A second barrier before the next copies.
//   4. The sums are stored as halves.

#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
#if !defined(__CUDACC_RTC__)
#include "chapters/26-winograd-tensor-core/design_space.hpp"
#include "common/stage/workspace.hpp"
#endif

namespace convladder {
namespace {

constexpr int kThreads = 128;

template <class Shape, class Block, int Offset>
__global__ void __launch_bounds__(kThreads) multiply(const half* u,  // [position][channel block][padded filters][16]
                                                     const half* v,  // [position][channel block][padded tiles][16]
                                                     half* m,        // [position][padded tiles][padded filters]
                                                     Winograd w, Block b) {
  using Most = Room<Block>;
  __shared__ __align__(32) half tile_rows[Most::tbm * (Most::tbk + Offset)];
  __shared__ __align__(32) half filter_rows[Most::tbn * (Most::tbk + Offset)];
  __shared__ __align__(32) float patches[kThreads / 32][kPatch];
  const int pitch = b.tbk + Offset;  // halves from row to row: without the offset, all rows begin in one bank
  // 1.
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_blocks = blocks_for(filters, b.tbn), position = blockIdx.y, thread = threadIdx.x;
  const int first_k = static_cast<int>(blockIdx.x) % filter_blocks * b.tbn;
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * b.tbm;
  const int warp = thread / 32, y = warp / 2 * (b.tbm / 2), x = warp % 2 * (b.tbn / 2);
  const int down = b.tbm / 2 / Shape::kTiles, across = b.tbn / 2 / Shape::kFilters;
  FragmentSums<Shape, float> sums[1][Most::tbm / 2 / Shape::kTiles][Most::tbn / 2 / Shape::kFilters];
  fill_sums<Shape, float>(sums, down, across);

  const int rows = b.tbm > b.tbn ? b.tbm : b.tbn;
  for (int first_block = 0; first_block < blocks; first_block += b.tbk / kBlock) {
    // 2. Eight halves a copy, two copies for a row of a channel block; zeros past the ends.
    UNROLL_BY(4)
    for (int i = thread; i < rows * b.tbk / 8; i += kThreads) {
      const int half_row = i % 2, row = i / 2 % rows, block = first_block + i / 2 / rows;
      const int column = i / 2 / rows * kBlock + half_row * 8;
      const bool inside = block < blocks;
      if (row < b.tbm)
        copy_async<16>(&tile_rows[row * pitch + column],
                       v + ((position * blocks + block) * tiles + first_t + row) * kBlock + half_row * 8,
                       inside && first_t + row < tiles);
      if (row < b.tbn)
        copy_async<16>(&filter_rows[row * pitch + column],
                       u + ((position * blocks + block) * filters + first_k + row) * kBlock + half_row * 8,
                       inside && first_k + row < filters);
    }
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    // 3.
    UNROLL
    for (int c = 0; c < b.tbk; c += kBlock) {
      FragmentA<Shape, half> of_tiles[Most::tbm / 2 / Shape::kTiles];
      FragmentB<Shape, half> of_filters[Most::tbn / 2 / Shape::kFilters];
      UNROLL
      for (int i = 0; i < down; ++i)
        wmma::load_matrix_sync(of_tiles[i], &tile_rows[(y + Shape::kTiles * i) * pitch + c], pitch);
      UNROLL
      for (int j = 0; j < across; ++j)
        wmma::load_matrix_sync(of_filters[j], &filter_rows[(x + Shape::kFilters * j) * pitch + c], pitch);
      UNROLL
      for (int i = 0; i < down; ++i) {
        UNROLL
        for (int j = 0; j < across; ++j) wmma::mma_sync(sums[0][i][j], of_tiles[i], of_filters[j], sums[0][i][j]);
      }
    }
    __syncthreads();  // the tiles are read
  }
  // 4.
  UNROLL
  for (int i = 0; i < down; ++i) {
    UNROLL
    for (int j = 0; j < across; ++j) {
      const int t = first_t + y + Shape::kTiles * i, k = first_k + x + Shape::kFilters * j;
      if (t < tiles && k < filters)
        store_sums<Shape>(sums[0][i][j], patches[warp], m + (position * tiles + t) * filters + k, filters);
    }
  }
}

#if !defined(__CUDACC_RTC__)

// The knobs: those of 26 to 30; and what to add to the rows in shared memory.
constexpr int kOffsets[] = {0, 8};
constexpr Knob kKnobs[] = {{"row_offset", kOffsets, 8}, {"tbm", kBlockNumbers, 64},
                           {"tbn", kBlockNumbers, 64},  {"tbk", kBlockNumbers, 64},
                           {"m", kOutputSides, 4},      {"fragment", kFragments, kFragmentWords, k16x16x16}};

using Usual = FixedPoint<F4Fractions, 16, 16, 64, 64, 64>;  // compiled with the program

class WinogradTensorCore final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const Point p = point_of(configuration, configuration["m"]);
    if (!is_built_in(p, configuration["row_offset"]) && *cannot_compile())
      return Verdict::refuse("{}", cannot_compile());
    return check_point(problem, p, p.block.tbm / 2, p.block.tbn / 2);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kOutputSides[0], kTileUnit);
  }

  static bool is_built_in(const Point& p, int offset) {
    // The product is the same for every form.
    return Usual::is({4, p.fragment, p.block}) && offset == 8;
  }

  Point point() const { return point_of(configuration(), knob("m")); }

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
    if (!is_built_in(p, knob("row_offset")))
      compile_point(kernel_, p, "26-winograd-tensor-core/winograd_tensor_core.cu", "multiply", "",
                    knob("row_offset") == 0 ? ", 0" : ", 8");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Point p = point();
    const Winograd w = winograd_of(problem, p.m);
    const dim3 grid(static_cast<unsigned>(p.parts(w)), p.positions());
    half *const u = u_.as<half>(), *const v = v_.as<half>(), *const m = m_.as<half>();
    with_form(p.m, [&](auto form) { launch_transform_inputs<decltype(form)>(tensors.half_input, v, w, stream); });
    if (kernel_.compiled()) {
      kernel_.launch(grid, dim3(kThreads), 0, stream)(u, v, m, w, p.block);
    } else {
      with_shape_types<Usual>(p, [&](auto shape, auto block) {
        auto kernel = multiply<decltype(shape), decltype(block), 8>;
#if !defined(__CUDACC__)
        if (knob("row_offset") == 0) kernel = multiply<decltype(shape), decltype(block), 0>;
#endif
        convladder::launch(kernel, grid, dim3(kThreads), 0, stream)(u, v, m, w, block);
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
    p.barriers = kPositions<Form> * point.parts(w) * point.steps(w) * 2;
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
CONVLADDER_STAGE(convladder::WinogradTensorCore)
#endif
