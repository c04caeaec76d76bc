// > clamped, of a line, between: 30 1 10.5
// > turned: 0 of 96 wrong
// > surface: 0 of 96 wrong
// > layers: 10.5 20.5 20.5, faces: 0 1 2 3 4 5
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>
constexpr int kWidth = 12, kHeight = 8;
__global__ void read(cudaTextureObject_t points, cudaTextureObject_t linear, float *out) {
  out[0] = tex2D<float>(points, 100.f, 2.5f) - 5;
  out[1] = tex1Dfetch<float>(linear, 1);
}
__global__ void turn(float *out, cudaTextureObject_t image) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < kHeight && y < kWidth) out[y * kHeight + x] = tex2D<float>(image, y + 0.5f, x + 0.5f);
}
__global__ void write(cudaSurfaceObject_t surface) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < kWidth && y < kHeight) surf2Dwrite(float(x - y), surface, x * (int)sizeof(float), y);
}
__global__ void middle(cudaTextureObject_t image, float *out) { *out = tex2D<float>(image, 11.f, 1.f); }
__global__ void layers(cudaTextureObject_t layered, cudaTextureObject_t cube, float *out) {
  for (int layer = 1; layer < 4; ++layer) out[layer - 1] = tex2DLayered<float>(layered, 1.f, 0.5f, layer);
  for (int face = 0; face < 6; ++face) {
    const float along = face % 2 ? -2 : 2;
    const float d[3] = {face < 2 ? along : 0.5f, face / 2 == 1 ? along : 0, face > 3 ? along : 1};
    out[3 + face] = texCubemap<float>(cube, d[0], d[1], d[2]);
  }
}
cudaTextureObject_t object(cudaArray_t array, cudaTextureAddressMode mode, cudaTextureFilterMode filter) {
  cudaResourceDesc resource;
  memset(&resource, 0, sizeof resource);
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how;
  memset(&how, 0, sizeof how);
  how.addressMode[0] = how.addressMode[1] = mode;
  how.filterMode = filter;
  how.readMode = cudaReadModeElementType;
  cudaTextureObject_t made = 0;
  cudaCreateTextureObject(&made, &resource, &how, nullptr);
  return made;
}
int main() {
  float image[kHeight][kWidth], back[kHeight * kWidth], some[4] = {0.5f, 1, 2, 4}, *out, *table;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) image[y][x] = 12 * y + x;
  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMallocArray(&array, &format, kWidth, kHeight, cudaArraySurfaceLoadStore);
  cudaMemcpy2DToArray(array, 0, 0, image, sizeof image[0], sizeof image[0], kHeight, cudaMemcpyHostToDevice);
  cudaMalloc(&out, sizeof back);
  cudaMalloc(&table, sizeof some);
  cudaMemcpy(table, some, sizeof some, cudaMemcpyHostToDevice);
  cudaResourceDesc line = {};
  line.resType = cudaResourceTypeLinear;
  line.res.linear.devPtr = table;
  line.res.linear.desc = format;
  line.res.linear.sizeInBytes = sizeof some;
  cudaTextureDesc plain = {};
  plain.readMode = cudaReadModeElementType;
  cudaTextureObject_t linear = 0;
  cudaResourceDesc nothing = line;
  nothing.res.linear.desc = {};
  if (cudaCreateTextureObject(&linear, &nothing, &plain, nullptr) == cudaSuccess) printf("without a format\n");
  nothing = line;
  nothing.res.linear.devPtr = nullptr;
  if (cudaCreateTextureObject(&linear, &nothing, &plain, nullptr) == cudaSuccess) printf("of no memory\n");
  cudaGetLastError();
  cudaCreateTextureObject(&linear, &line, &plain, nullptr);
  // Which clamps, since coordinates are not normalised.
  const cudaTextureObject_t points = object(array, cudaAddressModeWrap, cudaFilterModePoint);
  const cudaTextureObject_t mixed = object(array, cudaAddressModeClamp, cudaFilterModeLinear);
  read<<<1, 1>>>(points, linear, out);
  middle<<<1, 1>>>(mixed, out + 2);
  cudaMemcpy(back, out, 3 * sizeof(float), cudaMemcpyDeviceToHost);
  printf("clamped, of a line, between: %g %g %g\n", back[0], back[1], back[2] - 6);
  turn<<<dim3(1, 2), dim3(8, 8)>>>(out, points);
  cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int y = 0; y < kWidth; ++y)
    for (int x = 0; x < kHeight; ++x) wrong += back[y * kHeight + x] != image[x][y];
  printf("turned: %d of 96 wrong\n", wrong);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  cudaCreateSurfaceObject(&surface, &resource);
  write<<<dim3(2, 1), dim3(8, 8)>>>(surface);
  cudaMemcpy2DFromArray(back, kWidth * sizeof(float), array, 0, 0, kWidth * sizeof(float), kHeight,
                        cudaMemcpyDeviceToHost);
  wrong = 0;
  for (int i = 0; i < kWidth * kHeight; ++i) wrong += back[i] != i % kWidth - i / kWidth;
  printf("surface: %d of 96 wrong\n", wrong);
  // Three layers of two texels each, then a cubemap whose faces hold their numbers.
  float lines[3][2] = {{0, 1}, {10, 11}, {20, 21}}, faces[6][2][2];
  for (int i = 0; i < 24; ++i) faces[i / 4][i / 2 % 2][i % 2] = i / 4;
  cudaArray_t layered, cube;
  cudaMalloc3DArray(&layered, &format, make_cudaExtent(2, 1, 3), cudaArrayLayered);
  cudaMalloc3DArray(&cube, &format, make_cudaExtent(2, 2, 6), cudaArrayCubemap);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(lines, sizeof lines[0], 2, 1);
  copy.dstArray = layered;
  copy.extent = make_cudaExtent(2, 1, 3);
  copy.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&copy);
  copy.srcPtr = make_cudaPitchedPtr(faces, sizeof faces[0][0], 2, 2);
  copy.dstArray = cube;
  copy.extent = make_cudaExtent(2, 2, 6);
  cudaMemcpy3D(&copy);
  const cudaTextureObject_t of_layers = object(layered, cudaAddressModeClamp, cudaFilterModeLinear);
  const cudaTextureObject_t of_faces = object(cube, cudaAddressModeClamp, cudaFilterModePoint);
  layers<<<1, 1>>>(of_layers, of_faces, out);
  cudaMemcpy(back, out, 9 * sizeof(float), cudaMemcpyDeviceToHost);
  printf("layers: %g %g %g, faces: %g %g %g %g %g %g\n", back[0], back[1], back[2], back[3], back[4], back[5], back[6],
         back[7], back[8]);
  cudaDestroyTextureObject(of_layers);
  cudaDestroyTextureObject(of_faces);
  cudaFreeArray(layered);
  cudaFreeArray(cube);
  cudaDestroySurfaceObject(surface);
  cudaDestroyTextureObject(points);
  cudaDestroyTextureObject(mixed);
  cudaDestroyTextureObject(linear);
  cudaFreeArray(array);
  cudaFree(out);
  cudaFree(table);
}
