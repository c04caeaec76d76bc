// What a launch of stage 28 reads, writes and computes: the formulas of the lesson.
#pragma once
#include "chapters/28-winograd-pkf-shmem/winograd_pkf_shmem.cuh"

namespace convladder {
namespace {

Prediction prediction(const ConvProblem& problem, int tbm, int fused) {
  const Winograd w = winograd_of(problem, kTileOutputs<Form>);
  const std::int64_t tile_parts = padded_tiles(w) / tbm, filter_parts = blocks_for(padded_filters(w), kSums / tbm);
  const std::int64_t steps = blocks_for(channel_blocks(w), kStepBlocks), pairs = (w.filters + 1) / 2;
  const std::int64_t of_filters = 2 * filter_elements<Form>(w) * tile_parts;
  Prediction p;
  if (fused == kInput) {
    p.global_load_bytes =
        2 * tile_reads(w) * filter_parts + of_filters + kPositions<Form> * std::int64_t{w.tiles} * pairs * 4;
    p.global_store_bytes = 2 * (product_elements<Form>(w) + problem.output_size());
    p.barriers = tile_parts * filter_parts * steps * 2;
  } else {
    p.global_load_bytes = 2 * tile_reads(w) + 2 * kGroups * input_elements<Form>(w) * filter_parts + of_filters;
    p.global_store_bytes = 2 * (input_elements<Form>(w) + problem.output_size());
    p.barriers = tile_parts * filter_parts;
  }
  p.constant_load_requests = 0;
  p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
  return p;
}

}  // namespace
}  // namespace convladder
