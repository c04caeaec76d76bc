/// @file
/// IEEE binary16, the fp16 of a GPU, and bf16, the upper half of a float, on a host that may have no type for them.
#pragma once
#include <bit>
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

/// The largest finite bf16.
inline constexpr double kLargestBf16 = 0x1.fep127;
/// From here on a number rounds to infinity in bf16.
inline constexpr double kBf16Overflow = 0x1.ffp127;

/// The bf16 nearest to `value`, ties to even; infinity from kBf16Overflow on; NaN as CUDA writes it.
inline std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>(value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
/// The number that a bf16 stands for, exactly.
inline float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

}  // namespace convladder
