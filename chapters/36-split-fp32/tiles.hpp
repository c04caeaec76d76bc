// How stage 36 cuts a problem into tiles, and what the kernel is told about it.
#pragma once
#include "common/kernel/divisor.hpp"
#include "common/kernel/tracks/taps.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 64;               // filters of a tile; channels at a time
constexpr int kRow = kBlock * 2;         // bytes of a position's channels, or of a filter's, as halves
constexpr int kPart = kBlock * kRow;     // bytes of 64 filters at one tap: their high or their low halves
constexpr int kMostShared = 227 * 1024;  // bytes of a block

// Whose a tile is. Either consumer has its own; or both have one, and 64 filters each; or both have one of pairs of
// outputs, one below the other, which F(2,3) makes (winograd_columns.cuh).
enum class Cut { own, shared, row_pairs };
constexpr int kPhasesOfPairs = 4, kTapsOfPairs = 12;  // of F(2,3) down the columns: 3 columns of a filter in 4 phases

// Channels at a time of two halves each, or of two TF32, which are twice as long.
__host__ __device__ constexpr int channels_for(bool tf32) { return tf32 ? kBlock / 2 : kBlock; }

// Slots of the rings of pixels and of filters. With fewer positions a tap is soon done, so more of its filters must be
// on their way. Where the consumers share a tile, each has filters of its own, and they need fewer boxes. Those of all
// four phases of F(2,3) are made together, while the last two of the channels before are multiplied.
__host__ __device__ constexpr int boxes_for(Cut cut) { return cut == Cut::own ? 4 : cut == Cut::shared ? 3 : 6; }
__host__ __device__ constexpr int parts_for(int positions, Cut cut) {
  if (cut == Cut::own) return positions > 104 ? 5 : 8;
  if (cut == Cut::row_pairs) return positions > 96 ? 7 : positions > 88 ? 8 : 10;
  return 10;
}

// Of a position of a box: where its pixel lies from the box's first one, and its image, row and column in the box.
struct alignas(8) Entry {
  int pixel;
  unsigned place;
};

// Bytes of shared memory, but for the slots of pixels.
__host__ __device__ constexpr int fixed_bytes(int positions, Cut cut) {
  const int boxes = boxes_for(cut), parts = parts_for(positions, cut);
  return parts * kPart + positions * 4 + boxes * 8 * 4 + 2 * 4 + 2 * (parts + boxes) * 8;
}
// Bytes of a position in all slots, and in the table of places.
__host__ __device__ constexpr int position_bytes(Cut cut) {
  return boxes_for(cut) * 2 * kRow + static_cast<int>(sizeof(Entry));
}
// Positions for which a slot has room: the high and the low halves of each, and its entry.
__host__ __device__ constexpr int most_slot(int positions, Cut cut) {
  return (kMostShared - fixed_bytes(positions, cut)) / position_bytes(cut) / 8 * 8;
}

// The problem, and how it is cut. Output (i, y, x) of a tile is position i image_pitch + y row_pitch + x of a line; the
// pixel that a tap needs for it is as many positions further in the tap's box for every output: the tap's shift. With a
// stride the taps fall into phases, whose pixels are every so-many-th of the image, and each phase has boxes of its
// own. Of pairs, y counts pairs, and a phase's pixels are sums of two rows of the image.
struct Tiles {
  Lowering of;
  int images, tile_rows, tile_columns;    // outputs of a tile; no images: nothing fits
  int row_pitch, image_pitch, box, slot;  // positions
  int strips, row_tiles, tiles, pairs;    // a pair: two tiles and 64 filters, or one and 128
  Cut cut;
  int slices, works;  // of a pair's channel blocks, each with a work item of its own; work items of all pairs
  int channel_blocks, filter_blocks, taps, phases;
  std::uint64_t first_taps;       // a bit for each tap, in their order: whether it is the first of its phase
  short shifts[kMostTaps];        // of the taps in their order
  signed char tap_of[kMostTaps];  // row x columns + column of each
  int phase_y[kMostTaps], phase_x[kMostTaps];  // a phase's first pixel, from that of the first tap
  Divisor by_row_pitch, by_image_pitch, by_strips, by_row_tiles, by_filter_groups, by_slices;
};

#if !defined(__CUDACC_RTC__)

inline int at_least(int a, int b) { return a > b ? a : b; }
inline int at_most(int a, int b) { return a < b ? a : b; }

// Tiles with so many columns.
inline Tiles tiles_of(const Lowering& problem, int positions, Cut cut, bool tf32, int columns) {
  Tiles g{};
  g.of = problem;
  g.cut = cut;
  Lowering l = problem;  // whose outputs are positions
  if (cut == Cut::row_pairs) l.rows = 1, l.out_height = blocks_for(problem.out_height, 2);
  g.strips = blocks_for(l.out_width, columns);
  g.tile_columns = blocks_for(l.out_width, g.strips);
  if (g.tile_columns > positions) return g;
  const Reach across = reach_of(l.columns, l.dilation_x, l.stride_x, l.width, l.pad_x, l.out_width, g.strips == 1);
  g.row_pitch = g.tile_columns + across.further - across.shared;
  g.row_tiles = blocks_for(l.out_height, (positions - g.tile_columns) / g.row_pitch + 1);
  g.tile_rows = blocks_for(l.out_height, g.row_tiles);
  const bool whole = g.row_tiles == 1 && g.strips == 1;
  const Reach down = reach_of(l.rows, l.dilation_y, l.stride_y, l.height, l.pad_y, l.out_height, whole);
  g.image_pitch = (g.tile_rows + down.further - down.shared) * g.row_pitch;
  const int of_image = (g.tile_rows - 1) * g.row_pitch + g.tile_columns;
  g.images = whole ? at_most(l.batch, (positions - of_image) / g.image_pitch + 1) : 1;
  g.box = g.images * g.image_pitch;

  const TapOrder order = tap_order(l);
  g.taps = order.taps, g.phases = order.phases;
  for (int phase = 0; phase < g.phases; ++phase) {
    g.phase_y[phase] = order.phase_y[phase];
    g.phase_x[phase] = order.phase_x[phase];
    g.first_taps |= std::uint64_t{1} << order.first_tap[phase];
  }
  for (int i = 0; i < g.taps; ++i) {
    const int tap = order.tap_of[i], down = tap / l.columns * l.dilation_y, across = tap % l.columns * l.dilation_x;
    g.tap_of[i] = order.tap_of[i];
    g.shifts[i] = static_cast<short>(down / l.stride_y * g.row_pitch + across / l.stride_x);
  }
  if (cut == Cut::row_pairs) {  // a phase is a sum of two of the rows that begin at an even one, and has all columns
    for (int row = 0; row < kPhasesOfPairs; ++row) g.phase_y[row] = row;
    g.phases = kPhasesOfPairs, g.taps = kTapsOfPairs;
  }
  int furthest = 0;
  for (int t = 0; t < g.taps; ++t) furthest = at_least(furthest, g.shifts[t]);
  g.slot = blocks_for(at_least(g.box, positions + furthest), 8) * 8;
  if (g.slot > most_slot(positions, cut)) return Tiles{};
  g.tiles = blocks_for(l.batch, g.images) * g.row_tiles * g.strips;
  g.channel_blocks = blocks_for(l.channels, channels_for(tf32)), g.filter_blocks = blocks_for(l.filters, kBlock);
  if (cut == Cut::shared && g.filter_blocks % 2 != 0) return Tiles{};
  if (cut == Cut::row_pairs) g.filter_blocks = blocks_for(l.filters, 2 * kBlock) * 2;
  const int groups = cut == Cut::own ? g.filter_blocks : g.filter_blocks / 2;
  g.pairs = (cut == Cut::own ? blocks_for(g.tiles, 2) : g.tiles) * groups;
  g.by_row_pitch = divisor_of(g.row_pitch), g.by_image_pitch = divisor_of(g.image_pitch);
  g.by_strips = divisor_of(g.strips), g.by_row_tiles = divisor_of(g.row_tiles);
  g.by_filter_groups = divisor_of(groups);
  return g;
}

// The fewest tiles of so many positions; without images where none fits.
inline Tiles fewest_tiles(const Lowering& l, int positions, Cut cut, bool tf32 = false) {
  Tiles best{};
  for (int columns = at_most(l.out_width, positions); columns > 0; --columns) {
    const Tiles g = tiles_of(l, positions, cut, tf32, columns);
    if (g.images > 0 && (best.images == 0 || g.tiles < best.tiles)) best = g;
  }
  return best;
}
inline Tiles in_slices(Tiles g, int slices) {
  g.slices = slices, g.works = g.pairs * slices;
  g.by_slices = divisor_of(slices);
  return g;
}

#endif

}  // namespace
}  // namespace convladder
