#include "common/kernel/tracks/winograd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/kernel/tracks/axis.hpp"

namespace convladder {
namespace {

constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();

/// a * b, or the largest number where that is more.
std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

std::int64_t round_up(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }

}  // namespace

Verdict check_winograd_form(const ConvProblem& x) {
  if (x.groups != 1) return Verdict::refuse("groups must be 1; got groups={}", x.groups);
  if (x.r != kWinogradTaps || x.s != kWinogradTaps)
    return Verdict::refuse("the filter must be 3 x 3; got r={}, s={}", x.r, x.s);
  if (x.stride_h != 1 || x.stride_w != 1)
    return Verdict::refuse("the stride must be 1; got stride_h={}, stride_w={}", x.stride_h, x.stride_w);
  if (x.dilation_h != 1 || x.dilation_w != 1)
    return Verdict::refuse("the dilation must be 1; got dilation_h={}, dilation_w={}", x.dilation_h, x.dilation_w);
  if (std::max({x.h + 2 * x.pad_h, x.w + 2 * x.pad_w}) > kLimit - 8)
    return Verdict::refuse("a padded side must be below 2^31 - 8; got {} x {}", x.h + 2 * x.pad_h, x.w + 2 * x.pad_w);
  return Verdict::accept();
}

Verdict check_winograd(const ConvProblem& x, int m, int padded) { return check_winograd(x, m, m, padded); }

Verdict check_winograd(const ConvProblem& x, int m, int m_across, int padded) {
  const Verdict form = check_winograd_form(x);
  if (!form.accepted()) return form;
  const std::int64_t positions = std::int64_t{m + 2} * (m_across + 2);
  const std::int64_t tiles = round_up(product(product((x.p() - 1) / m + 1, (x.q() - 1) / m_across + 1), x.n), padded);
  const std::int64_t channels = round_up(x.c, padded), filters = round_up(x.k, padded);
  const std::int64_t transformed =
      product(positions, std::max({product(tiles, channels), product(tiles, filters), product(channels, filters)}));
  const std::int64_t most = std::max({x.input_size(), x.output_size(), transformed});
  if (tiles > kLimit || most > kLimit)
    return Verdict::refuse("tensors and their transforms must have fewer than 2^31 elements; got {}", most);
  return Verdict::accept();
}

double winograd_error(double amplification, std::int64_t channels, double sums) {
  constexpr double kUnit = 0x1p-24;
  const double roundings = static_cast<double>(channels) / 2 + 8;
  return kUnit * std::sqrt(amplification * roundings / 4 * (1 + 2 / std::sqrt(sums)));
}

std::int64_t tile_reads(const Winograd& w) {
  const Axis down{w.height, w.out_height, kWinogradTaps, w.pad_y, w.padding};
  const Axis across{w.width, w.out_width, kWinogradTaps, w.pad_x, w.padding};
  return std::int64_t{w.batch} * w.channels * reads_by_tile(down, w.m) * reads_by_tile(across, w.m_across);
}

Winograd winograd_of(const ConvProblem& problem, int m) { return winograd_of(problem, m, m); }

Winograd winograd_of(const ConvProblem& problem, int m, int m_across) {
  Winograd w{};
  w.batch = static_cast<int>(problem.n);
  w.channels = static_cast<int>(problem.c);
  w.filters = static_cast<int>(problem.k);
  w.height = static_cast<int>(problem.h);
  w.width = static_cast<int>(problem.w);
  w.out_height = static_cast<int>(problem.p());
  w.out_width = static_cast<int>(problem.q());
  w.pad_y = static_cast<int>(problem.pad_h);
  w.pad_x = static_cast<int>(problem.pad_w);
  w.padding = problem.padding;
  w.m = m;
  w.m_across = m_across;
  w.tiles_down = blocks_for(w.out_height, m);
  w.tiles_across = blocks_for(w.out_width, m_across);
  w.tiles = w.batch * w.tiles_down * w.tiles_across;
  w.by_down = divisor_of(w.tiles_down);
  w.by_across = divisor_of(w.tiles_across);
  return w;
}

}  // namespace convladder
