/// @file
/// What passes between a program and the module that holds the cuFFT calls (see module.hpp).
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// The module's file, beside the programs.
inline constexpr const char* kCufftModuleFile = "libconvladder_cufft.so";
/// Its one function, a CufftModuleFunction.
inline constexpr const char* kCufftModuleFunction = "convladder_cufft_stage";
/// Makes what computes a problem by FFT. The caller owns it.
using CufftModuleFunction = Stage*();

}  // namespace convladder
