// Halves: what their copies count.
#include "common/kernel/kernel.hpp"
//
#include "common/kernel/half.hpp"
#include "tests/simt/kernels.hpp"

using convladder::launch;

namespace {

__global__ void half_copies(const half* input, half* output) {  // 32 + 64 + 256 each
  __shared__ half tile[32];
  const int i = threadIdx.x;
  tile[i] = input[i];
  output[i] = tile[i];
  reinterpret_cast<half2*>(output + 32)[i] = reinterpret_cast<const half2*>(input + 32)[i];
  reinterpret_cast<uint4*>(output + 96)[i] = reinterpret_cast<const uint4*>(input + 96)[i];
}

__global__ void cache_global(const float* input, half* halves, float* output) {
  const int i = threadIdx.x;
  __stcg(halves + i, __float2half(__ldcg(input + i)));
  __stcg(output + i, __half2float(__ldcg(halves + i)));
}

const half* halves(const std::uint16_t* bits) { return reinterpret_cast<const half*>(bits); }
half* halves(std::uint16_t* bits) { return reinterpret_cast<half*>(bits); }

}  // namespace

void launch_half_copies(const std::uint16_t* input, std::uint16_t* output) {
  launch(half_copies, 1, 32, 0, nullptr)(halves(input), halves(output));
}
void launch_cache_global(const float* input, std::uint16_t* half_output, float* output) {
  launch(cache_global, 1, 32, 0, nullptr)(input, halves(half_output), output);
}
