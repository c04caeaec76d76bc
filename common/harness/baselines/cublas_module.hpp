/// @file
/// What passes between a program and the module that holds the cuBLAS calls (see module.hpp).
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// The module's file, beside the programs.
inline constexpr const char* kCublasModuleFile = "libconvladder_cublas.so";
/// Its one function, a CublasModuleFunction.
inline constexpr const char* kCublasModuleFunction = "convladder_cublas_stage";
/// Makes what computes a problem by im2col and cuBLAS. The caller owns it.
using CublasModuleFunction = Stage*();

}  // namespace convladder
