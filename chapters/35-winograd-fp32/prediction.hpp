// What the lesson predicts of 35.
#pragma once
#include "chapters/35-winograd-fp32/winograd_fp32.cuh"

namespace convladder {
namespace {

Prediction prediction_of(const ConvProblem& problem, const Plan& p) {
  const std::int64_t steps = p.channels / kDepth, block_steps = blocks_of(p) * steps;
  const std::int64_t sums_read = std::int64_t{positions_of(p)} * p.w.tiles * p.w.filters;
  Prediction result;
  result.global_load_bytes = 4 * (tile_reads(p.w) + block_steps * (kTiles + kFilters) * kDepth + sums_read);
  result.global_store_bytes = 4 * (input_elements(p) + sum_elements(p) + problem.output_size());
  result.shared_load_requests = block_steps * kDepth * kWarps * 4;
  result.shared_store_requests = block_steps * (kTiles + kFilters) * kDepth / 4 / 32;
  result.shared_load_conflicts = result.shared_store_conflicts = 0;
  result.constant_load_requests = 0;
  result.atomic_requests = 0;
  result.barriers = block_steps;
  result.flops = 2 * sums_read * p.w.channels;
  return result;
}

}  // namespace
}  // namespace convladder
