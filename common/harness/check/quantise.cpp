#include "common/harness/check/quantise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace convladder {
namespace {

template <class Value>
float step_of(const Value* values, std::int64_t count) {
  double largest = 0;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) reduction(max : largest) if (count >= 1 << 14)
#endif
  for (std::int64_t i = 0; i < count; ++i)
    if (std::isfinite(values[i])) largest = std::max(largest, std::abs(static_cast<double>(values[i])));
  using Limits = std::numeric_limits<float>;
  return std::max(static_cast<float>(std::min<double>(largest, Limits::max()) / kLargestInt8), Limits::min());
}

}  // namespace

float int8_step(std::span<const float> values) {
  return step_of(values.data(), static_cast<std::int64_t>(values.size()));
}

float int8_step(std::span<const double> values) {
  return step_of(values.data(), static_cast<std::int64_t>(values.size()));
}

std::vector<float> int8_steps(const std::vector<float>& filter, std::int64_t k) {
  const std::int64_t taps = static_cast<std::int64_t>(filter.size()) / k;
  std::vector<float> steps;
  for (std::int64_t i = 0; i < k; ++i) steps.push_back(step_of(filter.data() + i * taps, taps));
  return steps;
}

std::int8_t int8_of(double value, double step) {
  if (std::isnan(value)) return 0;
  return static_cast<std::int8_t>(std::clamp(std::nearbyint(value / step), -kLargestInt8, kLargestInt8));
}

}  // namespace convladder
