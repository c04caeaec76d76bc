/// @file
/// What the errors of a stage's results come from. The bounds within which a result is right follow from it
/// (checker.hpp, winograd_error.hpp).
#pragma once
#include <cstdint>

namespace convladder {

/// What a number is kept in.
enum class Precision {
  fp32,  ///< IEEE binary32
  fp16,  ///< IEEE binary16
  bf16,  ///< the upper half of a binary32
  int8,  ///< 8-bit integers with scales
};

/// How a stage that transforms tiles computes, by Winograd's algorithm.
struct WinogradForm {
  int m = 0;                           ///< outputs along a side of a tile; 0: no Winograd
  bool fractions = false;              ///< F(4 x 4) with the points 3/4 and 3/2 instead of 1 and 2
  Precision stored = Precision::fp32;  ///< the transformed input and filter
  bool half_products = false;          ///< sums over the channels are rounded to fp16 before the output transform
  bool along_height = false;  ///< F(m, 3) down the columns alone; products are added up over the filter's columns, too
  int m_across = 0;           ///< columns of a tile's outputs where they are not m, which then are its rows
  /// Not 0: the transformed numbers are kept as two halves each, which have no bits below 2^-39 of the largest that
  /// could come from so many channels of a tile, or from a filter. Below 0: of the whole input none below 2^-34 of its
  /// largest.
  int split_channels = 0;
};

/// Of a sum of products, or of transformed tiles.
struct ErrorModel {
  std::int64_t roundings = 0;  ///< along the longest chain of operations that ends in one output
  /// By how much a tap that the stage really applies may differ from the one given, beyond a few roundings: 0 unless
  /// prepare() makes another filter of it.
  double filter_error = 0;
  /// Errors spread evenly over all outputs, as those of an FFT do: then what bounds each of them is not its own sum of
  /// magnitudes, but the root mean square of all outputs.
  bool spread = false;
  WinogradForm winograd;  ///< of a stage that transforms tiles: all bounds follow from it, and not from the above

  /// Of sums.
  [[gnu::always_inline]] ErrorModel(std::int64_t roundings_of_sum, double error_of_taps = 0)
      : roundings(roundings_of_sum), filter_error(error_of_taps) {}
  /// Of transformed tiles.
  [[gnu::always_inline]] ErrorModel(const WinogradForm& form) : winograd(form) {}
};

}  // namespace convladder
