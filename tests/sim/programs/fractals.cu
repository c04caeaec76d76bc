// Julia and Mandelbrot sets with a complex class on the device, drawn as text; error handling as in textbooks.
// > ................
// > ...@@@@@@@@@@...
// > ...@@@@@@@@@@...
// > ................
// > 939 points inside
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <cuComplex.h>

static void HandleError(cudaError_t err, const char *file, int line) {
  if (err != cudaSuccess) {
    printf("%s in %s at line %d\n", cudaGetErrorString(err), file, line);
    exit(EXIT_FAILURE);
  }
}
#define HANDLE_ERROR(err) (HandleError(err, __FILE__, __LINE__))
#define HANDLE_NULL(a) { if (a == NULL) { printf("Host memory failed in %s at line %d\n", __FILE__, __LINE__); exit(EXIT_FAILURE); } }

struct cuComplexNumber {
  float r, i;
  __device__ cuComplexNumber(float a, float b) : r(a), i(b) {}
  __device__ float magnitude2(void) { return r * r + i * i; }
  __device__ cuComplexNumber operator*(const cuComplexNumber &a) { return cuComplexNumber(r * a.r - i * a.i, i * a.r + r * a.i); }
  __device__ cuComplexNumber operator+(const cuComplexNumber &a) { return cuComplexNumber(r + a.r, i + a.i); }
};

__device__ int julia(int x, int y, int w, int h) {
  const float scale = 1.5;
  float jx = scale * (float)(w / 2 - x) / (w / 2), jy = scale * (float)(h / 2 - y) / (h / 2);
  cuComplexNumber c(-0.1f, 0.0f), a(jx, jy);
  for (int i = 0; i < 50; i++) {
    a = a * a + c;
    if (a.magnitude2() > 1000) return 0;
  }
  return 1;
}

__global__ void drawJulia(unsigned char *ptr, int w, int h) {
  int x = blockIdx.x, y = blockIdx.y;
  int offset = x + y * gridDim.x;
  ptr[offset * 4 + 0] = 255 * julia(2 * x + 1, 2 * y + 1, 2 * w, 2 * h);
  ptr[offset * 4 + 1] = ptr[offset * 4 + 2] = 0;
  ptr[offset * 4 + 3] = 255;
}

template <typename Real, unsigned MaxIter>
__global__ void mandelbrot(int *iterations, unsigned long long *inside, int size) {
  const unsigned px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= size || py >= size) return;
  cuDoubleComplex c = make_cuDoubleComplex(-2.0 + 3.0 * px / size, -1.5 + 3.0 * py / size), z = make_cuDoubleComplex(0, 0);
  unsigned n = 0;
  while (n < MaxIter && cuCreal(z) * cuCreal(z) + cuCimag(z) * cuCimag(z) <= Real(4)) {
    z = cuCadd(cuCmul(z, z), c);
    ++n;
  }
  iterations[py * size + px] = n;
  if (n == MaxIter) atomicAdd(inside, 1ULL);
}

int main(void) {
  const int W = 16, H = 4, SIZE = 72;
  unsigned char *bitmap = (unsigned char *)malloc(W * H * 4), *dev_bitmap;
  HANDLE_NULL(bitmap);
  HANDLE_ERROR(cudaMalloc((void **)&dev_bitmap, W * H * 4));
  dim3 grid(W, H);
  drawJulia<<<grid, 1>>>(dev_bitmap, W, H);
  HANDLE_ERROR(cudaMemcpy(bitmap, dev_bitmap, W * H * 4, cudaMemcpyDeviceToHost));
  for (int y = 0; y < H; y++) {
    for (int x = 0; x < W; x++) std::cout << (bitmap[(y * W + x) * 4] ? '@' : '.');
    std::cout << '\n';
  }
  HANDLE_ERROR(cudaFree(dev_bitmap));
  free(bitmap);
  int *iterations;
  unsigned long long *inside, count = 0;
  HANDLE_ERROR(cudaMalloc(&iterations, SIZE * SIZE * sizeof *iterations));
  HANDLE_ERROR(cudaMalloc(&inside, sizeof *inside));
  HANDLE_ERROR(cudaMemcpy(inside, &count, sizeof count, cudaMemcpyHostToDevice));
  const dim3 threads{16, 16}, blocks{(SIZE + threads.x - 1) / threads.x, (SIZE + threads.y - 1) / threads.y};
  mandelbrot<double, 50u><<<blocks, threads>>>(iterations, inside, SIZE);
  HANDLE_ERROR(cudaMemcpy(&count, inside, sizeof count, cudaMemcpyDeviceToHost));
  std::cout << count << " points inside" << std::endl;
  cudaFree(iterations);
  cudaFree(inside);
}
