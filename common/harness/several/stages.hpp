/// @file
/// Stages on several GPUs: 40 to 43 on pictures, 33 and 36 on the bands of a layer.
#pragma once
#include <string>
#include <vector>

#include "common/harness/several/measured.hpp"
#include "common/harness/several/parts.hpp"
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

/// A launch that was changed. Microseconds.
struct ChangedLaunch {
  Change change;
  double time, time_with_events;  ///< of a launch; the same where events are recorded between its parts
  Ends ends;
};

/// What the parts of a launch of 41 to 43 cost: it as it is, and with each of its changes.
/// @throws UsageError if the stage refuses the problem
std::vector<ChangedLaunch> measure_parts(const std::string& stage, const ConvProblem& problem, Ranks& ranks,
                                         int samples);

}  // namespace convladder
