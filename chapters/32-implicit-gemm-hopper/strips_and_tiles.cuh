// How stages 32 and 34 cut a problem: strips for `rows`, up to 64 channels, and tiles for `tiles`, more channels. An
// element has `Bytes`: 2 for halves, 1 for int8.
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
constexpr int kChunkBytes = 16;                  // what the copy engine and the swizzle move
constexpr int kFilters = 64;                     // of a warpgroup
constexpr int kConsumers = 256;                  // threads of two warpgroups
constexpr int kConsumerWarps = kConsumers / 32;  // whose arrivals empty a slot
constexpr int kRowThreads = kConsumers + 32;
constexpr int kTileThreads = kConsumers + 128;  // registers change hands between warpgroups

constexpr int kRowChannels = 64;                 // of a pixel in shared memory, at most, for `rows`
constexpr int kTilePixel = 128;                  // bytes of one for `tiles`: so many channels at a time
constexpr int kTileTap = kFilters * kTilePixel;  // bytes of a tap of a warpgroup's filters
constexpr int kGroupWarps = kConsumerWarps / 2;  // whose arrivals empty a slot there
constexpr int kStagedBytes = 512;                // that a warp rounds and stores at a time

// What shared memory holds for tiles of so many positions: rings of taps and pixels, and two buffers a warp for
// outputs. Products of a small tile are soon done, and more must be on its way.
struct TileMemory {
  int filter_slots, pixel_slots, fixed_bytes;
  int most_slot;  // positions of a slot of the pixels, at most

  __host__ __device__ constexpr explicit TileMemory(int positions)
      : filter_slots(positions > 64 ? 8 : 16),
        pixel_slots(positions > 128 ? 2 : 3),
        fixed_bytes(filter_slots * kTileTap + kConsumerWarps * 2 * kStagedBytes +
                    2 * (filter_slots + pixel_slots) * static_cast<int>(sizeof(Mbarrier))),
        most_slot((227 * 1024 - fixed_bytes) / pixel_slots / kTilePixel / 8 * 8) {}
};

// The problem as `rows` takes it. The rows of all strips of all images are numbered through, and divided evenly.
struct Rows {
  int steps;         // of kStepBytes
  int rows, strips;  // of all images; of one
  Divisor by_height, by_strips;
  int pad_y, pad_x;
  int out_height, out_width;
  int filters, filter_blocks;
};

// The problem as `tiles` takes it. A tile's outputs are `images` x `tile_rows` x `tile_columns`. Output (i, y, x) of it
// is at position i * image_pitch + y * row_pitch + x, and its tap (r, s) reads the pixel at this position plus
// r * row_pitch + s.
struct Tiles {
  int channels, channel_blocks;  // of kTilePixel bytes
  int batch, out_height, out_width;
  int filters, filter_blocks;  // of 64
  int pad_y, pad_x;
  int images, tile_rows, tile_columns;
  int row_pitch, image_pitch;  // positions
  int box;                     // positions that the copy engine fills
  int slot;                    // positions of a slot of the ring; a multiple of 8
  int strips, row_tiles;       // of an image
  int works;                   // tiles times filter blocks
  Divisor by_filter_blocks, by_strips, by_row_tiles, by_row_pitch, by_image_pitch;
};

constexpr int kMostBox = 256;  // along one dimension

bool by_rows(const ConvProblem& problem) { return problem.c <= kRowChannels; }

// Channels whose pixels are whole chunks.
template <int Bytes>
int wide_channels(const ConvProblem& problem) {
  constexpr int kChunk = kChunkBytes / Bytes;
  return blocks_for(static_cast<int>(problem.c), kChunk) * kChunk;
}
template <int Bytes>
bool widens(const ConvProblem& problem) {
  return wide_channels<Bytes>(problem) != problem.c;
}
template <int Bytes>
std::int64_t wide_size(const ConvProblem& problem) {
  return problem.n * problem.h * problem.w * wide_channels<Bytes>(problem);
}

template <int Bytes>
Rows rows_of(const ConvProblem& problem, int positions) {
  const Lowering l = lowering_of(problem);
  const int strips = blocks_for(l.out_width, positions);
  return {blocks_for(l.channels * Bytes, kStepBytes),
          l.batch * strips * l.out_height,
          strips,
          divisor_of(l.out_height),
          divisor_of(strips),
          l.pad_y,
          l.pad_x,
          l.out_height,
          l.out_width,
          l.filters,
          blocks_for(l.filters, kFilters)};
}

// Blocks that share the rows, for each block of filters: all blocks together as many as there are multiprocessors.
int parts_of(const Rows& g, int multiprocessors) {
  const int parts = multiprocessors / g.filter_blocks;
  return parts < 1 ? 1 : parts < g.rows ? parts : g.rows;
}

// Tiles of outputs so many columns wide, or fewer where the image is cut evenly; no images where they do not fit.
Tiles tiles_of(const Lowering& l, int positions, int columns) {
  Tiles g{};
  g.strips = blocks_for(l.out_width, columns);
  g.tile_columns = blocks_for(l.out_width, g.strips);
  // The zeros on the right of a row are those on the left of the next.
  g.row_pitch = g.tile_columns + (g.strips == 1 && l.pad_x > 0 ? 1 : kTaps - 1);
  const int fitting = (positions - g.tile_columns) / g.row_pitch + 1;
  g.row_tiles = blocks_for(l.out_height, fitting);
  g.tile_rows = blocks_for(l.out_height, g.row_tiles);
  const bool whole = g.row_tiles == 1 && g.strips == 1;
  const int box_rows = g.tile_rows + (whole && l.pad_y > 0 ? 1 : kTaps - 1);  // likewise, above the next image
  g.image_pitch = box_rows * g.row_pitch;
  const int of_image = (g.tile_rows - 1) * g.row_pitch + g.tile_columns;
  const int images = whole ? (positions - of_image) / g.image_pitch + 1 : 1;
  g.images = images < l.batch ? images : l.batch;
  g.box = g.images * g.image_pitch;
  const int reached = positions + (kTaps - 1) * (g.row_pitch + 1);
  g.slot = blocks_for(g.box > reached ? g.box : reached, 8) * 8;
  if (g.slot > TileMemory(positions).most_slot || g.row_pitch > kMostBox || box_rows > kMostBox || g.images > kMostBox)
    g.images = 0;
  return g;
}

std::int64_t count_of(const Tiles& g, const Lowering& l) {
  return std::int64_t{blocks_for(l.batch, g.images)} * g.row_tiles * g.strips;
}

// The fewest tiles; of two ways to make them, wider ones.
template <int Bytes>
Tiles tiles_of(const ConvProblem& problem, int positions) {
  const Lowering l = lowering_of(problem);
  Tiles best{};
  for (int columns = l.out_width < positions ? l.out_width : positions; columns > 0; --columns) {
    const Tiles tiles = tiles_of(l, positions, columns);
    if (tiles.images > 0 && (best.images == 0 || count_of(tiles, l) < count_of(best, l))) best = tiles;
  }
  best.channels = wide_channels<Bytes>(problem);
  best.channel_blocks = blocks_for(l.channels * Bytes, kTilePixel);
  best.batch = l.batch;
  best.out_height = l.out_height;
  best.out_width = l.out_width;
  best.filters = l.filters;
  best.filter_blocks = blocks_for(l.filters, kFilters);
  best.pad_y = l.pad_y;
  best.pad_x = l.pad_x;
  best.works = static_cast<int>(count_of(best, l)) * best.filter_blocks;
  best.by_filter_blocks = divisor_of(best.filter_blocks);
  best.by_strips = divisor_of(best.strips);
  best.by_row_tiles = divisor_of(best.row_tiles);
  best.by_row_pitch = divisor_of(best.row_pitch);
  best.by_image_pitch = divisor_of(best.image_pitch);
  return best;
}

// What a wgmma of N pixels takes, in cycles: N / 2 for the products, or what passes shared memory at 128 bytes a cycle,
// 64 filters and N pixels of 32 bytes, and a 36th of a row's pixels and outputs.
int cycles_of_row(int positions) {
  const int products = positions / 2, shared = 16 + positions / 4 + positions / 18;
  return products > shared ? products : shared;
}

// Of the whole, up to a factor.
template <int Bytes>
std::int64_t cost_of(const ConvProblem& problem, int positions, int multiprocessors) {
  if (by_rows(problem)) {
    const Rows g = rows_of<Bytes>(problem, positions);
    const int parts = parts_of(g, multiprocessors);
    return std::int64_t{blocks_for(parts * g.filter_blocks, multiprocessors)} * blocks_for(g.rows, parts) *
           cycles_of_row(positions);
  }
  // Nine taps of 64 filters and 128 bytes are 36 wgmmas, and 72 KB and a box of pixels from L2, at 32 bytes a cycle and
  // multiprocessor.
  constexpr std::int64_t kWgmmas = kTaps * kTaps * kTilePixel / kStepBytes, kFromL2 = 32;
  const Tiles g = tiles_of<Bytes>(problem, positions);
  const std::int64_t products = ((std::int64_t{g.works} - 1) / multiprocessors + 1) * kWgmmas * positions / 2;
  const std::int64_t loads =
      g.works * std::int64_t{kTaps * kTaps * kTileTap + g.box * kTilePixel} / (kFromL2 * multiprocessors);
  return products > loads ? products : loads;
}

// How many of `count` places, from `first` on, lie in [0, size).
std::int64_t inside(std::int64_t first, std::int64_t count, std::int64_t size) {
  const std::int64_t begin = first > 0 ? first : 0, end = first + count < size ? first + count : size;
  return begin < end ? end - begin : 0;
}

// Pixels that the blocks of `rows` load, those outside of the images left out.
std::int64_t pixels_loaded(const Lowering& l, const Rows& g, int positions, int parts) {
  std::int64_t pixels = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t end = (part + 1) * g.rows / parts;
    for (std::int64_t row = part * g.rows / parts, y, next; row < end; row = next) {
      y = row % g.out_height;
      next = row - y + g.out_height < end ? row - y + g.out_height : end;
      const std::int64_t x = row / g.out_height % g.strips * positions;
      pixels +=
          inside(y - l.pad_y, next - row + kTaps - 1, l.height) * inside(x - l.pad_x, positions + kTaps - 1, l.width);
    }
  }
  return pixels;
}

// The same of the tiles, for one block of filters.
std::int64_t pixels_loaded(const Lowering& l, const Tiles& g) {
  std::int64_t rows = 0, columns = 0;
  for (int i = 0; i < g.row_tiles; ++i)
    rows += inside(i * g.tile_rows - l.pad_y, g.image_pitch / g.row_pitch, l.height);
  for (int i = 0; i < g.strips; ++i) columns += inside(i * g.tile_columns - l.pad_x, g.row_pitch, l.width);
  return rows * columns * l.batch;
}

unsigned blocks_of(const Tiles& g) {
  const int multiprocessors = device_limits().multiprocessors;
  return static_cast<unsigned>(g.works < multiprocessors ? g.works : multiprocessors);
}

// A tensor in NHWC, to be moved in boxes whose pixels have `box_channels`.
template <int Bytes>
TensorMap map_of(const void* tensor, std::int64_t channels, std::int64_t width, std::int64_t height, std::int64_t batch,
                 int box_channels, int columns, int rows, int images) {
  const auto size = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const auto box = [](int value) { return static_cast<unsigned>(value); };
  const std::int64_t pixel = Bytes * channels;
  return make_tensor_map(tensor, {Bytes == 1 ? TensorElement::int8 : TensorElement::fp16,
                                  box_channels * Bytes == 64 ? Swizzle::bytes64 : Swizzle::bytes128,
                                  4,
                                  {{size(channels), Bytes, box(box_channels)},
                                   {size(width), size(pixel), box(columns)},
                                   {size(height), size(pixel * width), box(rows)},
                                   {size(batch), size(pixel * width * height), box(images)}}});
}

}  // namespace
}  // namespace convladder
