/// @file
/// Division by a number that is known before the launch: a multiplication and a shift instead of some twenty
/// instructions (Granlund and Montgomery, Division by Invariant Integers using Multiplication, PLDI 1994).
#pragma once
#include "common/kernel/kernel.hpp"

namespace convladder {

/// A divisor, passed to kernels by value.
struct Divisor {
  unsigned divisor, multiplier, shift;
};

/// @param divisor from 1 to 2^31 - 1
Divisor divisor_of(int divisor);

/// n / d. @param n below 2^31
__host__ __device__ __forceinline__ unsigned operator/(unsigned n, const Divisor& d) {
  return (static_cast<unsigned>((std::uint64_t{n} * d.multiplier) >> 32) + n) >> d.shift;
}
/// n % d. @param n below 2^31
__host__ __device__ __forceinline__ unsigned operator%(unsigned n, const Divisor& d) { return n - n / d * d.divisor; }

}  // namespace convladder
