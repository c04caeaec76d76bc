/// @file
/// cuDNN on several GPUs, as programs that decode video in bands use it: rows are sent and received, joined with the
/// band by copies, and convolved by a library.
#pragma once
#include <string>

#include "common/harness/several/measured.hpp"
#include "common/harness/several/ranks.hpp"

namespace convladder {

/// Times, hot, and what ran.
struct CudnnBands {
  Measured times;
  std::string all, one;  ///< cuDNN's algorithms, on a band and on one GPU: "plan 3 (eng12{k2=1}), NHWC"
};

/// The fastest that cuDNN offers on a band, after an exchange by NCCL and copies, and the fastest on one GPU. Each
/// result is checked; what the copies have joined is compared bit by bit.
/// @param problem one image, "same" padding with zeros; bands are at least as high as the halo
/// @throws UsageError for other problems, MachineError without cuDNN
CudnnBands measure_cudnn_bands(const ConvProblem& problem, Precision precision, Ranks& ranks, int samples);

}  // namespace convladder
