// What the lesson predicts of 31.
#pragma once
#include "chapters/31-implicit-gemm/implicit_gemm.cuh"

namespace convladder {
namespace {

// Pixels that the blocks of some filters copy where three taps share them: a part of each row of the windows of
// each row of outputs of a block.
std::int64_t pixels_of_rows(const Gemm& g, const Tile& tile) {
  const Lowering& l = g.l;
  std::int64_t pixels = 0;
  for (std::int64_t o = 0, end = 0; o < g.outputs; o = end) {
    const std::int64_t row = o / l.out_width, end_of_row = (row + 1) * l.out_width;
    end = (o / tile.outputs + 1) * tile.outputs;
    if (end > end_of_row) end = end_of_row;
    const std::int64_t columns =
        reads_of_range(horizontal(l), o % l.out_width - l.pad_x, end - o + (kTaps - 1) * l.dilation_x);
    const std::int64_t top = row % l.out_height * l.stride_y - l.pad_y;
    for (int r = 0; r < l.rows; ++r) pixels += columns * reads_of_range(vertical(l), top + r * l.dilation_y, 1);
  }
  return pixels;
}

// Passes too many for the outputs of a block of channels and a tap: ldmatrix reads the slots of eight outputs, and
// every eighth slot is in the same banks.
std::int64_t conflicts_of_rows(const Gemm& g, const Tile& tile) {
  const int pitch = static_cast<int>(g.by_pitch.divisor), width = g.l.out_width;
  std::int64_t conflicts = 0;
  for (std::int64_t o = 0; o < std::int64_t{blocks_for(g.outputs, tile.outputs)} * tile.outputs; o += 8) {
    int count[8] = {}, most = 0;
    for (std::int64_t i = o; i < o + 8; ++i) {
      const int now = ++count[(i / width * pitch + i % width) % 8];
      if (now > most) most = now;
    }
    conflicts += most - 1;
  }
  return conflicts * (kDepth / kChunk) * tile.warps_across;
}

// With so many taps a step.
Prediction prediction_of(const ConvProblem& problem, const Gemm& g, const Tile& tile, int taps) {
  const bool together = taps != 1;
  const std::int64_t blocks = blocks_of(g, tile.outputs), block_taps = blocks * depth_of(g);
  const std::int64_t pixels = together ? pixels_of_rows(g, tile)
                                       : problem.n * reads_by_output(vertical(g.l)) * reads_by_output(horizontal(g.l));
  // Requests of the epilogue, that load the outputs from shared memory and store them, 32 filters of eight outputs or
  // of one.
  const std::int64_t epilogue =
      std::int64_t{blocks_for(g.outputs, problem.k % kChunk == 0 ? 8 : 1)} * blocks_for(g.l.filters, kDepth);
  // Of slices each sum is stored, two by a lane, and those of outputs are loaded, by a thread for each output.
  const bool split = g.slices > 1;
  const std::int64_t sums = split ? sums_of_slices(g, tile.outputs) : 0, outputs = problem.output_size();
  const int rows = (together ? tile.slots : tile.outputs) + taps * tile.filters;
  Prediction p;
  p.global_load_bytes = 2 * (pixels * problem.c * g.filter_blocks + block_taps * tile.filters * kDepth) +
                        (split ? 4 * outputs * g.slices : 0);
  p.global_store_bytes = 2 * outputs + 4 * sums;
  p.global_store_requests = split ? sums / 64 + (outputs - 1) / 32 + 1 : epilogue;
  p.shared_load_requests = block_taps * 2 * tile.shared_loads + (split ? 0 : epilogue);
  p.shared_store_requests =
      (block_taps / taps * rows * kDepth / kChunk + (split ? 0 : blocks * tile.outputs * tile.filters / 2)) / 32;
  p.shared_load_conflicts = together ? conflicts_of_rows(g, tile) * depth_of(g) * g.filter_blocks : 0;
  p.shared_store_conflicts = 0;
  p.constant_load_requests = 0;
  p.atomic_requests = 0;
  p.barriers = block_taps / taps + blocks * g.slices;
  p.flops = problem.flops();
  return p;
}

}  // namespace
}  // namespace convladder
