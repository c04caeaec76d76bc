// Halves: each conversion and operation, over whole arrays; and arithmetic of bytes and floats that the int8 stage
// needs.
#include "common/kernel/kernel.hpp"
#include "tests/kernel/halves.hpp"
//
#include "common/kernel/half.hpp"

namespace convladder {
namespace {

__global__ void half_to_float(const half* input, float* output, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) output[i] = __half2float(input[i]);
}

__global__ void float_to_half(const float* input, half* output, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) output[i] = __float2half_rn(input[i]);
}

__global__ void half_operations(const half* a, const half* b, const half* c, half* output, int n) {  // [9][n]
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const half x = a[i], y = b[i], z = c[i];
  output[i] = __hadd(x, y);
  output[n + i] = __hsub(x, y);
  output[2 * n + i] = __hmul(x, y);
  output[3 * n + i] = x / y;
  output[4 * n + i] = __hfma(x, y, z);
  output[5 * n + i] = __hmax(x, y);
  output[6 * n + i] = __hmin(x, y);
  output[7 * n + i] = __hneg(x);
  output[8 * n + i] = __habs(x);
}

// The same, two at a time.
__global__ void half2_operations(const half2* a, const half2* b, const half2* c, half2* output, int n) {  // [9][n]
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const half2 x = a[i], y = b[i], z = c[i];
  output[i] = __hadd2(x, y);
  output[n + i] = __hsub2(x, y);
  output[2 * n + i] = __hmul2(x, y);
  output[3 * n + i] = x / y;
  output[4 * n + i] = __hfma2(x, y, z);
  output[5 * n + i] = __hmax2(x, y);
  output[6 * n + i] = __hmin2(x, y);
  output[7 * n + i] = __hneg2(x);
  output[8 * n + i] = __habs2(x);
}

__global__ void half_operators(const half* a, half* output) {  // [9]
  half x = a[0];
  const half y = a[1];
  half2 pair = make_half2(x, y);
  const half2 twice = __half2half2(y);
  const bool ordered = x < y && x <= y && y > x && y >= x && x != y && x == x;
  output[0] = x + y;
  output[1] = -x;
  x += y;
  x -= half(1);
  x *= y;
  output[2] = x;
  pair += twice;
  pair *= twice;
  pair -= __float2half2_rn(0.5f);
  output[3] = __low2half(pair);
  output[4] = __high2half(-pair);
  output[5] = __float2half(__low2float(pair) + __high2float(pair));
  const float2 floats = __half22float2(__halves2half2(x, y));
  const half2 back = __floats2half2_rn(floats.y, floats.x), same = __float22half2_rn(floats);
  output[6] = back.x + same.y;
  output[7] = half(ordered ? 1 : 0);
  output[8] = half(0.25) + half(2u);
}

__global__ void bytes_and_rounding(const float* input, int* output, int n) {  // [n], 3
  for (int i = threadIdx.x; i < n; i += blockDim.x) output[i] = __float2int_rn(input[i]);
  const char4 a = make_char4(-128, 2, 127, -1), b = make_char4(-128, 3, -4, 5);
  const int packed = *reinterpret_cast<const int*>(&a);
  if (threadIdx.x == 0) {
    output[n] = __dp4a(packed, *reinterpret_cast<const int*>(&b), 1000);
    output[n + 1] = packed;
    output[n + 2] = __float2int_rn(1e6f * __fmaf_rn(1.0f / 3, 3.0f, -1.0f) + rintf(2.5f) + fmaxf(1, 3) + fabsf(-4));
  }
}

int blocks(int n) { return (n + 127) / 128; }
const half* halves(const std::uint16_t* bits) { return reinterpret_cast<const half*>(bits); }
half* halves(std::uint16_t* bits) { return reinterpret_cast<half*>(bits); }
const half2* pairs(const std::uint16_t* bits) { return reinterpret_cast<const half2*>(bits); }

}  // namespace

void launch_half_to_float(const std::uint16_t* input, float* output, int n, Stream stream) {
  launch(half_to_float, blocks(n), 128, 0, stream)(halves(input), output, n);
}
void launch_float_to_half(const float* input, std::uint16_t* output, int n, Stream stream) {
  launch(float_to_half, blocks(n), 128, 0, stream)(input, halves(output), n);
}
void launch_half_operations(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                            std::uint16_t* output, int n, bool in_pairs, Stream stream) {
  if (in_pairs)
    launch(half2_operations, blocks(n / 2), 128, 0, stream)(pairs(a), pairs(b), pairs(c),
                                                            reinterpret_cast<half2*>(output), n / 2);
  else
    launch(half_operations, blocks(n), 128, 0, stream)(halves(a), halves(b), halves(c), halves(output), n);
}
void launch_half_operators(const std::uint16_t* input, std::uint16_t* output, Stream stream) {
  launch(half_operators, 1, 1, 0, stream)(halves(input), halves(output));
}
void launch_bytes_and_rounding(const float* input, int* output, int n, Stream stream) {
  launch(bytes_and_rounding, 1, 32, 0, stream)(input, output, n);
}

}  // namespace convladder
