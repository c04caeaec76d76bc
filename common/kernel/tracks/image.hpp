/// @file
/// What the 2-D stages share: a batch of one-channel images, the rule that refuses anything else, and the counts that
/// their lessons predict.
#pragma once
#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/axis.hpp"

namespace convladder {

/// A batch of one-channel images, one behind the other, row by row. Passed to kernels by value. Pixel (y, x) of the
/// output starts reading at pixel (y - pad_y, x - pad_x) of the input.
struct Image {
  int batch;                  ///< images
  int height, width;          ///< of an input image
  int out_height, out_width;  ///< of an output image
  int rows, columns;          ///< of the filter
  int pad_y, pad_x;
  Padding padding;
};

/// The most rows and columns of a filter; all of it fits constant memory (16.5 KB).
inline constexpr int kMaxFilterSide = 65;
/// The most taps.
inline constexpr int kMaxFilterTaps = kMaxFilterSide * kMaxFilterSide;

/// Accepts n one-channel images (c = k = 1) with a filter up to 65 x 65, odd or even, stride 1 and dilation 1.
Verdict check_image(const ConvProblem& problem);
/// The problem as the 2-D kernels take it.
Image image_of(const ConvProblem& problem);

/// Blocks in x cover one output image with tiles of `tile_height` x `tile_width`, row by row; y and z cover the batch.
dim3 image_grid(const Image& image, int tile_height, int tile_width);

/// A block's place in the grid that image_grid() made.
struct BlockTile {
  int image;  ///< may be past the batch, in the last z: then there is nothing to do
  int y, x;   ///< the first output
};

/// The block's tile: pass the same sizes as to image_grid().
__device__ __forceinline__ BlockTile block_tile(const Image& image, int tile_height, int tile_width) {
  const int across = (image.out_width + tile_width - 1) / tile_width;
  const int down = static_cast<int>(blockIdx.x) / across;
  return {static_cast<int>(blockIdx.y + gridDim.y * blockIdx.z), down * tile_height,
          (static_cast<int>(blockIdx.x) - down * across) * tile_width};
}

/// Elements of one input image.
__host__ __device__ __forceinline__ std::int64_t input_pixels(const Image& image) {
  return static_cast<std::int64_t>(image.height) * image.width;
}
/// Elements of one output image.
__host__ __device__ __forceinline__ std::int64_t output_pixels(const Image& image) {
  return static_cast<std::int64_t>(image.out_height) * image.out_width;
}

/// Rows of the image, as a dimension of their own.
Axis vertical(const Image& image);
/// Columns of the image, likewise.
Axis horizontal(const Image& image);

/// How many (output, tap) pairs read inside the input; outside, zero padding reads nothing.
std::int64_t reads_by_output(const Image& image);
/// How many elements are read if every tile of outputs loads all that it needs once.
std::int64_t reads_by_tile(const Image& image, int tile_height, int tile_width);
/// Warp-wide requests that one access by every output makes, where a warp covers 32 neighbours of a row.
std::int64_t warps_over_outputs(const Image& image);

}  // namespace convladder
