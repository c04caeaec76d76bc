/// @file
/// What was measured of one row, and the least that it could take.
#pragma once
#include <optional>

#include "common/harness/device/timing.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/stage/problem.hpp"

namespace convladder {

/// Microseconds of a launch.
struct Measured {
  double all, one;                           ///< on all GPUs, and on one
  std::optional<double> all_cold, one_cold;  ///< with copies of the tensors past L2
  std::optional<double> floor;               ///< of all GPUs
};

/// What the GPUs and their links reach, as this run has measured it.
struct Reached {
  Ceilings ceilings;        ///< of one GPU
  double alpha_us = 0;      ///< of an exchange of no bytes
  double bytes_per_us = 0;  ///< of a long one, each way
};

/// The least time of a rank: its bytes over the bandwidth, of L2 where they fit into it, its operations over their
/// rate, or an exchange, whichever is longest.
/// @param own the rank's problem  @param operations of Winograd's algorithm where the stage uses it
/// @param received bytes; 0: there is no exchange
double floor_us(const StageInfo& stage, const ConvProblem& own, double operations, double received,
                const Reached& reached);

}  // namespace convladder
