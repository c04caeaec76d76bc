// What the lesson predicts of 37.
#pragma once
#include "chapters/37-winograd-split/winograd_split.cuh"

namespace convladder {
namespace {

// @param block tiles of a block of the product
inline Prediction prediction_of(const ConvProblem& problem, const Plan& p, int block) {
  const std::int64_t works = works_of(p, block);
  const std::int64_t loads = works * p.channel_blocks, sums_read = std::int64_t{p.positions} * p.w.tiles * p.w.filters;
  // A lane of a consumer reads the two factors of two filters.
  constexpr int kFactors = kConsumers * kGroup * 2 * 8;
  Prediction result;
  result.global_load_bytes = 4 * tile_reads(p.w) + loads * (kConsumers * 2 * kPart + block * (2 * kRow + 4)) +
                             works * kFactors + 4 * sums_read;
  result.global_store_bytes = 4 * std::int64_t{p.tiles} * p.channel_blocks * (std::int64_t{p.positions} * kBlock + 1) +
                              4 * sum_elements(p) + 4 * problem.output_size();
  result.constant_load_requests = result.atomic_requests = 0;
  result.flops = 2 * sums_read * p.w.channels;
  return result;
}

}  // namespace
}  // namespace convladder
