/// @file
/// Stages on several GPUs: 40 to 43 on pictures, 33 and 36 on the bands of a layer.
#pragma once
#include <string>

#include "common/harness/several/measured.hpp"
#include "common/harness/several/ranks.hpp"

namespace convladder {

/// Whether the stage runs on the bands of a layer.
inline bool of_layers(const std::string& stage) { return stage == "33" || stage == "36"; }

/// Why the stage does not run on so many GPUs, or "".
std::string refusal_of(const std::string& stage, int ranks);

/// One stage on one workload: compared with one GPU bit by bit, and timed beside it.
/// @throws UsageError if it refuses the problem, DeviceError where bits differ
Measured measure_stage(const std::string& stage, const ConvProblem& problem, const Reached& reached, Ranks& ranks,
                       int samples);

}  // namespace convladder
