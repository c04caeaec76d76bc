#include "common/kernel/grid.hpp"

namespace convladder {

dim3 grid_in_y(std::int64_t x, std::int64_t y) {
  constexpr std::int64_t kMaxGridY = 65535;
  const std::int64_t z = (y - 1) / kMaxGridY + 1;
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>((y - 1) / z + 1), static_cast<unsigned>(z));
}

}  // namespace convladder
