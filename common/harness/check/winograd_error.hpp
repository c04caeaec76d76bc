/// @file
/// How far a Winograd stage's outputs may lie from the exact ones.
#pragma once
#include <cstdint>

#include "common/harness/check/checker.hpp"
#include "common/harness/check/inputs.hpp"

namespace convladder {

/// The sample of an int8 stage: at most so many tiles, evenly spread over the batch, with all their channels.
inline constexpr std::int64_t kSampleTiles = 1024;
/// Clipping values that an int8 stage tries: the largest, and 9, 8, ... 3 tenths of it.
inline constexpr int kClippingValues = 8;

/// The bound of each output: 8 standard deviations of its error, were all roundings independent. A rounding of x to a
/// type with unit roundoff u has the variance (u x)^2 / 3; a quantisation with step s, s^2 / 12. With V = B^T d B,
/// U = G g G^T, M = sum over the channels of U V and y = A^T M A, all computed here for the numbers at hand:
///
/// - d is rounded to fp16 or bf16, and so is each operation of its transform, unless everything is fp32. U is
///   transformed in fp32.
/// - V and U are rounded to fp16, to bf16, or to int8. The step of U is the largest |U| of a position and filter over
///   127. The step of V is a position's clipping value over 127: of kClippingValues values, the largest |V| of a sample
///   and tenths of it, the one with the smallest squared error on the sample. What lies beyond is off by its distance.
/// - V and U may be kept as two halves, of 22 bits together, scaled; and then wl xl is left out of a product.
/// - Products are added in fp32: on Tensor Cores, whose sums may be truncated, with u = 2^-22; in int32 exactly.
/// - M may be rounded to fp16. The output transform is in fp32.
/// - Along the height alone, V = B^T d and U = G g are columns, and M is a sum over the filter's columns, too. In
///   y = A^T M its first and last are added onto sums of the others: partial sums are larger on the way.
///
/// An output has an infinite bound where a NaN or an infinity is in its tile, and where a number of its tile or filter
/// may overflow.
/// @param problem 3 x 3 filters, stride and dilation 1, one group
OutputBounds winograd_bounds(const ConvProblem& problem, const WinogradForm& form, const HostTensors& tensors);

}  // namespace convladder
