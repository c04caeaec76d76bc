/// @file
/// Tensor Cores for kernels: `nvcuda::wmma`, from mma.h under nvcc, from the simulator (simt/wmma.hpp, which lists what
/// it offers) elsewhere. Include it after kernel.hpp.
#pragma once
#include "common/kernel/half.hpp"
#if defined(__CUDACC__)
#include <mma.h>
#else
#include "common/simt/wmma.hpp"
#endif
