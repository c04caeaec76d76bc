// What a launch of stage 28 reads, writes and computes: the formulas of the lesson.
#pragma once
#include "chapters/26-winograd-tensor-core/design_space.hpp"
#include "chapters/28-winograd-pkf-shmem/winograd_pkf_shmem.cuh"

namespace convladder {
namespace {

// Which transform is fused with the product: the value of a knob.
enum { kAuto, kInput, kOutput };

template <class Form>
Prediction prediction(const ConvProblem& problem, const Point& point, int fused) {
  const Winograd w = winograd_of(problem, point.m);
  const std::int64_t filter_parts = point.filter_parts(w), pairs = (w.filters + 1) / 2;
  const std::int64_t of_filters = 2 * filter_elements<Form>(w) * point.tile_parts(w);
  Prediction p;
  if (fused == kInput) {
    p.global_load_bytes =
        2 * tile_reads(w) * filter_parts + of_filters + kPositions<Form> * std::int64_t{w.tiles} * pairs * 4;
    p.global_store_bytes = 2 * (product_elements<Form>(w) + problem.output_size());
    p.barriers = point.parts(w) * point.steps(w) * 2;
  } else {
    p.global_load_bytes = 2 * tile_reads(w) + 2 * kGroups * input_elements<Form>(w) * filter_parts + of_filters;
    p.global_store_bytes = 2 * (input_elements<Form>(w) + problem.output_size());
    p.barriers = point.parts(w);
  }
  p.constant_load_requests = 0;
  p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
  return p;
}

}  // namespace
}  // namespace convladder
