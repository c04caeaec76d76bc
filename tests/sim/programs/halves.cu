// > sums: 20.5 3 5 20 3 5
// > functions: 0 of 9 wrong
// > 16 bits: 74 65535
// > two results: 0 1 3 0.25 0.5 3
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdio.h>
struct Sums {
  __half one;
  __half2 two;
  __nv_bfloat16 brain;
  __nv_bfloat162 brains;
  unsigned short count, low;
};
__global__ void add(Sums *sums) {
  atomicAdd(&sums->one, __float2half(0.5f));
  atomicAdd(&sums->brain, __float2bfloat16(0.5f));
  if (threadIdx.x % 40 == 0) {
    atomicAdd(&sums->two, __floats2half2_rn(1.5f, 2.5f));
    atomicAdd(&sums->brains, __floats2bfloat162_rn(1.5f, 2.5f));
  }
  unsigned short seen = sums->count, before;
  do {
    before = seen;
    seen = atomicCAS(&sums->count, before, (unsigned short)(before + (threadIdx.x < 10 ? 4 : 1)));
  } while (before != seen);
  atomicCAS(&sums->low, (unsigned short)3, (unsigned short)65535);
}
__global__ void functions(float *out) {
  const __half x = __float2half(1.5f);
  const __half2 pair = __floats2half2_rn(0.25f, 4.f);
  out[0] = __half2float(hexp(x));
  out[1] = __half2float(hsqrt(x)) + __half2float(hrcp(x));
  out[2] = __low2float(h2sqrt(pair)) + __high2float(h2rsqrt(pair));
  out[3] = __half2float(__hadd_sat(x, x));
  out[4] = __half2int_rn(__float2half(2.5f)) + __half2int_ru(x);
  out[5] = __hisnan(__float2half(nanf(""))) + 2 * __heq(x, __float2half(1.5f));
  out[6] = __half2float(__hmax(x, __float2half(-2.f))) + __bfloat162float(hexp(__float2bfloat16(0.f)));
  out[7] = __half_as_ushort(__float2half_rz(1.0009f)) - __half_as_ushort(__float2half_ru(1.0001f));
  __half counted = x;
  counted += x;
  ++counted;
  out[8] = counted;
}
/// The library stores what these functions have besides their value.
__global__ void two_results(float *out, float angle, float mixed, float number) {
  sincosf(angle, &out[0], &out[1]);
  out[3] = modff(mixed, &out[2]);
  out[4] = frexpf(number, (int *)&out[5]);
}
__global__ void copy(float *to, const float *from) { to[threadIdx.x] = from[threadIdx.x]; }
int main() {
  Sums *sums;
  float *out;
  cudaMallocManaged(&sums, sizeof(Sums));
  cudaMallocManaged(&out, 9 * sizeof(float));
  sums->one = __float2half(0.5f);
  sums->two = __floats2half2_rn(0.f, 0.f);
  sums->brain = __float2bfloat16(0.f);
  sums->brains = __floats2bfloat162_rn(0.f, 0.f);
  sums->count = 0;
  sums->low = 3;
  add<<<1, 40>>>(sums);
  cudaDeviceSynchronize();
  add<<<1, 1>>>(sums);
  functions<<<1, 1>>>(out);
  cudaDeviceSynchronize();
  printf("sums: %g %g %g %g %g %g\n", (float)sums->one - 0.5f, (float)sums->two.x, (float)sums->two.y,
         (float)sums->brain - 0.5f, (float)sums->brains.x, (float)sums->brains.y);
  const float right[] = {expf(1.5f), sqrtf(1.5f) + 1 / 1.5f, 1.f, 1.f, 4.f, 3.f, 2.5f, -1.f, 4.f};
  int wrong = 0;
  for (int i = 0; i < 9; ++i) wrong += !(fabsf(out[i] - right[i]) < 4e-3f);
  printf("functions: %d of 9 wrong\n", wrong);
  for (int i = 0; wrong && i < 9; ++i) printf("%g %g\n", out[i], right[i]);
  printf("16 bits: %d %d\n", sums->count, sums->low);
  float *results;
  cudaMalloc(&results, 6 * sizeof(float));
  two_results<<<1, 1>>>(results, 0.f, 3.25f, 4.f);
  copy<<<1, 6>>>(out, results);
  cudaDeviceSynchronize();
  printf("two results: %g %g %g %g %g %d\n", out[0], out[1], out[2], out[3], out[4], *(int *)&out[5]);
  cudaFree(results);
  cudaFree(sums);
  cudaFree(out);
}
