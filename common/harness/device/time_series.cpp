/// @file
/// Statistics of repeated times, and what to time.
#include <algorithm>
#include <cstdint>

#include "common/harness/device/device.hpp"
#include "common/harness/device/timing.hpp"

namespace convladder {
namespace {

/// The value below which `fraction` of the values lie, linear between order statistics; 0 of none.
double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double position = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

double TimeSeries::median() const { return quantile(groups, 0.5); }

double TimeSeries::min() const { return quantile(groups, 0); }

double TimeSeries::spread() const {
  const double middle = median();
  return middle > 0 ? (quantile(groups, 0.75) - quantile(groups, 0.25)) / middle : 0;
}

std::int64_t cold_copies(std::int64_t bytes, std::int64_t l2_bytes) {
  constexpr std::int64_t kL2s = 3;  // which the copies fill, so that none of them survives a round
  return std::max<std::int64_t>(2, kL2s * l2_bytes / bytes + 1);
}

}  // namespace convladder
