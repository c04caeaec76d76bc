/// @file
/// Matrix fragments (WMMA) under CUDA's own name.
#pragma once
#include "common/cuda/include/cuda_fp16.h"
#include "common/simt/wmma.hpp"
