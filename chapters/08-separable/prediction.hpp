// What lesson 08 predicts of both passes in one kernel.
#pragma once
#include "chapters/08-separable/fused.cuh"
#include "common/stage/stage.hpp"

namespace convladder {
namespace {

// One kernel: the input by segments of strips; the row sums between two segments are made twice.
inline Prediction prediction_of_both(const ConvProblem& problem, const Image& image, int rows) {
  const std::int64_t segments = (image.out_height + rows - 1) / rows;
  const std::int64_t strips = (image.out_width + kStrip - 1) / kStrip;
  std::int64_t steps = segments * lag_of(image.rows);  // of all blocks in a strip
  for (int y = 0; y < image.out_height; y += rows) {
    const int outputs = rows < image.out_height - y ? rows : image.out_height - y;
    steps += (outputs + kBand - 1) / kBand;
  }
  Prediction p;
  p.global_load_bytes = reads_by_tile(image, rows, kStrip) * 4;
  p.global_store_bytes = problem.output_size() * 4;
  p.shared_load_conflicts = p.shared_store_conflicts = 0;
  p.barriers = 2 * steps * strips * image.batch;
  p.flops = 2 * ((image.out_height + segments * (image.rows - 1)) * image.out_width * image.batch * problem.s +
                 problem.output_size() * problem.r);
  return p;
}

}  // namespace
}  // namespace convladder
