// The counters that the lesson derives.
#pragma once
#include "chapters/36-split-fp32/tiles.hpp"

namespace convladder {
namespace {

// Rows of all tiles' boxes that lie in the image, or columns: `count` tiles with so many outputs each, whose boxes
// begin `pad - phase` pixels before their first output's.
inline std::int64_t lines_loaded(int count, int outputs, int box, int stride, int pad, int phase, int size) {
  std::int64_t lines = 0;
  for (int tile = 0; tile < count; ++tile) {
    for (int line = 0; line < box; ++line) {
      const std::int64_t at = (std::int64_t{tile} * outputs + line) * stride - pad + phase;
      lines += at >= 0 && at < size;
    }
  }
  return lines;
}

// Of pairs of rows of outputs the four rows of an image that each needs are phases, at every second row.
inline Prediction prediction_of(const ConvProblem& problem, const Tiles& g, int positions, int blocks) {
  const Lowering& l = g.of;
  const int step_y = g.cut == Cut::row_pairs ? 2 : l.stride_y;
  std::int64_t pixels = 0;
  for (int i = 0; i < g.phases; ++i)
    pixels +=
        l.batch *
        lines_loaded(g.row_tiles, g.tile_rows, g.image_pitch / g.row_pitch, step_y, l.pad_y, g.phase_y[i], l.height) *
        lines_loaded(g.strips, g.tile_columns, g.row_pitch, l.stride_x, l.pad_x, g.phase_x[i], l.width);
  // What decides whether a pixel fits is three floats, which each thread of seven warps reads. At a tile's end each
  // lane of a consumer's four warps reads whether two filters are finite, and the two factors of its own two filters.
  constexpr int kScale = 7 * 32 * 12, kFactors = 4 * 32 * (8 + 16);
  const int streams = g.cut == Cut::own ? 1 : 2;  // of filters
  // The sums of a tile's slices are stored and loaded, at all positions; each takes a ticket, and the last stores a 0.
  const std::int64_t tiles = std::int64_t{g.tiles} * g.filter_blocks, slices = g.slices > 1 ? tiles * g.slices : 0;
  const std::int64_t sums = slices * positions * kBlock * 4;
  Prediction p;
  p.global_load_bytes = pixels * l.channels * 4 * (g.filter_blocks / streams) +
                        std::int64_t{g.pairs} * 2 * kPart * streams * g.channel_blocks * g.taps + tiles * kFactors +
                        std::int64_t{blocks} * kScale + sums;
  p.global_store_bytes = problem.output_size() * 4 + sums + (slices > 0 ? tiles * 4 : 0);
  p.barriers = blocks;
  p.constant_load_requests = 0;
  p.atomic_requests = slices;
  p.flops = problem.flops();
  return p;
}

}  // namespace
}  // namespace convladder
