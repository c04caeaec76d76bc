// N bodies: tiles of positions in shared memory, leapfrog steps, two buffers that change places.
// > energy kept, momentum kept
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define SOFTENING 1e-2f
constexpr int BLOCK = 64;

struct Body { float4 pos; float4 vel; };

__device__ float3 bodyBodyInteraction(float4 bi, float4 bj, float3 ai) {
  float3 r;
  r.x = bj.x - bi.x;
  r.y = bj.y - bi.y;
  r.z = bj.z - bi.z;
  float distSqr = r.x * r.x + r.y * r.y + r.z * r.z + SOFTENING;
  float invDist = rsqrtf(distSqr);
  float s = bj.w * invDist * invDist * invDist;
  ai.x += r.x * s;
  ai.y += r.y * s;
  ai.z += r.z * s;
  return ai;
}

__global__ void step(const float4 *__restrict__ old, float4 *__restrict__ next, float4 *vel, float dt, int n) {
  __shared__ float4 tile[BLOCK];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 mine = i < n ? old[i] : make_float4(0, 0, 0, 0);
  float3 acc = {0.0f, 0.0f, 0.0f};
  for (int first = 0; first < n; first += BLOCK) {
    const int j = first + threadIdx.x;
    tile[threadIdx.x] = j < n ? old[j] : make_float4(0.f, 0.f, 0.f, 0.f);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < BLOCK; k++) acc = bodyBodyInteraction(mine, tile[k], acc);
    __syncthreads();
  }
  if (i >= n) return;
  float4 v = vel[i];
  v.x += acc.x * dt, v.y += acc.y * dt, v.z += acc.z * dt;
  vel[i] = v;
  next[i] = make_float4(mine.x + v.x * dt, mine.y + v.y * dt, mine.z + v.z * dt, mine.w);
}

double energy(const std::vector<float4> &p, const std::vector<float4> &v, double *momentum) {
  double e = 0;
  *momentum = 0;
  for (size_t i = 0; i < p.size(); i++) {
    e += 0.5 * p[i].w * (v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z);
    *momentum += p[i].w * v[i].x;
    for (size_t j = 0; j < i; j++)
      e -= p[i].w * p[j].w / std::sqrt(std::pow(p[i].x - p[j].x, 2) + std::pow(p[i].y - p[j].y, 2) +
                                       std::pow(p[i].z - p[j].z, 2) + SOFTENING);
  }
  return e;
}

int main(const int argc, const char **argv) {
  int nBodies = 100;
  if (argc > 1) nBodies = atoi(argv[1]);
  std::vector<float4> pos(nBodies), vel(nBodies);
  for (auto &p : pos) p = {2.f * rand() / RAND_MAX - 1, 2.f * rand() / RAND_MAX - 1, 2.f * rand() / RAND_MAX - 1, 0.01f};
  for (float4 &v : vel) v = float4{};
  double before, after, momentum;
  before = energy(pos, vel, &momentum);
  float4 *d_pos[2], *d_vel;
  const size_t bytes = nBodies * sizeof(float4);
  for (int i = 0; i < 2; i++) cudaMalloc(&d_pos[i], bytes);
  cudaMalloc(&d_vel, bytes);
  cudaMemcpy(d_pos[0], pos.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_vel, vel.data(), bytes, cudaMemcpyHostToDevice);
  int nBlocks = (nBodies + BLOCK - 1) / BLOCK;
  for (int iter = 0; iter < 10; iter++) {
    step<<<nBlocks, BLOCK>>>(d_pos[0], d_pos[1], d_vel, 0.01f, nBodies);
    std::swap(d_pos[0], d_pos[1]);
  }
  cudaMemcpy(pos.data(), d_pos[0], bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(vel.data(), d_vel, bytes, cudaMemcpyDeviceToHost);
  after = energy(pos, vel, &momentum);
  printf("energy %s, momentum %s\n", std::abs(after - before) < 0.01 * std::abs(before) ? "kept" : "LOST",
         std::abs(momentum) < 1e-5 ? "kept" : "LOST");
  for (float4 *p : d_pos) cudaFree(p);
  cudaFree(d_vel);
}
