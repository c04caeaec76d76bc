/// @file
/// cuDNN on the same problem, data and device: its Winograd algorithms, and the best of everything it offers.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/inputs.hpp"
#include "common/problem.hpp"

namespace convladder {

/// One algorithm or plan that was tried.
struct CudnnTrial {
  std::string algorithm;  ///< "IMPLICIT_PRECOMP_GEMM", ..., or "plan 3 (eng12{k2=1})" of the graph API
  std::string layout;     ///< "NCHW" or "NHWC"
  std::string status;     ///< "ok", or cuDNN's own word ("CUDNN_STATUS_NOT_SUPPORTED"), or "wrong result (rel. L2 0.3)"
  std::optional<double> time_us;  ///< hot, median of the groups
  std::int64_t workspace_bytes = 0;
};

struct CudnnBaseline {
  std::string version;      ///< "9.19.0"; empty if cuDNN is not there
  std::string unavailable;  ///< why nothing was tried: no cuDNN, or a problem that it does not express; else empty
  std::vector<CudnnTrial> trials;
  /// The fastest of the trials whose status is "ok", or null.
  const CudnnTrial* best() const;
  /// The same among the algorithms named WINOGRAD*.
  const CudnnTrial* best_winograd() const;
};

/// Tries every forward algorithm of cudnnConvolutionForward in both layouts and every plan of the graph API, in strict
/// fp32 (no TF32), and checks each result before it may count. The module that holds the cuDNN calls is loaded at run
/// time, so a program runs without cuDNN. Padding other than zero, and asymmetric cases, are `unavailable`.
CudnnBaseline measure_cudnn(const ConvProblem& problem, const HostTensors& tensors);

}  // namespace convladder
