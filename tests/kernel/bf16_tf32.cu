// Conversions of floats to bf16 and TF32.
#include "common/kernel/bf16_tf32.hpp"
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

}  // namespace

void launch_bf16_tf32(const float* input, std::uint32_t* tf32, std::uint32_t* pairs, float* back, int n,
                      Stream stream) {
  launch(convert, static_cast<unsigned>((n / 2 + 127) / 128), 128, 0, stream)(input, tf32, pairs, back, n);
}

}  // namespace convladder
