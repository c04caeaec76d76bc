/// @file
/// Launches of the kernels in bf16_tf32.cu. Pointers are device memory.
#pragma once
#include <cstdint>

#include "common/stage/stage.hpp"

namespace convladder {

/// Each float as a TF32, and each two of them as a pair of bf16 and back.
/// @param n even  @param tf32 [n], bits  @param pairs [n / 2]  @param back [n], of the pairs
void launch_bf16_tf32(const float* input, std::uint32_t* tf32, std::uint32_t* pairs, float* back, int n, Stream stream);
/// Each two floats as a word of two halves or bf16, and the sum and the difference of each two words.
/// @param n a multiple of 4  @param pairs [n / 2]  @param sums, differences [n / 4]
void launch_pairs(bool bf16, const float* input, std::uint32_t* pairs, std::uint32_t* sums, std::uint32_t* differences,
                  int n, Stream stream);

}  // namespace convladder
