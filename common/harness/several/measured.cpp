#include "common/harness/several/measured.hpp"

#include <algorithm>

#include "common/harness/device/device.hpp"

namespace convladder {

double floor_us(const StageInfo& stage, const ConvProblem& own, double operations, double received,
                const Reached& reached) {
  const bool halves = stage.tensors == Elements::halves || stage.half_products > 0;
  const double element = stage.tensors == Elements::halves ? 2 : 4;
  const double bytes =
      element * static_cast<double>(own.input_size() + own.output_size()) + 4 * static_cast<double>(own.filter_size());
  const bool in_l2 = bytes <= static_cast<double>(device_limits().l2_bytes);
  const Ceilings& ceilings = reached.ceilings;
  const double memory = 1e6 * bytes / (in_l2 ? ceilings.l2_bytes_per_s : ceilings.dram_bytes_per_s);
  const double arithmetic = 1e6 * std::max(stage.half_products, 1) * operations /
                            (halves ? ceilings.fp16_flops_per_s : ceilings.fp32_flops_per_s);
  const double exchange = received > 0 ? reached.alpha_us + received / reached.bytes_per_us : 0;
  return std::max({memory, arithmetic, exchange});
}

}  // namespace convladder
