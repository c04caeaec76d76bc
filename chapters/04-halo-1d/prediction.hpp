// What lesson 04 predicts of the kernel for long filters.
#pragma once
#include "chapters/04-halo-1d/long_filter.cuh"
#include "common/stage/stage.hpp"

namespace convladder {
namespace {

// A thread makes 8 reads of 16 bytes for 16 taps, and fewer for the rest.
inline Prediction prediction_of_long(const ConvProblem& problem, const Signal& s) {
  const std::int64_t blocks = static_cast<std::int64_t>((s.out_length + kLongTile - 1) / kLongTile) * s.batch;
  const std::int64_t warps = blocks * (kLongThreads / 32);
  const int rest = s.taps % kLongEach;
  Prediction p;
  p.global_load_bytes = reads_by_tile(s, kLongTile) * 4;
  p.global_store_bytes = problem.output_size() * 4;
  p.shared_load_requests = warps * (s.taps / kLongEach * vectors_for(kLongEach) + (rest > 0 ? vectors_for(rest) : 0));
  p.shared_load_conflicts = 0;
  p.constant_load_requests = warps * s.taps;
  p.barriers = blocks;
  p.flops = problem.flops();
  return p;
}

}  // namespace
}  // namespace convladder
