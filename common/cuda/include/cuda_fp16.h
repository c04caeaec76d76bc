/// @file
/// Halves under CUDA's own name.
#pragma once
#include "common/cuda/include/cuda_runtime.h"
#include "common/simt/half.hpp"
