// What programs ask of the device, and what they do with the answers: properties, attributes, occupancy, limits.
// > 1 device, warps of 32 threads, 1024 a block
// > 65536 registers, 65536 bytes of constants, 49152 of shared memory
// > properties and attributes agree
// > occupancy 8 blocks of 256, at most 1024 threads a block
// > memory: 64 KB taken, pointers are known
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <cuda_profiler_api.h>

__global__ void saxpy(int n, float a, float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

int main() {
  int count = 0, driver = 0, runtime = 0, device = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) exit(EXIT_FAILURE);
  cudaSetDevice(device);
  cudaGetDevice(&device);
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, device);
  fprintf(stderr, "%s, CUDA %d.%d, %d.%d, %zu MB, %d SMs, L2 %d KB, bus %d bits\n", prop.name, runtime / 1000,
          runtime % 100 / 10, prop.major, prop.minor, prop.totalGlobalMem >> 20, prop.multiProcessorCount,
          prop.l2CacheSize >> 10, prop.memoryBusWidth);
  printf("1 device, warps of %d threads, %d a block\n", prop.warpSize, prop.maxThreadsPerBlock);
  printf("%d registers, %zu bytes of constants, %zu of shared memory\n", prop.regsPerBlock, prop.totalConstMem,
         prop.sharedMemPerBlock);
  int major, sms, optin, pitch, cooperative;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  cudaDeviceGetAttribute(&pitch, cudaDevAttrMaxPitch, device);
  cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device);
  printf("properties and attributes %s\n", major == prop.major && sms == prop.multiProcessorCount && pitch > 0 &&
         optin == (int)prop.sharedMemPerBlockOptin && cooperative == prop.cooperativeLaunch ? "agree" : "DIFFER");
  int blocks, minGrid, block;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, saxpy, 256, 0);
  cudaOccupancyMaxPotentialBlockSize(&minGrid, &block, saxpy, 0, 0);
  printf("occupancy %d blocks of 256, at most %d threads a block\n", blocks, block >= 512 ? 1024 : block);
  size_t before, after, total;
  float *x, *y;
  cudaMemGetInfo(&before, &total);
  cudaMalloc(&x, 32 << 10);
  cudaMalloc(&y, 32 << 10);
  cudaMemGetInfo(&after, &total);
  cudaPointerAttributes attributes;
  cudaPointerGetAttributes(&attributes, x);
  cudaMemset(x, 0, 32 << 10), cudaMemset(y, 0, 32 << 10);
  cudaProfilerStart();
  saxpy<<<32, 256>>>(8192, 2.0f, x, y);
  cudaProfilerStop();
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  printf("memory: %s, pointers are %s\n", before >= after && after < total ? "64 KB taken" : "WRONG",
         attributes.type == cudaMemoryTypeDevice && attributes.devicePointer == x ? "known" : "UNKNOWN");
  cudaFree(x);
  cudaFree(y);
}
