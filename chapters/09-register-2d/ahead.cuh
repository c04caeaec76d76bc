// 09 register-2d, small_filter for 5x5 and 7x7 on images of which a GPU does not hold all blocks at a time.
//
// Blocks of one launch start together, and so load, compute and store more or less together: while they compute, few
// bytes are on their way from DRAM. So
//
//   1. each block asks L2 for the pixels of the tile `ahead` places below its own, and waits for none of them. When the
//      block of that tile starts, they are no further away than L2;
//   2. it finds its own tile by a multiplication instead of a division, so that its first loads leave earlier.
#pragma once
#include "chapters/09-register-2d/register_2d.cuh"
#include "common/kernel/divisor.hpp"

namespace convladder {
namespace {

// Images whose blocks do 2, and those whose blocks do both.
struct QuickImage : Image {
  Divisor across;  // tiles side by side
};
struct AheadImage : QuickImage {
  int ahead;  // above 0
};

// 2.
__device__ __forceinline__ BlockTile block_tile(const QuickImage& image, int tile_height, int tile_width) {
  const int index = static_cast<int>(blockIdx.x), down = static_cast<int>(blockIdx.x / image.across);
  return {static_cast<int>(blockIdx.y + gridDim.y * blockIdx.z), down * tile_height,
          (index - down * static_cast<int>(image.across.divisor)) * tile_width};
}

// Brings the 32 bytes at p to L2. The simulator has nothing to do: no kernel sees the difference.
__device__ __forceinline__ void prefetch_to_l2(const float* p) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#else
  (void)p;
#endif
}

// 1. Every second lane asks: 32 bytes are the columns of two.
__device__ __forceinline__ void ask_ahead(const float* in, const AheadImage& image, int y, int x) {
  const int next_y = y + image.ahead * kStripHeight;
  if (next_y + kStripRows <= image.height && threadIdx.x % 2 == 1 && x < image.width) {
    const float* row = in + static_cast<std::int64_t>(next_y) * image.width + x;
    UNROLL
    for (int v = 0; v < kStripRows; ++v) {
      prefetch_to_l2(row);
      row += image.width;
    }
  }
}

// ---- The rule -------------------------------------------------------------------------------------------------------

// Which filters gain by it: 3x3 lost 1 to 2% (measured).
inline bool takes_ahead(const Image& image) { return is_small(image) && image.columns >= 5; }

// Blocks that a multiprocessor must hold where none looks ahead: more of 7x7, so that all blocks of 1920x1080 are
// resident at a time on an H200.
constexpr int resident_blocks(int rows) { return rows < 7 ? strip_blocks(rows) : 9; }

// What was fastest of 16 to 64 tiles for 5x5, on one image of 3.3 waves; 24 is the one choice that was measured for
// 7x7. Where all blocks are resident at a time all loads leave at once, and there is nothing to ask for.
inline int usual_ahead(const Image& image, int multiprocessors) {
  if (!takes_ahead(image)) return 0;
  const std::int64_t blocks = std::int64_t{image_grid(image, kStripHeight, kStripWidth).x} * image.batch;
  if (blocks <= std::int64_t{resident_blocks(image.rows)} * multiprocessors) return 0;
  return image.columns == 5 ? 16 : 24;
}

inline void launch_ahead(const float* input, float* output, const Image& image, int ahead, Stream stream) {
  const QuickImage quick{image, divisor_of((image.out_width + kStripWidth - 1) / kStripWidth)};
  const auto start = [&](auto kernel, const auto& images) {
    launch(kernel, image_grid(image, kStripHeight, kStripWidth), dim3(kWarp, kStripWarps), 0, stream)(input, output,
                                                                                                      images, 1.0f);
  };
  if (image.columns == 5 && ahead > 0)
    start(small_filter<5, 5, float, AheadImage>, AheadImage{quick, ahead});
  else if (image.columns == 5)
    start(small_filter<5, 5, float, QuickImage>, quick);
  else if (ahead > 0)
    start(small_filter<7, 7, float, AheadImage>, AheadImage{quick, ahead});
  else
    start(small_filter<7, 7, float, QuickImage, resident_blocks(7)>, quick);
}

}  // namespace
}  // namespace convladder
