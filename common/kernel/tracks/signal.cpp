#include "common/kernel/tracks/signal.hpp"

#include <algorithm>
#include <cstdint>

#include "common/kernel/tracks/axis.hpp"

namespace convladder {
namespace {

constexpr std::int64_t kMaxGridY = 65535;
constexpr std::int64_t kMaxSignals = kMaxGridY * 32768;  // their numbers, to the end of the last z, fit 32 bits
constexpr std::int64_t kMaxPosition = INT32_MAX - 4096;  // room for a block past the end

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Axis axis_of(const Signal& s) { return {s.length, s.out_length, s.taps, s.pad, s.padding}; }

}  // namespace

Verdict check_signal(const ConvProblem& p) {
  if (p.h != 1 || p.r != 1 || p.pad_h != 0)
    return Verdict::refuse("the 1-D stages want signals: h=1, r=1, pad_h=0; got h={}, r={}, pad_h={}", p.h, p.r,
                           p.pad_h);
  if (p.c != 1 || p.k != 1)
    return Verdict::refuse("the 1-D stages want one channel: c=1, k=1; got c={}, k={}", p.c, p.k);
  if (p.s % 2 == 0) return Verdict::refuse("the 1-D stages want an odd filter; got s={}", p.s);
  if (p.stride_w != 1 || p.stride_h != 1 || p.dilation_w != 1 || p.dilation_h != 1)
    return Verdict::refuse(
        "the 1-D stages want stride 1 and dilation 1; got stride_h={}, stride_w={}, dilation_h={}, "
        "dilation_w={}",
        p.stride_h, p.stride_w, p.dilation_h, p.dilation_w);
  if (p.w + 2 * p.pad_w > kMaxPosition)
    return Verdict::refuse("the 1-D stages index a signal with 32 bits: w + 2 pad_w at most {}; got {}", kMaxPosition,
                           p.w + 2 * p.pad_w);
  if (p.n > kMaxSignals) return Verdict::refuse("a grid covers at most {} signals; got n={}", kMaxSignals, p.n);
  return Verdict::accept();
}

Verdict check_constant_filter(const ConvProblem& p) {
  if (p.s > kMaxConstantTaps)
    return Verdict::refuse("constant memory holds {} taps (64 KB); got s={}", kMaxConstantTaps, p.s);
  return check_signal(p);
}

Verdict check_tile(const ConvProblem& p, const DeviceLimits& limits, std::int64_t tile_bytes) {
  const Verdict verdict = check_constant_filter(p);
  if (verdict.accepted() && tile_bytes > limits.shared_bytes_per_block)
    return Verdict::refuse("the tile needs {} bytes of shared memory, a block has {}; got s={}", tile_bytes,
                           limits.shared_bytes_per_block, p.s);
  return verdict;
}

Signal signal_of(const ConvProblem& p) {
  return {static_cast<int>(p.n), static_cast<int>(p.w),     static_cast<int>(p.q()),
          static_cast<int>(p.s), static_cast<int>(p.pad_w), p.padding};
}

dim3 signal_grid(const Signal& signal, int outputs_per_block) {
  const std::int64_t y = std::min<std::int64_t>(signal.batch, kMaxGridY);
  return dim3(static_cast<unsigned>(ceil_div(signal.out_length, outputs_per_block)), static_cast<unsigned>(y),
              static_cast<unsigned>(ceil_div(signal.batch, y)));
}

std::int64_t reads_by_output(const Signal& signal) { return reads_by_output(axis_of(signal)) * signal.batch; }

std::int64_t reads_by_tile(const Signal& signal, int outputs) {
  return reads_by_tile(axis_of(signal), outputs) * signal.batch;
}

std::int64_t warps_over_outputs(const Signal& signal) { return ceil_div(signal.out_length, 32) * signal.batch; }

}  // namespace convladder
