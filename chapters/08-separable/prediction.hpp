// What lesson 08 predicts of both passes in one kernel.
#pragma once
#include "chapters/08-separable/fused.cuh"
#include "common/stage/stage.hpp"

namespace convladder {
namespace {

// Positions of [first, first + count) that are inside [0, size).
inline std::int64_t inside_of(std::int64_t first, std::int64_t count, std::int64_t size) {
  const std::int64_t from = first > 0 ? first : 0, to = first + count < size ? first + count : size;
  return to > from ? to - from : 0;
}

// Pixels that a segment loads: its rows with their halo; where 16 bytes are copied at a time, whole vectors of them.
inline std::int64_t loads_of(const Image& image, const Segment& s) {
  const std::int64_t rows = s.height + image.rows - 1, columns = s.width + image.columns - 1;
  if (!reads_in_place(image, s)) return rows * columns;
  const bool vectors = copies_vectors(image, s);
  const std::int64_t left = s.x - image.pad_x - (vectors ? shift_of(image.columns) : 0);
  return inside_of(s.y - image.pad_y, rows, image.height) *
         inside_of(left, vectors ? pitch_of(image.columns) : columns, image.width);
}

// One kernel: the input by segments of strips; the row sums between two segments are made twice.
inline Prediction prediction_of_both(const ConvProblem& problem, const Image& image, int segment_rows) {
  std::int64_t loads = 0, segments = 0;
  for (int y = 0; y < image.out_height; y += segment_rows, ++segments) {
    const int height = segment_rows < image.out_height - y ? segment_rows : image.out_height - y;
    for (int x = 0; x < image.out_width; x += kStrip)
      loads += loads_of(image, {y, x, height, kStrip < image.out_width - x ? kStrip : image.out_width - x});
  }
  Prediction p;
  p.global_load_bytes = loads * image.batch * 4;
  p.global_store_bytes = problem.output_size() * 4;
  p.shared_load_conflicts = p.shared_store_conflicts = 0;
  p.barriers = 0;
  p.flops = 2 * ((image.out_height + segments * (image.rows - 1)) * image.out_width * image.batch * problem.s +
                 problem.output_size() * problem.r);
  return p;
}

}  // namespace
}  // namespace convladder
