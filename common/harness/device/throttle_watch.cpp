#include "common/harness/device/throttle_watch.hpp"

#include <algorithm>

namespace convladder {

double ThrottleWatch::sample(const std::function<double(const std::function<void()>& meanwhile)>& take) {
  for (;;) {
    std::optional<GpuMoment> moment;
    const double time = take([&] { moment = read_(); });
    if (!moment) return time;
    seen_.clock_reasons |= moment->clock_reasons;
    const bool slowed = (moment->clock_reasons & kSlowingReasons) != 0;
    if (!slowed || seen_.repeated == kMostRepeated) {
      note(*moment);
      if (slowed) ++seen_.slowed;
      return time;
    }
    ++seen_.repeated;
    pause_();
  }
}

void ThrottleWatch::note(const GpuMoment& moment) {
  GpuConditions& seen = seen_;
  const double before = seen.samples++, after = seen.samples;
  seen.least_sm_clock_mhz = before == 0 ? moment.sm_clock_mhz : std::min(seen.least_sm_clock_mhz, moment.sm_clock_mhz);
  seen.most_power_w = std::max(seen.most_power_w, moment.power_w);
  seen.sm_clock_mhz = (seen.sm_clock_mhz * before + moment.sm_clock_mhz) / after;
  seen.power_w = (seen.power_w * before + moment.power_w) / after;
}

std::optional<GpuConditions> ThrottleWatch::conditions() const {
  return seen_.samples > 0 ? std::optional(seen_) : std::nullopt;
}

}  // namespace convladder
