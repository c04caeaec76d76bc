/// @file
/// What the kernels of hopper.hpp and hopper_pipeline.hpp are given.
#pragma once
#include <bit>
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

/// What the shared memory of a product holds: small integers, which all kinds of numbers hold exactly.
struct Factor {
  std::vector<int> values;
  std::vector<std::uint8_t> bytes;
  Factor(std::size_t count, ProductOf element, unsigned seed) : values(count) {
    std::mt19937 random(seed);
    const bool of_bytes = element == ProductOf::int8;
    for (int& value : values) {
      value = static_cast<int>(random() % (of_bytes ? 256 : 31)) - (of_bytes ? 128 : 15);
      const auto as_float = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      const std::uint32_t bits = of_bytes                     ? static_cast<std::uint32_t>(value)
                                 : element == ProductOf::fp16 ? half_bits(value)
                                 : element == ProductOf::bf16 ? as_float >> 16
                                                              : as_float;
      for (int i = 0; i < 32 / numbers_of_step(element); ++i) bytes.push_back(static_cast<std::uint8_t>(bits >> 8 * i));
    }
  }
};

/// Of launch_pipeline().
struct PipelineData {
  Factor a, b;
  std::vector<std::uint8_t> image;  ///< of A, swizzled
  explicit PipelineData(int rows)
      : a(128 * 64, ProductOf::fp16, 1), b(static_cast<std::size_t>(rows * 64), ProductOf::fp16, 2) {
    image.resize(a.bytes.size());
    for (std::size_t i = 0; i < image.size(); ++i) image[swizzled(i, Swizzle::bytes128)] = a.bytes[i];
  }
};

}  // namespace convladder
