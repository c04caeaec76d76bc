/// @file
/// Seeded inputs. The same seed gives the same numbers on every machine, compiler and number of threads: each is an
/// integer function of seed, tensor and index. "Normal" is a sum of 12 uniforms (Irwin-Hall), so within -6 ... 6.
#pragma once
#include <cstdint>
#include <vector>

#include "common/stage/problem.hpp"

namespace convladder {

/// What fills the input and the filter.
enum class InputKind {
  normal,      ///< standard normal input; filter normal with variance 1/reduction length
  uniform,     ///< both uniform in [0, 1)
  integers,    ///< both small integers, so that fp32 sums are exact (as long as their magnitudes stay below 2^24)
  impulse,     ///< one 1 in the middle of the input, zeros elsewhere; normal filter
  constant,    ///< input all 1; normal filter
  large,       ///< normal, both scaled by 1e18: outputs near 1e36, in range for fp32
  large_half,  ///< normal, scaled by 100 and 10: outputs near 1000, in range for fp16, as are Winograd's transforms
  nan,         ///< normal with one NaN in the middle of the input
  infinity,    ///< normal with one infinity in the middle of the input; the filter has no zeros
};

/// How the taps of a filter hang together.
enum class FilterForm {
  dense,     ///< each tap on its own
  rank_one,  ///< each (r, s) slice the product of a column and a row, to fp32's rounding
};

/// Input and filter of a problem, and what its epilogue adds, on the host.
struct HostTensors {
  std::vector<float> input;          ///< (n, c, h, w)
  std::vector<float> filter;         ///< (k, c/groups, r, s)
  std::vector<float> bias = {};      ///< (k); empty where the problem has none
  std::vector<float> residual = {};  ///< (n, k, p, q); likewise
};

/// The tensors of a problem, by kind, form and seed. A filter of rank one has the same variance as a dense one. Bias
/// and residual are normal, scaled as the outputs are; with integers they are integers.
HostTensors make_inputs(const ConvProblem& problem, InputKind kind, FilterForm form, std::uint64_t seed);

}  // namespace convladder
