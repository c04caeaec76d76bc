/// @file
/// Numbers kept in 8 bits: multiples of a step, from -127 to 127 of them. There is no -128: it is poison.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace convladder {

/// The most steps of a number.
inline constexpr double kLargestInt8 = 127;
/// What an output of int8 holds that was never written.
inline constexpr std::int8_t kInt8Poison = -128;

/// The step with which the largest finite magnitude is 127 steps; never below the smallest normal number.
float int8_step(std::span<const float> values);
/// The same; magnitudes beyond fp32 count as its largest number.
float int8_step(std::span<const double> values);
/// The steps of each filter: its own. @param filter (k, taps)
std::vector<float> int8_steps(const std::vector<float>& filter, std::int64_t k);

/// The nearest number of steps, 127 beyond the last; 0 for a NaN.
std::int8_t int8_of(double value, double step);

}  // namespace convladder
