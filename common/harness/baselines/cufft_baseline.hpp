/// @file
/// FFT convolution by cuFFT: a row of `bench` beside the stages of the images track, checked and timed as they are.
#pragma once
#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// The row: no stage of the ladder, so its number is 0. The module that holds the cuFFT calls is loaded at run time;
/// where that fails, the row refuses every problem, with the reason.
const StageInfo& cufft_row();

}  // namespace convladder
