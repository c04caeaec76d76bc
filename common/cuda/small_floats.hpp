/// @file
/// bfloat16 and the two fp8 formats, for cuda_bf16.h, cuda_fp8.h and inline PTX.
#pragma once
#include <cstdint>

/// @cond
namespace simt {

#define SIMT_PURE noexcept __attribute__((const))
/// To the nearest, ties to even. A NaN is 0x7fff.
std::uint16_t bf16_from(double value) SIMT_PURE;
/// To the nearest, ties to even; what is too large becomes the largest number (__NV_SATFINITE). A NaN remains one.
std::uint8_t e4m3_from(float value) SIMT_PURE;
std::uint8_t e5m2_from(float value) SIMT_PURE;
float e4m3_to_float(unsigned bits) SIMT_PURE;
float e5m2_to_float(unsigned bits) SIMT_PURE;
#undef SIMT_PURE

// What atomic_update() takes: sums of halves and of bfloat16, alone and in pairs.
std::uint64_t half_sum(std::uint64_t old, std::uint64_t value);
std::uint64_t halves_sum(std::uint64_t old, std::uint64_t value);
std::uint64_t bf16_sum(std::uint64_t old, std::uint64_t value);
std::uint64_t bf16s_sum(std::uint64_t old, std::uint64_t value);

}  // namespace simt
/// @endcond
