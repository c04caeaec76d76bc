/// @file
/// Tiles of outputs that lie in a line of positions, so that a tap's shift is one number for all of them: how far the
/// taps reach, the phases into which a stride divides them, and a position's place as one word.
#pragma once
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {

/// Of a filter whose shifts are passed to a kernel.
constexpr int kMostTaps = 49;

/// Along one dimension of a tile: how many positions the taps reach beyond the last output's, and how many of these may
/// be the next row's or image's first, because both are zeros there.
struct Reach {
  int further, shared;
};

/// @param taps, dilation, stride, size, pad along the dimension  @param outputs all of them
/// @param whole whether a tile has all of them; otherwise nothing is shared
Reach reach_of(int taps, int dilation, int stride, int size, int pad, int outputs, bool whole);

/// The taps of a filter, phase by phase. A phase's taps read the same of every stride_y-th row and stride_x-th column
/// of the image, each at another shift.
struct TapOrder {
  int taps, phases;
  signed char tap_of[kMostTaps];               ///< row of the filter x its columns + column
  signed char first_tap[kMostTaps + 1];        ///< of a phase; behind the last one's, the number of taps
  int phase_y[kMostTaps], phase_x[kMostTaps];  ///< a phase's first pixel, from that of the first tap; below the stride
};
/// @param l with at most kMostTaps taps
TapOrder tap_order(const Lowering& l);

/// In a word of three fields of 9 bits a bit free above each. In (kGuards | most) - place, and in (kGuards | place) -
/// least, a guard stays set where the field is not above most, or not below least.
constexpr unsigned kGuards = 1u << 29 | 1u << 19 | 1u << 9;
/// In a field: above every most.
constexpr int kNowhere = 511;
/// A position's image, row and column in a tile, as fields: each at most kNowhere.
__host__ __device__ __forceinline__ constexpr unsigned packed_place(int image, int row, int column) {
  return static_cast<unsigned>(image) << 20 | static_cast<unsigned>(row) << 10 | static_cast<unsigned>(column);
}

}  // namespace convladder
