#include "common/kernel/tracks/taps.hpp"

#include <algorithm>

namespace convladder {

Reach reach_of(int taps, int dilation, int stride, int size, int pad, int outputs, bool whole) {
  Reach reach{0, 0};
  for (int t = 0; t < taps; ++t) reach.further = std::max(reach.further, t * dilation / stride);
  if (!whole) return reach;
  reach.shared = reach.further;
  for (int t = 0; t < taps; ++t) {
    const int phase = t * dilation % stride;
    const int before = std::max(0, (pad - phase + stride - 1) / stride);         // zeros in front
    const int inside = std::max(0, (size + pad - phase + stride - 1) / stride);  // before the zeros behind
    reach.shared = std::min({reach.shared, before, std::max(0, outputs + reach.further - inside)});
  }
  return reach;
}

TapOrder tap_order(const Lowering& l) {
  TapOrder order{};
  const auto phase_y = [&](int tap) { return tap / l.columns * l.dilation_y % l.stride_y; };
  const auto phase_x = [&](int tap) { return tap % l.columns * l.dilation_x % l.stride_x; };
  const auto same_phase = [&](int s, int t) { return phase_y(s) == phase_y(t) && phase_x(s) == phase_x(t); };
  for (int first = 0; first < l.rows * l.columns; ++first) {
    bool seen = false;
    for (int t = 0; t < first; ++t) seen = seen || same_phase(t, first);
    if (seen) continue;
    order.phase_y[order.phases] = phase_y(first), order.phase_x[order.phases] = phase_x(first);
    for (int t = first; t < l.rows * l.columns; ++t)
      if (same_phase(first, t)) order.tap_of[order.taps++] = static_cast<signed char>(t);
    order.first_tap[++order.phases] = static_cast<signed char>(order.taps);
  }
  return order;
}

}  // namespace convladder
