#include "common/harness/check/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "common/harness/check/half_bits.hpp"
#include "common/harness/check/quantise.hpp"
#include "common/harness/device/device.hpp"

namespace convladder {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// From here on a number rounds to infinity in fp32.
constexpr double kOverflow = 0x1p128 - 0x1p103;

/// How many standard deviations a probabilistic bound allows.
constexpr double kLambda = 8;

/// "(n,k,p,q)" of a flat output index.
std::string position(const ConvProblem& problem, std::int64_t index) {
  const std::int64_t q = problem.q(), p = problem.p();
  return fmt::format("({},{},{},{})", index / q / p / problem.k, index / q / p % problem.k, index / q % p, index % q);
}

/// What one output may be.
struct Expected {
  double value = 0, bound = 0;
  bool may_be_infinite = false, may_be_minus_infinite = false;
  bool nan_for_infinity = false;  ///< and the other way round, and either infinity for the other
  bool unchecked = false;

  bool admits(float output) const {
    if (unchecked) return true;
    if (nan_for_infinity && !std::isfinite(value)) return !std::isfinite(output);
    if (std::isnan(value)) return std::isnan(output);
    if (std::isinf(value)) return output == value;
    if (std::isnan(output)) return may_be_infinite && may_be_minus_infinite;
    if (std::isinf(output)) return output > 0 ? may_be_infinite : may_be_minus_infinite;
    return std::abs(output - value) <= bound;
  }
};

Expected expected(double exact, double magnitude, double relative, const SumBound& sum) {
  Expected result{.value = exact};
  if (!std::isfinite(exact)) return result;
  // No partial sum exceeds the positive terms together, nor falls below the negative ones, but for the roundings.
  const double growth = sum.exact ? 1 : 1 + relative + 0x1p-24;
  result.may_be_infinite = (magnitude + exact) / 2 * growth >= kOverflow;
  result.may_be_minus_infinite = (magnitude - exact) / 2 * growth >= kOverflow;
  if (sum.exact) {
    result.bound = std::abs(exact) < kOverflow ? std::abs(static_cast<float>(exact) - exact) : 0;
  } else {
    // The sum's roundings, half an ulp for the result's own, and what underflow takes: 2^-150, half the spacing of the
    // subnormal numbers, at each rounding. The factor of 2 is for the growth of that in later roundings.
    result.bound = relative * magnitude + std::abs(exact) * 0x1p-24 + sum.steps * 0x1p-149 + sum.absolute;
  }
  return result;
}

/// What outputs are rounded to.
struct Kept {
  double unit;      ///< the unit roundoff
  double least;     ///< half the spacing of subnormal numbers
  double overflow;  ///< from here on a number is infinite
};
constexpr Kept kKeptInFloat{0x1p-24, 0x1p-150, kOverflow}, kKeptInHalf{0x1p-11, 0x1p-25, kHalfOverflow},
    kKeptInBf16{0x1p-8, 0x1p-134, kBf16Overflow};

const Kept& kept_in(Precision precision) {
  return precision == Precision::fp32 ? kKeptInFloat : precision == Precision::bf16 ? kKeptInBf16 : kKeptInHalf;
}

Expected expected(double exact, double bound, const Kept& kept, bool infinities_arrive) {
  Expected result{.value = exact, .nan_for_infinity = true};
  result.unchecked = std::isfinite(exact) ? !std::isfinite(bound) : !infinities_arrive;
  if (result.unchecked || !std::isfinite(exact)) return result;
  const double most = std::abs(exact) + bound;
  result.bound = bound + most * kept.unit + kept.least;
  result.may_be_infinite = most >= kept.overflow && exact > 0;
  result.may_be_minus_infinite = most >= kept.overflow && exact < 0;
  return result;
}

/// Norm over norm; 0/0 is 0.
double ratio(double squares, double reference_squares) {
  return squares == 0 ? 0 : std::sqrt(squares) / std::sqrt(reference_squares);
}

/// Of the finite values.
double root_mean_square(const std::vector<double>& values) {
  double squares = 0, count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(squares / count);
}

/// Outputs are checked in pieces of this many, whatever the number of threads: so are the sums' orders.
constexpr std::size_t kPiece = 1 << 16;

/// Calls `work` with each index below `size`, on several threads where that pays.
template <class Work>
void for_each_index(std::size_t size, const Work& work) {
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (size > kPiece)
#endif
  for (std::size_t i = 0; i < size; ++i) work(i);
}

/// What the check of some of the outputs found.
struct Findings {
  double max_abs_err = 0, error_squares = 0, bound_squares = 0, reference_squares = 0;
  std::int64_t wrong = 0, unwritten = 0, unchecked = 0;
  std::int64_t first_wrong = -1, first_unwritten = -1;

  /// Adds those of later outputs.
  void add(const Findings& later) {
    max_abs_err = std::max(max_abs_err, later.max_abs_err);
    error_squares += later.error_squares;
    bound_squares += later.bound_squares;
    reference_squares += later.reference_squares;
    wrong += later.wrong;
    unwritten += later.unwritten;
    unchecked += later.unchecked;
    if (first_wrong < 0) first_wrong = later.first_wrong;
    if (first_unwritten < 0) first_unwritten = later.first_unwritten;
  }
};

/// @param expected_at gives what an output may be  @param overflow from here on an output is infinite
template <class ExpectedAt>
CheckResult compare(const ConvProblem& problem, const std::vector<float>& output, const Reference& reference,
                    double overflow, const ExpectedAt& expected_at) {
  const std::size_t size = reference.output.size();
  if (output.size() != size) throw std::logic_error("the output's size differs from its reference's");

  const auto check = [&](std::size_t i, Findings& findings) {
    const double exact = reference.output[i];
    const Expected wanted = expected_at(i);
    const double bound = wanted.bound;
    const auto index = static_cast<std::int64_t>(i);
    // A NaN of the input may carry the same payload, and brings it to where the reference is NaN.
    if (std::bit_cast<std::uint32_t>(output[i]) == kPoison && !std::isnan(exact)) {
      if (findings.unwritten++ == 0) findings.first_unwritten = index;
    } else if (!wanted.admits(output[i])) {
      if (findings.wrong++ == 0) findings.first_wrong = index;
    } else if (wanted.unchecked || (std::isfinite(exact) && !std::isfinite(output[i]))) {
      ++findings.unchecked;
      return;
    }

    if (wanted.unchecked || !(std::abs(exact) < overflow)) return;
    const double error = std::isfinite(output[i]) ? std::abs(output[i] - exact) : kInfinity;
    findings.max_abs_err = std::max(findings.max_abs_err, error);
    findings.error_squares += error * error;
    findings.bound_squares += bound * bound;
    findings.reference_squares += exact * exact;
  };

  std::vector<Findings> pieces((size + kPiece - 1) / kPiece);
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (pieces.size() > 1)
#endif
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    Findings findings;
    for (std::size_t i = piece * kPiece; i < std::min((piece + 1) * kPiece, size); ++i) check(i, findings);
    pieces[piece] = findings;
  }
  Findings all;
  for (const Findings& piece : pieces) all.add(piece);

  CheckResult result;
  result.max_abs_err = all.max_abs_err;
  result.wrong = all.wrong;
  result.unwritten = all.unwritten;
  result.unchecked = all.unchecked;
  const std::int64_t first_unwritten = all.first_unwritten, first_bad = all.first_wrong;
  result.rel_l2_err = ratio(all.error_squares, all.reference_squares);
  result.tolerance = ratio(all.bound_squares, all.reference_squares);

  if (result.unwritten > 0) {
    result.message = fmt::format("{} of {} outputs {} never written, first at {}", result.unwritten, size,
                                 result.unwritten == 1 ? "was" : "were", position(problem, first_unwritten));
  }
  if (result.wrong > 0) {
    const auto i = static_cast<std::size_t>(first_bad);
    result.message += fmt::format(
        "{}{} of {} outputs {} wrong, first at {}: got {}, expected {}", result.unwritten > 0 ? "; " : "", result.wrong,
        size, result.wrong == 1 ? "is" : "are", position(problem, first_bad), output[i], reference.output[i]);
    if (std::isfinite(reference.output[i]))
      result.message += fmt::format(" (give or take {:.2g})", expected_at(i).bound);
  }
  result.first_wrong =
      first_bad < 0 || (first_unwritten >= 0 && first_unwritten < first_bad) ? first_unwritten : first_bad;
  result.wrong += result.unwritten;
  result.ok = result.wrong == 0;
  return result;
}

}  // namespace

SumBound direct_fp32_bound(const ConvProblem& problem) {
  const int added = (problem.has_bias() ? 1 : 0) + (problem.has_residual() ? 1 : 0);
  return {
      .unit_roundoff = 0x1p-24, .steps = static_cast<double>(problem.reduction_length()) + 1 + added, .exact = false};
}

double relative_bound(const SumBound& sum) {
  const double nu = sum.steps * sum.unit_roundoff;
  const double worst_case = nu < 1 ? nu / (1 - nu) : kInfinity;
  return std::min(worst_case, kLambda * std::sqrt(sum.steps) * sum.unit_roundoff);
}

OutputBounds direct_half_bounds(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference) {
  // The squares of the terms add up as the terms do.
  const auto squares = [](const std::vector<float>& values) {
    std::vector<float> result(values.size());
    for_each_index(values.size(), [&](std::size_t i) { result[i] = values[i] * values[i]; });
    return result;
  };
  const std::vector<double> sums = convolve_reference(problem, squares(tensors.input), squares(tensors.filter)).output;
  const auto largest = [](const std::vector<float>& values) {
    double most = 0;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) reduction(max : most) if (values.size() > kPiece)
#endif
    for (std::size_t i = 0; i < values.size(); ++i)
      if (std::isfinite(values[i])) most = std::max(most, std::abs(static_cast<double>(values[i])));
    return most;
  };
  const double largest_tap = largest(tensors.filter);
  // Below its normal numbers a half is off by up to 2^-25, whatever the number.
  const double least =
      0x1p-25 * (largest(tensors.input) + largest_tap) * static_cast<double>(problem.reduction_length());
  const double unit = kKeptInHalf.unit, variance = 2 * unit * unit / 3;  // of a term's two roundings, over its square
  SumBound sum = direct_fp32_bound(problem);
  sum.unit_roundoff *= 4;
  const double relative = relative_bound(sum);

  OutputBounds result;
  result.kept = Precision::fp16;
  result.bounds.resize(sums.size());
  for_each_index(sums.size(), [&](std::size_t i) {
    const double magnitude = reference.magnitudes[i];
    const double terms = std::min(kLambda * std::sqrt(variance * sums[i]), 2 * unit * (1 + unit) * magnitude);
    const double residual =
        problem.has_residual() ? std::abs(half_value(half_bits(tensors.residual[i])) - tensors.residual[i]) : 0;
    result.bounds[i] =
        static_cast<float>(largest_tap < kHalfOverflow ? terms + relative * magnitude + least + residual : kInfinity);
  });
  return result;
}

OutputBounds direct_bf16_bounds(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference) {
  const auto rounded = [](std::vector<float> values) {
    for_each_index(values.size(), [&](std::size_t i) { values[i] = bf16_value(bf16_bits(values[i])); });
    return values;
  };
  const std::vector<float> filter = rounded(tensors.filter);
  const bool fits = std::all_of(filter.begin(), filter.end(), [](float tap) { return std::isfinite(tap); });
  const Reference sums = convolve_reference(problem, rounded(tensors.input), filter);
  SumBound sum = direct_fp32_bound(problem);
  sum.unit_roundoff *= 4;
  const double relative = relative_bound(sum);

  OutputBounds result;
  result.kept = Precision::bf16;
  result.bounds.resize(sums.output.size());
  for_each_index(sums.output.size(), [&](std::size_t i) {
    // No partial sum exceeds the magnitudes together: beyond fp32 both infinities, and NaN, may come of them.
    const double terms = std::abs(sums.output[i] - reference.output[i]), magnitude = sums.magnitudes[i];
    const bool checked = fits && magnitude * (1 + relative) < kOverflow;
    result.bounds[i] = static_cast<float>(checked ? terms + relative * magnitude + sum.steps * 0x1p-149 : kInfinity);
  });
  return result;
}

OutputBounds direct_int8_bounds(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference) {
  if (problem.groups != 1) throw std::logic_error("the bounds of int8 are for one group");
  const double input_step = int8_step(tensors.input), output_step = int8_step(reference.output);
  const std::vector<float> filter_steps = int8_steps(tensors.filter, problem.k);
  const std::size_t plane = static_cast<std::size_t>(problem.p() * problem.q()), filters = filter_steps.size(),
                    filter_size = tensors.filter.size() / filters;

  // The sums of the rounded numbers, in steps: exact. Where a tap is about half a step, one may round it either way.
  constexpr double kHalf = 0.5 - 1e-3;
  std::vector<float> input = tensors.input, filter = tensors.filter, halves(filter.size());
  for_each_index(input.size(), [&](std::size_t i) { input[i] = int8_of(input[i], input_step); });
  for (std::size_t i = 0; i < filter.size(); ++i) {
    const double step = filter_steps[i / filter_size];
    filter[i] = int8_of(filter[i], step);
    halves[i] = std::abs(tensors.filter[i] / step - filter[i]) > kHalf ? 1 : 0;
  }
  const std::vector<double> sums = convolve_reference(problem, input, filter).output;
  std::vector<double> slack;
  if (std::count(halves.begin(), halves.end(), 0) != static_cast<std::ptrdiff_t>(halves.size()))
    slack = convolve_reference(problem, input, halves).magnitudes;

  const float residual_step = int8_step(tensors.residual);
  // What the epilogue makes of the exact sum.
  const auto finished = [&](double sum, std::size_t i) {
    if (problem.has_bias()) sum += tensors.bias[i / plane % filters];
    if (problem.has_residual()) sum += static_cast<double>(residual_step) * int8_of(tensors.residual[i], residual_step);
    return problem.has_relu() && sum < 0 ? 0 : sum;
  };

  constexpr double kFloats = 1 + 1e-3;  // steps are floats, and an output is computed in fp32
  OutputBounds result;
  result.infinities_arrive = false;
  result.bounds.resize(reference.output.size());
  for_each_index(result.bounds.size(), [&](std::size_t i) {
    const double step = input_step * filter_steps[i / plane % filters], exact = reference.output[i];
    const double terms = std::isfinite(exact) ? std::abs(finished(sums[i] * step, i) - exact) : 0;
    const bool fits = !(std::abs(exact) > kFloats * kLargestInt8 * output_step);
    result.bounds[i] = static_cast<float>(
        fits ? kFloats * (terms + (slack.empty() ? 0 : slack[i] * step) + output_step / 2) : kInfinity);
  });
  return result;
}

CheckResult check_output(const ConvProblem& problem, const std::vector<float>& output, const Reference& reference,
                         const SumBound& sum) {
  const double relative = relative_bound(sum);
  const double common_magnitude = sum.spread ? root_mean_square(reference.output) : 0;
  return compare(problem, output, reference, kOverflow, [&](std::size_t i) {
    return expected(reference.output[i], sum.spread ? common_magnitude : reference.magnitudes[i], relative, sum);
  });
}

CheckResult check_output(const ConvProblem& problem, const std::vector<float>& output, const Reference& reference,
                         const OutputBounds& bounds) {
  if (bounds.bounds.size() != reference.output.size())
    throw std::logic_error("the number of bounds differs from that of the outputs");
  const Kept& kept = kept_in(bounds.kept);
  return compare(problem, output, reference, kept.overflow, [&](std::size_t i) {
    return expected(reference.output[i], bounds.bounds[i], kept, bounds.infinities_arrive);
  });
}

}  // namespace convladder
