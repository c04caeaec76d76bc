// 09 register-2d, small filters, row after row (rows=rolling).
//
// With 4 rows of outputs a lane of 5x5 loads 8 rows, and all its loads come before its sums: a multiprocessor waits for
// memory, or adds, as its warps happen to be. Here a warp goes down its columns. A row is loaded once for all outputs
// that need it, and while one is added the next ones are on their way.
//
//   1. A lane owns 4 columns, as in small_filter. It asks for as many rows ahead as the filter has.
//   2. A row comes to its turn: neighbours lend what is beside it, and the row that is as many further down is asked
//   for.
//   3. The row is added to all outputs that need it, one for each row of the filter. After it the oldest is complete,
//      and is stored; its registers take the sums of a new one.
//
// The loop over rows is unrolled as often as the filter has rows, so that all indices of registers are constants.
#pragma once
#include "chapters/09-register-2d/register_2d.cuh"

namespace convladder {
namespace {

// Of a multiprocessor: a thread has 80, 128 or 168 registers.
constexpr int rolling_blocks(int side) { return side == 3 ? 6 : side == 5 ? 4 : 3; }
constexpr int kMostRolled = 128;  // rows of outputs of a warp

// Where a warp is.
struct Strip {
  const float* in;  // its image
  float* out;       // the lane's first output
  int y, x;         // the input's position of the lane's first row and first column
  int rows;         // of input
  bool stores;      // the lane's outputs are needed
};

// kInside: the warp's rows and columns all lie in the input, so that no index needs a look.
template <int kSide, bool kInside>
__device__ __forceinline__ void roll(const Strip& strip, const Image& image) {
  constexpr int kPad = (kSide - 1) / 2;
  int columns[kFour];
  UNROLL
  for (int e = 0; e < kFour; ++e)
    columns[e] = kInside ? 0 : index_at(strip.x + e, image.width, image.pad_x, image.padding);
  const float* next = strip.in + static_cast<std::int64_t>(strip.y) * image.width + strip.x;
  int asked = 0;  // rows
  const auto ask = [&](float(&pixels)[kFour]) {
    if (kInside) {
      const float4 four = load_four(next);
      next += image.width;
      pixels[0] = four.x;
      pixels[1] = four.y;
      pixels[2] = four.z;
      pixels[3] = four.w;
    } else {
      const int j = index_at(strip.y + asked, image.height, image.pad_y, image.padding);
      const float* row = strip.in + static_cast<std::int64_t>(j) * image.width;
      UNROLL
      for (int e = 0; e < kFour; ++e) pixels[e] = j >= 0 && columns[e] >= 0 ? row[columns[e]] : 0.0f;
    }
    ++asked;
  };

  // 1.
  float ahead[kSide][kFour] = {};
  UNROLL
  for (int j = 0; j < kSide; ++j)
    if (j < strip.rows) ask(ahead[j]);

  float sum[kSide][kFour] = {};
  float* out = strip.out;
  UNROLL_BY(1)
  for (int first = 0; first < strip.rows; first += kSide) {
    UNROLL
    for (int j = 0; j < kSide; ++j) {
      if (first + j >= strip.rows) break;  // the whole warp
      // 2.
      float window[kFour + 2 * kPad];
      UNROLL
      for (int e = 0; e < kFour; ++e) window[kPad + e] = ahead[j][e];
      UNROLL
      for (int e = 0; e < kPad; ++e) {
        window[e] = __shfl_up_sync(kAllLanes, ahead[j][kFour - kPad + e], 1);
        window[kPad + kFour + e] = __shfl_down_sync(kAllLanes, ahead[j][e], 1);
      }
      if (asked < strip.rows) ask(ahead[j]);
      // 3. Row i = first + j is row r of the window of output i - r, whose sums are in place (i - r) % kSide.
      UNROLL
      for (int r = 0; r < kSide; ++r) {
        UNROLL
        for (int s = 0; s < kSide; ++s) {
          UNROLL
          for (int e = 0; e < kFour; ++e) sum[(j - r + kSide) % kSide][e] += window[s + e] * c_filter[r * kSide + s];
        }
      }
      float(&oldest)[kFour] = sum[(j + 1) % kSide];
      if (first + j >= kSide - 1) {
        if (strip.stores) store_four(out, oldest[0], oldest[1], oldest[2], oldest[3], 1.0f);
        out += image.width;
      }
      UNROLL
      for (int e = 0; e < kFour; ++e) oldest[e] = 0.0f;
    }
  }
}

template <int kSide>
__global__ void __launch_bounds__(kWarp* kStripWarps, rolling_blocks(kSide))
    rolling_filter(const float* input,  // [batch][height][width]
                   float* output,       // [batch][out_height][width]
                   Image image,
                   int segment) {  // rows of outputs of a warp
  const BlockTile tile = block_tile(image, kStripWarps * segment, kStripWidth);
  const int lane = threadIdx.x, x = tile.x + kFour * (lane - 1), y = tile.y + segment * static_cast<int>(threadIdx.y);
  if (tile.image >= image.batch || y >= image.out_height) return;
  const Strip strip{input + tile.image * input_pixels(image),
                    output + tile.image * output_pixels(image) + static_cast<std::int64_t>(y) * image.width + x,
                    y - image.pad_y,
                    x,
                    min(segment, image.out_height - y) + kSide - 1,
                    lane > 0 && lane < kWarp - 1 && x < image.width};
  if (strip.y >= 0 && strip.y + strip.rows <= image.height && tile.x >= kFour &&
      tile.x - kFour + kWarp * kFour <= image.width)
    roll<kSide, true>(strip, image);
  else
    roll<kSide, false>(strip, image);
}

// Rows of outputs of a warp: such that all blocks together take the fewest steps of a row, if a multiprocessor has
// rolling_blocks() of them at a time.
int rolling_segment(const Image& image, int multiprocessors) {
  const std::int64_t at_once = static_cast<std::int64_t>(rolling_blocks(image.rows)) * multiprocessors;
  int best = 1;
  std::int64_t fewest = INT64_MAX;
  for (int segment = 1; segment <= kMostRolled; ++segment) {
    const std::int64_t down = (image.out_height - 1) / (kStripWarps * segment) + 1;
    const std::int64_t blocks = down * ((image.out_width - 1) / kStripWidth + 1) * image.batch;
    const std::int64_t steps = ((blocks - 1) / at_once + 1) * (segment + image.rows - 1);
    if (steps >= fewest) continue;
    fewest = steps;
    best = segment;
  }
  return best;
}

void launch_rolling(const float* input, float* output, const Image& image, int segment, Stream stream) {
  const auto start = [&](auto kernel) {
    launch(kernel, image_grid(image, kStripWarps * segment, kStripWidth), dim3(kWarp, kStripWarps), 0, stream)(
        input, output, image, segment);
  };
  switch (image.columns) {
    case 3:
      return start(rolling_filter<3>);
    case 5:
      return start(rolling_filter<5>);
    default:
      return start(rolling_filter<7>);
  }
}

}  // namespace
}  // namespace convladder
