/// @file
/// Seeded inputs. The same seed gives the same numbers on every machine and compiler.
#pragma once
#include <cstdint>
#include <vector>

#include "common/problem.hpp"

namespace convladder {

/// What fills the input and the filter.
enum class InputKind {
  normal,    ///< standard normal input; filter normal with variance 1/reduction length
  uniform,   ///< both uniform in [0, 1)
  integers,  ///< both small integers, so that fp32 sums are exact (as long as their magnitudes stay below 2^24)
  impulse,   ///< one 1 in the middle of the input, zeros elsewhere; normal filter
  constant,  ///< input all 1; normal filter
  large,     ///< normal, scaled by 1e18
  nan,       ///< normal with one NaN in the input
  infinity,  ///< normal with one infinity in the input; the filter has no zeros
};

struct HostTensors {
  std::vector<float> input;   ///< (n, c, h, w)
  std::vector<float> filter;  ///< (k, c/groups, r, s)
};

HostTensors make_inputs(const ConvProblem& problem, InputKind kind, std::uint64_t seed);

}  // namespace convladder
