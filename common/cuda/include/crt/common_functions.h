/// @file
/// Satisfied by cuda_runtime.h.
#pragma once
#include "common/cuda/include/cuda_runtime.h"
