// How stages 32 and 34 cut a problem: strips for `rows`, 3 x 3 filters of up to 64 channels, and for more channels and
// all other filters tiles, in which there is room for the padding (`tiles`), or of a line of outputs (`lines`). An
// Element is a struct such as TwoBytes of 32, which tells what it has.
#pragma once
#include "common/kernel/divisor.hpp"
#include "common/kernel/tracks/taps.hpp"
//
#include "common/kernel/hopper.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;                    // of the kernels that move memory only
constexpr int kTaps = 3;                         // of a filter of `rows`, down and across
constexpr int kStepBytes = 32;                   // of a pixel, for one wgmma
constexpr int kChunkBytes = 16;                  // the unit of TMA and of the swizzle
constexpr int kFilters = 64;                     // of a consumer's product
constexpr int kConsumers = 256;                  // threads of two consumers, a warpgroup each
constexpr int kConsumerWarps = kConsumers / 32;  // whose arrivals empty a slot
constexpr int kRowThreads = kConsumers + 32;
constexpr int kTileThreads = kConsumers + 128;  // setmaxnreg works on whole warpgroups

constexpr int kRowChannels = 64;                 // of a pixel in shared memory, at most, for `rows`
constexpr int kTilePixel = 128;                  // bytes of one for `tiles`, whatever the element
constexpr int kTileTap = kFilters * kTilePixel;  // bytes of a tap of 64 filters
constexpr int kGroupWarps = kConsumerWarps / 2;  // whose arrivals empty a slot there
constexpr int kOutputBytes = 8192;               // that a consumer rounds and stores at a time
constexpr int kNewBox = 1 << 30;                 // beside a tap's shift, at the first tap of a box
constexpr int kMostBox = 256;                    // positions, along one dimension
constexpr int kMostStride = 2;                   // down and across
constexpr int kMostPhases = kMostStride * kMostStride;
constexpr int kMostPixelSlots = 8;
constexpr int kMostShared = 227 * 1024;  // bytes of a block

template <class Element>
constexpr int kChunk = kChunkBytes / Element::kBytes;  // elements

// The sizes of a wgmma, in positions, for which there is a kernel.
template <int... N>
struct Positions {
  static constexpr bool has(int positions) { return ((positions == N) || ...); }
};

// What a kernel of `tiles` is made for, and whose its tiles are.
enum class Cut {
  nine,   // 3 x 3 with stride 1, as constants; either consumer has a tile of its own
  own,    // any filter, from tables; the same
  shared  // any filter; both consumers have one tile, and 64 filters each
};

// Of a position of a tile: where its output lies from the tile's first, and its image, row and column in the tile.
struct alignas(8) Place {
  int output;
  unsigned packed;
};
// In whole steps of the epilogue.
__host__ __device__ constexpr int places_for(int positions) { return blocks_for(positions, 32) * 32; }

// Shared memory for tiles of so many positions: rings of taps and pixels, and two buffers of outputs for each consumer.
// The products of a small tile are soon done, so more taps must be on their way. For any filter there are as many slots
// of pixels as fit, since a box may serve a single tap; and the positions' places.
struct TileMemory {
  int filter_slots, pixel_slots, fixed_bytes;  // fixed: all but the slots of pixels

  __host__ __device__ constexpr TileMemory(int positions, Cut cut)
      : filter_slots(positions > 64 ? 8 : 16),
        pixel_slots(cut != Cut::nine  ? kMostPixelSlots
                    : positions > 128 ? 2
                                      : 3),
        fixed_bytes(filter_slots * kTileTap + 2 * 2 * kOutputBytes +
                    places_for(positions) * static_cast<int>(sizeof(Place)) +
                    2 * (filter_slots + pixel_slots) * static_cast<int>(sizeof(Mbarrier))) {}
  // How many slots of so many positions there are; 0 where too few fit.
  int slots_of(int slot) const {
    const int fit = (kMostShared - fixed_bytes) / (slot * kTilePixel);
    return fit < 2 ? 0 : fit < pixel_slots ? fit : pixel_slots;
  }
};

// Of `lines`, positions that are rounded and stored at once.
template <class Element>
constexpr int line_part(int positions) {
  return positions / blocks_for(positions * kFilters * Element::kBytes, kOutputBytes);
}

// Shared memory of `lines`: a ring of as many passes as fit, and two buffers of outputs for each consumer. Of slices
// the buffers hold a block's outputs, and what the others send it.
template <int N, bool kShared>
struct LineMemory {
  static constexpr int kBarrier = static_cast<int>(sizeof(Mbarrier)), kOutputs = 2 * 2 * kOutputBytes;
  static constexpr int kSlot = (N + (kShared ? 2 : 1) * kFilters) * kTilePixel;
  static constexpr int kSlots = (kMostShared - kOutputs - kBarrier) / (kSlot + 2 * kBarrier);
  static constexpr int kBytes = kSlots * (kSlot + 2 * kBarrier) + kOutputs + kBarrier;
};
constexpr int kSliceStep = 16;  // positions that a block adds up and stores at once, of slices
constexpr int kMostSlices = 8;
constexpr int kMostSlicePositions = 64;  // of a tile that has slices

// The problem, and how `rows` takes it: the rows of outputs of all strips of all images are numbered through, and
// divided evenly.
struct Rows : Lowering {
  int steps;             // of kStepBytes
  int all_rows, strips;  // of all images; of one
  int filter_blocks;     // of 64
  Divisor by_height, by_strips;
};

// The problem, and how `tiles` takes it. A tile's outputs are `images` x `tile_rows` x `tile_columns`. Output (i, y, x)
// of it is at position i * image_pitch + y * row_pitch + x, and a tap reads the pixel at this position plus the tap's
// shift: of 3 x 3 with stride 1, tap (r, s) that at r * row_pitch + s. With stride 2 a phase has the taps that read the
// same of every second row and column, and boxes of these alone.
struct Tiles : Lowering {
  int images, tile_rows, tile_columns;
  int row_pitch, image_pitch;         // positions
  int box;                            // positions that TMA fills
  int slot;                           // positions of a slot of the ring; a multiple of 8
  int strips, row_tiles;              // of an image
  int channel_blocks, filter_blocks;  // of kTilePixel bytes; of 64
  int work_items;                     // tiles times filter blocks, or times pairs of these
  Divisor by_groups, by_strips, by_row_tiles, by_row_pitch, by_image_pitch;
  // Of all cuts but Cut::nine.
  int taps, phases, pixel_slots;
  Divisor by_pixel_slots;
  int first_y[kMostPhases], first_x[kMostPhases];  // of the image's rows and columns, for a phase
  int phase_y[kMostPhases], phase_x[kMostPhases];  // from a tile's first output to its first of these
  int shifts[kMostTaps];                           // of the taps, phase by phase; of a phase's first, plus kNewBox
};

// A tap's place: in the image, from the first tap.
struct Offset {
  unsigned short x, y;
};

// The problem, and how `lines` takes it: the outputs of all images as one line. A pass is a tap of kTilePixel bytes of
// channels. A work item has a slice of the passes; those of one tile and filters are neighbours.
struct Lines : Lowering {
  int line;        // outputs
  bool pointwise;  // 1 x 1 with stride 1 and no padding: the pixels are the same line
  int taps, passes, slices;
  int own_steps;      // of slices, at most, of the epilogue
  int filter_blocks;  // of 64
  int work_items;     // tiles times filter blocks, or times pairs of these, times slices
  Divisor by_groups, by_out_width, by_out_height, by_taps, by_slices;
  Offset offsets[kMostTaps];
};

// The first output of a row of a strip, or of a tile; or the pixel that its first tap reads.
struct Origin {
  int image, x, y;
};

// 3 x 3 taps side by side.
bool has_nine(const ConvProblem& p) {
  return p.r == kTaps && p.s == kTaps && p.stride_h == 1 && p.stride_w == 1 && p.dilation_h == 1 && p.dilation_w == 1;
}
bool by_rows(const ConvProblem& problem) { return problem.c <= kRowChannels && has_nine(problem); }

// How a kernel takes a problem: positions of a wgmma; whether tiles are shared; into how many slices its passes go; and
// whether TMA loads pixels by columns of im2col's matrix, or by boxes.
struct Choice {
  int positions;
  bool shared;
  int slices;
  bool columns = false;
};
// Channels whose pixels are whole chunks.
template <class Element>
int wide_channels(const ConvProblem& problem) {
  return blocks_for(static_cast<int>(problem.c), kChunk<Element>) * kChunk<Element>;
}

// How the pixels lie that TMA loads: as in the input, or in a copy of it. A copy has zeros as further channels. Where
// the filter is folded, it also has the columns of padding, and TMA takes a window, the `columns` pixels that a row of
// the filter reads, for one pixel with the channels of all of them.
struct InputLayout {
  int columns, step;  // of a window, 1 where it is not folded; pixels from one window to the next
  int channels;       // of a pixel
  int width, left;    // pixels of a row; of these, padding before the image
};

// The one rule that says whether a filter is folded: if so its rows take fewer wgmmas, and windows fit in a pixel of
// `tiles`. From window to window it must be whole chunks, so that with stride 2 a pixel needs half a chunk only. For
// instance 7 x 7 with stride 2, over 3 channels of halves. Not folded, a pixel has 8 channels, 16 bytes, which is one
// wgmma of 32: 7 * 7 * 1 = 49. Folded, a pixel has 4 channels and a window 7 * 4 * 2 = 56 bytes: 7 * 2 = 14.
template <class Element>
InputLayout layout_of(const ConvProblem& problem) {
  const int wide = wide_channels<Element>(problem), s = static_cast<int>(problem.s);
  const InputLayout plain{1, 1, wide, static_cast<int>(problem.w), 0};
  if (by_rows(problem) || problem.dilation_w > 1) return plain;
  const int stride = static_cast<int>(problem.stride_w), unit = kChunk<Element> / stride;
  const int pixel = blocks_for(static_cast<int>(problem.c), unit) * unit, window = s * pixel * Element::kBytes;
  const int steps = blocks_for(window, kStepBytes), plain_steps = s * blocks_for(wide * Element::kBytes, kStepBytes);
  if (window > kTilePixel || steps >= plain_steps) return plain;
  const int width = static_cast<int>((problem.q() - 1) * stride + s);
  return {s, stride, pixel, blocks_for(width, stride) * stride, static_cast<int>(problem.pad_w)};
}
// Elements of the copy; 0 where the input will do.
template <class Element>
std::int64_t wide_size(const ConvProblem& problem) {
  const InputLayout layout = layout_of<Element>(problem);
  if (layout.columns == 1 && layout.channels == problem.c) return 0;
  return problem.n * problem.h * layout.width * layout.channels;
}

template <class Element>
Rows rows_of(const ConvProblem& problem, int positions) {
  Rows g{};
  static_cast<Lowering&>(g) = lowering_of(problem);
  g.steps = blocks_for(g.channels * Element::kBytes, kStepBytes);
  g.strips = blocks_for(g.out_width, positions);
  g.all_rows = g.batch * g.strips * g.out_height;
  g.filter_blocks = blocks_for(g.filters, kFilters);
  g.by_height = divisor_of(g.out_height);
  g.by_strips = divisor_of(g.strips);
  return g;
}

// Blocks that share the rows, for each block of filters: all blocks together as many as there are multiprocessors.
int parts_of(const Rows& g, int multiprocessors) {
  const int parts = multiprocessors / g.filter_blocks;
  return parts < 1 ? 1 : parts < g.all_rows ? parts : g.all_rows;
}

bool is_one_row(const Lowering& l) { return l.batch == 1 && l.out_height == 1; }

// Tiles of outputs so many columns wide, or fewer where the image is cut evenly; no images where they do not fit.
Tiles tiles_of(const Lowering& l, int positions, Cut cut, int columns) {
  Tiles g{};
  static_cast<Lowering&>(g) = l;
  g.strips = blocks_for(g.out_width, columns);
  g.tile_columns = blocks_for(g.out_width, g.strips);
  // The zeros on the right of a row are those on the left of the next, and those below an image are above the next one.
  const Reach across = reach_of(l.columns, l.dilation_x, l.stride_x, l.width, l.pad_x, l.out_width, g.strips == 1);
  g.row_pitch = g.tile_columns + across.further - across.shared;
  const int fitting = (positions - g.tile_columns) / g.row_pitch + 1;
  g.row_tiles = blocks_for(g.out_height, fitting);
  g.tile_rows = blocks_for(g.out_height, g.row_tiles);
  const bool whole = g.row_tiles == 1 && g.strips == 1;
  const Reach down = reach_of(l.rows, l.dilation_y, l.stride_y, l.height, l.pad_y, l.out_height, whole);
  const int box_rows = g.tile_rows + down.further - down.shared;
  if (g.row_pitch > kMostBox || box_rows > kMostBox) return g;
  g.image_pitch = box_rows * g.row_pitch;
  const int of_image = (g.tile_rows - 1) * g.row_pitch + g.tile_columns;
  const int images = whole ? (positions - of_image) / g.image_pitch + 1 : 1;
  g.images = images < g.batch ? images : g.batch;
  g.box = g.images * g.image_pitch;
  const int reached = positions + down.further * g.row_pitch + across.further;
  g.slot = blocks_for(g.box > reached ? g.box : reached, 8) * 8;
  const TileMemory memory(positions, cut);
  g.pixel_slots = memory.slots_of(g.slot);
  const bool shared = cut == Cut::shared;
  const int groups = blocks_for(l.filters, shared ? 2 * kFilters : kFilters);
  g.filter_blocks = shared ? 2 * groups : groups;
  g.work_items = blocks_for(g.batch, g.images) * g.row_tiles * g.strips * groups;
  const bool fits = cut == Cut::nine ? g.pixel_slots == memory.pixel_slots : g.pixel_slots > 0;
  if (!fits || g.images > kMostBox) g.images = 0;
  return g;
}

// Whether outputs and pixels are the same line.
bool is_pointwise(const Lowering& l) {
  return l.rows * l.columns == 1 && l.stride_y == 1 && l.stride_x == 1 && l.pad_y == 0 && l.pad_x == 0;
}

// The problem as tiles see it. A folded filter has one column, and a pixel is the window of an output. A 1 x 1 filter
// moves over the pixels of all images as if they were one row.
template <class Element>
Lowering in_tiles(const ConvProblem& problem) {
  Lowering l = lowering_of(problem);
  const InputLayout layout = layout_of<Element>(problem);
  if (layout.columns > 1) {
    l.channels = layout.columns * layout.channels, l.width = l.out_width;
    l.columns = l.stride_x = 1, l.pad_x = 0;
  } else if (is_pointwise(l)) {
    l.width = l.out_width = l.batch * l.height * l.width;
    l.batch = l.height = l.out_height = 1;
  }
  return l;
}

// Of `tiles`.
Cut cut_of(const ConvProblem& problem, const Choice& choice) {
  return choice.shared ? Cut::shared : has_nine(problem) ? Cut::nine : Cut::own;
}

// The fewest tiles; of two ways to make them, wider ones. But with one column of taps a tile needs no pixels beside it,
// and the narrower is the one that needs fewer below. No images where none fits.
template <class Element>
Tiles tiles_of(const ConvProblem& problem, const Choice& choice) {
  const Lowering l = in_tiles<Element>(problem);
  const int positions = choice.positions;
  const Cut cut = cut_of(problem, choice);
  Tiles best{};
  for (int columns = l.out_width < positions ? l.out_width : positions; columns > 0; --columns) {
    const Tiles tiles = tiles_of(l, positions, cut, columns);
    if (tiles.images == 0) continue;
    if (best.images == 0 || tiles.work_items < best.work_items ||
        (tiles.work_items == best.work_items && l.columns == 1 && !is_one_row(l) && tiles.box < best.box))
      best = tiles;
  }
  if (best.images == 0) return best;
  best.channel_blocks = blocks_for(l.channels * Element::kBytes, kTilePixel);
  best.by_groups = divisor_of(choice.shared ? best.filter_blocks / 2 : best.filter_blocks);
  best.by_strips = divisor_of(best.strips);
  best.by_row_tiles = divisor_of(best.row_tiles);
  best.by_row_pitch = divisor_of(best.row_pitch);
  best.by_image_pitch = divisor_of(best.image_pitch);
  best.by_pixel_slots = divisor_of(best.pixel_slots);
  const TapOrder order = tap_order(l);
  best.taps = order.taps, best.phases = order.phases;
  // Where the image is too small to have any of a phase's pixels, a box far outside of another's is as empty.
  const auto start = [](int phase, int pad, int stride, int size, int& first, int& from) {
    constexpr int kFarOutside = -(1 << 24);
    first = ((phase - pad) % stride + stride) % stride;
    from = first < size ? (phase - pad - first) / stride : kFarOutside;
    if (first >= size) first = 0;
  };
  for (int i = 0; i < order.phases; ++i) {
    start(order.phase_y[i], l.pad_y, l.stride_y, l.height, best.first_y[i], best.phase_y[i]);
    start(order.phase_x[i], l.pad_x, l.stride_x, l.width, best.first_x[i], best.phase_x[i]);
  }
  for (int i = 0; i < order.taps; ++i) {
    const int row = order.tap_of[i] / l.columns, column = order.tap_of[i] % l.columns;
    best.shifts[i] = row * l.dilation_y / l.stride_y * best.row_pitch + column * l.dilation_x / l.stride_x;
  }
  for (int i = 0; i < order.phases; ++i) best.shifts[order.first_tap[i]] += kNewBox;
  return best;
}

// Whether TMA can load the problem's columns, and store its outputs: the corners of the image are signed bytes, and so
// taps at most 255 apart, as their offsets must be; and outputs are whole chunks.
template <class Element>
bool has_columns(const ConvProblem& problem) {
  const auto fits = [](std::int64_t taps, std::int64_t dilation, std::int64_t pad) {
    constexpr std::int64_t kLeast = -128, kMost = 127;
    return pad <= kMost && pad - (taps - 1) * dilation >= kLeast;
  };
  return !by_rows(problem) && layout_of<Element>(problem).columns == 1 && problem.k % kChunk<Element> == 0 &&
         fits(problem.r, problem.dilation_h, problem.pad_h) && fits(problem.s, problem.dilation_w, problem.pad_w);
}

template <class Element>
Lines lines_of(const ConvProblem& problem, const Choice& choice) {
  const int positions = choice.positions;
  const bool shared = choice.shared;
  Lines g{};
  static_cast<Lowering&>(g) = lowering_of(problem);
  const TapOrder order = tap_order(in_tiles<Element>(problem));
  const int groups = blocks_for(g.filters, shared ? 2 * kFilters : kFilters);
  g.line = g.batch * g.out_height * g.out_width;
  g.pointwise = is_pointwise(g);
  g.taps = order.taps;
  g.passes = blocks_for(g.channels * Element::kBytes, kTilePixel) * g.taps;
  g.filter_blocks = shared ? 2 * groups : groups;
  g.slices = choice.slices;
  g.own_steps = blocks_for(positions / kSliceStep, g.slices);
  g.work_items = blocks_for(g.line, positions) * groups * g.slices;
  g.by_slices = divisor_of(g.slices);
  g.by_taps = divisor_of(g.taps);
  g.by_groups = divisor_of(groups);
  g.by_out_width = divisor_of(g.out_width);
  g.by_out_height = divisor_of(g.out_height);
  for (int i = 0; i < order.taps; ++i) {
    const int row = order.tap_of[i] / g.columns, column = order.tap_of[i] % g.columns;
    g.offsets[i] = {static_cast<unsigned short>(column * g.dilation_x),
                    static_cast<unsigned short>(row * g.dilation_y)};
  }
  return g;
}

// Filters that are packed, those past the last as zeros.
int packed_filters(int filters, bool shared) {
  const int tile_filters = shared ? 2 * kFilters : kFilters;
  return blocks_for(filters, tile_filters) * tile_filters;
}

// Whether a tile of `lines` can have so many slices: each a pass at least.
template <class Element>
bool has_slices(const ConvProblem& problem, const Choice& choice) {
  if (choice.shared || choice.positions > kMostSlicePositions) return false;
  const Lines g = lines_of<Element>(problem, {choice.positions, false, 1, true});
  return choice.slices <= g.passes && g.work_items <= INT32_MAX / choice.slices;
}

// Whether a kernel takes the problem so.
template <class Element>
bool has_kernel(const ConvProblem& problem, const Choice& choice) {
  if (by_rows(problem))
    return !choice.shared && choice.slices == 1 && !choice.columns && Element::StripSizes::has(choice.positions);
  if (choice.columns)
    return Element::LineSizes::has(choice.positions) && has_columns<Element>(problem) &&
           (choice.slices == 1 || has_slices<Element>(problem, choice));
  const bool nine = cut_of(problem, choice) == Cut::nine;
  if (!(nine ? Element::TileSizes::has(choice.positions) : Element::AnyTileSizes::has(choice.positions))) return false;
  return choice.slices == 1 && tiles_of<Element>(problem, choice).images > 0;
}

// Cycles of the whole, up to a factor.
template <class Element>
std::int64_t cost_of(const ConvProblem& problem, const Choice& choice, int multiprocessors) {
  const int positions = choice.positions;
  if (by_rows(problem)) {
    const Rows g = rows_of<Element>(problem, positions);
    const int parts = parts_of(g, multiprocessors);
    return std::int64_t{blocks_for(parts * g.filter_blocks, multiprocessors)} *
           Element::cycles_of_rows(blocks_for(g.all_rows, parts), positions);
  }
  constexpr std::int64_t kWgmmas = kTilePixel / kStepBytes, kStart = 600, kL2Bytes = 48 << 20;
  const std::int64_t streams = choice.shared ? 2 : 1, wgmmas = streams * kWgmmas * positions / 2;
  const auto larger = [](std::int64_t a, std::int64_t b) { return a > b ? a : b; };
  const auto busiest = [&](std::int64_t items) { return (items - 1) / multiprocessors + 1; };
  // Of `lines` the bytes of a pass come at 90 a cycle, at two thirds of that where a pixel has no multiple of 128
  // bytes, at one where it has none of 64, and with 8 MB of filters and more to all multiprocessors together at 7000.
  // Its wgmmas take a tenth longer; with several taps 15 percent where one consumer has nothing to do, and 20 where
  // both have several items; of shared tiles a fiftieth. No pass is shorter than 215 cycles, and of shared tiles 320.
  // To these come an item's ends, which of shared tiles nothing hides; and of slices the gathering of sums, the longer
  // the more slices there are. Of a cluster of four or eight blocks an eighth of the multiprocessors cannot be part.
  // One block of filters with few passes waits for memory, the longer for the first and the last tile the larger these
  // are: one of more than 128 positions costs a fifth more. So do outputs and a residual that L2 does not hold. A
  // residual must have come before the other consumer has its turn, which of shared tiles no one waits for. Fitted to
  // times of all configurations on an H200: ends, all percents and the 320 to 32 layers of each stage; 90, 7000 and 215
  // to 17 layers of 32 and 6 of 34, slices to six of each, residuals to four of each. The two thirds are of one layer
  // of 34 with 320 channels, and the third of one with 48.
  if (choice.columns) {
    const Lines g = lines_of<Element>(problem, choice);
    const std::int64_t pixel = g.channels * Element::kBytes, bytes = positions * kTilePixel + streams * kTileTap,
                       filters = std::int64_t{g.filter_blocks} * g.passes * kTileTap,
                       blocks = g.work_items < multiprocessors ? g.work_items : multiprocessors,
                       rate = pixel % 128 == 0  ? 90
                              : pixel % 64 == 0 ? 60
                                                : 30,
                       loads = larger(bytes / rate, filters < 8 << 20 ? 0 : blocks * bytes / 7000);
    const int places = choice.slices < 4 ? multiprocessors : multiprocessors - multiprocessors / 8;
    const std::int64_t items = blocks_for(g.work_items, places),
                       percent_of_own = g.taps == 1 || items == 2 ? 110
                                        : items == 1              ? 115
                                                                  : 120,
                       percent = choice.shared ? 102 : percent_of_own;
    const std::int64_t pass = larger(loads, larger(wgmmas * percent / 100, choice.shared ? 320 : 215)),
                       residual = problem.has_residual() ? positions * Element::kBytes * Element::kBytes * 11 / 10 : 0,
                       ends = choice.shared ? 1000 + positions * 4 * Element::kBytes
                                            : 120 + positions * (1 + Element::kBytes) + residual;
    const std::int64_t item = blocks_for(g.passes, choice.slices) * pass + ends;
    if (choice.slices > 1) return items * (kStart + item + 800 + 300 * choice.slices);
    const std::int64_t whole = kStart + items * item;
    const bool from_memory =
        g.filter_blocks == 1 || (problem.has_residual() && 2 * problem.output_size() * Element::kBytes > kL2Bytes);
    return from_memory && g.passes <= 4 && positions > 128 ? whole * 6 / 5 : whole;
  }
  // Of `tiles` a tap of 64 filters and 128 bytes is 4 wgmmas of N / 2 cycles each, which take a tenth longer, of
  // Cut::nine a twenty-fifth, and at least 290 cycles for the waits, of Cut::own 345, of Cut::shared 520; a box of
  // pixels takes at least 740. 8 KB of a tap, and the boxes, come from L2 at 48 bytes a cycle. The epilogue takes 20
  // cycles a position of halves, 16 of Cut::nine, of bytes half as many, with a residual twice as many; with a tile of
  // its own, a consumer hides the other's half. Fitted to times on an H100, of all configurations of 32 on a ResNet-50
  // of 32 images and of one; the 345 to all of its first layer on an H200; the 520 and the 16 to all of 16 layers of 32
  // and 15 of 34 on an H200, the twenty-fifth to 32 of each.
  const Cut cut = cut_of(problem, choice);
  const std::int64_t least_tap = choice.shared ? 520 : cut == Cut::own ? 345 : 290, least_box = 740, from_l2 = 48;
  const Tiles g = tiles_of<Element>(problem, choice);
  const std::int64_t taps = std::int64_t{g.channel_blocks} * g.taps, boxes = std::int64_t{g.channel_blocks} * g.phases;
  const std::int64_t product =
      larger(taps * larger(wgmmas * (cut == Cut::nine ? 104 : 110) / 100, least_tap), boxes * least_box);
  const std::int64_t loads = (taps * streams * kTileTap + boxes * g.box * kTilePixel) / from_l2;
  const std::int64_t epilogue =
      (problem.has_residual() ? 2 : 1) * (cut == Cut::nine ? 8 : 10) * positions * Element::kBytes;
  const std::int64_t items = busiest(g.work_items);
  if (choice.shared) return kStart + items * (larger(product, loads) + epilogue);
  const std::int64_t pairs = items > 1 ? items * (product + epilogue) / 2 : 0;
  return kStart + larger(items * larger(product, loads), pairs) + epilogue;
}

constexpr int kSlices[] = {1, 2, 4, kMostSlices};

// What costs the least; of two alike the larger tile.
template <class Element, int Count>
Choice cheapest(const int (&positions)[Count], const ConvProblem& problem, int multiprocessors) {
  Choice best{0, false, 1};
  std::int64_t least = 0;
  const auto try_with = [&](const Choice& choice) {
    if (!has_kernel<Element>(problem, choice)) return;
    const std::int64_t cost = cost_of<Element>(problem, choice, multiprocessors);
    if (best.positions == 0 || cost < least || (cost == least && choice.positions > best.positions))
      best = choice, least = cost;
  };
  for (int shared = 0; shared < 2; ++shared) {
    if (shared && problem.k <= kFilters) continue;
    for (const int each : positions) {
      try_with({each, shared == 1, 1});
      for (const int slices : kSlices)
        if (slices <= multiprocessors) try_with({each, shared == 1, slices, true});  // a cluster's blocks run at once
    }
  }
  return best;
}

// As many as there are multiprocessors, or work items.
unsigned persistent_blocks(int work_items) {
  const int multiprocessors = device_limits().multiprocessors;
  return static_cast<unsigned>(work_items < multiprocessors ? work_items : multiprocessors);
}
// Of slices, each work item has a block, and those of a tile are a cluster.
unsigned blocks_of(const Lines& g) {
  return g.slices > 1 ? static_cast<unsigned>(g.work_items) : persistent_blocks(g.work_items);
}

// A tensor in NHWC, to be moved in boxes whose pixels have `box_channels`.
template <class Element>
TensorMap map_of(const void* tensor, std::uint64_t channels, unsigned box_channels, const TensorDimension& columns,
                 const TensorDimension& rows, const TensorDimension& images) {
  constexpr unsigned kBytes = Element::kBytes;
  return make_tensor_map(tensor, {kBytes == 1 ? TensorElement::int8 : TensorElement::fp16,
                                  box_channels * kBytes == 64 ? Swizzle::bytes64 : Swizzle::bytes128,
                                  4,
                                  {{channels, kBytes, box_channels}, columns, rows, images}});
}
// A row of so many columns of a whole one.
template <class Element>
TensorMap map_of_rows(const void* tensor, std::uint64_t channels, std::uint64_t width, std::uint64_t height,
                      std::uint64_t batch, unsigned columns) {
  const std::uint64_t pixel = Element::kBytes * channels;
  return map_of<Element>(tensor, channels, kRowChannels, {width, pixel, columns}, {height, pixel * width, 1},
                         {batch, pixel * width * height, 1});
}
// A tile's box of a phase's rows and columns, which are windows where the filter is folded.
template <class Element>
TensorMap map_of_phase(const typename Element::Value* tensor, const InputLayout& layout, const Tiles& g, int phase) {
  const auto size = [](int count) { return static_cast<std::uint64_t>(count); };
  const std::uint64_t pixel = size(layout.channels) * Element::kBytes, column = size(layout.step) * pixel,
                      row = size(layout.columns > 1 ? layout.width : g.width) * pixel;
  const int first_y = g.first_y[phase], first_x = g.first_x[phase];
  return map_of<Element>(
      tensor + (size(first_y) * row + size(first_x) * column) / Element::kBytes,
      size(layout.columns) * size(layout.channels), kTilePixel / Element::kBytes,
      {size(blocks_for(g.width - first_x, g.stride_x)), size(g.stride_x) * column, static_cast<unsigned>(g.row_pitch)},
      {size(blocks_for(g.height - first_y, g.stride_y)), size(g.stride_y) * row,
       static_cast<unsigned>(g.image_pitch / g.row_pitch)},
      {size(g.batch), row * size(g.height), static_cast<unsigned>(g.images)});
}

}  // namespace
}  // namespace convladder
