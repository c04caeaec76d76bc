/// @file
/// The result every stage is compared with.
#pragma once
#include <vector>

#include "common/harness/check/inputs.hpp"
#include "common/stage/problem.hpp"

namespace convladder {

/// The exact convolution, as near as doubles come, and for each output the sum of the magnitudes of its terms, from
/// which rounding-error bounds follow.
struct Reference {
  std::vector<double> output;      ///< (n, k, p, q)
  std::vector<double> magnitudes;  ///< (n, k, p, q): sum of |filter * input|
};

/// Direct form, double accumulation, parallel over pieces of output rows, one function for every problem and padding
/// mode. NaN and infinity arrive as a plain sum over the taps brings them (0 * NaN is NaN); a tap outside the input
/// under zero padding contributes nothing. The result does not depend on the number of threads.
/// @param problem accepted by validate()
/// @param input (n, c, h, w)  @param filter (k, c/groups, r, s)
Reference convolve_reference(const ConvProblem& problem, const std::vector<float>& input,
                             const std::vector<float>& filter);

/// The same with the problem's epilogue: bias and residual count among the magnitudes. ReLU leaves NaN as it is.
Reference convolve_reference(const ConvProblem& problem, const HostTensors& tensors);

}  // namespace convladder
