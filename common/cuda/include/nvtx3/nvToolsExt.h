/// @file
/// Satisfied by nvToolsExt.h.
#pragma once
#include "common/cuda/include/nvToolsExt.h"
