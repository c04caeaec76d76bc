/// @file
/// Satisfied by cuda_pipeline.h.
#pragma once
#include "common/cuda/include/cuda_pipeline.h"
