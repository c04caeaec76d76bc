/// @file
/// cuRAND's generators within kernels: XORWOW with NVIDIA's own numbers, Philox, and for MRG32k3a's name XORWOW again.
#pragma once
#include "common/cuda/include/curand.h"

/// @cond
struct curandStateXORWOW {
  unsigned d, v[5];
  int has_normal, has_normal_double;
  float normal;
  double normal_double;
};
typedef curandStateXORWOW curandStateXORWOW_t, curandState_t, curandState, curandStateMRG32k3a, curandStateMRG32k3a_t;
struct curandStatePhilox4_32_10 {
  uint4 counter, output;
  uint2 key;
  unsigned used;
  int has_normal, has_normal_double;
  float normal;
  double normal_double;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

namespace simt_cuda {
/// The state of the sequence that begins 2^67 numbers after the one before it, `offset` numbers on.
void xorwow_begin(unsigned long long seed, unsigned long long sequence, unsigned long long offset, unsigned* d,
                  unsigned* v);
void xorwow_skip(unsigned long long numbers, unsigned* d, unsigned* v);
/// Ten rounds.
void philox(const unsigned* counter, const unsigned* key, unsigned* output);
unsigned poisson(double mean, double uniform) noexcept;

__forceinline__ void next_block(curandStatePhilox4_32_10* state) {
  const unsigned counter[4] = {state->counter.x, state->counter.y, state->counter.z, state->counter.w};
  const unsigned key[2] = {state->key.x, state->key.y};
  unsigned output[4];
  {
    const Unseen unseen;
    philox(counter, key, output);
  }
  state->output = uint4(output[0], output[1], output[2], output[3]);
}
__forceinline__ void advance(curandStatePhilox4_32_10* state, unsigned long long blocks) {
  const unsigned long long low = state->counter.x | static_cast<unsigned long long>(state->counter.y) << 32;
  const unsigned long long sum = low + blocks;
  unsigned z = state->counter.z, w = state->counter.w;
  if (sum < low && ++z == 0) ++w;
  state->counter = uint4(static_cast<unsigned>(sum), static_cast<unsigned>(sum >> 32), z, w);
}
}  // namespace simt_cuda

__forceinline__ void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                                 curandStateXORWOW* state) {
  unsigned d, v[5];
  {
    const simt_cuda::Unseen unseen;
    simt_cuda::xorwow_begin(seed, sequence, offset, &d, v);
  }
  state->d = d;
  for (int i = 0; i < 5; ++i) state->v[i] = v[i];
  state->has_normal = state->has_normal_double = 0;
  state->normal = 0;
  state->normal_double = 0;
}
__forceinline__ void skipahead(unsigned long long numbers, curandStateXORWOW* state) {
  unsigned d = state->d, v[5];
  for (int i = 0; i < 5; ++i) v[i] = state->v[i];
  {
    const simt_cuda::Unseen unseen;
    simt_cuda::xorwow_skip(numbers, &d, v);
  }
  state->d = d;
  for (int i = 0; i < 5; ++i) state->v[i] = v[i];
}
__forceinline__ unsigned curand(curandStateXORWOW* state) {
  const unsigned t = state->v[0] ^ state->v[0] >> 2;
  for (int i = 0; i < 4; ++i) state->v[i] = state->v[i + 1];
  state->v[4] = (state->v[4] ^ state->v[4] << 4) ^ (t ^ t << 1);
  state->d += 362437;
  return state->v[4] + state->d;
}

__forceinline__ void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                                 curandStatePhilox4_32_10* state) {
  state->key = uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
  state->counter = uint4(0, 0, static_cast<unsigned>(sequence), static_cast<unsigned>(sequence >> 32));
  state->used = static_cast<unsigned>(offset & 3);
  state->has_normal = state->has_normal_double = 0;
  state->normal = 0;
  state->normal_double = 0;
  simt_cuda::advance(state, offset / 4);
  simt_cuda::next_block(state);
}
__forceinline__ unsigned curand(curandStatePhilox4_32_10* state) {
  const unsigned used = state->used++;
  const unsigned result = used == 0   ? state->output.x
                          : used == 1 ? state->output.y
                          : used == 2 ? state->output.z
                                      : state->output.w;
  if (state->used == 4) {
    simt_cuda::advance(state, 1);
    simt_cuda::next_block(state);
    state->used = 0;
  }
  return result;
}
__forceinline__ uint4 curand4(curandStatePhilox4_32_10* state) {
  const unsigned x = curand(state), y = curand(state), z = curand(state), w = curand(state);
  return uint4(x, y, z, w);
}

/// In (0, 1].
namespace simt_cuda {
__forceinline__ float uniform(unsigned x) { return x * 2.3283064e-10f + 2.3283064e-10f / 2; }
__forceinline__ double uniform_double(unsigned x, unsigned y) {
  return (static_cast<unsigned long long>(x) ^ static_cast<unsigned long long>(y) << 21) * 0x1p-53 + 0x1p-54;
}
__forceinline__ float2 normals(unsigned x, unsigned y) {
  const float u = uniform(x), v = y * (2.3283064e-10f * 6.2831855f) + 2.3283064e-10f * 6.2831855f / 2;
  const float s = sqrtf(-2.0f * logf(u));
  return float2(s * sinf(v), s * cosf(v));
}
}  // namespace simt_cuda
template <class State>
__forceinline__ float curand_uniform(State* state) {
  return simt_cuda::uniform(curand(state));
}
template <class State>
__forceinline__ double curand_uniform_double(State* state) {
  const unsigned x = curand(state), y = curand(state);
  return simt_cuda::uniform_double(x, y);
}
template <class State>
__forceinline__ float2 curand_normal2(State* state) {
  const unsigned x = curand(state), y = curand(state);
  return simt_cuda::normals(x, y);
}
template <class State>
__forceinline__ double2 curand_normal2_double(State* state) {
  const double u = curand_uniform_double(state), v = curand_uniform_double(state);
  const double s = sqrt(-2.0 * log(u));
  return double2{s * sin(2 * M_PI * v), s * cos(2 * M_PI * v)};
}
template <class State>
__forceinline__ float curand_normal(State* state) {
  if (state->has_normal) {
    state->has_normal = 0;
    return state->normal;
  }
  const float2 two = curand_normal2(state);
  state->has_normal = 1;
  state->normal = two.y;
  return two.x;
}
template <class State>
__forceinline__ double curand_normal_double(State* state) {
  if (state->has_normal_double) {
    state->has_normal_double = 0;
    return state->normal_double;
  }
  const double2 two = curand_normal2_double(state);
  state->has_normal_double = 1;
  state->normal_double = two.y;
  return two.x;
}
template <class State>
__forceinline__ float curand_log_normal(State* state, float mean, float deviation) {
  return expf(mean + deviation * curand_normal(state));
}
template <class State>
__forceinline__ double curand_log_normal_double(State* state, double mean, double deviation) {
  return exp(mean + deviation * curand_normal_double(state));
}
template <class State>
__forceinline__ unsigned curand_poisson(State* state, double mean) {
  return simt_cuda::poisson(mean, curand_uniform_double(state));
}
__forceinline__ float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  const uint4 x = curand4(state);
  return float4(simt_cuda::uniform(x.x), simt_cuda::uniform(x.y), simt_cuda::uniform(x.z), simt_cuda::uniform(x.w));
}
__forceinline__ float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const uint4 x = curand4(state);
  const float2 a = simt_cuda::normals(x.x, x.y), b = simt_cuda::normals(x.z, x.w);
  return float4(a.x, a.y, b.x, b.y);
}
/// @endcond
