/// @file
/// What passes between a program and the module that holds the cuDNN calls. The two are built by one compiler, and the
/// module is never unloaded, so C++ types may pass.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/stage/problem.hpp"
#include "common/stage/stage.hpp"

namespace convladder {

/// What is asked for.
struct CudnnTypes {
  Precision precision = Precision::fp32;  ///< of the input and the filter; fp32 is strict, without TF32
  float output_scale = 1;                 ///< of int8: a sum of products times this, rounded, is an output of int8
};

/// One of cuDNN's ways to compute a problem.
struct CudnnCandidate {
  std::string algorithm;
  bool nhwc = false;  ///< input (n, h, w, c), filter (k, r, s, c/groups), output (n, p, q, k); else as ConvProblem
  Precision output = Precision::fp32;  ///< of the output's elements; where the input is int8 and these are floats, they
                                       ///< are the sums of products as they are
  std::string status;                  ///< "ok", or cuDNN's word for why it cannot
  std::int64_t workspace_bytes = 0;
  /// Starts it on the stream; returns "" or cuDNN's word. Set where the status is "ok".
  std::function<std::string(const void* input, const void* filter, void* output, void* workspace, Stream stream)> run;
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
using CudnnModuleFunction = void(const ConvProblem& problem, const CudnnTypes& types, CudnnCandidates& result);

}  // namespace convladder
