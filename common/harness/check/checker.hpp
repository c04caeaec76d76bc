/// @file
/// Compares a stage's output with the reference, within derived bounds. NaN passes for a number only where sums may
/// overflow to both infinities, or where a bound is infinite.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/check/inputs.hpp"
#include "common/harness/check/reference.hpp"
#include "common/stage/problem.hpp"
#include "common/stage/stage.hpp"

namespace convladder {

/// Rounding of sums, from which the bound of each output follows.
struct SumBound {
  double unit_roundoff = 0x1p-24;  ///< of the accumulation: 2^-24 for fp32
  double steps = 0;    ///< roundings along one output's longest chain: reduction length + 1 for direct forms
  bool exact = false;  ///< the inputs make every sum exact: only the sign of zero may differ
  /// Errors spread evenly over all outputs: what bounds each is the root mean square of all of them, not its own sum of
  /// magnitudes.
  bool spread = false;
  double absolute = 0;  ///< what every output may be off by besides
};

/// Of a direct fp32 sum over `problem`'s reduction.
SumBound direct_fp32_bound(const ConvProblem& problem);

/// What each output may be off by, where that follows from the numbers of the problem and not from the length of its
/// sums alone.
struct OutputBounds {
  /// (n, k, p, q), before the output is rounded to what it is kept in. Infinity: the output is unchecked, and may be
  /// anything but poison.
  std::vector<float> bounds;
  Precision kept = Precision::fp32;  ///< what outputs are rounded to: fp32, fp16 or bf16
  /// Where the reference is not finite, the output must not be either (be it NaN or infinity); otherwise it is
  /// unchecked.
  bool infinities_arrive = true;
};

/// Of a direct sum, added in fp32, of products of fp16 numbers, its output rounded to fp16. The input's and the
/// filter's roundings are held to be independent: 8 standard deviations of them all, or what they come to at worst if
/// that is less; the sum is held to direct_fp32_bound(), with 4 times the unit roundoff, since Tensor Cores may
/// truncate. The residual's rounding is known. Infinite where a tap overflows.
/// @param reference of the problem and the tensors
OutputBounds direct_half_bounds(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference);

/// Of a direct sum, added in fp32, of products of bf16 numbers, its output rounded to bf16. The sum of the rounded
/// numbers is known: an output may be as far from the exact one as that sum is, and what direct_fp32_bound() says
/// further, with 4 times the unit roundoff, since Tensor Cores may truncate. Infinite where a tap overflows.
/// @param reference of the problem and the tensors
OutputBounds direct_bf16_bounds(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference);

/// Of a direct sum, added exactly, of products of int8 numbers (quantise.hpp), its output rounded to int8. The steps
/// are those of the whole input, of each filter and of the whole exact output. The sum of the rounded numbers is known:
/// with the bias and
/// the rounded residual, an output may be as far from the exact one as that sum is, and half a step more; and for each
/// tap that lies about half-way between two steps, the next step's product. Infinite where the output is beyond fp32;
/// NaN and infinity do not arrive.
/// @param problem of one group  @param reference of the problem and the tensors
OutputBounds direct_int8_bounds(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference);

/// Bound of |computed - exact| over the sum of magnitudes: min(gamma_n, lambda sqrt(n) u), gamma_n = nu/(1-nu) the
/// worst case of any summation order (Higham, Accuracy and Stability, 2nd ed., section 3.1), the other its
/// probabilistic form (Higham & Mary, SIAM J. Sci. Comput. 41, 2019) at lambda = 8.
double relative_bound(const SumBound& sum);

/// How an output compares with the reference.
struct CheckResult {
  bool ok = false;
  /// Over outputs whose reference is finite, but for the unchecked; infinity where the output is not finite there.
  double max_abs_err = 0;
  double rel_l2_err = 0;       ///< ||out - ref|| / ||ref|| over the same
  double tolerance = 0;        ///< bound of rel_l2_err that follows from the bounds of all outputs
  std::int64_t wrong = 0;      ///< outputs outside their own bound, NaN or infinity at the wrong place included
  std::int64_t unwritten = 0;  ///< of these, still poisoned (kPoison) where the reference is not NaN
  /// Infinities and NaN accepted for a finite reference, because the terms are so large that sums may overflow; and
  /// what has an infinite bound. These are in no norm.
  std::int64_t unchecked = 0;
  std::int64_t first_wrong = -1;  ///< flat index
  std::string message;  ///< "" if ok, else a sentence: how many, where the first is (n,k,p,q), what it is and should be
};

/// @param output (n, k, p, q) as the stage left it, poisoned before (kPoison)
CheckResult check_output(const ConvProblem& problem, const std::vector<float>& output, const Reference& reference,
                         const SumBound& sum);
/// The same, with a bound for each output.
CheckResult check_output(const ConvProblem& problem, const std::vector<float>& output, const Reference& reference,
                         const OutputBounds& bounds);

}  // namespace convladder
