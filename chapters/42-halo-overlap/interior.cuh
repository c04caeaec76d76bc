// 42 halo-overlap: which outputs of a band are interior, and the kernel of 09 on some of its rows.
#pragma once
#include "chapters/09-register-2d/register_2d.cuh"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

// Rows of outputs: [0, begin) need rows from above, [begin, end) none, [end, p) rows from below.
struct Interior {
  std::int64_t begin, end;
};

inline Interior interior_of(const Part& own) {
  const std::int64_t begin = own.above, end = own.above + own.rows - own.problem.r + 1;
  const std::int64_t p = own.problem.p();
  if (begin >= end) return {p, p};  // a band so thin that every output needs a row of others
  return {begin, end < p ? end : p};
}

// The outputs [begin, end) of each image, from the rows that they read.
inline ConvProblem rows_of(const Part& own, std::int64_t begin, std::int64_t end) {
  ConvProblem rows = own.problem;
  rows.h = end - begin + own.problem.r - 1;
  return rows;
}

// An image's rows are not behind those of the image before, so each image is a launch of its own.
inline void filter_rows(const Part& own, std::int64_t begin, std::int64_t end, Stream stream) {
  if (begin >= end) return;
  Image rows = image_of(rows_of(own, begin, end));
  rows.batch = 1;
  for (std::int64_t image = 0; image < own.problem.n; ++image) {
    const float* const input = own.buffer + (image * own.problem.h + begin) * own.problem.w;
    float* const output = own.output + (image * own.problem.p() + begin) * own.problem.q();
    launch_register_2d<float>(input, output, rows, 1.0f, stream);
  }
}

// What filter_rows() moves and computes for three ranges of rows, which end where the next begins.
inline Prediction predict_ranges(const Part& own, const std::int64_t (&ends)[4]) {
  Prediction sum;
  bool first = true;
  for (int i = 0; i < 3; ++i) {
    if (ends[i] >= ends[i + 1]) continue;
    const Prediction rows = predict_register_2d(rows_of(own, ends[i], ends[i + 1]));
    for (const CounterField& field : kCounterFields)
      sum.*field.member = first                    ? rows.*field.member
                          : rows.*field.member < 0 ? -1
                                                   : sum.*field.member + rows.*field.member;
    first = false;
  }
  return sum;
}

}  // namespace
}  // namespace convladder
