#include "common/harness/check/half_bits.hpp"

#include "common/stage/half_convert.hpp"

namespace convladder {

std::uint16_t half_bits(double value) { return to_half_bits(value); }

float half_value(std::uint16_t bits) { return from_half_bits(bits); }

}  // namespace convladder
