/// @file
/// WMMA under CUDA's own name, with fragments of bfloat16.
#pragma once
#include "common/cuda/include/cuda_bf16.h"
#include "common/simt/wmma.hpp"

/// @cond
namespace simt {
SIMT_MATRIX_TYPE(__nv_bfloat16, bf16)
}
/// @endcond
