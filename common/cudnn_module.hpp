/// @file
/// What passes between a program and the module that holds the cuDNN calls. The two are built by one compiler, and the
/// module is never unloaded, so C++ types may pass.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/problem.hpp"
#include "common/stage.hpp"

namespace convladder {

/// One of cuDNN's ways to compute a problem.
struct CudnnCandidate {
  std::string algorithm;
  bool nhwc = false;   ///< input (n, h, w, c), filter (k, r, s, c/groups), output (n, p, q, k); else as ConvProblem
  std::string status;  ///< "ok", or cuDNN's word for why it cannot
  std::int64_t workspace_bytes = 0;
  /// Starts it on the stream; returns "" or cuDNN's word. Set where the status is "ok".
  std::function<std::string(const float* input, const float* filter, float* output, void* workspace, Stream stream)>
      run;
};

/// What the module finds for a problem.
struct CudnnCandidates {
  std::string version;  ///< "9.19.0"
  std::string error;    ///< why cuDNN does not start; else empty
  std::vector<CudnnCandidate> candidates;
};

/// The module's file, beside the programs.
inline constexpr const char* kCudnnModuleFile = "libconvladder_cudnn.so";
/// Its one function, a CudnnModuleFunction.
inline constexpr const char* kCudnnModuleFunction = "convladder_cudnn_candidates";
/// Fills in `result`.
using CudnnModuleFunction = void(const ConvProblem& problem, CudnnCandidates& result);

}  // namespace convladder
