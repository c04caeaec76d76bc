// Conversions of floats to bf16 and TF32; words of two halves or bf16.
#include "common/kernel/bf16_tf32.hpp"
#include "common/kernel/half_or_bf16.hpp"
#include "tests/kernel/bf16_tf32.hpp"

namespace convladder {
namespace {

__global__ void convert(const float* input, unsigned* tf32, unsigned* pairs, float* back, int n) {
  const int i = 2 * static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  tf32[i] = tf32_bits(input[i]);
  tf32[i + 1] = tf32_bits(input[i + 1]);
  pairs[i / 2] = bf16_pair(input[i], input[i + 1]);
  back[i] = bf16_low(pairs[i / 2]);
  back[i + 1] = bf16_high(pairs[i / 2]);
}

template <class T>
__global__ void combine(const float* input, unsigned* pairs, unsigned* sums, unsigned* differences, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n / 4) return;
  const unsigned a = pair_of(rounded_to<T>(input[4 * i]), rounded_to<T>(input[4 * i + 1])),
                 b = rounded_pair<T>(input[4 * i + 2], input[4 * i + 3]);
  pairs[2 * i] = a;
  pairs[2 * i + 1] = b;
  sums[i] = add_pairs<T>(a, b);
  differences[i] = subtract_pairs<T>(a, b);
}

}  // namespace

void launch_pairs(bool bf16, const float* input, std::uint32_t* pairs, std::uint32_t* sums, std::uint32_t* differences,
                  int n, Stream stream) {
  launch(bf16 ? combine<bfloat16> : combine<half>, static_cast<unsigned>((n / 4 + 127) / 128), 128, 0, stream)(
      input, pairs, sums, differences, n);
}

void launch_bf16_tf32(const float* input, std::uint32_t* tf32, std::uint32_t* pairs, float* back, int n,
                      Stream stream) {
  launch(convert, static_cast<unsigned>((n / 2 + 127) / 128), 128, 0, stream)(input, tf32, pairs, back, n);
}

}  // namespace convladder
