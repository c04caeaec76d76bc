#include "common/kernel/tracks/lowering.hpp"

#include <cstdint>
#include <initializer_list>

#include "common/kernel/tracks/taps.hpp"

namespace convladder {
namespace {

constexpr std::int64_t kMaxIndex = INT32_MAX - 65536;  // room for tiles past the end

/// Whether the product of positive factors is at most kMaxIndex.
bool fits(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor > kMaxIndex / product) return false;
    product *= factor;
  }
  return true;
}

/// What the kernels of both checks want of every dimension.
Verdict check_positions(const ConvProblem& p) {
  if (p.groups != 1)
    return Verdict::refuse("the stages of matrix multiplication want groups = 1; got groups={}", p.groups);
  const struct {
    const char* name;
    std::int64_t value;
  } positions[] = {{"h + 2 pad_h", p.h + 2 * p.pad_h}, {"w + 2 pad_w", p.w + 2 * p.pad_w},
                   {"stride_h", p.stride_h},           {"stride_w", p.stride_w},
                   {"dilation_h", p.dilation_h},       {"dilation_w", p.dilation_w}};
  for (const auto& [name, value] : positions) {
    if (!fits({value}))
      return Verdict::refuse("the stages of matrix multiplication index with 32 bits: {} at most {}; got {}", name,
                             kMaxIndex, value);
  }
  return Verdict::accept();
}

}  // namespace

Verdict check_lowering(const ConvProblem& p) {
  if (const Verdict positions = check_positions(p); !positions.accepted()) return positions;
  // Filters are packed in tiles of up to 128, and in steps of up to 16 products.
  if (!fits({p.c, p.r, p.s}) || !fits({(p.k + 127) / 128 * 128, p.c * p.r * p.s + 16}))
    return Verdict::refuse(
        "the filters, their number rounded up to 128, must have at most {} taps in all; got k c r s = {} x {} x "
        "{} x {}",
        kMaxIndex, p.k, p.c, p.r, p.s);
  if (!fits({p.n, p.p(), p.q()}))
    return Verdict::refuse("a batch may have at most {} positions n p q; got {} x {} x {}", kMaxIndex, p.n, p.p(),
                           p.q());
  if (!fits({p.n, p.c}) || !fits({p.n, p.k}))
    return Verdict::refuse("a batch may have at most {} planes, n c and n k; got n={}, c={}, k={}", kMaxIndex, p.n, p.c,
                           p.k);
  if (!fits({p.k, p.p(), p.q()}))
    return Verdict::refuse("an image may have at most {} outputs k p q; got k={}, p={}, q={}", kMaxIndex, p.k, p.p(),
                           p.q());
  if (!fits({p.c, p.r, p.s, p.p(), p.q()}) || !fits({4, p.c, p.p(), p.r, p.w + 2 * p.pad_w}))
    return Verdict::refuse(
        "one image's rearrangement is indexed with 32 bits: c r s p q and 4 c p r (w + 2 pad_w) at most {}; got "
        "c={}, r={}, s={}, p={}, q={}, w + 2 pad_w={}",
        kMaxIndex, p.c, p.r, p.s, p.p(), p.q(), p.w + 2 * p.pad_w);
  return Verdict::accept();
}

Verdict check_implicit_gemm(const ConvProblem& p, int channels, int filters) {
  if (const Verdict positions = check_positions(p); !positions.accepted()) return positions;
  const std::int64_t padded_channels = (p.c - 1) / channels + 1, padded_filters = (p.k - 1) / filters + 1;
  if (!fits({padded_channels, channels, p.r, p.s, padded_filters, filters}))
    return Verdict::refuse(
        "the filters, c rounded up to a multiple of {} and k to one of {}, must have at most {} taps in all; got "
        "c={}, k={}, r={}, s={}",
        channels, filters, kMaxIndex, p.c, p.k, p.r, p.s);
  if (!fits({p.n, p.c, p.h, p.w}))
    return Verdict::refuse("the input may have at most {} elements n c h w; got {} x {} x {} x {}", kMaxIndex, p.n, p.c,
                           p.h, p.w);
  if (!fits({p.n, p.k, p.p(), p.q()}))
    return Verdict::refuse("a batch may have at most {} outputs n k p q; got {} x {} x {} x {}", kMaxIndex, p.n, p.k,
                           p.p(), p.q());
  return Verdict::accept();
}

Verdict check_implicit_gemm_hopper(const ConvProblem& p, int channels, int filters) {
  if (p.padding != Padding::zero)
    return Verdict::refuse("the padding must be zeros, which TMA fills in; got {}",
                           p.padding == Padding::replicate ? "replicate" : "reflect");
  if (const Verdict verdict = check_implicit_gemm(p, channels, filters); !verdict.accepted()) return verdict;
  if (p.r > kMostTaps || p.s > kMostTaps || p.r * p.s > kMostTaps)
    return Verdict::refuse("a filter may have at most {} taps; got r={}, s={}", kMostTaps, p.r, p.s);
  if (p.stride_h > 2 || p.stride_w > 2)
    return Verdict::refuse("the stride must be 1 or 2; got stride_h={}, stride_w={}", p.stride_h, p.stride_w);
  return Verdict::accept();
}

Verdict check_pointwise(const ConvProblem& p, int unit) {
  if (p.r != 1 || p.s != 1) return Verdict::refuse("the filter must be 1 x 1; got r={}, s={}", p.r, p.s);
  if (p.stride_h != 1 || p.stride_w != 1)
    return Verdict::refuse("the stride must be 1; got stride_h={}, stride_w={}", p.stride_h, p.stride_w);
  if (p.pad_h != 0 || p.pad_w != 0)
    return Verdict::refuse("there must be no padding; got pad_h={}, pad_w={}", p.pad_h, p.pad_w);
  if (p.c % unit != 0 || p.k % unit != 0)
    return Verdict::refuse("c and k must be multiples of {}; got c={}, k={}", unit, p.c, p.k);
  return check_implicit_gemm(p, 64, 64);
}

Lowering lowering_of(const ConvProblem& p) {
  const auto integer = [](std::int64_t value) { return static_cast<int>(value); };
  return {integer(p.n),        integer(p.c),          integer(p.h),          integer(p.w),
          integer(p.k),        integer(p.p()),        integer(p.q()),        integer(p.r),
          integer(p.s),        integer(p.pad_h),      integer(p.pad_w),      integer(p.stride_h),
          integer(p.stride_w), integer(p.dilation_h), integer(p.dilation_w), p.padding};
}

std::int64_t im2col_size(const ConvProblem& p) { return p.n * p.c * p.r * p.s * p.p() * p.q(); }

std::int64_t im2win_size(const ConvProblem& p) { return p.n * p.c * p.p() * p.r * (p.w + 2 * p.pad_w); }

int tile_filters(int filters) {
  int best = 128;
  for (const int tile : {96, 64})
    if (blocks_for(filters, tile) * tile < blocks_for(filters, best) * best) best = tile;
  return best;
}

Axis vertical(const Lowering& l) {
  return {l.height, l.out_height, l.rows, l.pad_y, l.padding, l.stride_y, l.dilation_y};
}

Axis horizontal(const Lowering& l) {
  return {l.width, l.out_width, l.columns, l.pad_x, l.padding, l.stride_x, l.dilation_x};
}

}  // namespace convladder
