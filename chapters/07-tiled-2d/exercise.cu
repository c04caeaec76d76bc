// 07, exercise: a tile that walks down the image.
//
// A block computes eight tiles of 32x32 outputs, one below the other. The last rows - 1 rows of pixels of a tile are
// the first rows - 1 of the next: they are in shared memory already, so they are neither loaded again nor moved. Shared
// memory is a ring of rows: row p of the block's window lies in slot p % slots, where slots = 32 + rows - 1.
//
//   rows = 3, so 34 slots:
//   tile 0   loads the rows  0 .. 33   reads  0 .. 33
//   tile 1   loads the rows 34 .. 65   reads 32 .. 65   row 34 takes the place of row 0, row 35 of row 1, ...
//   tile 2   loads the rows 66 .. 97   reads 64 .. 97
//
//   1. The first tile's halo is loaded, once a block.
//   2. For each tile: load 32 rows behind the halo, compute 32 rows of outputs.
//
// Rules: one launch; a block walks over kTiles tiles. The last block of an image may have fewer, and the last tile
// fewer rows of outputs.
// Graded: the outputs inside, at the edges for every padding mode, and of every size and batch; no fault, races
// among them; each pixel loaded once a block; no pixel moved; at most two barriers a tile.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

constexpr int kTile = 32;  // outputs of a tile in each direction, and threads of a block
constexpr int kTiles = 8;  // tiles that a block walks over

__constant__ float c_filter[kMaxFilterTaps];

// The pixel at a position of the padded image; zero where no output needs one.
__device__ __forceinline__ float padded_pixel(const float* in, int y, int x, const Image& image) {
  if (y >= image.height + image.pad_y || x >= image.width + image.pad_x) return 0.0f;
  const int i = border_index(y, image.height, image.padding);
  const int j = border_index(x, image.width, image.padding);
  return i < 0 || j < 0 ? 0.0f : in[static_cast<std::int64_t>(i) * image.width + j];
}

__global__ void walk_2d(const float* input,  // [batch][height][width]
                        float* output,       // [batch][out_height][out_width]
                        Image image) {
  float* pixels = dynamic_shared<float>();  // [slots][pitch]
  const int halo = image.rows - 1, slots = kTile + halo, pitch = kTile + image.columns - 1;
  const BlockTile block = block_tile(image, kTiles * kTile, kTile);
  if (block.image >= image.batch) return;
  const float* in = input + block.image * input_pixels(image);
  float* out = output + block.image * output_pixels(image);
  const int top = block.y - image.pad_y, left = block.x - image.pad_x;  // position of row 0, column 0 of the window
  const int outputs = min(kTiles * kTile, image.out_height - block.y);  // rows of outputs of this block
  const int ty = threadIdx.y, tx = threadIdx.x;

  // One tile, as in 07, and no walk: every row of outputs from the block's second tile on is never written.
  for (int p = ty; p < slots; p += kTile)
    for (int t = tx; t < pitch; t += kTile) pixels[p * pitch + t] = padded_pixel(in, top + p, left + t, image);
  __syncthreads();
  if (ty >= outputs || block.x + tx >= image.out_width) return;
  float sum = 0.0f;
  for (int r = 0; r < image.rows; ++r) {
    const float* row = pixels + (ty + r) * pitch + tx;
    for (int s = 0; s < image.columns; ++s) sum += row[s] * c_filter[r * image.columns + s];
  }
  out[static_cast<std::int64_t>(block.y + ty) * image.out_width + block.x + tx] = sum;
}

// With the largest filter, 65x65, a ring of 96x96 pixels: 36 KB.
std::size_t ring_bytes(const Image& image) {
  return static_cast<std::size_t>(kTile + image.rows - 1) * (kTile + image.columns - 1) * sizeof(float);
}

void launch_walk_2d(const Tensors& tensors, const Image& image, Stream stream) {
  launch(walk_2d, image_grid(image, kTiles * kTile, kTile), dim3(kTile, kTile), ring_bytes(image), stream)(
      tensors.input, tensors.output, image);
}

class Walk2d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_image(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_walk_2d(tensors, image_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Walk2d)
