// What a launch of stage 25 reads, writes and computes: the formulas of the lesson.
#pragma once
#include "chapters/25-winograd-fused/winograd_fused.cuh"

namespace convladder {
namespace {

Prediction prediction(const ConvProblem& problem, int buffers, bool copy, int mapping) {
  const Winograd w = winograd_of(problem, 2);
  const std::int64_t steps = blocks_for(w.channels, kDepth), filter_blocks = blocks_for(w.filters, kFilters);
  const std::int64_t warps = kThreads / 32;
  Prediction p;
  p.shared_load_requests = blocks(w, mapping) * warps * (steps * 2 * kDepth * 4 + 2 * 4 * kPositions);
  p.constant_load_requests = 0;
  p.barriers = blocks(w, mapping) * (steps * (buffers == 1 ? 2 : 1) + 4);
  p.flops = 2 * kPositions * std::int64_t{w.tiles} * w.channels * w.filters;
  p.global_store_bytes = problem.output_size() * 4;
  if (copy) {
    p.global_store_bytes += padded_rows(w) * padded_width(w) * 4;
  } else if (tiles_of_group(w, mapping) % kTiles == 0) {
    // No block is left with tiles that are loaded in vain: each thread's last tile.
    p.global_load_bytes =
        (tile_reads(w) * filter_blocks + w.tiles / kTiles * filter_blocks * steps * kFilterBuffer) * 4;
  }
  return p;
}

}  // namespace
}  // namespace convladder
