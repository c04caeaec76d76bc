// How stages 32 and 34 cut a problem: strips for `rows`, up to 64 channels, and tiles for `tiles`, more channels. An
// Element is a struct such as Halves of 32, which tells what it has.
#pragma once
#include "common/kernel/divisor.hpp"
#include "common/kernel/tracks/lowering.hpp"
//
#include "common/kernel/hopper.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;                    // of the kernels that move memory only
constexpr int kTaps = 3;                         // of a filter, down and across
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
constexpr int kOutputBytes = 512;                // that a warp rounds and stores at a time
constexpr int kMostBox = 256;                    // positions, along one dimension
constexpr int kMostShared = 227 * 1024;          // bytes of a block

template <class Element>
constexpr int kChunk = kChunkBytes / Element::kBytes;  // elements

// The sizes of a wgmma, in positions, for which there is a kernel.
template <int... N>
struct Positions {
  static constexpr bool has(int positions) { return ((positions == N) || ...); }
};

// Shared memory for tiles of so many positions: rings of taps and pixels, and two buffers of outputs for each warp. The
// products of a small tile are soon done, so more taps must be on their way.
struct TileMemory {
  int filter_slots, pixel_slots, fixed_bytes;  // fixed: all but the slots of pixels

  __host__ __device__ constexpr explicit TileMemory(int positions)
      : filter_slots(positions > 64 ? 8 : 16),
        pixel_slots(positions > 128 ? 2 : 3),
        fixed_bytes(filter_slots * kTileTap + kConsumerWarps * 2 * kOutputBytes +
                    2 * (filter_slots + pixel_slots) * static_cast<int>(sizeof(Mbarrier))) {}
};

// The problem, and how `rows` takes it: the rows of outputs of all strips of all images are numbered through, and
// divided evenly.
struct Rows : Lowering {
  int steps;             // of kStepBytes
  int all_rows, strips;  // of all images; of one
  int filter_blocks;     // of 64
  Divisor by_height, by_strips;
};

// The problem, and how `tiles` takes it. A tile's outputs are `images` x `tile_rows` x `tile_columns`. Output (i, y, x)
// of it is at position i * image_pitch + y * row_pitch + x, and its tap (r, s) reads the pixel at this position plus
// r * row_pitch + s.
struct Tiles : Lowering {
  int images, tile_rows, tile_columns;
  int row_pitch, image_pitch;         // positions
  int box;                            // positions that TMA fills
  int slot;                           // positions of a slot of the ring; a multiple of 8
  int strips, row_tiles;              // of an image
  int channel_blocks, filter_blocks;  // of kTilePixel bytes; of 64
  int work_items;                     // tiles times filter blocks
  Divisor by_filter_blocks, by_strips, by_row_tiles, by_row_pitch, by_image_pitch;
};

// The first output of a row of a strip, or of a tile.
struct Origin {
  int image, x, y;
};

bool by_rows(const ConvProblem& problem) { return problem.c <= kRowChannels; }

// Whether a kernel takes the problem by so many positions.
template <class Element>
bool has_kernel(const ConvProblem& problem, int positions) {
  return by_rows(problem) ? Element::StripSizes::has(positions) : Element::TileSizes::has(positions);
}

// Channels whose pixels are whole chunks.
template <class Element>
int wide_channels(const ConvProblem& problem) {
  return blocks_for(static_cast<int>(problem.c), kChunk<Element>) * kChunk<Element>;
}
// Elements of a copy of the input with so many; 0 where it has them itself.
template <class Element>
std::int64_t wide_size(const ConvProblem& problem) {
  const std::int64_t channels = wide_channels<Element>(problem);
  return channels == problem.c ? 0 : problem.n * problem.h * problem.w * channels;
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

// Tiles of outputs so many columns wide, or fewer where the image is cut evenly; no images where they do not fit.
Tiles tiles_of(const Lowering& l, int positions, int columns) {
  Tiles g{};
  static_cast<Lowering&>(g) = l;
  g.strips = blocks_for(g.out_width, columns);
  g.tile_columns = blocks_for(g.out_width, g.strips);
  // The zeros on the right of a row are those on the left of the next.
  g.row_pitch = g.tile_columns + (g.strips == 1 && g.pad_x > 0 ? 1 : kTaps - 1);
  const int fitting = (positions - g.tile_columns) / g.row_pitch + 1;
  g.row_tiles = blocks_for(g.out_height, fitting);
  g.tile_rows = blocks_for(g.out_height, g.row_tiles);
  const bool whole = g.row_tiles == 1 && g.strips == 1;
  const int box_rows = g.tile_rows + (whole && g.pad_y > 0 ? 1 : kTaps - 1);  // likewise, above the next image
  g.image_pitch = box_rows * g.row_pitch;
  const int of_image = (g.tile_rows - 1) * g.row_pitch + g.tile_columns;
  const int images = whole ? (positions - of_image) / g.image_pitch + 1 : 1;
  g.images = images < g.batch ? images : g.batch;
  g.box = g.images * g.image_pitch;
  const int reached = positions + (kTaps - 1) * (g.row_pitch + 1);
  g.slot = blocks_for(g.box > reached ? g.box : reached, 8) * 8;
  g.filter_blocks = blocks_for(g.filters, kFilters);
  g.work_items = blocks_for(g.batch, g.images) * g.row_tiles * g.strips * g.filter_blocks;
  const TileMemory memory(positions);
  const bool fits = memory.fixed_bytes + memory.pixel_slots * g.slot * kTilePixel <= kMostShared;
  if (!fits || g.row_pitch > kMostBox || box_rows > kMostBox || g.images > kMostBox) g.images = 0;
  return g;
}

// The fewest tiles; of two ways to make them, wider ones.
template <class Element>
Tiles tiles_of(const ConvProblem& problem, int positions) {
  const Lowering l = lowering_of(problem);
  Tiles best{};
  for (int columns = l.out_width < positions ? l.out_width : positions; columns > 0; --columns) {
    const Tiles tiles = tiles_of(l, positions, columns);
    if (tiles.images > 0 && (best.images == 0 || tiles.work_items < best.work_items)) best = tiles;
  }
  best.channel_blocks = blocks_for(l.channels * Element::kBytes, kTilePixel);
  best.by_filter_blocks = divisor_of(best.filter_blocks);
  best.by_strips = divisor_of(best.strips);
  best.by_row_tiles = divisor_of(best.row_tiles);
  best.by_row_pitch = divisor_of(best.row_pitch);
  best.by_image_pitch = divisor_of(best.image_pitch);
  return best;
}

// Cycles of the whole, up to a factor.
template <class Element>
std::int64_t cost_of(const ConvProblem& problem, int positions, int multiprocessors) {
  if (by_rows(problem)) {
    const Rows g = rows_of<Element>(problem, positions);
    const int parts = parts_of(g, multiprocessors);
    return std::int64_t{blocks_for(parts * g.filter_blocks, multiprocessors)} *
           Element::cycles_of_rows(blocks_for(g.all_rows, parts), positions);
  }
  // Nine taps of 64 filters and 128 bytes are 36 wgmmas, and 72 KB and a box of pixels from L2, at 32 bytes a cycle and
  // multiprocessor.
  constexpr std::int64_t kWgmmas = kTaps * kTaps * kTilePixel / kStepBytes, kFromL2 = 32;
  const Tiles g = tiles_of<Element>(problem, positions);
  const std::int64_t products = ((std::int64_t{g.work_items} - 1) / multiprocessors + 1) * kWgmmas * positions / 2;
  const std::int64_t loads =
      g.work_items * std::int64_t{kTaps * kTaps * kTileTap + g.box * kTilePixel} / (kFromL2 * multiprocessors);
  return products > loads ? products : loads;
}

// The positions that cost the least; of two alike, the larger. @param positions ascending
template <class Element, int Count>
int cheapest(const int (&positions)[Count], const ConvProblem& problem, int multiprocessors) {
  int best = 0;
  const auto cost = [&](int each) { return cost_of<Element>(problem, each, multiprocessors); };
  for (const int each : positions)
    if (has_kernel<Element>(problem, each) && (best == 0 || cost(each) <= cost(best))) best = each;
  return best;
}

unsigned blocks_of(const Tiles& g) {
  const int multiprocessors = device_limits().multiprocessors;
  return static_cast<unsigned>(g.work_items < multiprocessors ? g.work_items : multiprocessors);
}

// A tensor in NHWC, to be moved in boxes whose pixels have `box_channels`.
template <class Element>
TensorMap map_of(const void* tensor, std::uint64_t channels, std::uint64_t width, std::uint64_t height,
                 std::uint64_t batch, unsigned box_channels, unsigned columns, unsigned rows, unsigned images) {
  constexpr unsigned kBytes = Element::kBytes;
  const std::uint64_t pixel = kBytes * channels;
  return make_tensor_map(tensor, {kBytes == 1 ? TensorElement::int8 : TensorElement::fp16,
                                  box_channels * kBytes == 64 ? Swizzle::bytes64 : Swizzle::bytes128,
                                  4,
                                  {{channels, kBytes, box_channels},
                                   {width, pixel, columns},
                                   {height, pixel * width, rows},
                                   {batch, pixel * width * height, images}}});
}

}  // namespace
}  // namespace convladder
