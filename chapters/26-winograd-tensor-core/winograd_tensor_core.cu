// 26 winograd-tensor-core: the batched product in fp16, on Tensor Cores.
//
//   M[position] = V[position] x U[position]      [tiles][filters] = [tiles][channels] x [channels][filters]
//
// Since 24: numbers of 16 bits, half the bytes; and the multiply-adds of a 16 x 16 x 16 product are one instruction of
// a warp, on matrix fragments that lie spread over its registers (WMMA). Products are exact in fp32, and summed there.
//
//   1. A block of 4 warps computes 64 tiles x 64 filters of one position, a warp 32 x 32 of them: 2 x 2 fragments.
//   2. All threads copy the next 64 channels of both matrices to shared memory. A barrier: what a warp multiplies has
//      been copied by others.
//   3. Each warp loads fragments and multiplies. A second barrier before the next copies.
//   4. The sums go out as halves.

#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

using Form = F4Fractions;

constexpr int kThreads = 128;
constexpr int kRows = 64, kDepth = 64;  // tiles, and filters, of a block; channels of a step

template <int Offset>
__global__ void __launch_bounds__(kThreads) multiply(const half* u,  // [position][channel block][padded filters][16]
                                                     const half* v,  // [position][channel block][padded tiles][16]
                                                     half* m,        // [position][padded tiles][padded filters]
                                                     Winograd w) {
  constexpr int kPitch = kDepth + Offset;  // halves from row to row: without the offset, all rows begin in one bank
  __shared__ __align__(32) half tile_rows[kRows][kPitch];
  __shared__ __align__(32) half filter_rows[kRows][kPitch];
  __shared__ __align__(32) float patches[kThreads / 32][kPatch];
  // 1.
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_blocks = blocks_for(filters, kRows), position = blockIdx.y, thread = threadIdx.x;
  const int first_k = static_cast<int>(blockIdx.x) % filter_blocks * kRows;
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * kRows;
  const int warp = thread / 32, y = warp / 2 * 32, x = warp % 2 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
  UNROLL
  for (int i = 0; i < 4; ++i) wmma::fill_fragment(sums[i / 2][i % 2], 0.0f);

  for (int first_block = 0; first_block < blocks; first_block += kDepth / kBlock) {
    // 2. Eight halves a copy, two copies for a row of a channel block; zeros past the ends.
    UNROLL
    for (int i = thread; i < kRows * kDepth / 8; i += kThreads) {
      const int half_row = i % 2, row = i / 2 % kRows, block = first_block + i / 2 / kRows;
      const int column = i / 2 / kRows * kBlock + half_row * 8;
      const bool inside = block < blocks;
      copy_async<16>(&tile_rows[row][column],
                     v + ((position * blocks + block) * tiles + first_t + row) * kBlock + half_row * 8,
                     inside && first_t + row < tiles);
      copy_async<16>(&filter_rows[row][column],
                     u + ((position * blocks + block) * filters + first_k + row) * kBlock + half_row * 8,
                     inside && first_k + row < filters);
    }
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    // 3.
    UNROLL
    for (int c = 0; c < kDepth; c += kBlock) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b[2];
      UNROLL
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(a[i], &tile_rows[y + 16 * i][c], kPitch);
        wmma::load_matrix_sync(b[i], &filter_rows[x + 16 * i][c], kPitch);
      }
      UNROLL
      for (int i = 0; i < 4; ++i) wmma::mma_sync(sums[i / 2][i % 2], a[i / 2], b[i % 2], sums[i / 2][i % 2]);
    }
    __syncthreads();  // the tiles are read
  }
  // 4.
  UNROLL
  for (int i = 0; i < 4; ++i) {
    const int t = first_t + y + 16 * (i / 2), k = first_k + x + 16 * (i % 2);
    if (t < tiles && k < filters)
      store_sums(sums[i / 2][i % 2], patches[warp], m + (position * tiles + t) * filters + k, filters);
  }
}

std::int64_t blocks(const Winograd& w) {
  return std::int64_t{blocks_for(padded_filters(w), kRows)} * blocks_for(padded_tiles(w), kRows);
}

// The knob: what to add to the rows in shared memory.
constexpr int kOffsets[] = {0, 8};
constexpr Knob kKnobs[] = {{"row_offset", kOffsets, 8}};

class WinogradTensorCore final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }

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
    const auto kernel = knob("row_offset") == 0 ? multiply<0> : multiply<8>;
    convladder::launch(kernel, dim3(static_cast<unsigned>(blocks(w)), kPositions<Form>), dim3(kThreads), 0, stream)(
        u_.as<half>(), v_.as<half>(), m_.as<half>(), w);
    launch_transform_outputs<Form>(m_.as<half>(), tensors.half_output, w, stream);
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    return WinogradForm{kTileOutputs<Form>, true, Precision::fp16, true};
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const std::int64_t steps = blocks_for(channel_blocks(w), kDepth / kBlock), pairs = (w.filters + 1) / 2;
    Prediction p;
    p.global_load_bytes = 2 * tile_reads(w) +
                          2 * (input_elements<Form>(w) * blocks_for(padded_filters(w), kRows) +
                               filter_elements<Form>(w) * blocks_for(padded_tiles(w), kRows)) +
                          kPositions<Form> * std::int64_t{w.tiles} * pairs * 4;
    p.global_store_bytes = 2 * (input_elements<Form>(w) + product_elements<Form>(w) + problem.output_size());
    p.constant_load_requests = 0;
    p.barriers = kPositions<Form> * blocks(w) * steps * 2;
    p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
    return p;
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace m_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradTensorCore)
