#pragma once
#include <cuda_runtime.h>
#include <vector>

class Points {
 public:
  explicit Points(int n) : host_(n) {}
  void set(int i, float x, float y) { host_[i] = make_float2(x, y); }
  int size() const { return static_cast<int>(host_.size()); }
  const std::vector<float2> &host() const { return host_; }

 private:
  std::vector<float2> host_;
};

float2 centre_of(const Points &points);
extern __constant__ float weight[2];
extern __device__ int calls;
__device__ int from_another_file(int v);
#ifdef __cplusplus
extern "C" {
#endif
int c_interface(int v);
#ifdef __cplusplus
}
#endif
