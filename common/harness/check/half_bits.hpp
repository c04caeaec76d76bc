/// @file
/// IEEE binary16, the fp16 of a GPU, on a host that may have no type for it.
#pragma once
#include <cstdint>

namespace convladder {

/// The largest finite half.
inline constexpr double kLargestHalf = 65504;
/// From here on a number rounds to infinity in fp16.
inline constexpr double kHalfOverflow = 65520;

/// The half nearest to `value`, ties to even; infinity from kHalfOverflow on; NaN stays NaN.
std::uint16_t half_bits(double value);
/// The number that a half stands for, exactly.
float half_value(std::uint16_t bits);

}  // namespace convladder
