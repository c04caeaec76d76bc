/// @file
/// The result every stage is compared with.
#pragma once
#include <vector>

#include "common/problem.hpp"

namespace convladder {

/// The exact convolution, as near as doubles come, and for each output the sum of the magnitudes of its terms, from
/// which rounding-error bounds follow.
struct Reference {
  std::vector<double> output;      ///< (n, k, p, q)
  std::vector<double> magnitudes;  ///< (n, k, p, q): sum of |filter * input|
};

/// Direct form, double accumulation, parallel over output rows, one function for every problem and padding mode.
/// @param input (n, c, h, w)  @param filter (k, c/groups, r, s)
Reference convolve_reference(const ConvProblem& problem, const std::vector<float>& input,
                             const std::vector<float>& filter);

}  // namespace convladder
