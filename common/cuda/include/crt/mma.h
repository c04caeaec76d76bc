/// @file
/// WMMA.
#pragma once
#include "common/cuda/include/mma.h"
