// Arithmetic of halves for kernels, and the rounding of floats to int.
// Sums, products and quotients of halves are formed in float: rounded to half they are
// what one rounding of the exact result gives, since a float has more than twice the bits of a half and two. A product
// and a sum are formed in double, where the product is exact, and the sum too unless one of the two is too small to
// matter.

#include "common/simt/half.hpp"

#include <climits>
#include <cmath>

#include "common/stage/half_convert.hpp"

namespace simt {
namespace {

using convladder::from_half_bits;
using convladder::to_half_bits;

/// The operation on each of the two halves.
template <class Operation, class... Pairs>
std::uint32_t each(Operation operation, Pairs... pairs) {
  const std::uint32_t low = operation(static_cast<std::uint16_t>(pairs)...);
  const std::uint32_t high = operation(static_cast<std::uint16_t>(pairs >> 16)...);
  return low | high << 16;
}

}  // namespace

std::uint16_t half_from(double value) noexcept { return to_half_bits(value); }
float half_to_float(std::uint16_t half) noexcept { return from_half_bits(half); }
std::uint32_t halves_from(float low, float high) noexcept {
  return to_half_bits(low) | static_cast<std::uint32_t>(to_half_bits(high)) << 16;
}

#define SIMT_HALF_OPERATION(operation, result)                                \
  std::uint16_t half_##operation(std::uint16_t p, std::uint16_t q) noexcept { \
    const float a = from_half_bits(p), b = from_half_bits(q);                 \
    return to_half_bits(result);                                              \
  }                                                                           \
  std::uint32_t halves_##operation(std::uint32_t p, std::uint32_t q) noexcept { return each(half_##operation, p, q); }
SIMT_HALF_OPERATION(add, a + b)
SIMT_HALF_OPERATION(subtract, a - b)
SIMT_HALF_OPERATION(multiply, a* b)
SIMT_HALF_OPERATION(divide, a / b)
// Of zeros the positive one is the larger; of a number and a NaN both take the number.
SIMT_HALF_OPERATION(maximum, std::isnan(a) || a < b || (a == b && std::signbit(a)) ? b : a)
SIMT_HALF_OPERATION(minimum, std::isnan(a) || a > b || (a == b && std::signbit(b)) ? b : a)

std::uint16_t half_multiply_add(std::uint16_t p, std::uint16_t q, std::uint16_t r) noexcept {
  const double a = from_half_bits(p), b = from_half_bits(q), c = from_half_bits(r);
  return to_half_bits(a * b + c);
}
std::uint32_t halves_multiply_add(std::uint32_t p, std::uint32_t q, std::uint32_t r) noexcept {
  return each(half_multiply_add, p, q, r);
}

int round_to_int(float value) noexcept {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p31f) return INT_MAX;
  if (value < -0x1p31f) return INT_MIN;
  return static_cast<int>(std::nearbyint(value));
}

}  // namespace simt
