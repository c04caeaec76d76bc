/// @file
/// Chains of equal layers on several GPUs.
#pragma once
#include "common/harness/ladder/banded_chain.hpp"
#include "common/harness/several/measured.hpp"
#include "common/harness/several/ranks.hpp"

namespace convladder {

/// So many layers by 09, or 33 where there are channels: compared with one GPU bit by bit, and timed beside it.
/// @throws UsageError if the problem is no layer of a chain, DeviceError where bits differ
Measured measure_chain(const ConvProblem& problem, int layers, Halo halo, const Reached& reached, Ranks& ranks,
                       int samples);

}  // namespace convladder
