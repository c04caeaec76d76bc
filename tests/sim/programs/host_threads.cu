// Threads of the host that use the GPU: std::thread, pthreads that end by pthread_exit, std::async.
// > threads 64 65, pthread 67 1, async 71, again 22
#include <pthread.h>

#include <cstdio>
#include <future>
#include <thread>
#include <vector>

__global__ void reverse(float *values) {
  __shared__ float tile[64];
  tile[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = tile[63 - threadIdx.x] + 1;
}

float last_of(int offset) {
  float values[64], *device;
  for (int i = 0; i < 64; ++i) values[i] = i + offset;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMalloc(&device, sizeof values);
  cudaMemcpyAsync(device, values, sizeof values, cudaMemcpyHostToDevice, stream);
  reverse<<<1, 64, 0, stream>>>(device);
  cudaMemcpyAsync(values, device, sizeof values, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  cudaFree(device);
  cudaStreamDestroy(stream);
  return values[0];
}

void *body(void *result) {
  *static_cast<float *>(result) = last_of(3);
  pthread_exit(result);
}

int main() {
  float results[3] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) threads.emplace_back([t, &results] { results[t] = last_of(t); });
  pthread_t thread;
  void *returned = nullptr;
  pthread_create(&thread, nullptr, body, &results[2]);
  pthread_join(thread, &returned);
  for (std::thread &each : threads) each.join();
  std::future<float> later = std::async(std::launch::async, last_of, 7);
  int joined = 0;
  for (std::thread &each : threads) joined += each.joinable() ? 1 : 11;
  printf("threads %g %g, pthread %g %d, async %g, again %d\n", results[0], results[1], results[2],
         returned == &results[2], later.get(), joined);
}
