/// @file
/// Small kernels that compute with halves, bytes and floats. Halves are given as their bits.
#pragma once
#include <cstdint>

#include "common/stage/stage.hpp"

namespace convladder {

void launch_half_to_float(const std::uint16_t* input, float* output, int n, Stream stream);
void launch_float_to_half(const float* input, std::uint16_t* output, int n, Stream stream);
/// Sum, difference, product, quotient, a b + c, larger, smaller, -a, |a|, each for all n (even). @param output [9][n]
void launch_half_operations(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                            std::uint16_t* output, int n, bool in_pairs, Stream stream);
void launch_half_operators(const std::uint16_t* input, std::uint16_t* output, Stream stream);
void launch_bytes_and_rounding(const float* input, int* output, int n, Stream stream);

}  // namespace convladder
