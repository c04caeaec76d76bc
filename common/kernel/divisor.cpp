#include "common/kernel/divisor.hpp"

#include <bit>
#include <cstdint>

namespace convladder {

Divisor divisor_of(int divisor) {
  const auto d = static_cast<std::uint64_t>(divisor);
  const auto shift = static_cast<unsigned>(std::bit_width(d - 1));  // the least with 2^shift >= d
  const std::uint64_t power = std::uint64_t{1} << shift;
  return {static_cast<unsigned>(d), static_cast<unsigned>(((power - d) << 32) / d + 1), shift};
}

}  // namespace convladder
