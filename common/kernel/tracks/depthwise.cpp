#include "common/kernel/tracks/depthwise.hpp"

#include <cstdint>

namespace convladder {
namespace {

constexpr std::int64_t kMaxPlanes = INT32_MAX;  // blocks of a grid in x
constexpr std::int64_t kMaxGridY = 65535;       // blocks of a grid in y

}  // namespace

Verdict check_depthwise(const ConvProblem& p) {
  if (p.groups != p.c || p.k != p.c)
    return Verdict::refuse(
        "the depthwise stages want a filter for each channel: groups = c = k; got groups={}, c={}, "
        "k={}",
        p.groups, p.c, p.k);
  if (p.r % 2 == 0 || p.s % 2 == 0)
    return Verdict::refuse("the depthwise stages want odd filters; got r={}, s={}", p.r, p.s);
  if (p.r > INT32_MAX / p.s)
    return Verdict::refuse("the depthwise stages index taps with 32 bits: r s at most {}; got r={}, s={}", INT32_MAX,
                           p.r, p.s);
  // A tap's row and column, and what a filter spans, are 32-bit numbers in the kernels.
  if (p.h + 2 * p.pad_h > kMaxDepthwisePosition || p.w + 2 * p.pad_w > kMaxDepthwisePosition ||
      p.stride_h > kMaxDepthwisePosition || p.stride_w > kMaxDepthwisePosition ||
      p.dilation_h > kMaxDepthwisePosition || p.dilation_w > kMaxDepthwisePosition)
    return Verdict::refuse(
        "the depthwise stages index rows and columns with 32 bits: h + 2 pad_h, w + 2 pad_w, strides and dilations at "
        "most {}; got {}, {}, stride_h={}, stride_w={}, dilation_h={}, dilation_w={}",
        kMaxDepthwisePosition, p.h + 2 * p.pad_h, p.w + 2 * p.pad_w, p.stride_h, p.stride_w, p.dilation_h,
        p.dilation_w);
  if (((p.p() - 1) / 16 + 1) * ((p.q() - 1) / 16 + 1) > kMaxDepthwisePosition)
    return Verdict::refuse("the depthwise stages count tiles of 16x16 outputs with 32 bits; got {} outputs a plane",
                           p.p() * p.q());
  if (p.n > kMaxPlanes / p.c)
    return Verdict::refuse("a grid covers at most {} planes; got n={}, c={}", kMaxPlanes, p.n, p.c);
  return Verdict::accept();
}

Verdict check_depthwise(const ConvProblem& problem, std::int64_t grid_y, const char* what) {
  const Verdict verdict = check_depthwise(problem);
  if (!verdict.accepted() || grid_y <= kMaxGridY) return verdict;
  return Verdict::refuse("a grid has at most {} blocks in y, here {}; got {}", kMaxGridY, what, grid_y);
}

Verdict check_depthwise_past_plane(const ConvProblem& problem, int strides) {
  const Verdict verdict = check_depthwise(problem);
  if (!verdict.accepted()) return verdict;
  const std::int64_t down = problem.h + 2 * problem.pad_h + strides * problem.stride_h;
  const std::int64_t across = problem.w + 2 * problem.pad_w + strides * problem.stride_w;
  if (down > kMaxDepthwisePosition || across > kMaxDepthwisePosition)
    return Verdict::refuse("h + 2 pad_h + {} stride_h and w + 2 pad_w + {} stride_w are at most {}; got {}, {}",
                           strides, strides, kMaxDepthwisePosition, down, across);
  return Verdict::accept();
}

Depthwise depthwise_of(const ConvProblem& p) {
  const auto integer = [](std::int64_t value) { return static_cast<int>(value); };
  return {integer(p.n),        integer(p.c),        integer(p.h),          integer(p.w),          integer(p.p()),
          integer(p.q()),      integer(p.r),        integer(p.s),          integer(p.pad_h),      integer(p.pad_w),
          integer(p.stride_h), integer(p.stride_w), integer(p.dilation_h), integer(p.dilation_w), p.padding};
}

Axis vertical(const Depthwise& d) {
  return {d.height, d.out_height, d.rows, d.pad_y, d.padding, d.stride_y, d.dilation_y};
}

Axis horizontal(const Depthwise& d) {
  return {d.width, d.out_width, d.columns, d.pad_x, d.padding, d.stride_x, d.dilation_x};
}

std::int64_t reads_by_output(const Depthwise& d) {
  return reads_by_output(vertical(d)) * reads_by_output(horizontal(d)) * planes(d);
}

Prediction predict_direct(const ConvProblem& problem) {
  Prediction p;
  p.global_load_bytes = 2 * reads_by_output(depthwise_of(problem)) * 4;
  p.global_store_bytes = problem.output_size() * 4;
  p.shared_load_requests = p.constant_load_requests = p.barriers = 0;
  p.flops = problem.flops();
  return p;
}

}  // namespace convladder
