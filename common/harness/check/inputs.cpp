#include "common/harness/check/inputs.hpp"

#include <cmath>
#include <limits>

namespace convladder {
namespace {

/// The output function of splitmix64 (Steele, Lea & Flood, OOPSLA 2014): a bijection whose values at consecutive
/// multiples of an odd constant pass for random.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Random numbers by index, so that any thread makes any of them. Integer arithmetic and exact conversions only: no
/// library function whose last bit differs from one machine to the next.
class Generator {
 public:
  Generator(std::uint64_t seed, std::uint64_t stream) : key_(mix(mix(seed + kStep) + stream)) {}

  /// Uniform in [0, 1): a multiple of 2^-24.
  float uniform(std::uint64_t index) const { return static_cast<float>(word(index) >> 40) * 0x1p-24f; }

  /// Uniform in -4 ... 4.
  float integer(std::uint64_t index) const {
    return static_cast<float>(static_cast<std::int64_t>(word(index) >> 32) % 9 - 4);
  }

  /// Normal by the sum of 12 uniforms (Irwin-Hall): mean 0, variance 1, within -6 ... 6, a multiple of 2^-21.
  float normal(std::uint64_t index) const {
    std::int64_t sum = -6 * kField;  // 12 times a field's mean, which is kField/2
    for (std::uint64_t part = 0; part < 4; ++part) {
      const std::uint64_t bits = word(4 * index + part);
      sum += static_cast<std::int64_t>((bits & kField) + (bits >> 21 & kField) + (bits >> 42 & kField));
    }
    return static_cast<float>(sum) * 0x1p-21f;
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
  static constexpr std::int64_t kField = (1 << 21) - 1;

  std::uint64_t word(std::uint64_t index) const { return mix(key_ + (index + 1) * kStep); }

  std::uint64_t key_;
};

/// Below this many elements, waking the other threads costs more than they save.
[[maybe_unused]] constexpr std::int64_t kParallelSize = 1 << 14;

template <class Make>
std::vector<float> fill(std::int64_t size, const Make& make) {
  std::vector<float> values(static_cast<std::size_t>(size));
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (size >= kParallelSize)
#endif
  for (std::int64_t i = 0; i < size; ++i) values[static_cast<std::size_t>(i)] = make(static_cast<std::uint64_t>(i));
  return values;
}

HostTensors make_input_and_filter(const ConvProblem& problem, InputKind kind, FilterForm form, std::uint64_t seed) {
  const Generator input(seed, 0), filter(seed, 1), filter_row(seed, 2);
  const std::int64_t inputs = problem.input_size();
  const auto middle = static_cast<std::size_t>(
      ((problem.n / 2 * problem.c + problem.c / 2) * problem.h + problem.h / 2) * problem.w + problem.w / 2);
  const auto deviation = static_cast<float>(1 / std::sqrt(static_cast<double>(problem.reduction_length())));

  /// `draw` gives the number of a generator at an index; the filter is made of one, or of one for each row and column.
  const auto make_filter = [&](float scale, const auto& draw) {
    const auto rows = static_cast<std::uint64_t>(problem.r), columns = static_cast<std::uint64_t>(problem.s);
    return fill(problem.filter_size(), [&](std::uint64_t i) {
      if (form == FilterForm::dense) return scale * draw(filter, i);
      const std::uint64_t slice = i / (rows * columns);
      return scale * (draw(filter, i / columns) * draw(filter_row, slice * columns + i % columns));
    });
  };
  const auto normal_input = [&](float scale) {
    return fill(inputs, [&](std::uint64_t i) { return scale * input.normal(i); });
  };
  const auto normal_filter = [&](float scale) {
    return make_filter(scale, [](const Generator& generator, std::uint64_t i) { return generator.normal(i); });
  };

  HostTensors tensors;
  switch (kind) {
    case InputKind::normal:
      return {normal_input(1), normal_filter(deviation)};
    case InputKind::uniform:
      return {fill(inputs, [&](std::uint64_t i) { return input.uniform(i); }),
              make_filter(1, [](const Generator& generator, std::uint64_t i) { return generator.uniform(i); })};
    case InputKind::integers:
      return {fill(inputs, [&](std::uint64_t i) { return input.integer(i); }),
              make_filter(1, [](const Generator& generator, std::uint64_t i) { return generator.integer(i); })};
    case InputKind::impulse:
      tensors = {std::vector<float>(static_cast<std::size_t>(inputs), 0.0f), normal_filter(deviation)};
      tensors.input[middle] = 1;
      break;
    case InputKind::constant:
      return {std::vector<float>(static_cast<std::size_t>(inputs), 1.0f), normal_filter(deviation)};
    case InputKind::large:
      return {normal_input(1e18f), normal_filter(1e18f * deviation)};
    case InputKind::large_half:
      return {normal_input(100), normal_filter(10 * deviation)};
    case InputKind::nan:
      tensors = {normal_input(1), normal_filter(deviation)};
      tensors.input[middle] = std::numeric_limits<float>::quiet_NaN();
      break;
    case InputKind::infinity:
      tensors = {normal_input(1), normal_filter(deviation)};
      tensors.input[middle] = std::numeric_limits<float>::infinity();
      for (float& tap : tensors.filter) {
        if (tap == 0) tap = deviation;
      }
      break;
  }
  return tensors;
}

/// What an output of this kind is about as large as.
float output_scale(InputKind kind) {
  return kind == InputKind::large ? 1e36f : kind == InputKind::large_half ? 1000.0f : 1.0f;
}

}  // namespace

HostTensors make_inputs(const ConvProblem& problem, InputKind kind, FilterForm form, std::uint64_t seed) {
  HostTensors tensors = make_input_and_filter(problem, kind, form, seed);
  const auto draw = [&](std::int64_t size, std::uint64_t stream) {
    const Generator numbers(seed, stream);
    if (kind == InputKind::integers) return fill(size, [&](std::uint64_t i) { return numbers.integer(i); });
    return fill(size, [&, scale = output_scale(kind)](std::uint64_t i) { return scale * numbers.normal(i); });
  };
  if (problem.has_bias()) tensors.bias = draw(problem.k, 3);
  if (problem.has_residual()) tensors.residual = draw(problem.output_size(), 4);
  return tensors;
}

}  // namespace convladder
