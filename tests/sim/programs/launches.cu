// Every way to start a kernel: cudaLaunchKernel, cudaLaunchKernelEx, pointers, namespaces, macros, lambdas, functors.
// > launch kernel 6
// > launch ex 9
// > pointer 12, table 24 8
// > lambda 4 9, functor 14
// > attributes: 1 of 1024, 48 KB
// > managed 64 3
#include <cstdio>
#include <functional>
#include <type_traits>
#include <vector>

#define LAUNCH(kernel, n, stream, ...) kernel<<<dim3(((n) + 31) / 32), dim3(32), 0, stream>>>(__VA_ARGS__)
#define CHECK(x) do { auto status = (x); if (status != cudaSuccess) { std::fprintf(stderr, "%s:%d %s failed: %s\n", __FILE__, __LINE__, #x, cudaGetErrorString(status)); std::exit(1); } } while (false)

namespace lib { namespace detail {
template <typename T, int Factor = 2>
__global__ void scale(T *x, T by, size_t n) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < n) x[i] *= by * Factor;
}
}  // namespace detail
}  // namespace lib
using lib::detail::scale;

template <typename F, typename... Args>
__global__ void __launch_bounds__(128) for_each_index(int n, F f, Args... args) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) f(i, args...);
}
template <typename F>
void parallel_for(int n, F f) { for_each_index<<<(n + 31) / 32, 32>>>(n, f); }

template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t n) : n_(n) { CHECK(cudaMalloc(&data_, n * sizeof(T))); }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  T *get() const { return data_; }
  void fill(T v) {
    std::vector<T> h(n_, v);
    CHECK(cudaMemcpy(data_, h.data(), n_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  T at(size_t i) const {
    T v;
    CHECK(cudaMemcpy(&v, data_ + i, sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }
  void scale_all(T by) { scale<T, 1><<<(n_ + 63) / 64, 64>>>(this->data_, by, n_); }

 private:
  size_t n_;
  T *data_ = nullptr;
};

struct Saxpy {
  float a;
  float *y;
  __host__ __device__ Saxpy(float a_, float *y_) : a(a_), y(y_) {}
  __device__ void operator()(int i, float x) const { y[i] = fmaf(a, x, y[i]); }
};
__device__ __managed__ int total = 0;
__managed__ float series[4] = {1, 2, 3, 4};
__global__ void count(int n) { if (threadIdx.x + blockIdx.x * blockDim.x < n) atomicAdd(&total, 1); }

__global__ void use_shared(float *to) {
  extern __shared__ float all[];
  all[threadIdx.x] = 1;
  to[threadIdx.x] = all[threadIdx.x];
}
int main() {
  const size_t n = 64;
  Buffer<float> b(n);
  float *x = b.get(), by = 3.0f;
  b.fill(1);
  size_t count_of = n;
  void *args[] = {&x, &by, &count_of};
  CHECK(cudaLaunchKernel((const void *)scale<float>, dim3(2), dim3(32), args, 0, 0));
  printf("launch kernel %g\n", b.at(63));
  b.fill(1);
  cudaLaunchConfig_t config = {0};
  config.gridDim = 2;
  config.blockDim = dim3(32, 1, 1);
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute[0].val.programmaticStreamSerializationAllowed = 1;
  config.attrs = attribute;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, scale<float, 3>, x, by, n));
  printf("launch ex %g\n", b.at(0));
  b.fill(1);
  auto *pointer = &lib::detail::scale<float, 4>;
  LAUNCH(pointer, n, nullptr, x, 3.f, n);
  float through_pointer = b.at(5);
  void (*table[])(float *, float, size_t) = {scale<float, 1>, scale<float, 2>};
  for (int i = 0; i < 2; i++) (*table[i])<<<2, 32>>>(x, 1.f, n);
  float through_table = b.at(5);
  b.fill(4);
  table[1]<<<1, 32>>>(x, 1, 32);
  printf("pointer %g, table %g %g\n", through_pointer, through_table, b.at(31));
  parallel_for(n, [=] __device__(int i) { x[i] = i * i; });
  float four = b.at(2), nine = b.at(3);
  for_each_index<<<2, 32>>>(int(n), Saxpy(2.5f, x), 4.0f);
  printf("lambda %g %g, functor %g\n", four, nine, b.at(2));
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, scale<float>));
  printf("attributes: %d of %d, %d KB\n", attributes.maxThreadsPerBlock / 1024, attributes.maxThreadsPerBlock,
         attributes.maxDynamicSharedSizeBytes / 1024);
  CHECK(cudaFuncSetAttribute(use_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  void (*plain)(float *) = use_shared;
  plain<<<1, 32, 64 << 10>>>(x);  // what the kernel may have, its pointer has
  CHECK(cudaGetLastError());
  count<<<3, 32>>>(64);
  CHECK(cudaDeviceSynchronize());
  printf("managed %d %g\n", total, series[2]);
}
