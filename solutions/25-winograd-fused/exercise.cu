// Lab 25: tiles of 4 x 4 outputs. F(4 x 4, 3 x 3) in one kernel, fp32, padding with zeros.
//
//   1. Which tiles. A block has 32 of them, wherever an image ends, and 32 filters.
//   2. A mask. Which of the 36 pixels of its tile a thread may load.
//   3. Pixels of one channel: those inside, and zeros.
//   4. Outputs: rows of four in one store where they lie so; of torn tiles, what exists.
//
// Rules: one launch beside prepare's; no copy of the input; 32 tiles and 32 filters a block.
// Graded: the outputs of whole and of torn tiles; no fault; blocks of many images; what is loaded, and what is stored.

#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/winograd.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kWarps = 12, kThreads = 32 * kWarps;
constexpr int kTiles = 32, kFilters = 32;  // of a block
constexpr int kDepth = 8;                  // channels of a step: one for each of the first 8 warps
constexpr int kPositions = 36, kOfWarp = kPositions / kWarps;
constexpr int kStage = kPositions * kDepth * kTiles;  // floats of a step's transformed tiles, or filters
constexpr int kRound = 8;                             // filters whose sums meet in shared memory at a time
static_assert(kFilters == kTiles && kRound == kDepth, "filters, tiles and sums have stages of one size");

// U [filter block][step][position][channel of the step][filter of the block]
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  float* u, Winograd w, int steps) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int k = i % kFilters, c = i / kFilters % (steps * kDepth), block = i / kFilters / (steps * kDepth);
  if (block * kFilters >= w.filters) return;
  const bool inside = block * kFilters + k < w.filters && c < w.channels;
  const float* taps = filter + ((block * kFilters + k) * w.channels + c) * 9;
  float g[3][3], tile[6][6];
  UNROLL
  for (int r = 0; r < 3; ++r) {
    UNROLL
    for (int s = 0; s < 3; ++s) g[r][s] = inside ? taps[r * 3 + s] : 0.0f;
  }
  transform_filter<F4>(g, tile);
  float* stage = u + (block * steps + c / kDepth) * kStage + c % kDepth * kFilters + k;
  UNROLL
  for (int position = 0; position < kPositions; ++position)
    stage[position * kDepth * kFilters] = tile[position / 6][position % 6];
}

// 1. Blocks that share the tiles.
__host__ __device__ __forceinline__ int tile_blocks(const Winograd& w) {
  // SOLUTION
  return blocks_for(w.tiles, kTiles);
  // STARTER
  // | // One image after the other, yet: the last block of each is mostly empty.
  // | return w.batch * blocks_for(w.tiles_down * w.tiles_across, kTiles);
  // END
}

__global__ void __launch_bounds__(kThreads, 1) fused(const float* input,  // [batch][channels][height][width]
                                                     const float* u,      // [filter block][step][kStage]
                                                     float* output,       // [batch][filters][out_height][out_width]
                                                     Winograd w, int steps) {
  float* const filter_stage = dynamic_shared<float>();  // [position][kDepth][kFilters]
  float* const input_stage = filter_stage + kStage;     // [position][kDepth][kTiles]; in the end the sums
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int filter_block = static_cast<int>(blockIdx.x) / tile_blocks(w);
  const int tile_block = static_cast<int>(blockIdx.x) % tile_blocks(w);

  // The thread's tile: it loads channel `warp` of each step of it, and stores outputs of it.
  // SOLUTION
  const int tile = tile_block * kTiles + lane;
  const bool exists = tile < w.tiles;
  const TilePlace place = place_of(w, exists ? tile : w.tiles - 1);
  // 2. 36 bits do not fit in an unsigned int.
  const int top = place.row - w.pad_y, left = place.column - w.pad_x;
  unsigned long long mask = 0;
  UNROLL
  for (int i = 0; i < kPositions; ++i) {
    const int y = top + i / 6, x = left + i % 6;
    if (exists && y >= 0 && y < w.height && x >= 0 && x < w.width) mask |= 1ull << i;
  }
  const float* image = input + place.image * w.channels * w.height * w.width;
  // 3.
  const auto load_pixels = [&](int channel, float(&pixels)[6][6]) {
    const float* corner = image + (channel * w.height + top) * w.width + left;
    const unsigned long long inside = channel < w.channels ? mask : 0;
    UNROLL
    for (int i = 0; i < kPositions; ++i)
      pixels[i / 6][i % 6] = inside >> i & 1 ? corner[i / 6 * w.width + i % 6] : 0.0f;
  };
  // 4.
  const bool fours = w.out_width % 4 == 0;
  const auto store_outputs = [&](int k, const float(&out)[4][4]) {
    if (!exists || k >= w.filters) return;
    float* to = output + (place.image * w.filters + k) * w.out_height * w.out_width;
    UNROLL
    for (int i = 0; i < 4; ++i) {
      if (place.row + i >= w.out_height) continue;
      float* row = to + (place.row + i) * w.out_width + place.column;
      if (fours) {
        *reinterpret_cast<float4*>(row) = make_float4(out[i][0], out[i][1], out[i][2], out[i][3]);
      } else {
        UNROLL
        for (int j = 0; j < 4; ++j)
          if (place.column + j < w.out_width) row[j] = out[i][j];
      }
    }
  };
  // STARTER
  // | const int image_tiles = w.tiles_down * w.tiles_across, image_blocks = blocks_for(image_tiles, kTiles);
  // | const int in_image = tile_block % image_blocks * kTiles + lane;
  // | const bool exists = in_image < image_tiles;
  // | const TilePlace place = place_of(w, tile_block / image_blocks * image_tiles + (exists ? in_image : 0));
  // | // Only tiles with all 36 pixels inside are loaded yet. The others are zeros.
  // | const int top = place.row - w.pad_y, left = place.column - w.pad_x;
  // | const bool whole = exists && top >= 0 && left >= 0 && top + 6 <= w.height && left + 6 <= w.width;
  // | const float* image = input + place.image * w.channels * w.height * w.width;
  // | const auto load_pixels = [&](int channel, float(&pixels)[6][6]) {
  // |   const float* corner = image + (channel * w.height + top) * w.width + left;
  // |   for (int i = 0; i < kPositions; ++i)
  // |     pixels[i / 6][i % 6] = whole && channel < w.channels ? corner[i / 6 * w.width + i % 6] : 0.0f;
  // | };
  // | // Only tiles with all 16 outputs are stored yet, one output at a time.
  // | const auto store_outputs = [&](int k, const float(&out)[4][4]) {
  // |   if (!exists || k >= w.filters || place.row + 4 > w.out_height || place.column + 4 > w.out_width) return;
  // |   float* to = output + (place.image * w.filters + k) * w.out_height * w.out_width;
  // |   for (int i = 0; i < 4; ++i)
  // |     for (int j = 0; j < 4; ++j) to[(place.row + i) * w.out_width + place.column + j] = out[i][j];
  // | };
  // END

  // A warp multiplies at 3 positions, each of its threads 4 filters x 8 tiles.
  const int y = lane / 4 * 4, x = lane % 4 * 4;
  float sums[kOfWarp][4][8] = {};
  UNROLL_BY(1)
  for (int step = 0; step < steps; ++step) {
    __syncthreads();  // the stages of the step before are read
    const float4* filters = reinterpret_cast<const float4*>(u + (filter_block * steps + step) * kStage);
    UNROLL
    for (int i = thread; i < kStage / 4; i += kThreads) reinterpret_cast<float4*>(filter_stage)[i] = filters[i];
    if (warp < kDepth) {
      float pixels[6][6];
      load_pixels(step * kDepth + warp, pixels);
      transform_input<F4>(pixels);
      UNROLL
      for (int i = 0; i < kPositions; ++i) input_stage[(i * kDepth + warp) * kTiles + lane] = pixels[i / 6][i % 6];
    }
    __syncthreads();
    UNROLL
    for (int row = 0; row < kOfWarp * kDepth; ++row) {
      const int first = kOfWarp * kDepth * warp + row;  // of the stages' rows
      const float4 down = *reinterpret_cast<const float4*>(filter_stage + first * kFilters + y);
      const float4 left_tiles = *reinterpret_cast<const float4*>(input_stage + first * kTiles + x);
      const float4 right_tiles = *reinterpret_cast<const float4*>(input_stage + first * kTiles + x + 16);
      const float a[4] = {down.x, down.y, down.z, down.w};
      const float b[8] = {left_tiles.x,  left_tiles.y,  left_tiles.z,  left_tiles.w,
                          right_tiles.x, right_tiles.y, right_tiles.z, right_tiles.w};
      UNROLL
      for (int i = 0; i < 4; ++i) {
        UNROLL
        for (int j = 0; j < 8; ++j) sums[row / kDepth][i][j] += a[i] * b[j];
      }
    }
  }

  // The sums of 8 filters at a time meet: [position][every fourth filter][tile]
  UNROLL
  for (int r = 0; r < kFilters / kRound; ++r) {
    __syncthreads();  // the last stage, or the sums before, are read
    UNROLL
    for (int i = 0; i < kOfWarp; ++i) {
      float* row = input_stage + ((kOfWarp * warp + i) * kRound + lane / 4) * kTiles + x;
      const float* s = sums[i][r];
      *reinterpret_cast<float4*>(row) = make_float4(s[0], s[1], s[2], s[3]);
      *reinterpret_cast<float4*>(row + 16) = make_float4(s[4], s[5], s[6], s[7]);
    }
    __syncthreads();
    if (warp < kRound) {
      float m[6][6], out[4][4];
      UNROLL
      for (int i = 0; i < kPositions; ++i) m[i / 6][i % 6] = input_stage[(i * kRound + warp) * kTiles + lane];
      transform_output<F4>(m, out);
      store_outputs(filter_block * kFilters + 4 * warp + r, out);
    }
  }
}

class FusedFour final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    if (problem.padding != Padding::zero) return Verdict::refuse("pads with zeros only");
    if (kSharedBytes > limits.shared_bytes_per_block)
      return Verdict::refuse("a block needs {} bytes of shared memory; it may have {}", kSharedBytes,
                             limits.shared_bytes_per_block);
    return check_winograd(problem, 4, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, 4);
    const int steps = blocks_for(w.channels, kDepth), filter_blocks = blocks_for(w.filters, kFilters);
    u_.allocate(std::int64_t{filter_blocks} * steps * kStage);
    convladder::launch(transform_filters, dim3(blocks_for(filter_blocks * steps * kDepth * kFilters, kThreads)),
                       dim3(kThreads), 0, stream)(tensors.filter, u_.floats(), w, steps);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, 4);
    convladder::launch(fused, dim3(tile_blocks(w) * blocks_for(w.filters, kFilters)), dim3(kThreads), kSharedBytes,
                       stream)(tensors.input, u_.floats(), tensors.output, w, blocks_for(w.channels, kDepth));
  }

  static constexpr int kSharedBytes = 2 * kStage * 4;
  Workspace u_{*this, "transformed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::FusedFour)
