/// @file
/// The fast path of pictures: a kernel that reads and writes bytes.
#pragma once
#include <cstdint>

#include "common/stage/stage.hpp"

namespace convladder {

/// What an image stage is, too, if it also filters 8-bit images.
class ByteImageFilter {
 public:
  /// Filters as the stage's launch() does, but reads each pixel as a byte and stores
  ///
  ///     min(max(floor(sum / divisor + 1/2), 0), 255)
  ///
  /// prepare() has been called with the filter; its taps are integers, and 255 times the sum of their magnitudes is
  /// below 2^24, so that every fp32 sum is exact in whatever order.
  /// @param input (n, 1, h, w)  @param output (n, 1, p, q)  @param divisor an integer, 1 to 65 * 65
  virtual void launch_bytes(const ConvProblem& problem, const std::uint8_t* input, std::uint8_t* output, float divisor,
                            Stream stream) = 0;

 protected:
  ~ByteImageFilter() = default;  // stages are deleted as stages
};

}  // namespace convladder
