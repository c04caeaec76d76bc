// > 0 wrong
#include <cstdio>
#include <memory>
constexpr int kTile = 32, kRows = 8;
#define LAUNCH(kernel, grid, block, ...) kernel<<<grid, block>>>(__VA_ARGS__)
__global__ void transpose(float* out, size_t outPitch, const float* in, size_t inPitch, int width, int height) {
  __shared__ float tile[kTile][kTile + 1];
  int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  for (int j = 0; j < kTile; j += kRows)
    if (x < width && y + j < height)
      tile[threadIdx.y + j][threadIdx.x] = ((const float*)((const char*)in + (y + j) * inPitch))[x];
  __syncthreads();
  x = blockIdx.y * kTile + threadIdx.x;
  y = blockIdx.x * kTile + threadIdx.y;
  for (int j = 0; j < kTile; j += kRows)
    if (x < height && y + j < width)
      ((float*)((char*)out + (y + j) * outPitch))[x] = tile[threadIdx.x][threadIdx.y + j];
}
int main() {
  const int w = 70, h = 45;
  auto in = std::make_unique<float[]>(w * h), out = std::make_unique<float[]>(w * h);
  for (int i = 0; i < w * h; ++i) in[i] = i;
  float *d_in, *d_out;
  size_t p_in, p_out;
  cudaMallocPitch((void**)&d_in, &p_in, w * sizeof(float), h);
  cudaMallocPitch((void**)&d_out, &p_out, h * sizeof(float), w);
  cudaMemcpy2D(d_in, p_in, in.get(), w * sizeof(float), w * sizeof(float), h, cudaMemcpyHostToDevice);
  LAUNCH(transpose, dim3((w + 31) / 32, (h + 31) / 32), dim3(kTile, kRows), d_out, p_out, d_in, p_in, w, h);
  cudaMemcpy2D(out.get(), h * sizeof(float), d_out, p_out, h * sizeof(float), w, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) wrong += out[x * h + y] != in[y * w + x];
  std::printf("%d wrong\n", wrong);
  cudaFree(d_in);
  cudaFree(d_out);
}
