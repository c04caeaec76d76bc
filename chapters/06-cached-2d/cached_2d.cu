// 06 cached-2d: the body from shared memory, the halo from the caches.
//
// Since 05: a block of 32x32 threads keeps the pixels that lie under its own outputs in shared memory, one for each
// thread. Most taps of most windows meet them there. The others, near the tile's edge, meet pixels of a neighbouring
// block, which that block has just brought to L1 or L2: they are read from global memory, as in 05.
//
//   1. Each thread loads one pixel of the body.
//   2. A barrier: from here on every thread sees the whole body.
//   3. For each tap: inside the body it reads shared memory, outside it global memory.
//
// No halo has to be loaded, so the kernel stays short. But every tap asks where its pixel lies, and lanes of one warp
// may answer differently.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

constexpr int kTile = 32;  // outputs of a block in each direction, and its threads

__constant__ float c_filter[kMaxFilterTaps];

__global__ void cached_2d(const float* input,  // [batch][height][width]
                          float* output,       // [batch][out_height][out_width]
                          Image image) {
  __shared__ float body[kTile][kTile];
  const BlockTile tile = block_tile(image, kTile, kTile);
  if (tile.image >= image.batch) return;
  const float* in = input + tile.image * input_pixels(image);
  const int ty = threadIdx.y, tx = threadIdx.x;

  // 1. The pixel under the middle of the thread's window; past the last window it is not needed.
  const int middle_y = (image.rows - 1) / 2, middle_x = (image.columns - 1) / 2;
  const int first_y = tile.y - image.pad_y, first_x = tile.x - image.pad_x;  // of the block's first window
  const int own_y = first_y + middle_y + ty, own_x = first_x + middle_x + tx;
  float own = 0.0f;
  if (own_y < image.height + image.pad_y && own_x < image.width + image.pad_x) {
    const int i = border_index(own_y, image.height, image.padding);
    const int j = border_index(own_x, image.width, image.padding);
    if (i >= 0 && j >= 0) own = in[static_cast<std::int64_t>(i) * image.width + j];
  }
  body[ty][tx] = own;

  // 2.
  __syncthreads();
  if (tile.y + ty >= image.out_height || tile.x + tx >= image.out_width) return;

  // 3. Tap (r, s) meets the body at (ty + r - middle_y, tx + s - middle_x), if that lies inside.
  float sum = 0.0f;
  for (int r = 0; r < image.rows; ++r) {
    const int by = ty + r - middle_y;
    const bool row_inside = by >= 0 && by < kTile;
    const int i = border_index(first_y + ty + r, image.height, image.padding);
    for (int s = 0; s < image.columns; ++s) {
      const int bx = tx + s - middle_x;
      const float tap = c_filter[r * image.columns + s];
      if (row_inside && bx >= 0 && bx < kTile) {
        sum += body[by][bx] * tap;
      } else {
        const int j = border_index(first_x + tx + s, image.width, image.padding);
        if (i >= 0 && j >= 0) sum += in[static_cast<std::int64_t>(i) * image.width + j] * tap;
      }
    }
  }
  output[tile.image * output_pixels(image) + static_cast<std::int64_t>(tile.y + ty) * image.out_width + tile.x + tx] =
      sum;
}

void launch_cached_2d(const Tensors& tensors, const Image& image, Stream stream) {
  launch(cached_2d, image_grid(image, kTile, kTile), dim3(kTile, kTile), 0, stream)(tensors.input, tensors.output,
                                                                                    image);
}

// Along one dimension: elements that the blocks load into their bodies, and (output, tap) pairs that meet them there.
// Products of the two dimensions count the image.
struct BodyCounts {
  std::int64_t loads = 0;
  std::int64_t meetings = 0;     // shared reads
  std::int64_t reads_there = 0;  // of these, where a read from global memory would find the input
};

BodyCounts body_counts(const Axis& axis) {
  BodyCounts counts;
  const std::int64_t middle = (axis.taps - 1) / 2;
  for (std::int64_t start = 0; start < axis.out_size; start += kTile) {
    const std::int64_t body = start - axis.pad + middle;  // input position of the body's first element
    const std::int64_t outputs = min(static_cast<long long>(kTile), static_cast<long long>(axis.out_size - start));
    counts.loads += reads_of_range(
        axis, body, min(static_cast<long long>(kTile), static_cast<long long>(axis.size + axis.pad - body)));
    for (std::int64_t tap = 0; tap < axis.taps; ++tap) {
      // Outputs o of the tile with 0 <= o + tap - middle < kTile.
      const std::int64_t begin = max(0LL, static_cast<long long>(middle - tap));
      const std::int64_t end = min(static_cast<long long>(outputs), static_cast<long long>(kTile + middle - tap));
      if (end <= begin) continue;
      counts.meetings += end - begin;
      counts.reads_there += reads_of_range(axis, start + begin + tap - axis.pad, end - begin);
    }
  }
  return counts;
}

class Cached2d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_image(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_cached_2d(tensors, image_of(problem), stream);
  }

  // The body once, and from global memory what 05 reads less what the body answers.
  Prediction predict(const ConvProblem& problem) const override {
    const Image image = image_of(problem);
    const BodyCounts rows = body_counts(vertical(image)), columns = body_counts(horizontal(image));
    const dim3 grid = image_grid(image, kTile, kTile);
    Prediction p;
    p.global_load_bytes =
        (reads_by_output(image) + image.batch * (rows.loads * columns.loads - rows.reads_there * columns.reads_there)) *
        4;
    p.global_store_bytes = problem.output_size() * 4;
    p.global_store_requests = warps_over_outputs(image);
    p.shared_load_conflicts = p.shared_store_conflicts = 0;
    p.barriers = static_cast<std::int64_t>(grid.x) * image.batch;
    p.flops = problem.flops();
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Cached2d)
