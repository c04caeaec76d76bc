// 39, exercise: four channels, four outputs.
//
// A thread of stage 39 loads 4 bytes at a time, two channels of a pixel. Here it has four channels, so that a load has
// 8 bytes, and four outputs in a row of the image, whose windows are nearly the same pixels.
//
//   1. The thread's four channels, and its strip of outputs.
//   2. For each row of taps: the window goes along the row. It holds the pixels of the four outputs for one tap; for
//      the next tap three of them move up, and one is loaded.
//   3. A tap, loaded once, serves the four outputs.
//   4. The sums are rounded, and stored 8 bytes at a time.
//
// Rules: blocks of 128 threads, a thread for each strip of four outputs and four channels. Any depthwise problem of
// stride 1 and dilation 1 whose channels are a multiple of 4. Sums in fp32. Graded: the outputs without padding, with
// every padding, and of every size; no fault; loads of 8 bytes, each pixel of a row once a strip, each tap once for
// four outputs; stores of 8 bytes.

#include "common/kernel/border.hpp"
#include "common/kernel/half.hpp"
#include "common/kernel/tracks/depthwise.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kStrip = 4;  // outputs of a thread, side by side
constexpr int kFour = 4;   // channels of a thread

// Four channels, from 8 bytes of memory, and to them.
__device__ __forceinline__ float4 load_four(const half* from) {
  const uint2 words = *reinterpret_cast<const uint2*>(from);
  const float2 low = __half22float2(reinterpret_cast<const half2&>(words.x));
  const float2 high = __half22float2(reinterpret_cast<const half2&>(words.y));
  return make_float4(low.x, low.y, high.x, high.y);
}
__device__ __forceinline__ void store_four(half* to, const float4& value) {
  uint2 words;
  reinterpret_cast<half2&>(words.x) = __floats2half2_rn(value.x, value.y);
  reinterpret_cast<half2&>(words.y) = __floats2half2_rn(value.z, value.w);
  *reinterpret_cast<uint2*>(to) = words;
}
__device__ __forceinline__ void add_product(float4& sum, const float4& a, const float4& b) {
  sum.x += a.x * b.x;
  sum.y += a.y * b.y;
  sum.z += a.z * b.z;
  sum.w += a.w * b.w;
}

// The column or row of input that a position of the padded plane reads, or -1.
__device__ __forceinline__ int source_of(int at, int size, int pad, Padding padding) {
  return at >= -pad && at < size + pad ? border_index(at, size, padding) : -1;
}

// The filter as halves, [rows][columns][channels].
__global__ void turn_filter(const float* filter, half* taps, Depthwise d) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < filter_plane(d) * d.channels)
    taps[i] = __float2half(filter[i % d.channels * filter_plane(d) + i / d.channels]);
}

__global__ void __launch_bounds__(kThreads) depthwise_fours(const half* input,  // [batch][height][width][channels]
                                                            const half* taps,   // [rows][columns][channels]
                                                            half* output,  // [batch][out_height][out_width][channels]
                                                            Depthwise d) {
  // 1.
  const std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int across = blocks_for(d.out_width, kStrip), fours = d.channels / kFour;
  if (id >= static_cast<std::int64_t>(d.batch) * d.out_height * across * fours) return;
  const int channel = static_cast<int>(id % fours) * kFour, q = static_cast<int>(id / fours % across) * kStrip;
  const std::int64_t row_of_outputs = id / fours / across;  // of all images
  const int p = static_cast<int>(row_of_outputs % d.out_height);
  const half* const in = input + row_of_outputs / d.out_height * input_plane(d) * d.channels + channel;
  half* const out = output + (row_of_outputs * d.out_width + q) * d.channels + channel;

  float4 sums[kStrip] = {};
  for (int r = 0; r < d.rows; ++r) {
    const int y = source_of(p - d.pad_y + r, d.height, d.pad_y, d.padding);
    if (y < 0) continue;
    const half* const row = in + static_cast<std::int64_t>(y) * d.width * d.channels;
    // The four channels of the pixel that stands at column x of the padded row.
    const auto pixel = [&](int x) {
      const int column = source_of(x, d.width, d.pad_x, d.padding);
      return column < 0 ? make_float4(0, 0, 0, 0) : load_four(row + static_cast<std::int64_t>(column) * d.channels);
    };
    // SOLUTION
    // 2.
    const int left = q - d.pad_x;
    float4 window[kStrip] = {{}, pixel(left), pixel(left + 1), pixel(left + 2)};
    for (int s = 0; s < d.columns; ++s) {
      UNROLL
      for (int e = 0; e + 1 < kStrip; ++e) window[e] = window[e + 1];
      window[kStrip - 1] = pixel(left + s + kStrip - 1);
      // 3.
      const float4 tap = load_four(taps + (static_cast<std::int64_t>(r) * d.columns + s) * d.channels + channel);
      UNROLL
      for (int e = 0; e < kStrip; ++e) add_product(sums[e], window[e], tap);
    }
    // STARTER
    // | // Each output asks for its own pixels and taps, and takes the first tap of the row alone.
    // | for (int e = 0; e < kStrip; ++e) {
    // |   const float4 tap = load_four(taps + static_cast<std::int64_t>(r) * d.columns * d.channels + channel);
    // |   add_product(sums[e], pixel(q + e - d.pad_x), tap);
    // | }
    // END
  }
  // SOLUTION
  // 4.
  UNROLL
  for (int e = 0; e < kStrip; ++e)
    if (q + e < d.out_width) store_four(out + static_cast<std::int64_t>(e) * d.channels, sums[e]);
  // STARTER
  // | // Four outputs, wherever the row ends.
  // | for (int e = 0; e < kStrip; ++e) store_four(out + static_cast<std::int64_t>(e) * d.channels, sums[e]);
  // END
}

class DepthwiseFours final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_depthwise(problem);
    if (!verdict.accepted()) return verdict;
    if (problem.c % kFour != 0) return Verdict::refuse("channels must be a multiple of {}; got c={}", kFour, problem.c);
    if (problem.stride_h != 1 || problem.stride_w != 1 || problem.dilation_h != 1 || problem.dilation_w != 1)
      return Verdict::refuse("strides and dilations must be 1");
    if (blocks_of(problem) > INT32_MAX) return Verdict::refuse("a grid has at most {} blocks", INT32_MAX);
    return verdict;
  }

  static std::int64_t blocks_of(const ConvProblem& problem) {
    const std::int64_t strips = problem.n * problem.p() * ((problem.q() - 1) / kStrip + 1);
    return (strips * (problem.c / kFour) - 1) / kThreads + 1;
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    taps_.allocate<half>(problem.filter_size());
    const dim3 grid(static_cast<unsigned>((problem.filter_size() - 1) / kThreads + 1));
    ::convladder::launch(turn_filter, grid, dim3(kThreads), 0, stream)(tensors.filter, taps_.as<half>(),
                                                                       depthwise_of(problem));
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const dim3 grid(static_cast<unsigned>(blocks_of(problem)));
    ::convladder::launch(depthwise_fours, grid, dim3(kThreads), 0, stream)(tensors.half_input, taps_.as<half>(),
                                                                           tensors.half_output, depthwise_of(problem));
  }

  Workspace taps_{*this, "turned filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseFours)
