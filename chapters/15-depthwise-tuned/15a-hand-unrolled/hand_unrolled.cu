// 15a hand-unrolled: one schedule, with the two primitives that 14 left out.
//
//   for nc, p_outer, q_outer                  blockIdx.x
//     cache(x), cache(filter)                 all threads, and the barrier   <- cache
//     for p_middle                            threadIdx.x / 32
//       for q_inner                           threadIdx.x % 32
//         for r, s
//           four rows of outputs              written out                    <- unroll
//
// The idea: 14's threads load a pixel and a tap for each product, from global memory. Here the block brings both to
// shared memory once, with the halo. And a thread has four outputs, one below the other, in four variables: they live
// in registers, and a tap that is loaded serves four products, with 5 loads instead of 8. It is done by hand because
// the four is known when the file is written. The loops over r and s cannot be written out so: how long they are comes
// with the problem.
//
//   1. The block's tile: up to 16 x 32 outputs of a plane.
//   2. Cache: the pixels that the tile's windows reach, and the plane's filter. Pixels that only outputs past the
//      plane's end would need are zero. Then the barrier.
//   3. Four sums, and for each tap one product of each.
//   4. The outputs that exist are stored.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

constexpr int kRows = 16, kColumns = 32;  // outputs of a block
constexpr int kOutputs = 4;               // of a thread, in a column
constexpr int kThreads = kRows / kOutputs * kColumns;

// Positions of the input that so many outputs in a row reach.
__host__ __device__ __forceinline__ std::int64_t reach(int outputs, int stride, int taps, int dilation) {
  return std::int64_t{outputs - 1} * stride + std::int64_t{taps - 1} * dilation + 1;
}
// The tile in shared memory: for whole threads' outputs, but for no more of them than the plane has.
__host__ __device__ __forceinline__ std::int64_t tile_rows(const Depthwise& d) {
  const int rows = blocks_for(d.out_height, kOutputs) * kOutputs;
  return reach(rows < kRows ? rows : kRows, d.stride_y, d.rows, d.dilation_y);
}
__host__ __device__ __forceinline__ std::int64_t tile_columns(const Depthwise& d) {
  return reach(d.out_width < kColumns ? d.out_width : kColumns, d.stride_x, d.columns, d.dilation_x);
}

__global__ void __launch_bounds__(kThreads)
    depthwise_hand_unrolled(const float* input,   // [batch][channels][height][width]
                            const float* filter,  // [channels][rows][columns]
                            float* output,        // [batch][channels][out_height][out_width]
                            Depthwise d) {
  const int height = static_cast<int>(tile_rows(d)), width = static_cast<int>(tile_columns(d));
  const int count = static_cast<int>(filter_plane(d));
  float* const tile = dynamic_shared<float>();  // [height][width]
  float* const taps = tile + height * width;    // [rows][columns]
  // 1.
  const int across = blocks_for(d.out_width, kColumns), down = blocks_for(d.out_height, kRows);
  const int thread = threadIdx.x, block = blockIdx.x, nc = block / across / down;
  const int first_p = block / across % down * kRows, first_q = block % across * kColumns;

  // 2.
  const float* in = input + nc * input_plane(d);
  const int top = first_p * d.stride_y - d.pad_y, left = first_q * d.stride_x - d.pad_x;
  const auto used_rows = reach(min(kRows, d.out_height - first_p), d.stride_y, d.rows, d.dilation_y);
  const auto used_columns = reach(min(kColumns, d.out_width - first_q), d.stride_x, d.columns, d.dilation_x);
  for (int at = thread; at < height * width; at += kThreads) {
    const int y = at / width, x = at % width;
    const bool used = y < used_rows && x < used_columns;
    const int i = used ? border_index(top + y, d.height, d.padding) : -1;
    const int j = used ? border_index(left + x, d.width, d.padding) : -1;
    tile[at] = i >= 0 && j >= 0 ? in[static_cast<std::int64_t>(i) * d.width + j] : 0.0f;
  }
  for (int at = thread; at < count; at += kThreads) taps[at] = filter[nc % d.channels * filter_plane(d) + at];
  __syncthreads();

  // 3.
  const int p = first_p + thread / kColumns * kOutputs, q = first_q + thread % kColumns;
  if (p >= d.out_height || q >= d.out_width) return;
  const float* window = tile + ((p - first_p) * d.stride_y * width + (q - first_q) * d.stride_x);
  const int next = d.stride_y * width;  // to the window of the output below
  float sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
  for (int r = 0; r < d.rows; ++r) {
    for (int s = 0; s < d.columns; ++s) {
      const float tap = taps[r * d.columns + s];
      const float* pixel = window + r * d.dilation_y * width + s * d.dilation_x;
      sum0 += pixel[0] * tap;
      sum1 += pixel[next] * tap;
      sum2 += pixel[2 * next] * tap;
      sum3 += pixel[3 * next] * tap;
    }
  }

  // 4.
  float* out = output + nc * output_plane(d) + static_cast<std::int64_t>(p) * d.out_width + q;
  out[0] = sum0;
  if (p + 1 < d.out_height) out[d.out_width] = sum1;
  if (p + 2 < d.out_height) out[std::int64_t{2} * d.out_width] = sum2;
  if (p + 3 < d.out_height) out[std::int64_t{3} * d.out_width] = sum3;
}

// ---- The host side --------------------------------------------------------------------------------------------------

std::int64_t shared_bytes(const Depthwise& d) { return 4 * (tile_rows(d) * tile_columns(d) + filter_plane(d)); }

std::int64_t blocks_of(const Depthwise& d) {
  return std::int64_t{planes(d)} * blocks_for(d.out_height, kRows) * blocks_for(d.out_width, kColumns);
}

class HandUnrolled final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    if (const Verdict verdict = check_depthwise(problem); !verdict.accepted()) return verdict;
    const Depthwise d = depthwise_of(problem);
    // Each alone, since their product may be beyond 64 bits.
    if (tile_rows(d) > limits.shared_bytes_per_block || tile_columns(d) > limits.shared_bytes_per_block ||
        shared_bytes(d) > limits.shared_bytes_per_block)
      return Verdict::refuse("tile and filter must fit in {} bytes of shared memory; got a tile of {} x {} floats",
                             limits.shared_bytes_per_block, tile_rows(d), tile_columns(d));
    if (blocks_of(d) > INT32_MAX) return Verdict::refuse("a grid has at most 2^31 - 1 blocks; got {}", blocks_of(d));
    return Verdict::accept();
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Depthwise d = depthwise_of(problem);
    convladder::launch(depthwise_hand_unrolled, static_cast<unsigned>(blocks_of(d)), kThreads,
                       static_cast<std::size_t>(shared_bytes(d)),
                       stream)(tensors.input, tensors.filter, tensors.output, d);
  }

  // A tap takes five loads of a warp. Warps whose outputs all lie below the plane's end have none.
  Prediction predict(const ConvProblem& problem) const override {
    const Depthwise d = depthwise_of(problem);
    const std::int64_t warps =
        std::int64_t{planes(d)} * blocks_for(d.out_height, kOutputs) * blocks_for(d.out_width, kColumns);
    const std::int64_t taps = filter_plane(d);
    Prediction p;
    p.global_load_bytes = 4 * (planes(d) * reads_by_tile(vertical(d), kRows) * reads_by_tile(horizontal(d), kColumns) +
                               blocks_of(d) * taps);
    p.global_store_bytes = 4 * planes(d) * output_plane(d);
    p.shared_load_requests = warps * taps * (kOutputs + 1);
    p.shared_store_requests = blocks_of(d) * ((tile_rows(d) * tile_columns(d) - 1) / 32 + 1 + (taps - 1) / 32 + 1);
    if (d.stride_x % 2 == 1) p.shared_load_conflicts = 0;
    p.shared_store_conflicts = p.constant_load_requests = p.atomic_requests = 0;
    p.barriers = blocks_of(d);
    p.flops = 2 * planes(d) * output_plane(d) * taps;
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::HandUnrolled)
