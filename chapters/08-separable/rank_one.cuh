// 08 separable, prepare: a filter as a column times a row, w[r][s] = column[r] * row[s].
//
// The filter is split at its largest tap; a filter that is no such product is refused. The kernel splits on the device,
// where prepare() has the filter; the test is made on the host, in double.
#pragma once
#include <cmath>

#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

constexpr double kRankTolerance = 1e-6;  // of the largest tap, for each tap
constexpr double kNormTolerance = 1e-5;  // of the root of all taps' squares, for all of them together

// One block; thread i looks through row i. With the largest tap at (a, b): column[i] = w[i][b] / w[a][b], row[j] =
// w[a][j].
__global__ void split_filter(const float* filter,  // [rows][columns]
                             float* parts,         // [kMaxFilterSide] column, [kMaxFilterSide] row
                             int rows, int columns) {
  __shared__ float largest[kMaxFilterSide];
  __shared__ int where[kMaxFilterSide];
  const int i = threadIdx.x;
  if (i < rows) {
    int best = 0;
    for (int j = 1; j < columns; ++j)
      if (fabsf(filter[i * columns + j]) > fabsf(filter[i * columns + best])) best = j;
    largest[i] = fabsf(filter[i * columns + best]);
    where[i] = best;
  }
  __syncthreads();
  int a = 0;
  for (int row = 1; row < rows; ++row)
    if (largest[row] > largest[a]) a = row;
  const int b = where[a];
  const float pivot = filter[a * columns + b];
  if (i < rows) parts[i] = pivot == 0.0f ? 0.0f : filter[i * columns + b] / pivot;
  if (i < columns) parts[kMaxFilterSide + i] = filter[a * columns + i];
}

// The largest tap, and how far the tap that fits worst is from the product.
struct Deviation {
  double pivot = 0, size = 0;
  double beyond = 0;  // how far, of all taps, beyond fp32's roundings of a product
  double share = 0;   // all deviations together over all taps: root of the sums of squares
  int a = 0, b = 0;   // the largest tap
  int i = 0, j = 0;   // the tap that fits worst
  double product = 0;
};

// The same split on the host, in double.
Deviation largest_deviation(const float* filter, int rows, int columns) {
  Deviation d;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      if (std::fabs(filter[i * columns + j]) <= std::fabs(d.pivot)) continue;
      d.pivot = filter[i * columns + j];
      d.a = i;
      d.b = j;
    }
  }
  if (d.pivot == 0) return d;
  double deviations = 0, taps = 0;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const double tap = filter[i * columns + j];
      const double product = static_cast<double>(filter[i * columns + d.b]) * filter[d.a * columns + j] / d.pivot;
      const double size = std::fabs(tap - product);
      deviations += size * size;
      taps += tap * tap;
      d.beyond = std::fmax(d.beyond, size - 4 * 0x1p-24 * std::fabs(tap));
      if (size <= d.size) continue;
      d.size = size;
      d.i = i;
      d.j = j;
      d.product = product;
    }
  }
  d.share = std::sqrt(deviations / taps);
  return d;
}

Verdict check_rank_one(const float* filter, int rows, int columns) {
  for (int i = 0; i < rows * columns; ++i) {
    if (!std::isfinite(filter[i]))
      return Verdict::refuse("only finite filters can be split; tap ({},{}) is {:g}", i / columns, i % columns,
                             static_cast<double>(filter[i]));
  }
  const Deviation d = largest_deviation(filter, rows, columns);
  if (d.size <= kRankTolerance * std::fabs(d.pivot) && d.share <= kNormTolerance) return Verdict::accept();
  return Verdict::refuse(
      "the filter is not of rank one: no column times row gives it; tap ({},{}) is {:.6g}, but the row and column of "
      "the "
      "largest tap, ({},{}), give {:.6g}",
      d.i, d.j, static_cast<double>(filter[d.i * columns + d.j]), d.a, d.b, d.product);
}

}  // namespace
}  // namespace convladder
