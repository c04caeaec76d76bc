// > numbers changed 0
// > relayed 10 by 5, scanned 3536, floats 3.03125 68.5 288.312
// > of four and two 500, bits 70
// Of libcu++ and the small floats: atomics with scopes, barriers, copies that end at one, pipelines; bfloat16 and fp8.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/scan.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/std/bit>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

__device__ cuda::atomic<int, cuda::thread_scope_device> ready{0};
__device__ int message;

// Each block waits for the one before, adds, and tells the next.
__global__ void relay(int* total) {
  while (ready.load(cuda::memory_order_acquire) != static_cast<int>(blockIdx.x)) {
  }
  message += static_cast<int>(blockIdx.x);
  cuda::atomic_ref<int, cuda::thread_scope_device>(*total).fetch_add(1, cuda::memory_order_relaxed);
  ready.store(static_cast<int>(blockIdx.x) + 1, cuda::memory_order_release);
}

__global__ void copies(const int* in, int* out) {
  __shared__ alignas(16) int a[64], b[64], c[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> full;
  const auto block = cg::this_thread_block();
  const unsigned t = threadIdx.x;
  if (t == 0) new (&full) cuda::barrier<cuda::thread_scope_block>(blockDim.x);
  block.sync();
  cuda::memcpy_async(block, a, in, sizeof a, full);
  auto token = full.arrive();
  while (!full.try_wait(std::move(token))) {
  }
  cg::memcpy_async(block, b, in, sizeof b);
  cg::wait(block);
  auto pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(&c[t], &in[t], sizeof(int), pipe);
  pipe.producer_commit();
  pipe.consumer_wait();
  const int sum = a[63 - t] + b[63 - t] + c[t];
  pipe.consumer_release();
  out[t] = cg::inclusive_scan(cg::tiled_partition<32>(block), sum);
}

__global__ void floats(float* out) {
  const __nv_bfloat16 a = __float2bfloat16(1.01f), b = __float2bfloat16(3.0f);
  const __nv_bfloat162 pair = __hfma2(__floats2bfloat162_rn(1, 2), __bfloat162bfloat162(b), __float2bfloat162_rn(0.5f));
  out[0] = __bfloat162float(a * b);
  out[1] = __low2float(pair) + 10 * __high2float(pair);
  out[2] = static_cast<float>(__nv_fp8_e4m3(300.0f)) + static_cast<float>(__nv_fp8_e5m2(0.3f));
  const float4 four = static_cast<float4>(__nv_fp8x4_e4m3(make_float4(1, 2, 500, -4)));
  const __half2 back(__nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_e5m2(make_float2(3, 5)).__x, __NV_E5M2));
  out[3] = four.x + four.y + four.z + four.w + __low2float(back) + 10 * __high2float(back);
  const auto beyond = __nv_cvt_float_to_fp8(470, __NV_NOSAT, __NV_E4M3);
  out[4] = beyond == 0x7f && __nv_cvt_float_to_fp8(-1e6f, __NV_NOSAT, __NV_E5M2) == 0xfc;
  out[4] += cuda::std::popcount(37u) + cuda::std::bit_ceil(37u) + cuda::std::countl_zero(cuda::std::bit_cast<unsigned>(1.0f));
}

int main() {
  int *in, *out, *total, sum;
  float* results;
  cudaMallocManaged(&in, 256);
  cudaMallocManaged(&out, 256);
  cudaMallocManaged(&total, 4);
  cudaMallocManaged(&results, 20);
  for (int i = 0; i < 64; ++i) in[i] = i;
  *total = 0;
  relay<<<5, 1>>>(total);
  cudaMemcpyFromSymbol(&sum, message, sizeof sum);
  copies<<<1, 64>>>(in, out);
  floats<<<1, 1>>>(results);
  cudaDeviceSynchronize();
  int changed = 0;  // of the numbers of fp8 and bfloat16, on their way to float and back
  for (int i = 0; i < 256; ++i) {
    __nv_fp8_e4m3 four;
    __nv_fp8_e5m2 five;
    four.__x = five.__x = static_cast<unsigned char>(i);
    const float of_four = static_cast<float>(four), of_five = static_cast<float>(five);
    if (of_four == of_four) changed += __nv_fp8_e4m3(of_four).__x != i;
    if (of_five == of_five && i % 128 != 0x7c) changed += __nv_fp8_e5m2(of_five).__x != i;
  }
  for (int i = 0; i < 65536; ++i) {
    const __nv_bfloat16 value = __ushort_as_bfloat16(static_cast<unsigned short>(i));
    const float exact = value;
    if (exact == exact) changed += __bfloat16_as_ushort(__float2bfloat16(exact)) != i;
  }
  printf("numbers changed %d\n", changed);
  printf("relayed %d by %d, scanned %d, floats %g %g %g\n", sum, *total, out[31], results[0], results[1], results[2]);
  printf("of four and two %g, bits %g\n", results[3], results[4]);
  cudaFree(in);
  cudaFree(out);
  cudaFree(total);
  cudaFree(results);
}
