/// @file
/// The plans of cuDNN that won on some problem before: cudnn_winners.json, which the build makes part of the program.
/// tools/cudnn_winners.py adds to that file.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/baselines/cudnn_module.hpp"

namespace convladder {

/// The fastest plan that was found for a problem on a GPU, by a version of cuDNN, in one layout and type of the
/// outputs.
struct CudnnWinner {
  std::string gpu, version, problem;  ///< "NVIDIA H200", "9.19.0", as to_string(ConvProblem) writes
  Precision precision = Precision::fp32;
  bool nhwc = false;
  Precision output = Precision::fp32;
  CudnnConfiguration configuration;
  double time_us = 0;

  /// Whether it is a plan of such a graph, whatever the problem.
  bool fits(Precision type, const CudnnGraph& graph) const {
    return precision == type && nhwc == graph.nhwc && output == graph.output;
  }
};

/// Reads the file. @throws UsageError, with what does not fit
std::vector<CudnnWinner> parse_cudnn_winners(std::string_view json);

/// The text of cudnn_winners.json; the build writes it into generated/cudnn_winners.cpp.
std::string_view cudnn_winners_json();
/// Those of cudnn_winners.json.
const std::vector<CudnnWinner>& cudnn_winners();

}  // namespace convladder
