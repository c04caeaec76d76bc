#include "common/harness/check/inputs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/harness/check/reference.hpp"
#include "common/harness/files/problem_io.hpp"

namespace convladder {
namespace {

double mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double moment(const std::vector<float>& values, int power) {
  double sum = 0;
  for (const float value : values) sum += std::pow(value, power);
  return sum / static_cast<double>(values.size());
}

std::vector<std::size_t> not_finite(const std::vector<float>& values) {
  std::vector<std::size_t> where;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) where.push_back(i);
  }
  return where;
}

constexpr InputKind kKinds[] = {InputKind::normal,     InputKind::uniform,  InputKind::integers,
                                InputKind::impulse,    InputKind::constant, InputKind::large,
                                InputKind::large_half, InputKind::nan,      InputKind::infinity};

TEST_CASE("the sizes are the problem's") {
  const ConvProblem problem = parse_shape("n=2,c=6,h=3,w=5,k=4,r=3,s=2,groups=2");
  for (const InputKind kind : kKinds) {
    const HostTensors tensors = make_inputs(problem, kind, FilterForm::dense, 1);
    CHECK(tensors.input.size() == 2 * 6 * 3 * 5);
    CHECK(tensors.filter.size() == 4 * 3 * 3 * 2);
  }
}

TEST_CASE("the numbers of a seed never change") {
  // Made by another implementation of the same definition; the filter's deviation is 1/sqrt(4).
  const ConvProblem problem = parse_shape("w=4,s=4");
  CHECK(make_inputs(problem, InputKind::normal, FilterForm::dense, 42).input ==
        std::vector<float>{-893312 * 0x1p-21f, 842139 * 0x1p-21f, 35223 * 0x1p-21f, 935669 * 0x1p-21f});
  CHECK(make_inputs(problem, InputKind::normal, FilterForm::dense, 42).filter ==
        std::vector<float>{-1737222 * 0x1p-22f, 88926 * 0x1p-22f, -1259299 * 0x1p-22f, 2828248 * 0x1p-22f});
  CHECK(make_inputs(problem, InputKind::uniform, FilterForm::dense, 42).input ==
        std::vector<float>{12952958 * 0x1p-24f, 6403045 * 0x1p-24f, 11842133 * 0x1p-24f, 10093721 * 0x1p-24f});
  CHECK(make_inputs(problem, InputKind::integers, FilterForm::dense, 42).input == std::vector<float>{1, -4, 1, 0});
}

TEST_CASE("seeds and tensors have numbers of their own") {
  const ConvProblem problem = parse_shape("w=1000,s=999");
  std::set<float> seen;
  std::size_t made = 0;
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const HostTensors tensors = make_inputs(problem, InputKind::uniform, FilterForm::dense, seed);
    seen.insert(tensors.input.begin(), tensors.input.end());
    seen.insert(tensors.filter.begin(), tensors.filter.end());
    made += tensors.input.size() + tensors.filter.size();
  }
  CHECK(seen.size() > made - 20);  // of 7996 draws from 2^24 values about 2 meet
}

TEST_CASE("normal and uniform have their moments") {
  const ConvProblem problem = parse_shape("w=65536,s=16385,pad_w=8192");
  const HostTensors normal = make_inputs(problem, InputKind::normal, FilterForm::dense, 5);
  // Five standard errors of 65536 draws.
  CHECK(mean(normal.input) == doctest::Approx(0).epsilon(0.02));
  CHECK(std::abs(mean(normal.input)) < 0.02);
  CHECK(std::abs(moment(normal.input, 2) - 1) < 0.03);
  CHECK(std::abs(moment(normal.input, 3)) < 0.05);
  CHECK(std::abs(moment(normal.input, 4) - 2.9) < 0.2);  // 3 - 0.1: twelve uniforms
  CHECK(std::abs(moment(normal.filter, 2) * 16385 - 1) < 0.06);
  double neighbours = 0;
  for (std::size_t i = 1; i < normal.input.size(); ++i) neighbours += normal.input[i - 1] * normal.input[i];
  CHECK(std::abs(neighbours / 65536) < 0.02);

  const HostTensors uniform = make_inputs(problem, InputKind::uniform, FilterForm::dense, 5);
  CHECK(std::abs(mean(uniform.input) - 0.5) < 0.006);
  CHECK(std::abs(moment(uniform.input, 2) - 1.0 / 3) < 0.006);
  CHECK(*std::min_element(uniform.input.begin(), uniform.input.end()) >= 0);
  CHECK(*std::max_element(uniform.input.begin(), uniform.input.end()) < 1);
}

TEST_CASE("integers are -4 to 4, all of them") {
  const HostTensors tensors = make_inputs(parse_shape("w=1000,s=999"), InputKind::integers, FilterForm::dense, 5);
  const std::set<float> expected{-4, -3, -2, -1, 0, 1, 2, 3, 4};
  CHECK(std::set<float>(tensors.input.begin(), tensors.input.end()) == expected);
  CHECK(std::set<float>(tensors.filter.begin(), tensors.filter.end()) == expected);
}

TEST_CASE("special values are alone in the middle") {
  const ConvProblem problem = parse_shape("n=3,c=3,h=5,w=7,k=2,r=3,s=3");
  const std::size_t middle = ((1 * 3 + 1) * 5 + 2) * 7 + 3;

  const HostTensors impulse = make_inputs(problem, InputKind::impulse, FilterForm::dense, 5);
  CHECK(impulse.input[middle] == 1);
  CHECK(std::count(impulse.input.begin(), impulse.input.end(), 0.0f) == 3 * 3 * 5 * 7 - 1);

  const HostTensors constant = make_inputs(problem, InputKind::constant, FilterForm::dense, 5);
  CHECK(std::count(constant.input.begin(), constant.input.end(), 1.0f) == 3 * 3 * 5 * 7);

  const HostTensors nan = make_inputs(problem, InputKind::nan, FilterForm::dense, 5);
  CHECK(not_finite(nan.input) == std::vector<std::size_t>{middle});
  CHECK(std::isnan(nan.input[middle]));

  const HostTensors infinity = make_inputs(problem, InputKind::infinity, FilterForm::dense, 5);
  CHECK(not_finite(infinity.input) == std::vector<std::size_t>{middle});
  CHECK(infinity.input[middle] > 0);
  CHECK(std::count(infinity.filter.begin(), infinity.filter.end(), 0.0f) == 0);

  const HostTensors normal = make_inputs(problem, InputKind::normal, FilterForm::dense, 5);
  for (const HostTensors* other : {&impulse, &constant, &nan, &infinity}) CHECK(other->filter == normal.filter);
  CHECK(not_finite(normal.input).empty());
}

TEST_CASE("one element is a middle too") {
  CHECK(std::isnan(make_inputs({}, InputKind::nan, FilterForm::dense, 5).input[0]));
  CHECK(make_inputs({}, InputKind::impulse, FilterForm::dense, 5).input[0] == 1);
}

TEST_CASE("large values keep their products in fp32's range") {
  const HostTensors tensors = make_inputs(parse_shape("w=1000,s=9"), InputKind::large, FilterForm::dense, 5);
  float input = 0, filter = 0;
  for (const float value : tensors.input) input = std::max(input, std::abs(value));
  for (const float value : tensors.filter) filter = std::max(filter, std::abs(value));
  CHECK(input > 1e18f);
  CHECK(input * filter > 1e35f);
  CHECK(9 * input * filter < 3e38f);
}

TEST_CASE("large values for fp16 keep their outputs in its range") {
  const ConvProblem problem = parse_shape("c=8,h=30,w=30,k=4,r=3,s=3");
  const HostTensors tensors = make_inputs(problem, InputKind::large_half, FilterForm::dense, 5);
  double largest = 0;
  for (const double value : convolve_reference(problem, tensors.input, tensors.filter).output)
    largest = std::max(largest, std::abs(value));
  CHECK(largest > 3000);
  CHECK(largest < 10000);
}

TEST_CASE("an epilogue's numbers are its own, and the others stay as they are") {
  ConvProblem problem = parse_shape("n=2,c=3,h=4,w=5,k=6");
  const HostTensors plain = make_inputs(problem, InputKind::normal, FilterForm::dense, 5);
  CHECK((plain.bias.empty() && plain.residual.empty()));
  problem.epilogue = Epilogue::bias;
  const HostTensors biased = make_inputs(problem, InputKind::normal, FilterForm::dense, 5);
  CHECK((biased.bias.size() == 6 && biased.residual.empty()));
  problem.epilogue = Epilogue::bias_residual_relu;
  const HostTensors all = make_inputs(problem, InputKind::normal, FilterForm::dense, 5);
  CHECK(all.residual.size() == static_cast<std::size_t>(problem.output_size()));
  CHECK((all.input == plain.input && all.filter == plain.filter && all.bias == biased.bias));
  CHECK(all.bias != make_inputs(problem, InputKind::normal, FilterForm::dense, 6).bias);
  CHECK(all.bias[0] != all.residual[0]);
  for (const float value : make_inputs(problem, InputKind::integers, FilterForm::dense, 5).residual)
    CHECK(value == std::round(value));
}

}  // namespace
}  // namespace convladder
