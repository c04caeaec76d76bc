// What the lesson predicts of 33.
#pragma once
#include "chapters/33-winograd-hopper/many_channels.cuh"
#include "chapters/33-winograd-hopper/winograd_hopper.cuh"
#include "common/kernel/tracks/axis.hpp"

namespace convladder {
namespace {

// Columns of the input that the strips load, all together. Two positions are in two strips.
std::int64_t columns_loaded(const Strips& g, int positions) {
  const Axis across{g.w.width, g.w.out_width, kWinogradTaps, g.w.pad_x, g.w.padding};
  std::int64_t columns = g.w.batch * reads_by_tile(across, g.w.out_width);
  for (std::int64_t strip = 1; strip < g.strips; ++strip)
    for (std::int64_t i = strip * positions; i < strip * positions + kWinogradTaps - 1; ++i)
      columns += reads_of_range(across, i % g.pitch - g.w.pad_x, 1);
  return columns;
}

Prediction prediction_of(const Strips& g, int positions) {
  const Winograd& w = g.w;
  const std::int64_t blocks = blocks_of(g), pairs = std::int64_t{g.filter_blocks} * g.strips * w.tiles_down;
  const Axis down{w.height, w.out_height, kWinogradTaps, w.pad_y, w.padding};
  const std::int64_t rows = reads_by_tile(down, kOutputRows * g.pairs);
  const std::int64_t outputs = std::int64_t{w.batch} * w.out_height * w.out_width * w.filters;
  const bool chunks = w.channels % kChunk == 0 && w.filters % kChunk == 0;
  Prediction p;
  p.global_load_bytes =
      2 * (columns_loaded(g, positions) * rows * w.channels * g.filter_blocks + blocks * kFilterHalves);
  p.global_store_bytes = 2 * outputs;
  // Of a pair: four pixels a request, of four transformed rows; 16 positions a request of each of four warps, of two
  // rows of outputs.
  const int pixels = positions + kWinogradTaps - 1, warps = kGroupThreads / 32;
  p.shared_store_requests = pairs * (kSize * blocks_for(pixels, 4) + kOutputRows * warps * blocks_for(positions, 16));
  p.shared_store_conflicts = 0;
  if (chunks && w.batch == 1) p.shared_load_requests = p.shared_load_conflicts = 0;
  p.barriers = 0;
  p.constant_load_requests = 0;
  p.flops = 2 * kSize * kWinogradTaps * std::int64_t{w.tiles_down} * w.batch * w.out_width * w.channels * w.filters;
  return p;
}

// Pixels of the input that the four rows of a pair, counted over all images, have in a column.
std::int64_t rows_loaded(const Line& g, std::int64_t line) {
  const Winograd& w = g.w;
  std::int64_t rows = 0;
  for (int row = 0; row < kSize; ++row) {
    const std::int64_t y = line % w.tiles_down * kOutputRows + row - w.pad_y;
    rows += line / w.tiles_down < w.batch && y >= 0 && y < w.height;
  }
  return rows;
}

// Pixels that all tiles load: those of the whole line, and at the end of each tile those of the positions that the next
// one has, too.
std::int64_t pixels_loaded(const Line& g, int positions, int positions_loaded) {
  const Winograd& w = g.w;
  std::int64_t pixels = 0;
  for (int pair = 0; pair < w.tiles_down; ++pair) pixels += std::int64_t{w.batch} * w.width * rows_loaded(g, pair);
  for (std::int64_t tile = 0; tile < g.tiles; ++tile)
    for (int i = positions; i < positions_loaded; ++i) {
      const std::int64_t position = tile * positions + i, x = position % g.pitch - w.pad_x;
      if (x >= 0 && x < w.width) pixels += rows_loaded(g, position / g.pitch);
    }
  return pixels;
}

template <int N>
Prediction prediction_of_line(const Line& g, int blocks) {
  constexpr int kLoaded = LineMemory<N>::kPieces * LineMemory<N>::kPiece;
  const Winograd& w = g.w;
  const std::int64_t works = g.works, parts = works * g.parts;
  Prediction p;
  p.global_load_bytes = 2 * (pixels_loaded(g, N, kLoaded) * w.channels * (works / g.tiles) + parts * kPartHalves);
  p.global_store_bytes = std::int64_t{2} * w.batch * w.out_height * w.out_width * w.filters;
  // Of a part: eight positions a request, of four transformed rows. Of a work item: 16 positions a request of each of
  // eight warps, of two rows of outputs.
  p.shared_store_requests =
      parts * kSize * (kLoaded / 8) + works * kOutputRows * (kConsumers / 32) * (N / kStagedPositions);
  p.shared_store_conflicts = 0;
  if (w.filters % kChunk == 0) p.shared_load_conflicts = 0;
  p.barriers = blocks;
  p.constant_load_requests = 0;
  p.flops = std::int64_t{2} * kSize * kWinogradTaps * w.tiles_down * w.batch * w.out_width * w.channels * w.filters;
  return p;
}

}  // namespace
}  // namespace convladder
