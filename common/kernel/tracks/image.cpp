#include "common/kernel/tracks/image.hpp"

#include <algorithm>
#include <cstdint>

namespace convladder {
namespace {

constexpr std::int64_t kMaxGridX = INT32_MAX;
constexpr std::int64_t kMaxGridY = 65535;
constexpr std::int64_t kMaxImages = kMaxGridY * 32768;   // their numbers, to the end of the last z, fit 32 bits
constexpr std::int64_t kMaxPosition = INT32_MAX - 4096;  // room for a tile past the end
constexpr std::int64_t kSmallestTile = 32 * 8;           // outputs of a block, at least

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

Verdict check_image(const ConvProblem& p) {
  if (p.c != 1 || p.k != 1)
    return Verdict::refuse("the 2-D stages want one channel: c=1, k=1; got c={}, k={} (put the channels in n)", p.c,
                           p.k);
  if (p.r > kMaxFilterSide || p.s > kMaxFilterSide)
    return Verdict::refuse("the 2-D stages want a filter of at most {}x{}; got r={}, s={}", kMaxFilterSide,
                           kMaxFilterSide, p.r, p.s);
  if (p.stride_w != 1 || p.stride_h != 1 || p.dilation_w != 1 || p.dilation_h != 1)
    return Verdict::refuse(
        "the 2-D stages want stride 1 and dilation 1; got stride_h={}, stride_w={}, dilation_h={}, "
        "dilation_w={}",
        p.stride_h, p.stride_w, p.dilation_h, p.dilation_w);
  if (p.h + 2 * p.pad_h > kMaxPosition || p.w + 2 * p.pad_w > kMaxPosition)
    return Verdict::refuse(
        "the 2-D stages index rows and columns with 32 bits: h + 2 pad_h and w + 2 pad_w at most {}; got {}, {}",
        kMaxPosition, p.h + 2 * p.pad_h, p.w + 2 * p.pad_w);
  if (ceil_div(p.p(), 8) * ceil_div(p.q(), 32) > kMaxGridX)
    return Verdict::refuse("a grid covers at most {} outputs of an image; got {}", kMaxGridX * kSmallestTile,
                           p.p() * p.q());
  if (p.n > kMaxImages) return Verdict::refuse("a grid covers at most {} images; got n={}", kMaxImages, p.n);
  return Verdict::accept();
}

Image image_of(const ConvProblem& p) {
  return {static_cast<int>(p.n),     static_cast<int>(p.h),
          static_cast<int>(p.w),     static_cast<int>(p.p()),
          static_cast<int>(p.q()),   static_cast<int>(p.r),
          static_cast<int>(p.s),     static_cast<int>(p.pad_h),
          static_cast<int>(p.pad_w), p.padding};
}

dim3 image_grid(const Image& image, int tile_height, int tile_width) {
  const std::int64_t y = std::min<std::int64_t>(image.batch, kMaxGridY);
  return dim3(static_cast<unsigned>(ceil_div(image.out_height, tile_height) * ceil_div(image.out_width, tile_width)),
              static_cast<unsigned>(y), static_cast<unsigned>(ceil_div(image.batch, y)));
}

Axis vertical(const Image& image) { return {image.height, image.out_height, image.rows, image.pad_y, image.padding}; }

Axis horizontal(const Image& image) {
  return {image.width, image.out_width, image.columns, image.pad_x, image.padding};
}

std::int64_t reads_by_output(const Image& image) {
  return reads_by_output(vertical(image)) * reads_by_output(horizontal(image)) * image.batch;
}

std::int64_t reads_by_tile(const Image& image, int tile_height, int tile_width) {
  return reads_by_tile(vertical(image), tile_height) * reads_by_tile(horizontal(image), tile_width) * image.batch;
}

std::int64_t warps_over_outputs(const Image& image) {
  return ceil_div(image.out_width, 32) * image.out_height * image.batch;
}

}  // namespace convladder
