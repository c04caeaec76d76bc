#include "common/harness/check/checker.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <limits>

#include "common/harness/check/half_bits.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/check/quantise.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/problem_io.hpp"

namespace convladder {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMost = std::numeric_limits<float>::max();
const float kPoisoned = std::bit_cast<float>(kPoison);

SumBound exact() { return {.unit_roundoff = 0x1p-24, .steps = 1, .exact = true}; }

/// Checks one row of outputs against references whose magnitudes are their absolute values.
CheckResult check_row(const std::vector<float>& output, const std::vector<double>& reference, const SumBound& model) {
  ConvProblem problem;
  problem.w = static_cast<std::int64_t>(output.size());
  Reference full{reference, reference};
  for (double& magnitude : full.magnitudes) magnitude = std::abs(magnitude);
  return check_output(problem, output, full, model);
}

bool accepts(float output, double reference, const SumBound& model = {.steps = 4}) {
  return check_row({output}, {reference}, model).ok;
}

/// The same convolution in fp32, in either order of the taps.
std::vector<float> single_precision(const ConvProblem& x, const HostTensors& tensors, bool backwards) {
  std::vector<float> output;
  for (std::int64_t q = 0; q < x.w; ++q) {
    float sum = 0;
    for (std::int64_t i = 0; i < x.s; ++i) {
      const std::int64_t s = backwards ? x.s - 1 - i : i, column = q + s - x.pad_w;
      if (column < 0 || column >= x.w) continue;
      sum += tensors.input[static_cast<std::size_t>(column)] * tensors.filter[static_cast<std::size_t>(s)];
    }
    output.push_back(sum);
  }
  return output;
}

TEST_CASE("relative_bound is the smaller of the worst case and the probabilistic bound") {
  const double u = 0x1p-24;
  CHECK(relative_bound({.steps = 4}) == doctest::Approx(4 * u / (1 - 4 * u)));
  CHECK(relative_bound({.steps = 63}) == doctest::Approx(63 * u));
  CHECK(relative_bound({.steps = 10000}) == doctest::Approx(8 * 100 * u));
  CHECK(relative_bound({.unit_roundoff = 0x1p-11, .steps = 4096}) == doctest::Approx(8 * 64 * 0x1p-11));
  CHECK(direct_fp32_bound(parse_shape("c=4,k=2,r=3,s=3,h=9,w=9,groups=2")).steps == 2 * 9 + 1);
  CHECK_FALSE(direct_fp32_bound({}).exact);
}

TEST_CASE("an output may be as wrong as its own bound, not more") {
  // 4 steps and the result's own half ulp: 5 * 2^-24 of a reference 1 = 2.5 ulps (2^-23) above, 5 below.
  CHECK(accepts(1, 1));
  CHECK(accepts(1 + 2 * 0x1p-23f, 1));
  CHECK_FALSE(accepts(1 + 3 * 0x1p-23f, 1));
  CHECK(accepts(1 - 5 * 0x1p-24f, 1));
  CHECK_FALSE(accepts(1 - 6 * 0x1p-24f, 1));
  CHECK_FALSE(accepts(-1, 1));
  CHECK_FALSE(accepts(0, 1));
  CHECK_FALSE(accepts(1, 0));
}

TEST_CASE("the bound follows the magnitude, so cancellation is allowed for") {
  const ConvProblem problem;
  CHECK(check_output(problem, {1e-5f}, {{0}, {1000}}, {.steps = 4}).ok);
  CHECK_FALSE(check_output(problem, {1e-5f}, {{0}, {1}}, {.steps = 4}).ok);
  CHECK_FALSE(check_output(problem, {1e-3f}, {{0}, {1000}}, {.steps = 4}).ok);
}

TEST_CASE("where errors spread, the bound follows the root mean square of the outputs") {
  const ConvProblem problem = parse_shape("w=5");
  const double inf = std::numeric_limits<double>::infinity();
  const Reference reference{{0, 0, 0, 1000, inf}, {1000, 0, 0, 1000, inf}};  // root mean square of the finite ones: 500
  const double bound = 500 * relative_bound({.steps = 4});
  const auto accepted = [&](std::size_t at, double error, bool spread) {
    std::vector<float> output{0, 0, 0, 1000, std::numeric_limits<float>::infinity()};
    output[at] += static_cast<float>(error);
    return check_output(problem, output, reference, {.steps = 4, .spread = spread}).ok;
  };
  for (const std::size_t at : {0, 1}) {
    CHECK(accepted(at, 0.99 * bound, true));
    CHECK_FALSE(accepted(at, 1.01 * bound, true));
  }
  CHECK(accepted(0, 1.01 * bound, false));
  CHECK_FALSE(accepted(1, 0.99 * bound, false));
}

TEST_CASE("underflow costs an output a few subnormal steps, not all of it") {
  CHECK(accepts(3 * 0x1p-149f, 0));
  CHECK(accepts(0, 3 * 0x1p-149));
  CHECK_FALSE(accepts(5 * 0x1p-149f, 0));
  CHECK_FALSE(accepts(0, 1e-39));
  CHECK_FALSE(accepts(0, 1e-37));

  ConvProblem problem = parse_shape("w=50,s=31");
  HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  tensors.input.assign(tensors.input.size(), 1e-39f);
  const Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
  for (const bool backwards : {false, true}) {
    const CheckResult result =
        check_output(problem, single_precision(problem, tensors, backwards), reference, direct_fp32_bound(problem));
    CHECK_MESSAGE(result.ok, result.message);
  }
  CHECK(check_output(problem, std::vector<float>(50, 0.0f), reference, direct_fp32_bound(problem)).wrong > 40);
}

TEST_CASE("an exact model allows no error") {
  CHECK(accepts(16777215, 16777215, exact()));
  CHECK_FALSE(accepts(16777214, 16777215, exact()));
  CHECK_FALSE(accepts(std::nextafter(1.0f, 2.0f), 1, exact()));
  CHECK_FALSE(accepts(1e-45f, 0, exact()));
  CHECK(accepts(-0.0f, 0, exact()));
  CHECK(accepts(kInfinity, 1e39, exact()));
  CHECK_FALSE(accepts(kMost, 1e39, exact()));
  CHECK(check_row({3}, {3}, exact()).tolerance == 0);
}

TEST_CASE("NaN and infinity pass only for themselves") {
  const double nan = kNan, infinity = kInfinity;
  for (const SumBound& model : {SumBound{.steps = 4}, exact()}) {
    CHECK(accepts(kNan, nan, model));
    CHECK(accepts(-kNan, nan, model));
    CHECK_FALSE(accepts(kNan, 1, model));
    CHECK_FALSE(accepts(kNan, 0, model));
    CHECK_FALSE(accepts(kNan, infinity, model));
    CHECK_FALSE(accepts(0, nan, model));
    CHECK_FALSE(accepts(kInfinity, nan, model));
    CHECK(accepts(kInfinity, infinity, model));
    CHECK(accepts(-kInfinity, -infinity, model));
    CHECK_FALSE(accepts(-kInfinity, infinity, model));
    CHECK_FALSE(accepts(kMost, infinity, model));
    CHECK_FALSE(accepts(kInfinity, 1, model));
    CHECK(accepts(kInfinity, 1e39, model));
    CHECK(accepts(-kInfinity, -1e39, model));
    CHECK_FALSE(accepts(kInfinity, -1e39, model));
    CHECK_FALSE(accepts(kMost, 1e39, model));
    CHECK_FALSE(accepts(kNan, 1e39, model));
  }
}

TEST_CASE("at the end of the range rounding decides, within the bound") {
  CHECK(accepts(kInfinity, kMost));       // a sum that overflowed on its last rounding
  CHECK(accepts(kMost, 0x1p128));         // and one that did not
  CHECK_FALSE(accepts(kInfinity, 3e38));  // far from the end
}

TEST_CASE("where fp32 sums may overflow, what overflow makes passes, is counted, and is in no norm") {
  const ConvProblem one;
  const auto check = [&](float output, double reference, double magnitude) {
    return check_output(one, {output}, {{reference}, {magnitude}}, {.steps = 4});
  };
  // The positive terms reach infinity, the negative ones (-3e38) do not.
  CHECK(check(kInfinity, 1e38, 7e38).ok);
  CHECK_FALSE(check(-kInfinity, 1e38, 7e38).ok);
  CHECK_FALSE(check(kNan, 1e38, 7e38).ok);
  CHECK(check(-kInfinity, -1e38, 7e38).ok);
  CHECK_FALSE(check(kInfinity, -1e38, 7e38).ok);
  // Both do.
  for (const float output : {kInfinity, -kInfinity, kNan, -kNan}) {
    const CheckResult result = check(output, 1e38, 9e38);
    CHECK(result.ok);
    CHECK(result.unchecked == 1);
    CHECK(result.max_abs_err == 0);
    CHECK(result.rel_l2_err == 0);
  }
  // Neither does.
  for (const float output : {kInfinity, -kInfinity, kNan}) CHECK_FALSE(check(output, 1e38, 5e38).ok);
  // A number is held to its bound as ever, and poison to having been written.
  CHECK(check(1e38f, 1e38, 9e38).unchecked == 0);
  CHECK_FALSE(check(2e38f, 1e38, 9e38).ok);
  CHECK(check(kPoisoned, 1e38, 9e38).unwritten == 1);
}

TEST_CASE("honest fp32 sums that overflow pass") {
  const ConvProblem problem = parse_shape("w=300,s=31");
  HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  tensors.input.assign(tensors.input.size(), 3e38f);
  for (float& tap : tensors.filter) tap *= 4;
  const Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
  for (const bool backwards : {false, true}) {
    const CheckResult result =
        check_output(problem, single_precision(problem, tensors, backwards), reference, direct_fp32_bound(problem));
    CHECK_MESSAGE(result.ok, result.message);
    CHECK(result.unchecked > 250);
  }
}

TEST_CASE("poison is no result, but where the reference is NaN an input's NaN may look like it") {
  for (const double reference : {0.0, 1.0, static_cast<double>(kInfinity)}) {
    const CheckResult result = check_row({kPoisoned}, {reference}, {.steps = 4});
    CHECK_FALSE(result.ok);
    CHECK(result.wrong == 1);
    CHECK(result.unwritten == 1);
  }
  const CheckResult result = check_row({kPoisoned}, {kNan}, {.steps = 4});
  CHECK(result.ok);
  CHECK(result.unwritten == 0);
}

TEST_CASE("the message names the count, the place and the values") {
  const ConvProblem problem = parse_shape("n=2,k=3,h=4,w=5");
  Reference reference{std::vector<double>(120, 2), std::vector<double>(120, 2)};
  std::vector<float> output(120, 2);
  CheckResult result = check_output(problem, output, reference, {.steps = 4});
  CHECK(result.ok);
  CHECK(result.message.empty());
  CHECK(result.first_wrong == -1);

  output[((1 * 3 + 2) * 4 + 3) * 5 + 1] = 2.5f;
  result = check_output(problem, output, reference, {.steps = 4});
  CHECK_FALSE(result.ok);
  CHECK(result.wrong == 1);
  CHECK(result.first_wrong == 116);
  CHECK(result.message == "1 of 120 outputs is wrong, first at (1,2,3,1): got 2.5, expected 2 (give or take 6e-07)");

  output[7] = kPoisoned;
  output[9] = kPoisoned;
  result = check_output(problem, output, reference, {.steps = 4});
  CHECK(result.wrong == 3);
  CHECK(result.unwritten == 2);
  CHECK(result.first_wrong == 7);
  CHECK(result.message ==
        "2 of 120 outputs were never written, first at (0,0,1,2); 1 of 120 outputs is wrong, first at (1,2,3,1): got "
        "2.5, expected 2 (give or take 6e-07)");

  output[3] = 0;
  result = check_output(problem, output, reference, {.steps = 4});
  CHECK(result.first_wrong == 3);
  CHECK(result.wrong == 4);

  output.assign(120, 2);
  output[0] = kPoisoned;
  CHECK(check_output(problem, output, reference, {.steps = 4}).message ==
        "1 of 120 outputs was never written, first at (0,0,0,0)");
}

TEST_CASE("the norms are over outputs whose reference is finite") {
  const double infinity = std::numeric_limits<double>::infinity();
  CheckResult result = check_row({3, 4.5f, kInfinity, kNan}, {3, 4, infinity, kNan}, {.steps = 4});
  CHECK(result.max_abs_err == 0.5);
  CHECK(result.rel_l2_err == doctest::Approx(0.5 / 5));
  CHECK(result.wrong == 1);
  // Each bound is 5 * 2^-24 of its reference, so their norm is that part of the norm.
  CHECK(result.tolerance == doctest::Approx(5 * 0x1p-24));

  result = check_row({3, kNan}, {3, 4}, {.steps = 4});
  CHECK(result.max_abs_err == infinity);
  CHECK(result.rel_l2_err == infinity);

  result = check_row({kInfinity}, {1e39}, {.steps = 4});
  CHECK(result.ok);
  CHECK(result.max_abs_err == 0);
}

TEST_CASE("what pieces of a long output find is put together in order") {
  constexpr std::size_t kSize = 300'000;
  std::vector<float> output(kSize, 1.0f);
  const std::vector<double> reference(kSize, 1.0);
  for (const std::size_t i : {70'000, 150'000, 299'999}) output[i] = 3.0f;
  output[140'000] = kPoisoned;
  const CheckResult result = check_row(output, reference, exact());
  CHECK(result.wrong == 4);
  CHECK(result.unwritten == 1);
  CHECK(result.first_wrong == 70'000);
  CHECK(result.message.find("first at (0,0,0,140000); 3 of 300000 outputs are wrong, first at (0,0,0,70000)") !=
        std::string::npos);
  output[70'000] = output[140'000] = 1.0f;
  CHECK(check_row(output, reference, exact()).first_wrong == 150'000);
  CHECK(check_row(output, reference, exact()).rel_l2_err == doctest::Approx(std::sqrt(8.0 / kSize)));
  CHECK(check_row(output, reference, exact()).max_abs_err == 2.0);
}

TEST_CASE("a reference of zeros divides nothing") {
  CheckResult result = check_row({0, 0}, {0, 0}, exact());
  CHECK(result.rel_l2_err == 0);
  CHECK(result.tolerance == 0);
  result = check_row({0, 1}, {0, 0}, exact());
  CHECK(result.rel_l2_err == std::numeric_limits<double>::infinity());
}

TEST_CASE("a size mismatch is the caller's error") {
  CHECK_THROWS_AS(check_output({}, {1, 2}, {{1}, {1}}, SumBound{}), std::logic_error);
}

TEST_CASE("an output may have a bound of its own") {
  const ConvProblem problem = parse_shape("w=4");
  const double nan = kNan, infinity = kInfinity;
  const auto check = [&](const std::vector<float>& output, const std::vector<double>& reference,
                         const OutputBounds& bounds) {
    return check_output(problem, output, {reference, reference}, bounds);
  };
  const OutputBounds bounds{{0.5f, 0.25f, 0.0f, kInfinity}};
  CHECK(check({1.5f, 0.75f, 1, 7}, {1, 1, 1, 1}, bounds).ok);
  CHECK(check({1.6f, 0.75f, 1, 7}, {1, 1, 1, 1}, bounds).first_wrong == 0);
  CHECK(check({1.5f, 0.7f, 1, 7}, {1, 1, 1, 1}, bounds).first_wrong == 1);
  CHECK(check({1, 1, 1 + 0x1p-22f, 7}, {1, 1, 1, 1}, bounds).first_wrong == 2);

  // Half an ulp of the type that outputs are kept in, and half the spacing of its subnormal numbers.
  const OutputBounds halves{{0, 0, 0, 0}, Precision::fp16};
  CHECK(check({1 + 0x1p-11f, -2 - 0x1p-10f, 0x1p-25f, 1}, {1, -2, 0, 1}, halves).ok);
  CHECK(check({1 + 0x1p-9f, -2 - 0x1p-8f, 0x1p-23f, 1}, {1, -2, 0, 1}, halves).wrong == 3);

  const OutputBounds bf16{{0, 0, 0, 0}, Precision::bf16};
  CHECK(check({1 + 0x1p-8f, -2 - 0x1p-7f, 0x1p-134f, 1}, {1, -2, 0, 1}, bf16).ok);
  CHECK(check({1 + 0x1p-6f, -2 - 0x1p-5f, 0x1p-132f, 1}, {1, -2, 0, 1}, bf16).wrong == 3);

  // An infinite bound: unchecked, in no norm, but written.
  for (const float output : {7.0f, kNan, -kInfinity}) {
    const CheckResult result = check({1, 1, 1, output}, {1, 1, 1, 1}, bounds);
    CHECK(result.ok);
    CHECK(result.unchecked == 1);
    CHECK(result.max_abs_err == 0);
    CHECK(std::isfinite(result.tolerance));
  }
  CHECK(check({1, 1, 1, kPoisoned}, {1, 1, 1, 1}, bounds).unwritten == 1);

  // Where the reference is not finite, the output is not, whichever it is.
  for (const double exact : {nan, infinity, -infinity}) {
    for (const float output : {kNan, kInfinity, -kInfinity})
      CHECK(check({output, 1, 1, 1}, {exact, 1, 1, 1}, bounds).ok);
    CHECK(check({1, 1, 1, 1}, {exact, 1, 1, 1}, bounds).wrong == 1);
    const CheckResult lost = check({1, 1, 1, 1}, {exact, 1, 1, 1}, {bounds.bounds, Precision::fp16, false});
    CHECK(lost.ok);
    CHECK(lost.unchecked == 2);
  }
  for (const float output : {kNan, kInfinity}) CHECK_FALSE(check({output, 1, 1, 1}, {1, 1, 1, 1}, bounds).ok);

  // Beyond its range fp16 has infinities, of the right sign; near the end either passes.
  CHECK(check({kInfinity, -kInfinity, 1, 1}, {7e4, -1e9, 1, 1}, halves).ok);
  CHECK(check({-kInfinity, kInfinity, 1, 1}, {7e4, -1e9, 1, 1}, halves).wrong == 2);
  CHECK(check({65504, kInfinity, 1, 1}, {65519, 65520, 1, 1}, halves).ok);
  CHECK(check({65504, kInfinity, 1, 1}, {7e4, 65400, 1, 1}, halves).wrong == 2);

  CHECK_THROWS_AS(check({1, 1, 1, 1}, {1, 1, 1, 1}, OutputBounds{{1, 1, 1}}), std::logic_error);
}

TEST_CASE("honest sums of fp16 products are within their bounds, and a wrong tap is not") {
  const auto rounded = [](std::vector<float> values) {
    for (float& value : values) value = half_value(half_bits(value));
    return values;
  };
  for (const char* text : {"c=64,k=8,h=9,w=11,r=3,s=3", "c=2,k=3,h=5,w=6,r=1,s=1", "n=2,c=7,k=2,h=8,w=8,r=5,s=3"}) {
    CAPTURE(std::string(text));
    const ConvProblem problem = parse_shape(text);
    for (const InputKind kind : {InputKind::normal, InputKind::uniform, InputKind::integers, InputKind::constant,
                                 InputKind::impulse, InputKind::nan, InputKind::infinity}) {
      CAPTURE(static_cast<int>(kind));
      const HostTensors tensors = make_inputs(problem, kind, FilterForm::dense, 1);
      const Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
      const OutputBounds bounds = direct_half_bounds(problem, tensors, reference);
      std::vector<float> filter = rounded(tensors.filter);
      const auto computed = [&] {
        std::vector<float> output;
        for (const double value : convolve_reference(problem, rounded(tensors.input), filter).output)
          output.push_back(half_value(half_bits(static_cast<float>(value))));
        return output;
      };
      const CheckResult result = check_output(problem, computed(), reference, bounds);
      CHECK_MESSAGE(result.ok, result.message);
      CHECK(result.unchecked == 0);
      if (kind == InputKind::normal) {
        CHECK(result.rel_l2_err < 1e-3);
        CHECK(result.tolerance < 6e-3);
      }
      filter[0] = filter[0] + 0.5f;  // of the first output channel
      if (kind == InputKind::normal || kind == InputKind::constant)
        CHECK(check_output(problem, computed(), reference, bounds).wrong > problem.p() * problem.q() / 2);
    }
  }
}

TEST_CASE("honest sums of bf16 products are within their bounds; truncated numbers and a wrong tap are not") {
  const auto in_bf16 = [](std::vector<float> values, bool truncated) {
    for (float& value : values) {
      const auto bits = std::bit_cast<std::uint32_t>(value);
      value = bf16_value(truncated ? static_cast<std::uint16_t>(bits >> 16) : bf16_bits(value));
    }
    return values;
  };
  for (const char* text : {"c=64,k=8,h=9,w=11,r=3,s=3", "c=2,k=3,h=5,w=6,r=1,s=1", "n=2,c=7,k=2,h=8,w=8,r=5,s=3"}) {
    CAPTURE(text);
    const ConvProblem problem = parse_shape(text);
    for (const InputKind kind : {InputKind::normal, InputKind::uniform, InputKind::integers, InputKind::constant,
                                 InputKind::impulse, InputKind::large, InputKind::nan, InputKind::infinity}) {
      CAPTURE(static_cast<int>(kind));
      const HostTensors tensors = make_inputs(problem, kind, FilterForm::dense, 1);
      const Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
      const OutputBounds bounds = direct_bf16_bounds(problem, tensors, reference);
      std::vector<float> filter = in_bf16(tensors.filter, false);
      const auto computed = [&](bool truncated) {
        const std::vector<double> sums = convolve_reference(problem, in_bf16(tensors.input, truncated), filter).output;
        return in_bf16(std::vector<float>(sums.begin(), sums.end()), false);
      };
      const CheckResult result = check_output(problem, computed(false), reference, bounds);
      CHECK_MESSAGE(result.ok, result.message);
      CHECK(result.unchecked == 0);
      if (kind == InputKind::normal) {
        CHECK(result.rel_l2_err < 4e-3);
        CHECK(result.tolerance < 8e-3);
        CHECK_FALSE(check_output(problem, computed(true), reference, bounds).ok);
      }
      filter[0] = filter[0] + 0.5f;  // of the first output channel
      if (kind == InputKind::normal || kind == InputKind::constant)
        CHECK(check_output(problem, computed(false), reference, bounds).wrong > problem.p() * problem.q() / 2);
    }
  }
}

TEST_CASE("honest sums of int8 products are within their bounds, and what is wrong is not") {
  const auto steps_of = [](std::vector<float> values, const auto& step_of) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = int8_of(values[i], step_of(i));
    return values;
  };
  for (const char* text : {"c=64,k=8,h=9,w=11,r=3,s=3", "c=2,k=3,h=5,w=6,r=1,s=1", "n=2,c=7,k=2,h=8,w=8,r=5,s=3",
                           "n=2,c=3,k=2,h=4,w=4,r=3,s=3,pad_h=4,pad_w=5"}) {
    CAPTURE(std::string(text));
    const ConvProblem problem = parse_shape(text);
    const auto plane = static_cast<std::size_t>(problem.p() * problem.q());
    for (const InputKind kind : {InputKind::normal, InputKind::uniform, InputKind::integers, InputKind::constant,
                                 InputKind::impulse, InputKind::large, InputKind::nan, InputKind::infinity}) {
      CAPTURE(static_cast<int>(kind));
      const HostTensors tensors = make_inputs(problem, kind, FilterForm::dense, 1);
      const Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
      const OutputBounds bounds = direct_int8_bounds(problem, tensors, reference);
      const float input_step = int8_step(tensors.input), output_step = int8_step(reference.output);
      std::vector<float> steps = int8_steps(tensors.filter, problem.k);
      const std::size_t taps = tensors.filter.size() / steps.size();
      const std::vector<float> input = steps_of(tensors.input, [&](std::size_t) { return input_step; });
      std::vector<float> filter = steps_of(tensors.filter, [&](std::size_t i) { return steps[i / taps]; });
      const auto computed = [&] {
        std::vector<float> output;
        for (const double sum : convolve_reference(problem, input, filter).output) {
          const double value = sum * input_step * steps[output.size() / plane % steps.size()];
          output.push_back(static_cast<float>(int8_of(value, output_step)) * output_step);
        }
        return output;
      };
      const CheckResult result = check_output(problem, computed(), reference, bounds);
      CHECK_MESSAGE(result.ok, result.message);
      const bool finite = kind != InputKind::nan && kind != InputKind::infinity;
      CHECK((result.unchecked == 0) == finite);
      if (kind == InputKind::normal && problem.c == 64) {
        CHECK(result.rel_l2_err < 2.5e-2);
        CHECK(result.tolerance < 4e-2);
      }
      if (kind != InputKind::normal) continue;
      const float tap = filter[0];
      filter[0] = tap > 0 ? -127 : 127;  // of the first output channel
      CHECK(check_output(problem, computed(), reference, bounds).wrong > 0);
      filter[0] = tap;
      steps[0] *= 2;  // its scale
      CHECK(check_output(problem, computed(), reference, bounds).wrong > 0);
    }
  }
}

TEST_CASE("the bounds of int8 are what the rounded numbers give, and half a step of the output") {
  // Inputs are whole steps. Of the filter, the second tap is a tenth of a step from the next, the fourth half-way.
  const ConvProblem problem = parse_shape("c=4");
  const HostTensors tensors{{127, 10, 3, 4}, {127, 2.9f, -7, 0.5f}};
  const OutputBounds bounds =
      direct_int8_bounds(problem, tensors, convolve_reference(problem, tensors.input, tensors.filter));
  const double exact = 127 * 127 + 29 - 21 + 2, rounded = 127 * 127 + 30 - 21, half = exact / 127 / 2;
  CHECK(bounds.bounds[0] == doctest::Approx(exact - rounded + 4 + half).epsilon(2e-3));

  // Few distinct values: what is rounded off is the same everywhere, and adds up.
  const ConvProblem box = parse_shape("c=32,k=2,h=6,w=6,r=3,s=3");
  HostTensors same = make_inputs(box, InputKind::normal, FilterForm::dense, 1);
  for (std::size_t i = 0; i < same.input.size(); ++i) same.input[i] = static_cast<float>(i * 7919 % 3);
  std::fill(same.filter.begin(), same.filter.end(), 1.0f);
  const Reference exact_sums = convolve_reference(box, same.input, same.filter);
  const float step = int8_step(same.input), output_step = int8_step(exact_sums.output);
  std::vector<float> input = same.input, output;
  for (float& value : input) value = int8_of(value, step);
  for (const double sum : convolve_reference(box, input, same.filter).output)
    output.push_back(static_cast<float>(int8_of(sum * step, output_step)) * output_step);
  const OutputBounds of_box = direct_int8_bounds(box, same, exact_sums);
  CHECK(check_output(box, output, exact_sums, of_box).ok);
  output[20] += 2 * output_step;
  CHECK(check_output(box, output, exact_sums, of_box).wrong == 1);
}

TEST_CASE("int8 has no bounds for groups, nor beyond fp32") {
  const HostTensors tensors{{3}, {2, -0.5f}};
  const Reference reference = convolve_reference(parse_shape("k=2"), tensors.input, tensors.filter);
  CHECK_THROWS_AS(direct_int8_bounds(parse_shape("c=2,k=2,groups=2"), tensors, reference), std::logic_error);

  const ConvProblem problem = parse_shape("k=2");
  const HostTensors large{{3e38f}, {1e10f, 1e-10f}};
  const OutputBounds unchecked =
      direct_int8_bounds(problem, large, convolve_reference(problem, large.input, large.filter));
  CHECK(std::isinf(unchecked.bounds[0]));
  CHECK(std::isfinite(unchecked.bounds[1]));
}

TEST_CASE("honest fp32 sums pass and a wrong tap does not") {
  CHECK(rc::check([] {
    ConvProblem problem;
    problem.w = *rc::gen::inRange<std::int64_t>(1, 200);
    problem.s = 2 * *rc::gen::inRange<std::int64_t>(0, 80) + 1;
    problem.pad_w = problem.s / 2;
    const auto kind = *rc::gen::element(InputKind::normal, InputKind::uniform, InputKind::integers, InputKind::impulse,
                                        InputKind::constant, InputKind::large, InputKind::nan, InputKind::infinity);
    const HostTensors tensors = make_inputs(problem, kind, FilterForm::dense, *rc::gen::arbitrary<std::uint64_t>());
    const Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
    SumBound model = direct_fp32_bound(problem);
    model.exact = kind == InputKind::integers;
    for (const bool backwards : {false, true}) {
      std::vector<float> output = single_precision(problem, tensors, backwards);
      const CheckResult result = check_output(problem, output, reference, model);
      RC_ASSERT(result.message == "");
      RC_ASSERT(result.ok);
      RC_ASSERT(result.rel_l2_err <= result.tolerance);

      const auto broken = static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(0, problem.w));
      if (!std::isfinite(output[broken])) continue;
      output[broken] += kind == InputKind::large ? 1e33f : 1.0f;
      const CheckResult wrong = check_output(problem, output, reference, model);
      RC_ASSERT(wrong.wrong == 1);
      RC_ASSERT(wrong.first_wrong == static_cast<std::int64_t>(broken));
    }
  }));
}

}  // namespace
}  // namespace convladder
