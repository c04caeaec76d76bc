// What the lesson predicts of 15, for any schedule.
#pragma once
#include "chapters/15-depthwise-tuned/schedule.cuh"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

// Reads along one dimension of all strips of `outputs` outputs that ask for each tap of each output.
std::int64_t reads_of_taps(Axis axis, int outputs) {
  axis.out_size = (axis.out_size - 1) / outputs * outputs + outputs;  // the last strip may reach past the end
  return reads_by_output(axis);
}

Prediction prediction_of(const Depthwise& d, const Schedule& s) {
  const Axis down = readable(vertical(d)), across = readable(horizontal(d));
  const std::int64_t tiles = tiles_of(d, s), taps = filter_plane(d);
  const std::int64_t strips = static_cast<std::int64_t>(ceil_div(d.out_height, s.thread_rows)) *
                              ceil_div(d.out_width, s.thread_columns) * planes(d);
  std::int64_t pixels = 0;  // of one plane
  if (s.input == kInputShared) {
    pixels = reads_of_tiles(down, tile_rows(d, s), 0, staged_rows(d, s)) *
             reads_of_tiles(across, tile_columns(d, s), lead(d), staged_columns(d, s));
  } else {
    const std::int64_t rows = s.input == kInputRegisters && s.order == kInputRows
                                  ? reads_of_tiles(down, s.thread_rows, 0, window_rows(d, s))
                                  : reads_of_taps(down, s.thread_rows);
    const bool aligned = s.thread_columns * d.stride_x % kVector == 0;
    const int skipped = aligned ? 0 : lead(d);  // a window's first columns, where it is not read in vectors
    pixels = rows * (s.input == kInputCache
                         ? reads_of_taps(across, s.thread_columns)
                         : reads_of_tiles(across, s.thread_columns, lead(d) - skipped, window_columns(d, s) - skipped));
  }
  const std::int64_t weights = s.filter == kFilterShared  ? tiles * s.block_planes * taps
                               : s.filter == kFilterCache ? strips * s.thread_rows * taps
                                                          : 0;
  Prediction p;
  p.global_load_bytes = (pixels * planes(d) + weights) * 4;
  p.global_store_bytes = planes(d) * output_plane(d) * 4;
  p.barriers = s.input == kInputShared || s.filter == kFilterShared ? tiles : 0;
  p.flops = 2 * planes(d) * output_plane(d) * taps;
  return p;
}

}  // namespace
}  // namespace convladder
