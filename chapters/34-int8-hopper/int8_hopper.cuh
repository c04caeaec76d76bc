// 34 int8-hopper: the product of 32 in bytes.
//
//   q = x / step, rounded, from -127 to 127         the input has one step, the output one, and each filter its own
//   sum[filters][pixels] += q_filter[filters][channels] of a tap x q_input[channels][pixels, shifted by the tap]
//   output = sum * (input_step * filter_step / output_step), rounded, from -127 to 127
//
// Since 32: input and output have half the bytes, and a wgmma of bytes multiplies 32 channels in the time of 16. Its
// sums are exact. What is lost is lost in rounding to 8 bits: the input and the output before and after this stage, the
// filters in prepare(), each by its own largest tap. So only the epilogue is new: a sum times its filter's scale
// becomes a byte, and the bytes of two filters are stored together, as one half was. The kernels are those of 32, in
// its rows.cuh, tiles.cuh and lines.cuh, with another element.
//
//   1. In prepare(): a warp finds the step of a filter and packs its taps as bytes. Filters 2 i and 2 i + 1 of 16 are
//      rows i and i + 8 of the product: a lane that holds row i holds row i + 8, too, and so two neighbouring filters.
//   2. `rows`, 3 x 3 filters of up to 64 channels, as in 32. A pixel is 64 bytes long, with the swizzle for such rows.
//   3. As in 32, but a row of outputs is stored at once.
//   4. `tiles`, the rest: 128 channels are as long as 64 were, so nothing but the number of channels has changed.
//   5. As in 32, but the 16 bytes that a thread stores are 16 filters of a position.
//   6, 7. `lines`, as in 32.
#pragma once
#include "chapters/32-implicit-gemm-hopper/lines.cuh"
#include "chapters/32-implicit-gemm-hopper/rows.cuh"
#include "chapters/32-implicit-gemm-hopper/tiles.cuh"

namespace convladder {
namespace {

constexpr float kLargest = 127.0f;
constexpr float kLeastStep = 0x1p-126f;                  // of a filter of zeros
constexpr double kMostScale = 0x1.fffffep127;            // a float, not infinity: a sum of zero stays zero
constexpr int kMostProducts = 0x7fffffff / (127 * 127);  // whose sum always fits in 32 bits

// The element of both kernels, with what TwoBytes of 32 has.
struct Bytes {
  static constexpr bool kFused = false;
  using Value = std::int8_t;
  using Operand = std::int8_t;
  using Sum = int;
  using FourSums = int4;
  using StripSizes = Positions<64, 112, 160, 240>;  // a wgmma of bytes has a multiple of 16
  using TileSizes = Positions<64, 128, 208, 224, 240, 256>;
  using AnyTileSizes = Positions<64, 96, 128, 192, 256>;
  using LineSizes = Positions<32, 64, 96, 112, 128, 192, 224, 256>;
  static constexpr const char *kStripWords = "64, 112, 160 or 240", *kTileWords = "64, 128, 208, 224, 240 or 256",
                              *kAnyTileWords = "64, 96, 128, 192 or 256",
                              *kLineWords = "32, 64, 96, 112, 128, 192, 224 or 256";
  static constexpr int kBytes = 1;
  static constexpr int kTapsOfLoad = kTaps;
  static constexpr int row_slots(int) { return 10; }
  static constexpr int row_stores(int) { return 1; }

  struct Filters {
    const std::int8_t* packed;
    const float* scales;  // [filter block][64]: of a sum, over 254
  };
  using Scale = float2;
  static constexpr int kScaleBytes = sizeof(Scale);
  // Of the lane's two of 16 filters, from filter k on.
  static __device__ __forceinline__ Scale scale_of(const Filters& filters, int k, int lane) {
    return *reinterpret_cast<const float2*>(filters.scales + k + lane / 4 * 2);
  }
  // The output of a sum as a byte, the lowest of the result. The scale is over 254, so that -127 to 127 steps become 0
  // to 1: the instruction that multiplies saturates, too. To add 1.5 * 2^23 rounds to an integer, in the lowest bits.
  static __device__ __forceinline__ unsigned byte_of(int sum, float scale) {
    const float share = __saturatef(__fmaf_rn(static_cast<float>(sum), scale, 0.5f));
    return __float_as_uint(__fmaf_rn(share, 2 * kLargest, 0x1.8p23f - kLargest));
  }
  // Two filters of each of two pixels, from a lane's four sums.
  static __device__ __forceinline__ unsigned rounded(const int* sums, Scale scale) {
    return packed(byte_of(sums[0], scale.x), byte_of(sums[2], scale.y), byte_of(sums[1], scale.x),
                  byte_of(sums[3], scale.y));
  }
  // The lowest bytes of two filters, of a pixel and the next.
  static __device__ __forceinline__ unsigned packed(unsigned first, unsigned second, unsigned next_first,
                                                    unsigned next_second) {
    return __byte_perm(__byte_perm(first, second, 0x0040), __byte_perm(next_first, next_second, 0x0040), 0x5410);
  }

  // Up to a factor. A row of a strip is 18 wgmmas of N / 2 cycles, and takes as long as if each had 17 more; filling
  // and emptying a block half a row (measured once on an H200, strips of 112 and 240).
  static std::int64_t cycles_of_rows(int rows, int positions) {
    return (2 * std::int64_t{rows} + 1) * (positions / 2 + 17);
  }
};

// The same with an epilogue. The bias takes the place of the 0.5, and ReLU costs nothing: what becomes 0 to 1, and
// saturates, are 0 to 127 steps instead of -127 to 127.
struct FusedBytes : Bytes {
  static constexpr bool kFused = true;
  struct Range {
    float least, steps;  // of outputs: the least, and how many there are above it
  };
  static constexpr Range range_of(bool relu) { return relu ? Range{0, kLargest} : Range{-kLargest, 2 * kLargest}; }
  struct Filters : Bytes::Filters {  // the scales are over range.steps
    const float* bias;               // [filter block][64]: in shares of the range
    const std::int8_t* residual;     // as the output; or null
    float residual_scale;            // likewise
    Range range;
  };
  struct Scale {
    float2 sums, bias;
    float of_residual;
    Range range;
    bool residual;
  };
  static constexpr int kScaleBytes = 2 * sizeof(float2);
  static __device__ __forceinline__ Scale scale_of(const Filters& filters, int k, int lane) {
    return {Bytes::scale_of(filters, k, lane), *reinterpret_cast<const float2*>(filters.bias + k + lane / 4 * 2),
            filters.residual_scale, filters.range, filters.residual != nullptr};
  }
  static __device__ __forceinline__ unsigned finished(const int* sums, const Scale& scale, int, unsigned residual) {
    const auto byte = [&](int sum, float of_sum, float bias, int i) {
      const float added = static_cast<float>(static_cast<std::int8_t>(residual >> 8 * i));
      const float share =
          __saturatef(__fmaf_rn(static_cast<float>(sum), of_sum, __fmaf_rn(added, scale.of_residual, bias)));
      return __float_as_uint(__fmaf_rn(share, scale.range.steps, 0x1.8p23f + scale.range.least));
    };
    return packed(byte(sums[0], scale.sums.x, scale.bias.x, 0), byte(sums[2], scale.sums.y, scale.bias.y, 1),
                  byte(sums[1], scale.sums.x, scale.bias.x, 2), byte(sums[3], scale.sums.y, scale.bias.y, 3));
  }
};

// 1. A warp packs a filter, or zeros past the last.
template <int Pixel>
__global__ void pack(const float* filter,  // [filters][channels][order.taps][layout.columns]
                     std::int8_t* packed,  // [filter block][channel block][tap in its order][64][Pixel]
                     float* scales,        // [filter block][64]: of a sum
                     TapOrder order, InputLayout layout, int filters, int padded_filters, int channels,
                     int channel_blocks, double input_scale) {
  const int k = static_cast<int>(blockIdx.x * kThreads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (k >= padded_filters) return;
  const int size = channels * order.taps * layout.columns;
  const float* const taps = filter + k * size;
  float largest = 0.0f;
  for (int i = lane; k < filters && i < size; i += 32) largest = fmaxf(largest, fabsf(taps[i]));
  for (int bits = 16; bits > 0; bits /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, bits));
  const float step = fmaxf(largest / kLargest, kLeastStep);
  if (lane == 0) scales[k] = static_cast<float>(fmin(input_scale * step, kMostScale));
  const int of_block = k % kFilters, of_warp = of_block % kWarpFilters;
  const int row = of_block - of_warp + of_warp / 2 + of_warp % 2 * (kWarpFilters / 2);
  std::int8_t* const block = packed + k / kFilters * channel_blocks * (order.taps * kFilters * Pixel);
  for (int i = lane; i < channel_blocks * order.taps * Pixel; i += 32) {
    const int tap = i / Pixel, in_window = tap / order.taps * Pixel + i % Pixel;
    const int column = in_window / layout.channels, c = in_window % layout.channels;
    const bool inside = k < filters && column < layout.columns && c < channels;
    const int at = (c * order.taps + order.tap_of[tap % order.taps]) * layout.columns + column;
    const float steps = inside ? taps[at] / step : 0.0f;
    block[tap * kFilters * Pixel + swizzled<Pixel>(row, i % Pixel)] =
        static_cast<std::int8_t>(__float2int_rn(fminf(fmaxf(steps, -kLargest), kLargest)));
  }
}

}  // namespace
}  // namespace convladder
