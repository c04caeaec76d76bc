/// @file
/// What passes between a program and the module that holds the NVRTC calls, as in cudnn_module.hpp.
#pragma once
#include <string>

namespace convladder {

/// A kernel's machine code, or why there is none.
struct NvrtcResult {
  std::string cubin;
  std::string symbol;        ///< the kernel's name in it
  std::string log;           ///< the compiler's words, where there is no cubin
  bool unsupported = false;  ///< whether this NVRTC knows no such GPU
};

/// The module's file, beside the programs.
inline constexpr const char* kNvrtcModuleFile = "libconvladder_nvrtc.so";
/// Its one function, an NvrtcModuleFunction.
inline constexpr const char* kNvrtcModuleFunction = "convladder_nvrtc_compile";
/// Compiles a source, which may include what is embedded in the module and CUDA's own headers. Thread-safe.
/// @param kernel as an expression of the source, or null to ask about the GPU alone
/// @param capability 10 * major + minor of the GPU
using NvrtcModuleFunction = void(const char* source, const char* kernel, int capability, NvrtcResult& result);

}  // namespace convladder
