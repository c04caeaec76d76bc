// The counters that the lessons of 32 and 34 derive, for a problem and so many positions.
#pragma once
#include "chapters/32-implicit-gemm-hopper/multiply_taps.cuh"

namespace convladder {
namespace {

// How many of `count` columns or rows, from `first` on, lie in [0, size).
std::int64_t count_inside(std::int64_t first, std::int64_t count, std::int64_t size) {
  const std::int64_t begin = first > 0 ? first : 0, end = first + count < size ? first + count : size;
  return begin < end ? end - begin : 0;
}

// Pixels that the blocks of `rows` load, those outside of the images left out.
std::int64_t pixels_loaded(const Rows& g, int positions, int parts) {
  std::int64_t pixels = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t end = (part + 1) * g.all_rows / parts;
    for (std::int64_t row = part * g.all_rows / parts, y, next; row < end; row = next) {
      y = row % g.out_height;
      next = row - y + g.out_height < end ? row - y + g.out_height : end;
      const std::int64_t x = row / g.out_height % g.strips * positions;
      pixels += count_inside(y - g.pad_y, next - row + kTaps - 1, g.height) *
                count_inside(x - g.pad_x, positions + kTaps - 1, g.width);
    }
  }
  return pixels;
}

// How many of the box's `lines` rows or columns, every step-th from `first` on, lie in [0, size).
inline std::int64_t lines_inside(std::int64_t first, std::int64_t lines, std::int64_t step, std::int64_t size) {
  std::int64_t count = 0;
  for (std::int64_t line = 0; line < lines; ++line) count += first + line * step >= 0 && first + line * step < size;
  return count;
}

// Pixels that the tiles load for one block of filters, or for two that share tiles.
std::int64_t pixels_loaded(const Tiles& g) {
  const TapOrder order = tap_order(g);
  std::int64_t pixels = 0;
  for (int phase = 0; phase < g.phases; ++phase) {
    std::int64_t rows = 0, columns = 0;
    for (std::int64_t i = 0; i < g.row_tiles; ++i)
      rows += lines_inside(i * g.tile_rows * g.stride_y - g.pad_y + order.phase_y[phase], g.image_pitch / g.row_pitch,
                           g.stride_y, g.height);
    for (std::int64_t i = 0; i < g.strips; ++i)
      columns += lines_inside(i * g.tile_columns * g.stride_x - g.pad_x + order.phase_x[phase], g.row_pitch, g.stride_x,
                              g.width);
    pixels += rows * columns * g.batch;
  }
  return pixels;
}

// Pixels of the columns for one block of filters, or for two that share tiles.
std::int64_t pixels_loaded(const Lines& g) {
  std::int64_t pixels = 0;
  for (int tap = 0; tap < g.taps; ++tap)
    pixels += lines_inside(g.offsets[tap].y - g.pad_y, g.out_height, g.stride_y, g.height) *
              lines_inside(g.offsets[tap].x - g.pad_x, g.out_width, g.stride_x, g.width) * g.batch;
  return pixels;
}

template <class Element>
Prediction prediction_of(const ConvProblem& problem, const Choice& choice) {
  Prediction p;
  const int positions = choice.positions;
  constexpr int kBytes = Element::kBytes, kConsumerScales = 128 * Element::kScaleBytes;
  const InputLayout layout = layout_of<Element>(problem);
  const int pixel = layout.columns * layout.channels * kBytes;
  if (by_rows(problem)) {
    const Rows g = rows_of<Element>(problem, positions);
    const int parts = parts_of(g, device_limits().multiprocessors);
    const int stores = Element::row_stores(positions);
    p.global_load_bytes =
        (pixels_loaded(g, positions, parts) * pixel +
         std::int64_t{parts} * (kTaps * kTaps * kFilters * kRowChannels * kBytes + 2 * kConsumerScales)) *
        g.filter_blocks;
    p.shared_store_requests = std::int64_t{g.all_rows} * g.filter_blocks * kGroupWarps * stores *
                              blocks_for(positions / stores, kMatrixPositions<Element>);
    if (problem.k % kChunk<Element> == 0) p.shared_load_requests = 0;
    p.barriers = std::int64_t{parts} * g.filter_blocks;
  } else if (choice.columns) {
    const Lines g = lines_of<Element>(problem, choice);
    const std::int64_t streams = choice.shared ? 2 : 1;
    const std::int64_t products = std::int64_t{g.work_items} / g.slices * streams;  // of a tile and 64 filters
    const int part = g.slices > 1 ? kSliceStep : line_part<Element>(positions);
    p.global_load_bytes = pixels_loaded(g) * pixel * (g.filter_blocks / streams) +
                          products * (std::int64_t{g.passes} * kTileTap + kConsumerScales * g.slices);
    p.shared_store_requests = products * kGroupWarps * (positions / part) * blocks_for(part, kMatrixPositions<Element>);
    if (g.slices > 1) p.shared_store_requests += products * g.slices * kGroupWarps * (positions / 8);  // four a thread
    p.barriers = blocks_of(g);
  } else {
    const Tiles g = tiles_of<Element>(problem, choice);
    const int streams = choice.shared ? 2 : 1;
    const std::int64_t products = std::int64_t{g.work_items} * streams;  // of a tile and 64 filters
    p.global_load_bytes = pixels_loaded(g) * pixel * (g.filter_blocks / streams) +
                          products * (std::int64_t{g.channel_blocks} * g.taps * kTileTap + kConsumerScales);
    const int zeros = g.pixel_slots * (g.slot - g.box) * (kTilePixel / 16), places = places_for(positions);
    p.shared_store_requests = products * kGroupWarps * blocks_for(positions, kMatrixPositions<Element>) +
                              std::int64_t{persistent_blocks(g.work_items)} * ((zeros + 31) / 32 + places / 32);
    p.barriers = 0;
  }
  const std::int64_t wide = wide_size<Element>(problem);
  if (wide > 0)
    p.global_load_bytes +=
        problem.n * problem.h * count_inside(-layout.left, layout.width, problem.w) * problem.c * kBytes;
  p.global_store_bytes = (problem.output_size() + wide) * kBytes;
  p.shared_load_conflicts = p.shared_store_conflicts = p.constant_load_requests = 0;
  p.atomic_requests = 0;
  p.flops = problem.flops();
  if (problem.has_residual()) {
    p.global_load_bytes += problem.output_size() * kBytes;
    const bool by_tma = choice.columns && choice.slices == 1;        // else copies are stores, too
    p.shared_load_requests = by_tma ? p.shared_store_requests : -1;  // a load where outputs will be stored
    if (!by_tma) p.shared_store_requests = -1;
  }
  return p;
}

}  // namespace
}  // namespace convladder
