// Layer norm, RMS norm and online softmax as in training codes: warps reduce by shuffles, blocks through shared memory.
// > layernorm ok
// > rmsnorm ok
// > softmax ok
#include <cfloat>
#include <cmath>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <memory>
#include <random>

namespace cg = cooperative_groups;
template <typename T> using Reducer = T (*)(T);
using reduction_func_t = float (*)(float);

template <class T>
__host__ __device__ T ceil_div(T dividend, T divisor) { return (dividend + divisor - 1) / divisor; }

__device__ inline float warpReduceSum(float val) {
  for (int offset = 16; offset > 0; offset /= 2) val += __shfl_xor_sync(0xFFFFFFFF, val, offset);
  return val;
}
__device__ inline float warpReduceMax(float val) {
  for (int offset = 16; offset > 0; offset /= 2) val = fmaxf(val, __shfl_xor_sync(0xFFFFFFFF, val, offset));
  return val;
}
template <reduction_func_t warp_reduction>
__device__ inline float blockReduce(float val, bool final_sync = false, float out_of_bounds = 0.0f) {
  __shared__ float shared_val[32];
  const int lane_id = threadIdx.x % 32, warp_id = threadIdx.x / 32, num_warps = blockDim.x / 32;
  float warp_val = warp_reduction(val);
  if (lane_id == 0) { shared_val[warp_id] = warp_val; }
  __syncthreads();
  warp_val = (lane_id < num_warps) ? shared_val[lane_id] : out_of_bounds;
  float block_val = warp_reduction(warp_val);
  if (final_sync) { __syncthreads(); }
  return block_val;
}

__global__ void layernorm_forward_kernel(float *__restrict__ out, float *__restrict__ mean, float *__restrict__ rstd,
                                         const float *__restrict__ inp, const float *__restrict__ weight,
                                         const float *__restrict__ bias, int N, int C) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (idx >= N) return;
  const float *x = inp + idx * C;
  float sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) sum += x[i];
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  float m = sum / C;
  if (warp.thread_rank() == 0 && mean != nullptr) __stcs(mean + idx, m);
  sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) {
    float diff = x[i] - m;
    sum += diff * diff;
  }
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  float s = rsqrtf(sum / C + 1e-5f);
  if (warp.thread_rank() == 0 && rstd != nullptr) __stcs(rstd + idx, s);
  float *o = out + idx * C;
  for (int c = warp.thread_rank(); c < C; c += warp.size())
    __stcs(o + c, s * (__ldcs(x + c) - m) * weight[c] + bias[c]);
}

template <int VEC>
__global__ void rmsnorm(float *out, const float *in, const float *weight, int C) {
  using V = float4;
  static_assert(VEC == sizeof(V) / sizeof(float), "");
  const V *row = reinterpret_cast<const V *>(in + blockIdx.x * C);
  float sum = 0;
  for (int i = threadIdx.x; i < C / VEC; i += blockDim.x) {
    const V v = __ldg(&row[i]);
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  const float scale = rsqrtf(blockReduce<warpReduceSum>(sum) / C + 1e-6f);
  for (int i = threadIdx.x; i < C; i += blockDim.x) out[blockIdx.x * C + i] = in[blockIdx.x * C + i] * scale * weight[i];
}

struct __align__(8) SumMax { float maxval, sum; };
__device__ __forceinline__ SumMax reduce_sum_max_op(SumMax a, SumMax b) {
  bool a_bigger = (a.maxval > b.maxval);
  SumMax bigger_m = a_bigger ? a : b, smaller_m = a_bigger ? b : a, res;
  res.maxval = bigger_m.maxval;
  res.sum = bigger_m.sum + smaller_m.sum * expf(smaller_m.maxval - bigger_m.maxval);
  return res;
}
__global__ void softmax_online(float *out, const float *inp, int N, int C) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (idx >= N) return;
  const float *x = inp + idx * C;
  SumMax mine = {-FLT_MAX, 0.0f};
  for (int i = warp.thread_rank(); i < C; i += warp.size()) mine = reduce_sum_max_op(mine, {x[i], 1.0f});
  SumMax all = cg::reduce(warp, mine, reduce_sum_max_op);
  for (int i = warp.thread_rank(); i < C; i += warp.size()) out[idx * C + i] = __expf(x[i] - all.maxval) / all.sum;
}

int main() {
  const int N = 6, C = 96;
  std::mt19937 engine(42);
  std::normal_distribution<float> normal(1.0f, 2.0f);
  float *x, *w, *b, *out, *mean, *rstd;
  for (float **p : {&x, &out}) cudaMallocManaged(p, N * C * sizeof(float));
  for (float **p : {&w, &b}) cudaMallocManaged(p, C * sizeof(float));
  for (float **p : {&mean, &rstd}) cudaMallocManaged(p, N * sizeof(float));
  for (int i = 0; i < N * C; i++) x[i] = normal(engine);
  for (int i = 0; i < C; i++) w[i] = 1 + i * 0.01f, b[i] = i * 0.1f;
  auto row = [&](int n) { return x + n * C; };
  layernorm_forward_kernel<<<ceil_div(N * 32, 64), 64>>>(out, mean, rstd, x, w, b, N, C);
  cudaDeviceSynchronize();
  bool ok = true;
  for (int n = 0; n < N; n++) {
    double m = 0, v = 0;
    for (int c = 0; c < C; c++) m += row(n)[c] / C;
    for (int c = 0; c < C; c++) v += (row(n)[c] - m) * (row(n)[c] - m) / C;
    for (int c = 0; c < C; c++)
      ok &= std::abs((row(n)[c] - m) / std::sqrt(v + 1e-5) * w[c] + b[c] - out[n * C + c]) < 1e-3;
    ok &= std::abs(mean[n] - m) < 1e-4;
  }
  printf("layernorm %s\n", ok ? "ok" : "WRONG");
  rmsnorm<4><<<N, 64>>>(out, x, w, C);
  cudaDeviceSynchronize();
  for (int n = 0; n < N; n++) {
    double v = 0;
    for (int c = 0; c < C; c++) v += double(row(n)[c]) * row(n)[c] / C;
    for (int c = 0; c < C; c++) ok &= std::abs(row(n)[c] / std::sqrt(v + 1e-6) * w[c] - out[n * C + c]) < 1e-3;
  }
  printf("rmsnorm %s\n", ok ? "ok" : "WRONG");
  softmax_online<<<ceil_div(N * 32, 64), 64>>>(out, x, N, C);
  cudaDeviceSynchronize();
  for (int n = 0; n < N; n++) {
    double sum = 0;
    for (int c = 0; c < C; c++) sum += out[n * C + c];
    ok &= std::abs(sum - 1) < 1e-4;
  }
  printf("softmax %s\n", ok ? "ok" : "WRONG");
  for (float *p : {x, w, b, out, mean, rstd}) cudaFree(p);
}
