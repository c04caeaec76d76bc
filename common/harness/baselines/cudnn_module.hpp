/// @file
/// What passes between a program and the module that holds the cuDNN calls. The two are built by one compiler, and the
/// module is never unloaded, so C++ types may pass.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/stage/problem.hpp"
#include "common/stage/stage.hpp"

namespace convladder {

/// What is asked for.
struct CudnnTypes {
  Precision precision = Precision::fp32;  ///< of the input and the filter; fp32 is strict, without TF32
  float output_scale = 1;                 ///< of int8: a sum of products times this, rounded, is an output of int8
  float residual_scale = 1;               ///< likewise of a residual of int8
};

/// An engine of the graph API and values of its knobs, all by cuDNN's own numbers.
struct CudnnConfiguration {
  std::int64_t engine = 0;
  std::map<std::int64_t, std::int64_t> knobs = {};  ///< by their types; those that are not named are left to cuDNN
  /// Whether they are the same.
  bool operator==(const CudnnConfiguration&) const = default;
  /// An order, for maps.
  bool operator<(const CudnnConfiguration& other) const {
    return std::tie(engine, knobs) < std::tie(other.engine, other.knobs);
  }
};

/// What a candidate reads, on the device. Of an epilogue: null where the problem has none.
struct CudnnOperands {
  const void *input, *filter;
  const void* bias = nullptr;          ///< (k), floats; of int8 in steps of the output
  const void* forward_bias = nullptr;  ///< the same, but halves where the precision is fp16
  const void* residual = nullptr;      ///< of the output's size, in the input's precision
  const void* scales = nullptr;        ///< (k), floats: of int8, what a filter's sums are multiplied by
};

/// One of cuDNN's ways to compute a problem.
struct CudnnCandidate {
  std::string algorithm;
  bool nhwc = false;  ///< input (n, h, w, c), filter (k, r, s, c/groups), output (n, p, q, k); else as ConvProblem
  Precision output = Precision::fp32;  ///< of the output's elements; where the input is int8 and these are floats, they
                                       ///< are the sums of products as they are
  std::string status;                  ///< "ok", or cuDNN's word for why it cannot; empty: a planner is to make it
  std::int64_t workspace_bytes = 0;
  std::optional<CudnnConfiguration> configuration = {};  ///< of a plan of the graph API
  /// Starts it on the stream; returns "" or cuDNN's word. Set where the status is "ok".
  std::function<std::string(const CudnnOperands& operands, void* output, void* workspace, Stream stream)> run;
};

/// A knob of an engine: its values are least, least + stride, ..., up to most.
struct CudnnKnob {
  std::int64_t type = 0, least = 0, most = 0, stride = 1;
};

/// An engine that takes a graph.
struct CudnnEngine {
  std::int64_t index = 0;
  std::vector<CudnnKnob> knobs;
};

/// Makes the candidate of a configuration, which compiles some plans. A planner has the handle of cuDNN of the thread
/// that asked for it: planners of several threads may work at the same time, and a candidate may run when none works.
using CudnnPlanner = std::function<CudnnCandidate(const CudnnConfiguration&)>;

/// A problem as a graph of operations, in one layout and with one type of the outputs.
struct CudnnGraph {
  bool nhwc = false;
  Precision output = Precision::fp32;  ///< as of a candidate
  /// The engines that take it and count for the types asked for. @param left_out how many take it and do not count
  std::function<std::vector<CudnnEngine>(int& left_out)> engines;
  std::function<CudnnPlanner()> planner;
};

/// What the module finds for a problem.
struct CudnnCandidates {
  std::string version;                     ///< "9.19.0"
  std::string error;                       ///< why cuDNN does not start; else empty
  std::vector<CudnnCandidate> candidates;  ///< the algorithms; and the plans that the heuristics propose, not made yet
  std::vector<CudnnGraph> graphs;          ///< for all other plans
};

/// The module's file, beside the programs.
inline constexpr const char* kCudnnModuleFile = "libconvladder_cudnn.so";
/// Its one function, a CudnnModuleFunction.
inline constexpr const char* kCudnnModuleFunction = "convladder_cudnn_candidates";
/// Fills in `result`.
using CudnnModuleFunction = void(const ConvProblem& problem, const CudnnTypes& types, CudnnCandidates& result);

}  // namespace convladder
