#include "common/harness/check/winograd_error.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>

#include "common/harness/check/half_bits.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/kernel/tracks/winograd.hpp"

namespace convladder {
namespace {

/// A mistake that a stage might make.
enum class Flaw { none, swapped_taps, shifted_tiles, missing_channel };

double to_float(double value) { return static_cast<float>(value); }
double to_half(double value) { return half_value(half_bits(value)); }
double to_bf16(double value) { return bf16_value(bf16_bits(static_cast<float>(value))); }
using Round = double (*)(double);

/// Of the input, its transform and the outputs.
Round rounding_of(const WinogradForm& form) {
  return form.stored == Precision::fp32 ? to_float : form.stored == Precision::bf16 ? to_bf16 : to_half;
}

/// Winograd's algorithm, operation by operation, in the types of a form.
template <class Down, class Across = Down>
class Simulation {
 public:
  Simulation(const ConvProblem& problem, const WinogradForm& form, HostTensors tensors, Flaw flaw)
      : problem_(problem), form_(form), tensors_(std::move(tensors)), flaw_(flaw) {
    if (flaw == Flaw::swapped_taps)
      for (std::size_t i = 0; i < tensors_.filter.size(); i += 9) std::swap(tensors_.filter[i], tensors_.filter[i + 1]);
    copy(WinogradMatrices<Down>(), input_down_, filter_down_, output_down_);
    copy(WinogradMatrices<Across>(), input_across_, filter_across_, output_across_);
  }

  std::vector<float> run() {
    transform_filter();
    transform_input();
    std::vector<float> result(static_cast<std::size_t>(problem_.output_size()));
    const std::int64_t p = problem_.p(), q = problem_.q();
    for (std::int64_t tile = 0; tile < tiles(); ++tile) {
      for (std::int64_t k = 0; k < problem_.k; ++k) {
        double y[kOutputsDown][kOutputsAcross];
        if (form_.along_height)
          add_up_in_place(tile, k, y);
        else
          add_up(tile, k, y);
        for (int i = 0; i < kOutputsDown; ++i) {
          for (int j = 0; j < columns(); ++j) {
            const std::int64_t row = row_of(tile) + i, column = column_of(tile) + j;
            if (row >= p || column >= q) continue;
            const double value = form_.stored == Precision::fp32 ? y[i][j] : rounding_of(form_)(y[i][j]);
            result[static_cast<std::size_t>(((tile / down() / across() * problem_.k + k) * p + row) * q + column)] =
                static_cast<float>(value);
          }
        }
      }
    }
    return result;
  }

 private:
  static constexpr int kRows = kTileSize<Down>, kColumns = kTileSize<Across>, kPositions = kRows * kColumns;
  static constexpr int kOutputsDown = kTileOutputs<Down>, kOutputsAcross = kTileOutputs<Across>;

  template <class Matrices, int kSize, int kOutputs>
  static void copy(const Matrices& exact, double (&input)[kSize][kSize], double (&filter)[kSize][3],
                   double (&output)[kOutputs][kSize]) {
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j) input[i][j] = exact.input[i][j].value();
      for (int j = 0; j < 3; ++j) filter[i][j] = exact.filter[i][j].value();
      for (int j = 0; j < kOutputs; ++j) output[j][i] = exact.output[j][i].value();
    }
  }

  template <int kTerms>
  static double row_times(const double (&row)[kTerms], const double* x, int step, Round round) {
    double sum = 0;
    for (int j = 0; j < kTerms; ++j)
      if (row[j] != 0) sum = round(sum + round(row[j] * x[j * step]));
    return sum;
  }
  /// D x A^T
  template <int kD, int kOfD, int kA, int kOfA>
  static void transform(const double (&d)[kD][kOfD], const double (&a)[kA][kOfA], const double (&x)[kOfD][kOfA],
                        double (&result)[kD][kA], Round round) {
    double half_way[kD][kOfA];
    for (int i = 0; i < kD; ++i)
      for (int j = 0; j < kOfA; ++j) half_way[i][j] = row_times(d[i], &x[0][j], kOfA, round);
    for (int i = 0; i < kD; ++i)
      for (int j = 0; j < kA; ++j) result[i][j] = row_times(a[j], half_way[i], 1, round);
  }

  /// L x, of the first three columns. They stand in the first three of the result.
  template <int kTerms, int kOfX>
  static void transform_columns(const double (&l)[kRows][kTerms], const double (&x)[kTerms][kOfX],
                                double (&result)[kRows][kColumns], Round round) {
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j) result[i][j] = j < 3 ? row_times(l[i], &x[0][j], kOfX, round) : 0;
  }

  void add_up(std::int64_t tile, std::int64_t k, double (&y)[kOutputsDown][kOutputsAcross]) const {
    double m[kRows][kColumns];
    for (int i = 0; i < kPositions; ++i) m[i / kColumns][i % kColumns] = product(tile, k, i, 0);
    transform(output_down_, output_across_, m, y, to_float);
  }
  /// A sum goes on over all three columns; the first and the last add to what the others have become.
  void add_up_in_place(std::int64_t tile, std::int64_t k, double (&y)[kOutputsDown][kOutputsAcross]) const {
    const auto product_of_row = [&](int i, double sum) {
      for (int s = 0; s < 3; ++s) sum = product(tile, k, i * kColumns + s, sum);
      return sum;
    };
    const double m1 = product_of_row(1, 0), m2 = product_of_row(2, 0), sum = to_float(m1 + m2);
    y[0][0] = product_of_row(0, sum);
    y[1][0] = product_of_row(3, to_float(sum - 2 * m2));
  }

  int columns() const { return form_.along_height ? 1 : kOutputsAcross; }
  std::int64_t down() const { return (problem_.p() - 1) / kOutputsDown + 1; }
  std::int64_t across() const { return (problem_.q() - 1) / columns() + 1; }
  std::int64_t tiles() const { return problem_.n * down() * across(); }
  std::int64_t row_of(std::int64_t tile) const { return tile / across() % down() * kOutputsDown; }
  std::int64_t column_of(std::int64_t tile) const { return tile % across() * columns(); }

  double element(std::int64_t tile, std::int64_t c, int i, int j) const {
    const std::int64_t shift = flaw_ == Flaw::shifted_tiles && tile % 3 == 1 ? 1 : 0;
    std::int64_t y = row_of(tile) - problem_.pad_h + i, x = column_of(tile) - problem_.pad_w + j + shift;
    if (problem_.padding == Padding::replicate) {
      y = std::clamp<std::int64_t>(y, 0, problem_.h - 1);
      x = std::clamp<std::int64_t>(x, 0, problem_.w - 1);
    } else if (problem_.padding == Padding::reflect) {
      y = problem_.h - 1 - std::abs(problem_.h - 1 - std::abs(y));
      x = problem_.w - 1 - std::abs(problem_.w - 1 - std::abs(x));
    }
    if (y < 0 || y >= problem_.h || x < 0 || x >= problem_.w) return 0;
    const std::int64_t plane = tile / down() / across() * problem_.c + c;
    return tensors_.input[static_cast<std::size_t>((plane * problem_.h + y) * problem_.w + x)];
  }

  void transform_input() {
    v_.resize(static_cast<std::size_t>(tiles() * problem_.c * kPositions));
    for (std::int64_t tile = 0; tile < tiles(); ++tile) {
      for (std::int64_t c = 0; c < problem_.c; ++c) {
        double d[kRows][kColumns], v[kRows][kColumns];
        for (int i = 0; i < kPositions; ++i) {
          const double value = element(tile, c, i / kColumns, i % kColumns);
          d[i / kColumns][i % kColumns] = form_.stored == Precision::fp32 ? value : rounding_of(form_)(value);
        }
        const Round round = rounding_of(form_);
        if (form_.along_height)
          transform_columns(input_down_, d, v, round);
        else
          transform(input_down_, input_across_, d, v, round);
        for (int i = 0; i < kPositions; ++i) v_[v_index(tile, c, i)] = v[i / kColumns][i % kColumns];
      }
    }
    if (form_.stored != Precision::int8) return;
    const std::int64_t sample = std::min<std::int64_t>(tiles(), 1024);
    for (int i = 0; i < kPositions; ++i) {
      std::vector<double> sampled;
      for (std::int64_t t = 0; t < sample; ++t)
        for (std::int64_t c = 0; c < problem_.c; ++c) sampled.push_back(v_[v_index(t * tiles() / sample, c, i)]);
      double largest = 0, best = std::numeric_limits<double>::infinity(), best_step = 0;
      for (const double value : sampled) largest = std::max(largest, std::abs(value));
      for (int tenths = 10; tenths >= 3; --tenths) {
        double error = 0;
        for (const double value : sampled) {
          double rounded = value;
          quantise(rounded, largest * tenths / 10 / 127);
          error += (rounded - value) * (rounded - value);
        }
        if (error < best) {
          best = error;
          best_step = largest * tenths / 10 / 127;
        }
      }
      for (double& value : v_)
        if ((&value - v_.data()) % kPositions == i) quantise(value, best_step);
    }
  }

  void transform_filter() {
    u_.resize(static_cast<std::size_t>(problem_.k * problem_.c * kPositions));
    for (std::int64_t k = 0; k < problem_.k; ++k) {
      for (std::int64_t c = 0; c < problem_.c; ++c) {
        double g[3][3], u[kRows][kColumns];
        for (int i = 0; i < 9; ++i)
          g[i / 3][i % 3] = tensors_.filter[static_cast<std::size_t>((k * problem_.c + c) * 9 + i)];
        if (form_.along_height)
          transform_columns(filter_down_, g, u, to_float);
        else
          transform(filter_down_, filter_across_, g, u, to_float);
        for (int i = 0; i < kPositions; ++i) {
          const double value = u[i / kColumns][i % kColumns];
          u_[v_index(k, c, i)] = form_.stored == Precision::fp16   ? to_half(value)
                                 : form_.stored == Precision::bf16 ? to_bf16(value)
                                                                   : value;
        }
      }
      if (form_.stored != Precision::int8) continue;
      for (int i = 0; i < kPositions; ++i) {
        double largest = 0;
        for (std::int64_t c = 0; c < problem_.c; ++c) largest = std::max(largest, std::abs(u_[v_index(k, c, i)]));
        for (std::int64_t c = 0; c < problem_.c; ++c) quantise(u_[v_index(k, c, i)], largest / 127);
      }
    }
  }

  static void quantise(double& value, double step) {
    if (step > 0) value = std::clamp(std::nearbyint(value / step), -127.0, 127.0) * step;
  }
  /// Of V, by tile, and of U, by filter.
  std::size_t v_index(std::int64_t outer, std::int64_t c, int position) const {
    return static_cast<std::size_t>((outer * problem_.c + c) * kPositions + position);
  }

  double product(std::int64_t tile, std::int64_t k, int position, double sum) const {
    const std::int64_t channels = flaw_ == Flaw::missing_channel ? problem_.c - 1 : problem_.c;
    for (std::int64_t c = 0; c < channels; ++c)
      sum = to_float(sum + u_[v_index(k, c, position)] * v_[v_index(tile, c, position)]);
    return form_.half_products ? to_half(sum) : sum;
  }

  ConvProblem problem_;
  WinogradForm form_;
  HostTensors tensors_;
  Flaw flaw_;
  double input_down_[kRows][kRows], filter_down_[kRows][3], output_down_[kOutputsDown][kRows];
  double input_across_[kColumns][kColumns], filter_across_[kColumns][3], output_across_[kOutputsAcross][kColumns];
  std::vector<double> v_, u_;
};

std::vector<float> simulate(const ConvProblem& problem, const WinogradForm& form, const HostTensors& tensors,
                            Flaw flaw = Flaw::none) {
  if (form.m == 2) return Simulation<F2>(problem, form, tensors, flaw).run();
  if (form.m == 6) return Simulation<F6>(problem, form, tensors, flaw).run();
  if (form.m == 7 && form.m_across == 4) return Simulation<F7, F4Fractions>(problem, form, tensors, flaw).run();
  if (form.m == 7) return Simulation<F7>(problem, form, tensors, flaw).run();
  if (form.fractions) return Simulation<F4Fractions>(problem, form, tensors, flaw).run();
  return Simulation<F4>(problem, form, tensors, flaw).run();
}

CheckResult check(const ConvProblem& problem, const WinogradForm& form, const HostTensors& tensors,
                  const std::vector<float>& output) {
  return check_output(problem, output, convolve_reference(problem, tensors.input, tensors.filter),
                      winograd_bounds(problem, form, tensors));
}

struct Named {
  std::string name;
  WinogradForm form;
  double contract;  ///< of rel_l2_err on normal inputs
};
const Named kForms[] = {
    {"fp32 F2", {2, false, Precision::fp32, false}, 5e-6},
    {"fp32 F4", {4, false, Precision::fp32, false}, 2e-5},
    {"fp32 F6", {6, false, Precision::fp32, false}, 2e-5},
    {"fp32 F7", {7, false, Precision::fp32, false}, 5e-5},
    {"fp32 F7 x F4 with fractions", {7, true, Precision::fp32, false, false, 4}, 1e-5},
    {"fp16 F2", {2, false, Precision::fp16, false}, 4e-3},
    {"fp16 F2 along the height", {2, false, Precision::fp16, false, true}, 4e-3},
    {"bf16 F2 along the height", {2, false, Precision::bf16, false, true}, 1e-2},
    {"fp16 F4 with fractions", {4, true, Precision::fp16, false}, 4e-3},
    {"fp16 F4 with fractions and half products", {4, true, Precision::fp16, true}, 4e-3},
    {"int8 F2", {2, false, Precision::int8, false}, 2.5e-2},
};

TEST_CASE("Winograd's honest errors are within their bounds, and these are not wide") {
  for (const Named& named : kForms) {
    CAPTURE(named.name);
    for (const std::string text : {"c=64,h=18,w=21,k=32,r=3,s=3", "n=2,c=5,h=9,w=7,k=7,r=3,s=3"}) {
      CAPTURE(text);
      const ConvProblem problem = parse_shape(text);
      const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
      const CheckResult result = check(problem, named.form, tensors, simulate(problem, named.form, tensors));
      if (std::getenv("CONVLADDER_SHOW_BOUNDS"))
        MESSAGE(named.name, " ", text, ": error ", result.rel_l2_err, ", tolerance ", result.tolerance, ", ratio ",
                result.tolerance / result.rel_l2_err);
      CHECK_MESSAGE(result.ok, result.message);
      CHECK(result.unchecked == 0);
      CHECK(result.rel_l2_err < named.contract);
      CHECK(result.tolerance < 25 * result.rel_l2_err);
      CHECK(result.tolerance > 7 * result.rel_l2_err);
    }
  }
}

TEST_CASE("a stage that leaves out a channel, swaps taps or shifts tiles is far outside the bounds") {
  const ConvProblem problem = parse_shape("c=64,h=18,w=21,k=8,r=3,s=3");
  const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 2);
  for (const Named& named : kForms) {
    CAPTURE(named.name);
    for (const Flaw flaw : {Flaw::missing_channel, Flaw::swapped_taps, Flaw::shifted_tiles}) {
      CAPTURE(static_cast<int>(flaw));
      const CheckResult result = check(problem, named.form, tensors, simulate(problem, named.form, tensors, flaw));
      CHECK(result.wrong > problem.output_size() / 8);
    }
  }
}

TEST_CASE("the bounds hold for all kinds of inputs and every padding") {
  for (const Named& named : kForms) {
    CAPTURE(named.name);
    for (const std::string text : {"n=2,c=9,h=13,w=11,k=5,r=3,s=3", "c=3,h=1,w=1,k=2,r=3,s=3,pad_h=3,pad_w=2",
                                   "c=17,h=8,w=30,k=3,r=3,s=3,pad_h=0,pad_w=0"}) {
      for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
        ConvProblem problem = parse_shape(text);
        problem.padding = padding;
        if (padding == Padding::reflect && (problem.pad_h >= problem.h || problem.pad_w >= problem.w)) continue;
        for (const InputKind kind : {InputKind::normal, InputKind::uniform, InputKind::integers, InputKind::impulse,
                                     InputKind::constant, InputKind::nan, InputKind::infinity}) {
          CAPTURE(text);
          CAPTURE(static_cast<int>(padding));
          CAPTURE(static_cast<int>(kind));
          const HostTensors tensors = make_inputs(problem, kind, FilterForm::dense, 3);
          std::vector<float> output = simulate(problem, named.form, tensors);
          const CheckResult result = check(problem, named.form, tensors, output);
          CHECK_MESSAGE(result.ok, result.message);
          if (kind == InputKind::nan || kind == InputKind::infinity) continue;
          CHECK(result.unchecked == 0);
          float largest = 0;
          for (const float value : output) largest = std::max(largest, std::abs(value));
          output[output.size() / 2] += largest;
          CHECK(check(problem, named.form, tensors, output).wrong == 1);
        }
      }
    }
  }
}

TEST_CASE("numbers beyond an int8 stage's clipping value are allowed for") {
  const WinogradForm form{2, false, Precision::int8, true};
  for (const std::string text : {"c=1,h=70,w=70,k=3,r=3,s=3", "c=3,h=120,w=60,k=2,r=3,s=3"}) {
    CAPTURE(text);
    const ConvProblem problem = parse_shape(text);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, seed);
      for (std::size_t i = 0; i < tensors.input.size(); i += 1009) tensors.input[i] *= 3;
      const CheckResult result = check(problem, form, tensors, simulate(problem, form, tensors));
      CHECK_MESSAGE(result.ok, result.message);
      CHECK(result.unchecked == 0);
      CHECK(result.tolerance < 0.4);
    }
  }
}

TEST_CASE("an infinity must arrive, and what shares its tile is unchecked") {
  const ConvProblem problem = parse_shape("c=2,h=12,w=12,k=1,r=3,s=3");
  HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 4);
  tensors.input[4 * 12 + 4] = std::numeric_limits<float>::infinity();
  for (const Named& named : kForms) {
    CAPTURE(named.name);
    std::vector<float> output = simulate(problem, named.form, tensors);
    const CheckResult honest = check(problem, named.form, tensors, output);
    CHECK_MESSAGE(honest.ok, honest.message);
    CHECK(honest.unchecked > 0);
    if (named.form.stored == Precision::int8) {
      CHECK(honest.unchecked == problem.output_size());
      continue;
    }
    CHECK(honest.unchecked < problem.output_size());
    // Rows and columns 3 to 5 read it.
    for (const std::size_t i : {3 * 12 + 3, 4 * 12 + 4, 5 * 12 + 5}) {
      const float before = output[i];
      output[i] = 1;
      CHECK(check(problem, named.form, tensors, output).first_wrong == static_cast<std::int64_t>(i));
      output[i] = std::numeric_limits<float>::quiet_NaN();
      CHECK(check(problem, named.form, tensors, output).ok);
      output[i] = before;
    }
    // The last tile does not.
    output[11 * 12 + 11] = std::numeric_limits<float>::quiet_NaN();
    CHECK(check(problem, named.form, tensors, output).wrong == 1);
  }
}

TEST_CASE("numbers that may overflow on the way are unchecked") {
  const ConvProblem problem = parse_shape("c=4,h=12,w=12,k=1,r=3,s=3");
  HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 5);
  for (const Named& named : kForms) {
    CAPTURE(named.name);
    const bool bf16 = named.form.stored == Precision::bf16, single = named.form.stored == Precision::fp32 || bf16;
    HostTensors scaled = tensors;
    // In the first tile. Products of bf16 are added in fp32, with the same range, so half as much.
    scaled.input[0] = scaled.input[1] = scaled.input[12] = bf16 ? 1.8e38f : single ? 3e38f : 60000;
    CheckResult result = check(problem, named.form, scaled, simulate(problem, named.form, scaled));
    CHECK_MESSAGE(result.ok, result.message);
    CHECK(result.unchecked > 0);
    const int columns = named.form.m_across > 0 ? named.form.m_across : named.form.m;
    CHECK(result.unchecked <= (named.form.stored == Precision::int8 ? 144 : named.form.m * columns));
    scaled = tensors;
    for (float& tap : scaled.filter) tap = single ? tap * 3e38f : 70000;
    result = check(problem, named.form, scaled, simulate(problem, named.form, scaled));
    CHECK_MESSAGE(result.ok, result.message);
    scaled = tensors;
    for (float& value : scaled.input) value *= single ? 1e18f : 100;
    for (float& tap : scaled.filter) tap *= single ? 1e17f : 10;
    result = check(problem, named.form, scaled, simulate(problem, named.form, scaled));
    CHECK_MESSAGE(result.ok, result.message);
    CHECK(result.unchecked == 0);
  }
}

TEST_CASE("sums that may overflow before their terms cancel are unchecked") {
  const ConvProblem problem = parse_shape("c=2,h=8,w=8,k=1,r=3,s=3");
  HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 6);
  for (std::size_t i = 0; i < 64; ++i) tensors.input[64 + i] = tensors.input[i] *= 1e20f;
  for (std::size_t i = 0; i < 9; ++i) tensors.filter[9 + i] = -(tensors.filter[i] *= 1e20f);
  const WinogradForm form{2};
  const std::vector<float> output = simulate(problem, form, tensors);
  CHECK(std::any_of(output.begin(), output.end(), [](float value) { return std::isnan(value); }));
  const CheckResult result = check(problem, form, tensors, output);
  CHECK_MESSAGE(result.ok, result.message);
  CHECK(result.unchecked > 0);
}

TEST_CASE("outputs too large for fp16 must be infinite there") {
  const ConvProblem problem = parse_shape("c=1,h=4,w=4,k=1,r=3,s=3");
  const WinogradForm form{2, false, Precision::fp16, false};
  HostTensors tensors{std::vector<float>(16, 5000.0f), std::vector<float>(9, 5.0f)};
  const std::vector<float> output = simulate(problem, form, tensors);
  CHECK(std::isinf(output[5]));  // 225000
  CHECK(check(problem, form, tensors, output).ok);
  std::vector<float> finite = output;
  finite[5] = 65504;
  CHECK_FALSE(check(problem, form, tensors, finite).ok);
  finite[5] = -output[5];
  CHECK_FALSE(check(problem, form, tensors, finite).ok);
}

TEST_CASE("only what Winograd's algorithm computes has its bounds") {
  for (const std::string text : {"h=9,w=9,r=5,s=5", "h=9,w=9,r=3,s=3,stride_w=2", "h=9,w=9,r=3,s=3,dilation_h=2",
                                 "c=2,k=2,groups=2,h=9,w=9,r=3,s=3"}) {
    const ConvProblem problem = parse_shape(text);
    const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
    CHECK_THROWS_AS(winograd_bounds(problem, {.m = 2}, tensors), std::logic_error);
  }
  const ConvProblem problem = parse_shape("h=9,w=9,r=3,s=3");
  const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  CHECK_THROWS_AS(winograd_bounds(problem, {.m = 3}, tensors), std::logic_error);
}

}  // namespace
}  // namespace convladder
