/// @file
/// Satisfied by cooperative_groups.h.
#pragma once
#include "common/cuda/include/cooperative_groups.h"
