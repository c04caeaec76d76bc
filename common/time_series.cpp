/// @file
/// Statistics of repeated times.
#include <algorithm>

#include "common/device.hpp"

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

}  // namespace convladder
