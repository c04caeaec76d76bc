/// @file
/// Memory of a plain CUDA program as libraries on the host use it, such as cuBLAS's matrix products.
#pragma once
#include <cstddef>

#include "common/cuda/report.hpp"
#include "common/cuda/streams.hpp"

namespace simt_cuda {

/// Work of a library in a stream: what it touches must be device memory, whole and in order; else a fault is reported.
struct HostWork {
  const char* name;
  cudaStream_t stream;
  const void* caller;  ///< a return address in the program
  Place place;
  /// Whether it may read these bytes.
  bool reads(const void* begin, std::size_t bytes) const;
  /// Whether it may write them; they count as written from now on.
  bool writes(void* begin, std::size_t bytes) const;
};

}  // namespace simt_cuda
