#include "common/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace convladder {
namespace {

/// Output columns of one task: their sums and magnitudes (16 KB) stay in the first-level cache over all taps.
constexpr std::int64_t kBlockColumns = 1024;
/// Below this much work, waking the other threads costs more than they save.
[[maybe_unused]] constexpr std::int64_t kParallelFlops = 1 << 17;

/// The input index that padded position `i` reads along one dimension, or -1 where it reads zero. Written apart from
/// border.hpp, so that the reference does not share the kernels' errors.
std::int64_t source_index(std::int64_t i, std::int64_t size, Padding padding) {
  const std::int64_t last = size - 1;
  if (padding == Padding::replicate) return std::clamp<std::int64_t>(i, 0, last);
  if (padding == Padding::reflect) return last - std::abs(last - std::abs(i));
  return i < 0 || i > last ? -1 : i;
}

/// Adds one tap of one input row to the output columns [begin, end): x(q*stride + offset) * tap.
/// @param row  (w)
/// @param sums, magnitudes  of the whole output row: (q)
void add_tap(const ConvProblem& problem, const float* row, double tap, std::int64_t offset, std::int64_t begin,
             std::int64_t end, double* __restrict sums, double* __restrict magnitudes) {
  const std::int64_t stride = problem.stride_w;
  const auto add = [&](std::int64_t column, std::int64_t index) {
    const double term = tap * row[index];  // exact: 24 + 24 bits of significand
    sums[column] += term;
    magnitudes[column] += std::abs(term);
  };
  const auto add_border = [&](std::int64_t column) {
    const std::int64_t index = source_index(column * stride + offset, problem.w, problem.padding);
    if (index >= 0) add(column, index);
  };
  // [first, last): the columns whose tap lies inside the row.
  const std::int64_t first = std::clamp(offset < 0 ? (-offset - 1) / stride + 1 : 0, begin, end);
  const std::int64_t last = std::clamp(offset < problem.w ? (problem.w - 1 - offset) / stride + 1 : 0, first, end);

  for (std::int64_t column = begin; column < first; ++column) add_border(column);
  if (stride == 1) {
#ifdef _OPENMP
#pragma omp simd
#endif
    for (std::int64_t column = first; column < last; ++column) add(column, column + offset);
  } else {
    for (std::int64_t column = first; column < last; ++column) add(column, column * stride + offset);
  }
  for (std::int64_t column = last; column < end; ++column) add_border(column);
}

}  // namespace

Reference convolve_reference(const ConvProblem& problem, const std::vector<float>& input,
                             const std::vector<float>& filter) {
  const std::int64_t p = problem.p(), q = problem.q();
  const std::int64_t group_c = problem.c / problem.groups, group_k = problem.k / problem.groups;
  const std::int64_t blocks = (q + kBlockColumns - 1) / kBlockColumns;
  const std::int64_t tasks = problem.n * problem.k * p * blocks;

  Reference reference;
  reference.output.resize(static_cast<std::size_t>(problem.output_size()));
  reference.magnitudes.resize(reference.output.size());

#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (problem.flops() >= kParallelFlops)
#endif
  for (std::int64_t task = 0; task < tasks; ++task) {
    const std::int64_t output_row = task / blocks;  // flat (n, k, p)
    const std::int64_t begin = task % blocks * kBlockColumns, end = std::min(begin + kBlockColumns, q);
    const std::int64_t row = output_row % p, k = output_row / p % problem.k, n = output_row / p / problem.k;
    double* sums = reference.output.data() + output_row * q;
    double* magnitudes = reference.magnitudes.data() + output_row * q;

    for (std::int64_t c = 0; c < group_c; ++c) {
      const float* plane = input.data() + (n * problem.c + k / group_k * group_c + c) * problem.h * problem.w;
      const float* taps = filter.data() + (k * group_c + c) * problem.r * problem.s;
      for (std::int64_t r = 0; r < problem.r; ++r) {
        const std::int64_t y =
            source_index(row * problem.stride_h - problem.pad_h + r * problem.dilation_h, problem.h, problem.padding);
        if (y < 0) continue;
        for (std::int64_t s = 0; s < problem.s; ++s) {
          add_tap(problem, plane + y * problem.w, taps[r * problem.s + s], s * problem.dilation_w - problem.pad_w,
                  begin, end, sums, magnitudes);
        }
      }
    }
  }
  return reference;
}

}  // namespace convladder
