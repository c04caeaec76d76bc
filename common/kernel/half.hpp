/// @file
/// fp16 for kernels: `half` and `half2` with their conversions and arithmetic, from cuda_fp16.h under nvcc, from the
/// simulator (simt/half.hpp, which lists what it offers) elsewhere. Include it after kernel.hpp.
#pragma once
#if defined(__CUDACC__)
#include <cuda_fp16.h>
#else
#include "common/simt/half.hpp"
#endif
