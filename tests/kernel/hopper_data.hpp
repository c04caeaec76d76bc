/// @file
/// What the kernels of hopper.hpp and hopper_pipeline.hpp are given.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "common/harness/check/half_bits.hpp"
#include "tests/kernel/hopper.hpp"
#include "tests/kernel/hopper_pipeline.hpp"

namespace convladder {

/// Where the byte of a dense box lies in swizzled shared memory: 16-byte pieces change places within their row.
inline std::size_t swizzled(std::size_t offset, Swizzle swizzle) {
  if (swizzle == Swizzle::none) return offset;
  const std::size_t pieces = swizzle == Swizzle::bytes64 ? 4 : 8, piece = offset / 16;
  return (piece / pieces * pieces + (piece % pieces ^ offset / 128 % pieces)) * 16 + offset % 16;
}

/// What the shared memory of a product holds: small integers, in halves or bytes.
struct Factor {
  std::vector<int> values;
  std::vector<std::uint8_t> bytes;
  Factor(std::size_t count, bool of_bytes, unsigned seed) : values(count) {
    std::mt19937 random(seed);
    for (int& value : values) {
      value = static_cast<int>(random() % (of_bytes ? 256 : 31)) - (of_bytes ? 128 : 15);
      if (of_bytes) {
        bytes.push_back(static_cast<std::uint8_t>(value));
      } else {
        const std::uint16_t bits = half_bits(value);
        bytes.push_back(static_cast<std::uint8_t>(bits));
        bytes.push_back(static_cast<std::uint8_t>(bits >> 8));
      }
    }
  }
};

/// Of launch_pipeline().
struct PipelineData {
  Factor a, b;
  std::vector<std::uint8_t> image;  ///< of A, swizzled
  explicit PipelineData(int rows) : a(128 * 64, false, 1), b(static_cast<std::size_t>(rows * 64), false, 2) {
    image.resize(a.bytes.size());
    for (std::size_t i = 0; i < image.size(); ++i) image[swizzled(i, Swizzle::bytes128)] = a.bytes[i];
  }
};

}  // namespace convladder
