#include "common/harness/check/reference.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/harness/check/inputs.hpp"
#include "common/harness/device/host.hpp"
#include "common/harness/files/problem_io.hpp"

namespace convladder {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

/// One line with its padding written out, as a picture of what each mode means: `valid` is false where it reads zero.
struct PaddedLine {
  std::vector<std::int64_t> source;
  std::vector<bool> valid;
};

PaddedLine pad_line(std::int64_t size, std::int64_t pad, Padding padding) {
  PaddedLine line;
  for (std::int64_t i = 0; i < size; ++i) line.source.push_back(i);
  std::vector<std::int64_t> before, after;
  for (std::int64_t i = 1; i <= pad; ++i) {
    before.insert(before.begin(), padding == Padding::reflect ? i : 0);
    after.push_back(padding == Padding::reflect ? size - 1 - i : size - 1);
  }
  line.source.insert(line.source.begin(), before.begin(), before.end());
  line.source.insert(line.source.end(), after.begin(), after.end());
  line.valid.assign(line.source.size(), padding != Padding::zero);
  std::fill_n(line.valid.begin() + pad, size, true);
  return line;
}

/// Seven loops over the padded lines.
Reference naive(const ConvProblem& x, const HostTensors& tensors) {
  const PaddedLine rows = pad_line(x.h, x.pad_h, x.padding), columns = pad_line(x.w, x.pad_w, x.padding);
  const std::int64_t group_c = x.c / x.groups, group_k = x.k / x.groups;
  Reference result;
  for (std::int64_t n = 0; n < x.n; ++n)
    for (std::int64_t k = 0; k < x.k; ++k)
      for (std::int64_t p = 0; p < x.p(); ++p)
        for (std::int64_t q = 0; q < x.q(); ++q) {
          double sum = 0, magnitude = 0;
          for (std::int64_t c = 0; c < group_c; ++c)
            for (std::int64_t r = 0; r < x.r; ++r)
              for (std::int64_t s = 0; s < x.s; ++s) {
                const std::size_t row = index(p * x.stride_h + r * x.dilation_h);
                const std::size_t column = index(q * x.stride_w + s * x.dilation_w);
                if (!rows.valid[row] || !columns.valid[column]) continue;
                const std::int64_t channel = k / group_k * group_c + c;
                const double a = tensors.filter[index(((k * group_c + c) * x.r + r) * x.s + s)];
                const double b =
                    tensors.input[index(((n * x.c + channel) * x.h + rows.source[row]) * x.w + columns.source[column])];
                sum += a * b;
                magnitude += std::abs(a * b);
              }
          result.output.push_back(sum);
          result.magnitudes.push_back(magnitude);
        }
  return result;
}

/// A small problem of every kind that validate() accepts.
ConvProblem random_problem() {
  const auto size = [](std::int64_t least, std::int64_t most) {
    return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(least, most + 1));
  };
  ConvProblem x;
  x.padding = static_cast<Padding>(size(0, 2));
  x.groups = size(1, 3);
  x.n = size(1, 2);
  x.c = x.groups * size(1, 2);
  x.k = x.groups * size(1, 2);
  x.h = size(1, 7);
  x.w = size(1, 9);
  x.r = size(1, 4);
  x.s = size(1, 5);
  x.stride_h = size(1, 3);
  x.stride_w = size(1, 3);
  x.dilation_h = size(1, 3);
  x.dilation_w = size(1, 3);
  // Pads large enough for one output at least, and beyond the filter's reach.
  x.pad_h = size(0, 6);
  x.pad_w = size(0, 8);
  if (x.padding == Padding::reflect) {
    x.pad_h = std::min(x.pad_h, x.h - 1);
    x.pad_w = std::min(x.pad_w, x.w - 1);
  }
  x.r = std::min(x.r, (x.h + 2 * x.pad_h - 1) / x.dilation_h + 1);
  x.s = std::min(x.s, (x.w + 2 * x.pad_w - 1) / x.dilation_w + 1);
  validate(x, host_memory_bytes());
  return x;
}

ConvProblem line(std::int64_t w, std::int64_t s, Padding padding = Padding::zero) {
  ConvProblem problem;
  problem.w = w;
  problem.s = s;
  problem.pad_w = s / 2;
  problem.padding = padding;
  return problem;
}

std::vector<double> outputs(const ConvProblem& problem, const std::vector<float>& input,
                            const std::vector<float>& filter) {
  return convolve_reference(problem, input, filter).output;
}

TEST_CASE("the filter is not flipped, and each padding reads what its name says") {
  const std::vector<float> input{1, 2, 3, 4}, filter{1, 10, 100, 0, 0};
  CHECK(outputs(line(4, 5), input, filter) == std::vector<double>{100, 210, 321, 432});
  CHECK(outputs(line(4, 5, Padding::replicate), input, filter) == std::vector<double>{111, 211, 321, 432});
  CHECK(outputs(line(4, 5, Padding::reflect), input, filter) == std::vector<double>{123, 212, 321, 432});
  const std::vector<float> ahead{0, 0, 100, 10, 1};
  CHECK(outputs(line(4, 5), input, ahead) == std::vector<double>{123, 234, 340, 400});
  CHECK(outputs(line(4, 5, Padding::replicate), input, ahead) == std::vector<double>{123, 234, 344, 444});
  CHECK(outputs(line(4, 5, Padding::reflect), input, ahead) == std::vector<double>{123, 234, 343, 432});
}

TEST_CASE("padding far beyond the input") {
  ConvProblem problem = line(2, 1);
  problem.pad_w = 3;
  CHECK(outputs(problem, {5, 7}, {1}) == std::vector<double>{0, 0, 0, 5, 7, 0, 0, 0});
  problem.padding = Padding::replicate;
  CHECK(outputs(problem, {5, 7}, {1}) == std::vector<double>{5, 5, 5, 5, 7, 7, 7, 7});
}

TEST_CASE("the reference equals seven plain loops on every kind of problem") {
  CHECK(rc::check([] {
    const ConvProblem problem = random_problem();
    RC_CLASSIFY(problem.padding == Padding::zero, "zero");
    RC_CLASSIFY(problem.padding == Padding::replicate, "replicate");
    RC_CLASSIFY(problem.padding == Padding::reflect, "reflect");
    // Integers: sums are exact in any order, so a wrong tap cannot hide in a tolerance.
    const HostTensors tensors =
        make_inputs(problem, InputKind::integers, FilterForm::dense, *rc::gen::arbitrary<std::uint64_t>());
    const Reference result = convolve_reference(problem, tensors.input, tensors.filter);
    const Reference expected = naive(problem, tensors);
    RC_ASSERT(result.output == expected.output);
    RC_ASSERT(result.magnitudes == expected.magnitudes);
  }));
}

TEST_CASE("rows of several blocks, with the borders of wide filters in them") {
  for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
    for (const std::int64_t w : {1023, 1024, 1025, 2049, 3000}) {
      for (const std::int64_t stride : {1, 2}) {
        ConvProblem problem = line(w, 129, padding);
        problem.dilation_w = 9;  // the reach, 1152, is more than a block
        problem.pad_w = 576;
        problem.stride_w = stride;
        const HostTensors tensors = make_inputs(problem, InputKind::integers, FilterForm::dense, 7);
        const Reference result = convolve_reference(problem, tensors.input, tensors.filter);
        const Reference expected = naive(problem, tensors);
        CHECK(result.output == expected.output);
        CHECK(result.magnitudes == expected.magnitudes);
      }
    }
  }
}

TEST_CASE("the reference is linear in the input") {
  CHECK(rc::check([] {
    const ConvProblem problem = random_problem();
    HostTensors x = make_inputs(problem, InputKind::integers, FilterForm::dense, 1);
    const HostTensors y = make_inputs(problem, InputKind::integers, FilterForm::dense, 2);
    const auto factor = static_cast<float>(*rc::gen::inRange(-5, 6));
    const std::vector<double> of_x = outputs(problem, x.input, x.filter), of_y = outputs(problem, y.input, x.filter);
    for (std::size_t i = 0; i < x.input.size(); ++i) x.input[i] = factor * x.input[i] + y.input[i];
    const std::vector<double> of_sum = outputs(problem, x.input, x.filter);
    for (std::size_t i = 0; i < of_sum.size(); ++i) RC_ASSERT(of_sum[i] == factor * of_x[i] + of_y[i]);
  }));
}

TEST_CASE("an impulse answers with the filter turned around, where the impulse is") {
  CHECK(rc::check([] {
    ConvProblem problem;
    problem.h = *rc::gen::inRange<std::int64_t>(1, 12);
    problem.w = *rc::gen::inRange<std::int64_t>(1, 12);
    problem.r = 2 * *rc::gen::inRange<std::int64_t>(0, 4) + 1;
    problem.s = 2 * *rc::gen::inRange<std::int64_t>(0, 4) + 1;
    problem.pad_h = problem.r / 2;
    problem.pad_w = problem.s / 2;
    const HostTensors tensors =
        make_inputs(problem, InputKind::impulse, FilterForm::dense, *rc::gen::arbitrary<std::uint64_t>());
    const std::vector<double> result = outputs(problem, tensors.input, tensors.filter);
    for (std::int64_t p = 0; p < problem.h; ++p) {
      for (std::int64_t q = 0; q < problem.w; ++q) {
        const std::int64_t r = problem.h / 2 - p + problem.pad_h, s = problem.w / 2 - q + problem.pad_w;
        const bool reached = r >= 0 && r < problem.r && s >= 0 && s < problem.s;
        RC_ASSERT(result[index(p * problem.w + q)] == (reached ? tensors.filter[index(r * problem.s + s)] : 0.0f));
      }
    }
  }));
}

TEST_CASE("magnitudes bound the outputs and equal them where no term is negative") {
  const ConvProblem problem = parse_shape("n=2,c=3,h=5,w=6,k=2,r=3,s=3");
  const HostTensors positive = make_inputs(problem, InputKind::uniform, FilterForm::dense, 3);
  const Reference equal = convolve_reference(problem, positive.input, positive.filter);
  CHECK(equal.output == equal.magnitudes);
  const HostTensors normal = make_inputs(problem, InputKind::normal, FilterForm::dense, 3);
  const Reference mixed = convolve_reference(problem, normal.input, normal.filter);
  for (std::size_t i = 0; i < mixed.output.size(); ++i) CHECK(std::abs(mixed.output[i]) < mixed.magnitudes[i]);
}

TEST_CASE("NaN and infinity arrive as the plain sum brings them") {
  const auto kinds = [](const std::vector<double>& values) {
    std::string text;
    for (const double value : values) {
      text += std::isnan(value) ? 'n' : std::isinf(value) ? (value > 0 ? '+' : '-') : '.';
    }
    return text;
  };
  CHECK(kinds(outputs(line(7, 3), {1, 1, 1, kNan, 1, 1, 1}, {1, 1, 1})) == "..nnn..");
  CHECK(kinds(outputs(line(7, 3), {1, 1, 1, kNan, 1, 1, 1}, {0, 0, 0})) == "..nnn..");
  CHECK(kinds(outputs(line(7, 3), {1, 1, 1, kInfinity, 1, 1, 1}, {1, -1, 0})) == "..n-+..");
  CHECK(kinds(outputs(line(4, 3), {kInfinity, 1, -kInfinity, 1}, {1, 1, 1})) == "+n--");
  // Outside the input there is no term, so no infinity times zero; replicated edges have one.
  CHECK(kinds(outputs(line(3, 3), {1, 1, 1}, {kInfinity, 1, 1})) == ".++");
  CHECK(kinds(outputs(line(3, 3), {0, 1, 1}, {kInfinity, 1, 1})) == ".n+");
  CHECK(kinds(outputs(line(3, 3, Padding::replicate), {0, 1, 1}, {kInfinity, 1, 1})) == "nn+");
}

TEST_CASE("a stride of any size reads the first output alone") {
  ConvProblem problem = line(4, 5);
  problem.n = 2;
  problem.stride_w = std::numeric_limits<std::int64_t>::max();
  validate(problem, host_memory_bytes());
  const std::vector<double> expected{1 + 2 * 2 + 3 * 3, 5 + 2 * 6 + 3 * 7};
  CHECK(outputs(problem, {1, 2, 3, 4, 5, 6, 7, 8}, {100, 10, 1, 2, 3}) == expected);
}

TEST_CASE("terms beyond fp32 stay exact in the reference") {
  const std::vector<double> result = outputs(line(1, 1), {3e38f}, {3e38f});
  CHECK(result[0] == static_cast<double>(3e38f) * static_cast<double>(3e38f));
  const float tiny = std::numeric_limits<float>::denorm_min();
  CHECK(outputs(line(1, 1), {tiny}, {tiny})[0] == 0x1p-298);
}

TEST_CASE("an epilogue is added to the sums, and clamped last") {
  ConvProblem problem = parse_shape("n=2,k=2,w=2");
  const HostTensors tensors{{1, 2, 3, 4}, {1, -1}, {0.5f, -1}, {-3, 0, 1, 9, -9, 1, 6, 2}};
  const auto outputs_with = [&](Epilogue epilogue) {
    problem.epilogue = epilogue;
    return convolve_reference(problem, tensors).output;
  };
  CHECK(outputs_with(Epilogue::none) == std::vector<double>{1, 2, -1, -2, 3, 4, -3, -4});
  CHECK(outputs_with(Epilogue::bias) == std::vector<double>{1.5, 2.5, -2, -3, 3.5, 4.5, -4, -5});
  CHECK(outputs_with(Epilogue::bias_relu) == std::vector<double>{1.5, 2.5, 0, 0, 3.5, 4.5, 0, 0});
  CHECK(outputs_with(Epilogue::bias_residual_relu) == std::vector<double>{0, 2.5, 0, 6, 0, 5.5, 2, 0});
  CHECK(convolve_reference(problem, tensors).magnitudes[3] == 2 + 1 + 9);
  problem = parse_shape("epilogue=bias_relu");
  CHECK(std::isnan(convolve_reference(problem, {{kNan}, {1}, {1}}).output[0]));
}

}  // namespace
}  // namespace convladder
