// How the experiment cuts a problem into tiles: those of stage 36, of which a position is a pair of rows.
#pragma once
#include "common/kernel/divisor.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 64;               // channels at a time; filters of a tile
constexpr int kRow = kBlock * 2;         // bytes of a position's channels, or of a filter's, as halves
constexpr int kPart = kBlock * kRow;     // bytes of 64 filters at one tap: their high or their low halves
constexpr int kPhases = 4;               // of F(2,3) down: each a combination of rows of the input
constexpr int kMostTaps = 12;            // columns of a filter times phases
constexpr int kMostShared = 227 * 1024;  // bytes of a block

// Slots of the rings of pixels and of filters. A splitting warp makes the boxes of all four phases of 64 channels,
// while the last two of the channels before are multiplied.
constexpr int kBoxes = 6;
__host__ __device__ constexpr int parts_for(int positions) { return positions > 96 ? 7 : positions > 88 ? 8 : 10; }

// Of a position of a box: where its pixel lies from the box's first one, and its image, row and column in the box.
struct alignas(8) Entry {
  int pixel;
  unsigned place;
};

// Bytes of shared memory, but for the slots of pixels.
__host__ __device__ constexpr int fixed_bytes(int positions) {
  const int parts = parts_for(positions);
  return parts * kPart + positions * 4 + kBoxes * 8 * 4 + 2 * (parts + kBoxes) * 8;
}
// Bytes of a position in all slots, and in the table of places.
constexpr int kPositionBytes = kBoxes * 2 * kRow + static_cast<int>(sizeof(Entry));
// Positions for which a slot has room: the high and the low halves of each, and its entry.
__host__ __device__ constexpr int most_slot(int positions) {
  return (kMostShared - fixed_bytes(positions)) / kPositionBytes / 8 * 8;
}

// The problem, and how it is cut. Outputs (i, 2 y, x) and (i, 2 y + 1, x) of a tile are position
// i image_pitch + y row_pitch + x of a line; the sums of rows that column tap s needs for them are s positions further.
struct Tiles {
  Lowering of;
  int images, tile_rows, tile_columns;    // pairs of outputs of a tile; no images: nothing fits
  int row_pitch, image_pitch, box, slot;  // positions
  int strips, row_tiles, tiles, works;    // a work item: a tile and 128 filters
  int channel_blocks, filter_blocks;
  Divisor by_row_pitch, by_image_pitch, by_strips, by_row_tiles, by_filter_groups;
};

#if !defined(__CUDACC_RTC__)

inline int at_least(int a, int b) { return a > b ? a : b; }
inline int at_most(int a, int b) { return a < b ? a : b; }

// Tiles with so many columns. Neighbouring rows of whole width share their columns of zeros.
inline Tiles tiles_of(const Lowering& l, int positions, int columns) {
  Tiles g{};
  g.of = l;
  const int pairs = blocks_for(l.out_height, 2);
  g.strips = blocks_for(l.out_width, columns);
  g.tile_columns = blocks_for(l.out_width, g.strips);
  if (g.tile_columns > positions) return g;
  const bool whole_rows = g.strips == 1 && l.columns == 3 && l.pad_x == 1;
  g.row_pitch = g.tile_columns + l.columns - 1 - (whole_rows ? 1 : 0);
  g.row_tiles = blocks_for(pairs, (positions - g.tile_columns) / g.row_pitch + 1);
  g.tile_rows = blocks_for(pairs, g.row_tiles);
  const bool whole = g.row_tiles == 1 && g.strips == 1;
  g.image_pitch = g.tile_rows * g.row_pitch;
  const int of_image = (g.tile_rows - 1) * g.row_pitch + g.tile_columns;
  g.images = whole ? at_most(l.batch, (positions - of_image) / g.image_pitch + 1) : 1;
  g.box = g.images * g.image_pitch;
  g.slot = blocks_for(at_least(g.box, positions + l.columns - 1), 8) * 8;
  if (g.slot > most_slot(positions)) return Tiles{};
  g.tiles = blocks_for(l.batch, g.images) * g.row_tiles * g.strips;
  g.channel_blocks = blocks_for(l.channels, kBlock), g.filter_blocks = blocks_for(l.filters, 2 * kBlock) * 2;
  g.works = g.tiles * (g.filter_blocks / 2);
  g.by_row_pitch = divisor_of(g.row_pitch), g.by_image_pitch = divisor_of(g.image_pitch);
  g.by_strips = divisor_of(g.strips), g.by_row_tiles = divisor_of(g.row_tiles);
  g.by_filter_groups = divisor_of(g.filter_blocks / 2);
  return g;
}

// The fewest tiles of so many positions; without images where none fits.
inline Tiles fewest_tiles(const Lowering& l, int positions) {
  Tiles best{};
  for (int columns = at_most(l.out_width, positions); columns > 0; --columns) {
    const Tiles g = tiles_of(l, positions, columns);
    if (g.images > 0 && (best.images == 0 || g.tiles < best.tiles)) best = g;
  }
  return best;
}

#endif

}  // namespace
}  // namespace convladder
