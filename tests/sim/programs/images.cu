// Images: gray and blur over bytes of three channels, Sobel with constant filters, a bilateral look-up, 3-D heat.
// > gray 99000, blur 99000, edges 20400
// > heat 1000 kept, centre cools
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define FILTER_RADIUS 1
__constant__ int Gx[3][3], Gy[2 * FILTER_RADIUS + 1][2 * FILTER_RADIUS + 1];

__global__ void colorToGray(const uchar3 *__restrict__ in, unsigned char *out, int width, int height) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col < width && row < height) {
    uchar3 p = in[row * width + col];
    out[row * width + col] = 0.21f * p.x + 0.71f * p.y + 0.07f * p.z;
  }
}

__global__ void blur(const unsigned char *in, unsigned char *out, int w, int h) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col >= w || row >= h) return;
  int pixVal = 0, pixels = 0;
  for (int blurRow = -FILTER_RADIUS; blurRow <= FILTER_RADIUS; ++blurRow)
    for (int blurCol = -FILTER_RADIUS; blurCol <= FILTER_RADIUS; ++blurCol) {
      int curRow = row + blurRow, curCol = col + blurCol;
      if (curRow >= 0 && curRow < h && curCol >= 0 && curCol < w) {
        pixVal += in[curRow * w + curCol];
        ++pixels;
      }
    }
  out[row * w + col] = (unsigned char)(pixVal / pixels);
}

template <int TILE>
__global__ void sobel(const uint8_t *in, uint8_t *out, int w, int h) {
  __shared__ uint8_t tile[TILE + 2][TILE + 2];
  const int x0 = blockIdx.x * TILE - 1, y0 = blockIdx.y * TILE - 1;
  for (int i = threadIdx.y * TILE + threadIdx.x; i < (TILE + 2) * (TILE + 2); i += TILE * TILE) {
    const int tx = i % (TILE + 2), ty = i / (TILE + 2);
    const int x = min(max(x0 + tx, 0), w - 1), y = min(max(y0 + ty, 0), h - 1);
    tile[ty][tx] = in[y * w + x];
  }
  __syncthreads();
  const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x >= w || y >= h) return;
  int gx = 0, gy = 0;
#pragma unroll
  for (int r = 0; r < 3; r++)
#pragma unroll
    for (int c = 0; c < 3; c++) gx += Gx[r][c] * tile[threadIdx.y + r][threadIdx.x + c], gy += Gy[r][c] * tile[threadIdx.y + r][threadIdx.x + c];
  out[y * w + x] = min(abs(gx) + abs(gy), 255);
}

__global__ void heat(cudaPitchedPtr from, cudaPitchedPtr to, cudaExtent e) {
  const int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
  const int nx = e.width / sizeof(float);
  auto at = [&](int i, int j, int k) -> float {
    i = (i + nx) % nx, j = (j + e.height) % e.height, k = (k + e.depth) % e.depth;
    const char *slice = (const char *)from.ptr + k * from.pitch * e.height;
    return ((const float *)(slice + j * from.pitch))[i];
  };
  float *row = (float *)((char *)to.ptr + z * to.pitch * e.height + y * to.pitch);
  row[x] = at(x, y, z) + 0.1f * (at(x - 1, y, z) + at(x + 1, y, z) + at(x, y - 1, z) + at(x, y + 1, z) + at(x, y, z - 1) + at(x, y, z + 1) - 6 * at(x, y, z));
}

int main() {
  const int w = 50, h = 40, n = w * h;
  std::vector<uchar3> rgb(n);
  for (int i = 0; i < n; i++) rgb[i] = make_uchar3(i % w < 25 ? 0 : 100, i % w < 25 ? 0 : 100, i % w < 25 ? 0 : 100);
  uchar3 *d_rgb;
  unsigned char *d_gray, *d_out, *host = (unsigned char *)malloc(n);
  cudaMalloc(&d_rgb, n * sizeof(uchar3));
  cudaMalloc(&d_gray, n);
  cudaMalloc(&d_out, n);
  cudaMemcpy(d_rgb, rgb.data(), n * sizeof(uchar3), cudaMemcpyHostToDevice);
  int gx[9] = {-1, 0, 1, -2, 0, 2, -1, 0, 1}, gy[9] = {-1, -2, -1, 0, 0, 0, 1, 2, 1};
  cudaMemcpyToSymbol(Gx, gx, sizeof(gx));
  cudaMemcpyToSymbol(Gy, gy, 9 * sizeof(int), 0, cudaMemcpyHostToDevice);
  dim3 threads(16, 16, 1), blocks((w + 15) / 16, (h + threads.y - 1) / threads.y);
  auto sum = [&](const unsigned char *from) {
    cudaMemcpy(host, from, n, cudaMemcpyDeviceToHost);
    long s = 0;
    for (int i = 0; i < n; i++) s += host[i];
    return s;
  };
  colorToGray<<<blocks, threads>>>(d_rgb, d_gray, w, h);
  long gray = sum(d_gray);
  blur<<<blocks, threads>>>(d_gray, d_out, w, h);
  long blurred = sum(d_out);
  sobel<16><<<blocks, threads>>>(d_gray, d_out, w, h);
  printf("gray %ld, blur %ld, edges %ld\n", gray, blurred, sum(d_out));
  const cudaExtent extent = make_cudaExtent(10 * sizeof(float), 10, 10);
  cudaPitchedPtr a, b;
  cudaMalloc3D(&a, extent);
  cudaMalloc3D(&b, extent);
  std::vector<float> t(1000, 0.5f);
  t[555] = 500.5f;
  cudaMemcpy3DParms p = {0};
  p.srcPtr = make_cudaPitchedPtr(t.data(), 10 * sizeof(float), 10, 10);
  p.dstPtr = a;
  p.extent = extent;
  p.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&p);
  for (int i = 0; i < 4; i++) {
    heat<<<10, dim3(10, 10)>>>(a, b, extent);
    std::swap(a, b);
  }
  p.dstPtr = p.srcPtr;
  p.srcPtr = a;
  p.kind = cudaMemcpyDeviceToHost;
  cudaMemcpy3D(&p);
  double total = 0;
  for (float v : t) total += v;
  printf("heat %.0f %s, centre %s\n", total, total > 999.9 && total < 1000.1 ? "kept" : "LOST", t[555] < 100 ? "cools" : "WARM");
  free(host), cudaFree(a.ptr), cudaFree(b.ptr), cudaFree(d_rgb), cudaFree(d_gray), cudaFree(d_out);
}
