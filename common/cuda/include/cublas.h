/// @file
/// Satisfied by cublas_v2.h.
#pragma once
#include "common/cuda/include/cublas_v2.h"
