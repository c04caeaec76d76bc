// 07 tiled-2d: the tile with its whole halo, in nine regions.
//
// Since 06: the halo comes to shared memory too, so that no tap has to ask where its pixel lies. A tile of 32x32
// outputs needs (32 + rows - 1) x (32 + columns - 1) pixels: a body, four edges, four corners.
//
//              left       body        right
//            +------+--------------+-------+
//        top |corner|     edge     |corner |  pad_y rows
//            +------+--------------+-------+
//       body | edge |  32 x 32     | edge  |
//            +------+--------------+-------+
//     bottom |corner|     edge     |corner |  rows - 1 - pad_y rows
//            +------+--------------+-------+
//
//   1. The block loads the nine regions, three at a time. Each thread has its own place in each of them, and every 32nd
//      place from there where an edge is wider than the block.
//   2. A barrier.
//   3. Each thread sums its window from shared memory.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

constexpr int kTile = 32;  // outputs of a block in each direction, and its threads

__constant__ float c_filter[kMaxFilterTaps];

// Where the body of the tile begins and ends along one dimension, and where the tile ends. With more padding than the
// filter is long there is no left halo that is `pad` wide: then all of the halo lies on the left.
// Comparisons instead of min(): nvcc 13.0 fuses three of those into one instruction and loses a sign.
struct Regions {
  int body, after_body, end;
};
__device__ __forceinline__ Regions regions(int pad, int taps, int outputs) {
  const int left = pad < taps ? pad : taps - 1, end = outputs + taps - 1;
  return {left, left + kTile < end ? left + kTile : end, end};
}

__global__ void __launch_bounds__(kTile* kTile, 2) tiled_2d(const float* input,  // [batch][height][width]
                                                            float* output,       // [batch][out_height][out_width]
                                                            Image image) {
  float* pixels = dynamic_shared<float>();  // [kTile + rows - 1][pitch]
  const int pitch = kTile + image.columns - 1;
  const BlockTile tile = block_tile(image, kTile, kTile);
  if (tile.image >= image.batch) return;
  const float* in = input + tile.image * input_pixels(image);

  // 1. Only as far as the tile's last output needs. A thread has one place in each region, and asks for three regions
  // before it stores the first. Where an edge is wider than the block, there is another round.
  const Regions down = regions(image.pad_y, image.rows, min(kTile, image.out_height - tile.y));
  const Regions across = regions(image.pad_x, image.columns, min(kTile, image.out_width - tile.x));
  const int tops[4] = {0, down.body, down.after_body, down.end};
  const int lefts[4] = {0, across.body, across.after_body, across.end};
  const int ty = threadIdx.y, tx = threadIdx.x;
  UNROLL
  for (int m = 0; m < 3; ++m) {
    for (int y = tops[m] + ty; y < tops[m + 1]; y += kTile) {
      const int i = border_index(tile.y - image.pad_y + y, image.height, image.padding);
      const float* row = in + static_cast<std::int64_t>(i) * image.width;
      for (int round = 0; round < max(kTile, image.columns - 1); round += kTile) {
        float held[3];
        UNROLL
        for (int n = 0; n < 3; ++n) {
          const int x = lefts[n] + round + tx;
          const int j = x < lefts[n + 1] ? border_index(tile.x - image.pad_x + x, image.width, image.padding) : -1;
          held[n] = i < 0 || j < 0 ? 0.0f : row[j];
        }
        UNROLL
        for (int n = 0; n < 3; ++n) {
          const int x = lefts[n] + round + tx;
          if (x < lefts[n + 1]) pixels[y * pitch + x] = held[n];
        }
      }
    }
  }

  // 2.
  __syncthreads();

  // 3.
  const int y = tile.y + threadIdx.y, x = tile.x + threadIdx.x;
  if (y >= image.out_height || x >= image.out_width) return;
  float sum = 0.0f;
  for (int r = 0; r < image.rows; ++r) {
    const float* row = pixels + (threadIdx.y + r) * pitch + threadIdx.x;
    for (int s = 0; s < image.columns; ++s) sum += row[s] * c_filter[r * image.columns + s];
  }
  output[tile.image * output_pixels(image) + static_cast<std::int64_t>(y) * image.out_width + x] = sum;
}

std::size_t tile_bytes(const Image& image) {
  return static_cast<std::size_t>(kTile + image.rows - 1) * (kTile + image.columns - 1) * sizeof(float);
}

void launch_tiled_2d(const Tensors& tensors, const Image& image, Stream stream) {
  launch(tiled_2d, image_grid(image, kTile, kTile), dim3(kTile, kTile), tile_bytes(image), stream)(
      tensors.input, tensors.output, image);
}

class Tiled2d final : public Stage {
  // The largest filter, 65x65, makes a tile of 96x96 pixels: 36 KB, which every GPU's blocks have.
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_image(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_tiled_2d(tensors, image_of(problem), stream);
  }

  // Each tile loads (32 + rows - 1) x (32 + columns - 1) pixels, less where the image ends.
  Prediction predict(const ConvProblem& problem) const override {
    const Image image = image_of(problem);
    const std::int64_t taps = problem.filter_size();
    Prediction p;
    p.global_load_bytes = reads_by_tile(image, kTile, kTile) * 4;
    p.global_store_bytes = problem.output_size() * 4;
    p.global_store_requests = warps_over_outputs(image);
    p.shared_load_requests = p.constant_load_requests = warps_over_outputs(image) * taps;
    p.shared_load_conflicts = p.shared_store_conflicts = 0;
    p.barriers = static_cast<std::int64_t>(image_grid(image, kTile, kTile).x) * image.batch;
    p.flops = problem.flops();
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Tiled2d)
