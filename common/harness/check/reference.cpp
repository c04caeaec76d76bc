#include "common/harness/check/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/stage/vector_lengths.hpp"

namespace convladder {
namespace {

/// A task is a piece of an output row, this many columns of this many filters: their sums and magnitudes (32 KB) stay
/// in the first-level cache over all taps.
constexpr std::int64_t kBlockColumns = 256, kBlockFilters = 8;
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

/// What one tap reads for a piece of an output row: the elements for the columns [first, last), one after the other.
/// Elsewhere in the piece it reads zeros, which add nothing.
struct Reads {
  const float* elements;
  std::int64_t first, last;
};

/// @param row  of the input: (w)  @param offset  column q reads at q * stride + offset
/// @param copy  where the elements are put that do not lie one after the other: (kBlockColumns)
Reads reads_of(const ConvProblem& problem, const float* row, std::int64_t offset, std::int64_t begin, std::int64_t end,
               float* copy) {
  const std::int64_t stride = problem.stride_w;
  // [first, last): the columns whose tap lies inside the row.
  const std::int64_t first = std::clamp(offset < 0 ? (-offset - 1) / stride + 1 : 0, begin, end);
  const std::int64_t last = std::clamp(offset < problem.w ? (problem.w - 1 - offset) / stride + 1 : 0, first, end);
  const bool inside = problem.padding == Padding::zero || (first == begin && last == end);
  if (inside && stride == 1) return {row + first + offset, first, last};

  const Reads reads = inside ? Reads{copy, first, last} : Reads{copy, begin, end};
  for (std::int64_t column = reads.first; column < first; ++column)
    *copy++ = row[source_index(column * stride + offset, problem.w, problem.padding)];
  for (std::int64_t column = first; column < last; ++column) *copy++ = row[column * stride + offset];
  for (std::int64_t column = last; column < reads.last; ++column)
    *copy++ = row[source_index(column * stride + offset, problem.w, problem.padding)];
  return reads;
}

/// Adds what one tap of each of `filters` filters makes of the elements.
/// @param taps  of consecutive filters, `tap_step` apart
/// @param sums, magnitudes  of consecutive filters, `plane` apart: each (count)
CONVLADDER_FOR_EVERY_VECTOR_LENGTH
void add_products(const float* __restrict elements, std::int64_t count, const float* taps, std::int64_t tap_step,
                  std::int64_t filters, double* __restrict sums, double* __restrict magnitudes, std::int64_t plane) {
  for (std::int64_t k = 0; k < filters; ++k) {
    const double tap = taps[k * tap_step];
    double* const sum = sums + k * plane;
    double* const magnitude = magnitudes + k * plane;
#ifdef _OPENMP
#pragma omp simd
#endif
    for (std::int64_t i = 0; i < count; ++i) {
      const double term = tap * elements[i];  // exact: 24 + 24 bits of significand
      sum[i] += term;
      magnitude[i] += std::abs(term);
    }
  }
}

}  // namespace

Reference convolve_reference(const ConvProblem& problem, const std::vector<float>& input,
                             const std::vector<float>& filter) {
  const std::int64_t p = problem.p(), q = problem.q();
  const std::int64_t group_c = problem.c / problem.groups, group_k = problem.k / problem.groups;
  const std::int64_t column_blocks = (q - 1) / kBlockColumns + 1, filter_blocks = (group_k - 1) / kBlockFilters + 1;
  const std::int64_t tap_step = group_c * problem.r * problem.s;
  const std::int64_t tasks = problem.n * problem.groups * filter_blocks * p * column_blocks;

  Reference reference;
  reference.output.resize(static_cast<std::size_t>(problem.output_size()));
  reference.magnitudes.resize(reference.output.size());

#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (problem.flops() >= kParallelFlops)
#endif
  for (std::int64_t task = 0; task < tasks; ++task) {
    const std::int64_t begin = task % column_blocks * kBlockColumns, end = std::min(begin + kBlockColumns, q);
    const std::int64_t p_row = task / column_blocks % p, rest = task / column_blocks / p;
    const std::int64_t group_filter = rest % filter_blocks * kBlockFilters;
    const std::int64_t group = rest / filter_blocks % problem.groups, n = rest / filter_blocks / problem.groups;
    const std::int64_t k = group * group_k + group_filter;  // the first filter of the task
    const std::int64_t filters = std::min(kBlockFilters, group_k - group_filter);
    const std::int64_t output_row = ((n * problem.k + k) * p + p_row) * q;
    float copy[kBlockColumns];

    for (std::int64_t c = 0; c < group_c; ++c) {
      const float* plane = input.data() + (n * problem.c + group * group_c + c) * problem.h * problem.w;
      const float* taps = filter.data() + (k * group_c + c) * problem.r * problem.s;
      for (std::int64_t r = 0; r < problem.r; ++r) {
        const std::int64_t y =
            source_index(p_row * problem.stride_h - problem.pad_h + r * problem.dilation_h, problem.h, problem.padding);
        if (y < 0) continue;
        for (std::int64_t s = 0; s < problem.s; ++s) {
          const Reads reads =
              reads_of(problem, plane + y * problem.w, s * problem.dilation_w - problem.pad_w, begin, end, copy);
          add_products(reads.elements, reads.last - reads.first, taps + r * problem.s + s, tap_step, filters,
                       reference.output.data() + output_row + reads.first,
                       reference.magnitudes.data() + output_row + reads.first, p * q);
        }
      }
    }
  }
  return reference;
}

Reference convolve_reference(const ConvProblem& problem, const HostTensors& tensors) {
  Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
  if (problem.epilogue == Epilogue::none) return reference;
  const std::size_t plane = static_cast<std::size_t>(problem.p() * problem.q());
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (problem.flops() >= kParallelFlops)
#endif
  for (std::size_t i = 0; i < reference.output.size(); ++i) {
    double& output = reference.output[i];
    const auto add = [&](double term) {
      output += term;
      reference.magnitudes[i] += std::abs(term);
    };
    add(tensors.bias[i / plane % static_cast<std::size_t>(problem.k)]);
    if (problem.has_residual()) add(tensors.residual[i]);
    if (problem.has_relu() && output < 0) output = 0;
  }
  return reference;
}

}  // namespace convladder
