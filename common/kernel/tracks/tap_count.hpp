/// @file
/// Filters of any length, a fixed number of taps at a time: what is left over is a number that the compiler knows, too.
#pragma once
#include "common/kernel/kernel.hpp"

namespace convladder {

/// A number of taps, as a type.
template <int kCount>
struct Taps {
  static constexpr int kTaps = kCount;  ///< the number
};

/// Calls add(Taps<rest>{}) where 0 < rest <= kMost, and nothing where it is 0.
template <int kMost, class Add>
__device__ __forceinline__ void with_rest(int rest, const Add& add) {
  if constexpr (kMost > 0) {
    if (rest == kMost)
      add(Taps<kMost>{});
    else
      with_rest<kMost - 1>(rest, add);
  }
}

}  // namespace convladder
