// 25 winograd-fused: transform, multiply and transform back in one kernel. F(2 x 2, 3 x 3).
//
// Since 24: the transformed input and the sums never leave the multiprocessor. A block takes 32 tiles and 64 filters
// through all channels, 8 a step, at all 16 positions: that is 16 small matrix products side by side.
//
//   1. In prepare(): the filters are transformed, and laid out as the blocks read them, padded with zeros.
//   2. Load balance: the tiles of the whole batch are numbered through, and each block takes the next 32, wherever an
//      image ends; and 64 filters, so that a transformed tile serves 64 of them.
//   3. Dynamic padding: a mask of 16 bits tells a thread which pixels of its tile are inside the input; the others are
//      zeros that nobody loads. The alternative to be measured: a copy of the input with its padding around it. Padding
//      other than with zeros always takes that.
//   4. Staged loads: the next step's filters go to shared memory as asynchronous copies, its pixels to registers, while
//      a step is multiplied. With three buffers the filters are two steps ahead; with one, nothing is.
//   5. A step: each warp multiplies at two of the 16 positions, each of its threads 8 filters x 8 tiles.
//   6. The next step's tiles are transformed, and stored where the step after reads them.
//   7. At the end the sums meet in shared memory, half of the filters at a time; each thread transforms tiles back.

#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/winograd.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;
constexpr int kTiles = 32, kFilters = 64;  // of a block
constexpr int kDepth = 8;                  // channels of a step: one for each warp that loads and transforms
constexpr int kPositions = 16;
constexpr int kInputStage = kPositions * kDepth * kTiles;     // floats of a step's transformed tiles
constexpr int kFilterStage = kPositions * kDepth * kFilters;  // and filters
constexpr int kHalfSums = kPositions * (kFilters / 2) * kTiles;

// 1. U [filter block][step][position][channel of the step][filter of the block]
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  float* u, Winograd w, int steps) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int k = i % kFilters, c = i / kFilters % (steps * kDepth), block = i / kFilters / (steps * kDepth);
  if (block * kFilters >= w.filters) return;
  const bool inside = block * kFilters + k < w.filters && c < w.channels;
  const float* taps = filter + ((block * kFilters + k) * w.channels + c) * 9;
  float g[3][3], tile[4][4];
  UNROLL
  for (int r = 0; r < 3; ++r) {
    UNROLL
    for (int s = 0; s < 3; ++s) g[r][s] = inside ? taps[r * 3 + s] : 0.0f;
  }
  transform_filter<F2>(g, tile);
  float* stage = u + (block * steps + c / kDepth) * kFilterStage + c % kDepth * kFilters + k;
  UNROLL
  for (int position = 0; position < kPositions; ++position)
    stage[position * kDepth * kFilters] = tile[position / 4][position % 4];
}

// 3. The alternative: [batch][channels][2 tiles_down + 2][2 tiles_across + 2]
__global__ void pad_input(const float* input,  // [batch][channels][height][width]
                          float* padded, Winograd w) {
  const int width = 2 * w.tiles_across + 2, height = 2 * w.tiles_down + 2;
  const int x = blockIdx.x * kThreads + threadIdx.x, row = block_in_y();
  const int plane = row / height, y = row % height;
  if (x >= width || plane >= w.batch * w.channels) return;
  const int i = tile_index(y - w.pad_y, w.height, w.pad_y, w.padding);
  const int j = tile_index(x - w.pad_x, w.width, w.pad_x, w.padding);
  padded[row * width + x] = i >= 0 && j >= 0 ? input[(plane * w.height + i) * w.width + j] : 0.0f;
}

__device__ __forceinline__ void unpack(float4 v, float* values) {
  values[0] = v.x;
  values[1] = v.y;
  values[2] = v.z;
  values[3] = v.w;
}

template <int Buffers, bool Masked>
__global__ void __launch_bounds__(kThreads, 1)
    winograd_fused(const float* input,  // [batch][channels][height][width], or the padded copy
                   const float* u,      // [filter block][step][position][kDepth][kFilters]
                   float* output,       // [batch][filters][out_height][out_width]
                   Winograd w, int steps, int tiles_of_group) {
  float* const filter_stage = dynamic_shared<float>();               // [Buffers][position][kDepth][kFilters]
  float* const input_stage = filter_stage + Buffers * kFilterStage;  // [2][position][kDepth][kTiles]
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  // 2. A group is what blocks do not span: the batch, or, to see what balance brings, an image.
  const int filter_blocks = blocks_for(w.filters, kFilters), group_blocks = blocks_for(tiles_of_group, kTiles);
  const int filter_block = static_cast<int>(blockIdx.x) % filter_blocks;
  const int tile_block = static_cast<int>(blockIdx.x) / filter_blocks;
  const int first_tile = tile_block / group_blocks * tiles_of_group + tile_block % group_blocks * kTiles;
  const int past_tile = (tile_block / group_blocks + 1) * tiles_of_group;

  // 3. Each thread loads and transforms the tile `lane` of channel `warp` of a step.
  const TilePlace mine = place_of(w, min(first_tile + lane, past_tile - 1));
  const int height = Masked ? w.height : 2 * w.tiles_down + 2, width = Masked ? w.width : 2 * w.tiles_across + 2;
  const int top = mine.row - (Masked ? w.pad_y : 0), left = mine.column - (Masked ? w.pad_x : 0);
  unsigned mask = 0;
  UNROLL
  for (int i = 0; i < kPositions; ++i) {
    const int y = top + i / 4, x = left + i % 4;
    if (!Masked || (y >= 0 && y < height && x >= 0 && x < width)) mask |= 1u << i;
  }
  const int plane = height * width;
  const float* corner = input + (mine.image * w.channels + warp) * plane + top * width + left;
  int channel = warp;
  float pixels[4][4];
  const auto load_pixels = [&] {
    const bool inside = channel < w.channels;
    UNROLL
    for (int i = 0; i < kPositions; ++i)
      pixels[i / 4][i % 4] = inside && (!Masked || (mask >> i & 1)) ? corner[i / 4 * width + i % 4] : 0.0f;
    corner += kDepth * plane;
    channel += kDepth;
  };
  // 4.
  const float4* filters = reinterpret_cast<const float4*>(u + filter_block * steps * kFilterStage) + thread;
  const auto start_filters = [&](int buffer) {
    float4* stage = reinterpret_cast<float4*>(filter_stage + buffer * kFilterStage) + thread;
    UNROLL
    for (int i = 0; i < kFilterStage / 4 / kThreads; ++i) copy_async<16>(stage + i * kThreads, filters + i * kThreads);
    filters += kFilterStage / 4;
  };
  // 6. Neighbouring tiles change places, and registers of a product lie in different banks (stage 20).
  const auto store_tile = [&](int buffer) {
    transform_input<F2>(pixels);
    float* stage = input_stage + buffer * kInputStage + warp * kTiles + (lane ^ 1);
    UNROLL
    for (int i = 0; i < kPositions; ++i) stage[i * kDepth * kTiles] = pixels[i / 4][i % 4];
  };

  const int y = lane / 4 * 4, x = lane % 4 * 4;  // the thread's first filter and tile, and again 32 and 16 on
  float sums[2][8][8] = {};
  float4 down[2][2], across[2][2];
  const float *filter_rows, *input_rows;  // of the warp's two positions, in the step's buffers
  const auto fetch = [&](int row) {
    UNROLL
    for (int half = 0; half < 2; ++half) {
      down[row % 2][half] = *reinterpret_cast<const float4*>(filter_rows + row * kFilters + 32 * half);
      across[row % 2][half] = *reinterpret_cast<const float4*>(input_rows + row * kTiles + 16 * half);
    }
  };
  const auto multiply_add = [&](int row) {
    float a[8], b[8];
    UNROLL
    for (int half = 0; half < 2; ++half) {
      unpack(down[row % 2][half], a + 4 * half);
      unpack(across[row % 2][half], b + 4 * half);
    }
    UNROLL
    for (int i = 0; i < 8; ++i) {
      UNROLL
      for (int column = 0; column < 8; ++column) {
        const int j = i % 2 ? 7 - column : column;  // there and back: the last number is used again
        sums[row / kDepth][i][j] += a[i] * b[j ^ 1];
      }
    }
  };

  start_filters(0);
  commit_copies();
  if (Buffers == 3) {
    if (steps > 1) start_filters(1);
    commit_copies();
  }
  load_pixels();
  store_tile(0);
  int filter_buffer = 0, next_filter_buffer = Buffers - 1;
  UNROLL_BY(1)
  for (int step = 0; step < steps; ++step) {
    wait_copies<Buffers == 3 ? 1 : 0>();
    __syncthreads();  // the step's stages are everybody's, and nobody reads the others any more
    const bool more = step + 1 < steps;
    if (Buffers > 1) {
      load_pixels();  // before the copies, and of no channel at the end: else nvcc moves it to where the tile is needed
      if (step + Buffers - 1 < steps) start_filters(next_filter_buffer);
      commit_copies();
    }
    // 5.
    filter_rows = filter_stage + filter_buffer * kFilterStage + 2 * warp * kDepth * kFilters + y;
    input_rows = input_stage + (Buffers == 1 ? 0 : step % 2) * kInputStage + 2 * warp * kDepth * kTiles + x;
    fetch(0);
    UNROLL
    for (int row = 0; row < 2 * kDepth; ++row) {
      if (row + 1 < 2 * kDepth) fetch(row + 1);
      multiply_add(row);
    }
    if (Buffers == 1) {
      __syncthreads();  // the only stages are read
      if (more) start_filters(0);
      commit_copies();
      if (more) load_pixels();
    }
    if (more) store_tile(Buffers == 1 ? 0 : (step + 1) % 2);
    filter_buffer = filter_buffer + 1 == Buffers ? 0 : filter_buffer + 1;
    next_filter_buffer = next_filter_buffer + 1 == Buffers ? 0 : next_filter_buffer + 1;
  }

  // 7. [position][half of the filters][tile]. Of every other four filters, the halves of a row change places: lanes 0
  // to 3 and 4 to 7, which store at the same time, then use different banks.
  float* const exchange = dynamic_shared<float>();
  const int tile = first_tile + lane;
  const TilePlace place = place_of(w, min(tile, past_tile - 1));
  const bool pairs = w.out_width % 2 == 0;
  UNROLL
  for (int half = 0; half < 2; ++half) {
    __syncthreads();  // the stages, or the first half of the sums, are read
    UNROLL
    for (int i = 0; i < 2; ++i) {
      UNROLL
      for (int r = 0; r < 4; ++r) {
        float* row = exchange + ((2 * warp + i) * (kFilters / 2) + y + r) * kTiles;
        const float* s = sums[i][4 * half + r];
        *reinterpret_cast<float4*>(row + (x ^ (y / 4 % 2 * 16))) = make_float4(s[0], s[1], s[2], s[3]);
        *reinterpret_cast<float4*>(row + ((x + 16) ^ (y / 4 % 2 * 16))) = make_float4(s[4], s[5], s[6], s[7]);
      }
    }
    __syncthreads();
    UNROLL
    for (int r = 0; r < 4; ++r) {
      const int row = r * (kThreads / 32) + warp, k = filter_block * kFilters + half * (kFilters / 2) + row;
      float m[4][4], out[2][2];
      UNROLL
      for (int i = 0; i < kPositions; ++i)
        m[i / 4][i % 4] = exchange[(i * (kFilters / 2) + row) * kTiles + (lane ^ (row / 4 % 2 * 16))];
      transform_output<F2>(m, out);
      if (k >= w.filters || tile >= past_tile) continue;
      float* to =
          output + (place.image * w.filters + k) * w.out_height * w.out_width + place.row * w.out_width + place.column;
      UNROLL
      for (int i = 0; i < 2; ++i, to += w.out_width) {
        if (place.row + i >= w.out_height) continue;
        if (pairs) {
          *reinterpret_cast<float2*>(to) = make_float2(out[i][0], out[i][1]);
        } else {
          to[0] = out[i][0];
          if (place.column + 1 < w.out_width) to[1] = out[i][1];
        }
      }
    }
  }
}

// The knobs, each an idea to be switched off.
constexpr int kBufferCounts[] = {1, 2, 3};
enum { kMask, kCopy };
constexpr int kPaddings[] = {kMask, kCopy};
constexpr const char* kPaddingWords[] = {"mask", "copy"};
enum { kBalanced, kPerImage };
constexpr int kMappings[] = {kBalanced, kPerImage};
constexpr const char* kMappingWords[] = {"balanced", "per-image"};
constexpr Knob kKnobs[] = {{"buffers", kBufferCounts, nullptr, 3},
                           {"padding", kPaddings, kPaddingWords, 2},
                           {"tiles", kMappings, kMappingWords, 2}};

class WinogradFused final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 3}; }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits&) const override {
    return {{2, problem.padding == Padding::zero ? kMask : kCopy, kBalanced}};
  }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    if (configuration.values[1] == kMask && problem.padding != Padding::zero)
      return Verdict::refuse("padding=mask is for padding with zeros; padding=copy takes every padding");
    if (shared_bytes(configuration.values[0]) > limits.shared_bytes_per_block)
      return Verdict::refuse("buffers=%d takes %lld bytes of shared memory; a block may have %lld",
                             configuration.values[0], static_cast<long long>(shared_bytes(configuration.values[0])),
                             static_cast<long long>(limits.shared_bytes_per_block));
    return check(problem, limits);
  }
  bool searched() const override { return false; }
  void use(const Configuration& configuration) override { knobs_ = configuration; }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    if (shared_bytes(1) > limits.shared_bytes_per_block)
      return Verdict::refuse("a block needs %lld bytes of shared memory; it may have %lld",
                             static_cast<long long>(shared_bytes(1)),
                             static_cast<long long>(limits.shared_bytes_per_block));
    return check_winograd(problem, 2, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, 2);
    const int steps = blocks_for(w.channels, kDepth), filter_blocks = blocks_for(w.filters, kFilters);
    u_.allocate(std::int64_t{filter_blocks} * steps * kFilterStage, "transformed filter");
    convladder::launch(transform_filters, dim3(filter_blocks * steps * kDepth * kFilters / kThreads), dim3(kThreads), 0,
                       stream)(tensors.filter, u_.floats(), w, steps);
    if (knobs_.values[1] == kCopy) padded_.allocate(padded_rows(w) * (2 * w.tiles_across + 2), "padded input");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, 2);
    const bool copy = knobs_.values[1] == kCopy;
    if (copy) {
      convladder::launch(pad_input, grid_in_y(blocks_for(2 * w.tiles_across + 2, kThreads), padded_rows(w)),
                         dim3(kThreads), 0, stream)(tensors.input, padded_.floats(), w);
    }
    const auto kernel = knobs_.values[0] == 1   ? copy ? winograd_fused<1, false> : winograd_fused<1, true>
                          : knobs_.values[0] == 2 ? copy ? winograd_fused<2, false> : winograd_fused<2, true>
                          : copy ? winograd_fused<3, false>
                                                : winograd_fused<3, true>;
    convladder::launch(kernel, dim3(static_cast<unsigned>(blocks(w))), dim3(kThreads),
                       static_cast<std::size_t>(shared_bytes(knobs_.values[0])),
                       stream)(copy ? padded_.floats() : tensors.input, u_.floats(), tensors.output, w,
                               blocks_for(w.channels, kDepth), tiles_of_group(w));
  }

  std::int64_t workspace_bytes() const override { return u_.bytes() + padded_.bytes(); }
  bool workspace_intact() const override { return u_.intact() && padded_.intact(); }
  WinogradForm winograd(const ConvProblem&) const override { return {2}; }

  Prediction predict(const ConvProblem& problem) const override {
    const Winograd w = winograd_of(problem, 2);
    const std::int64_t steps = blocks_for(w.channels, kDepth), filter_blocks = blocks_for(w.filters, kFilters);
    const std::int64_t warps = kThreads / 32;
    Prediction p;
    p.shared_load_requests = blocks(w) * warps * (steps * 2 * kDepth * 4 + 2 * 4 * kPositions);
    p.constant_load_requests = 0;
    p.barriers = blocks(w) * (steps * (knobs_.values[0] == 1 ? 2 : 1) + 4);
    p.flops = 2 * kPositions * std::int64_t{w.tiles} * w.channels * w.filters;
    p.global_store_bytes = problem.output_size() * 4;
    if (knobs_.values[1] == kCopy) {
      p.global_store_bytes += padded_rows(w) * (2 * w.tiles_across + 2) * 4;
    } else if (w.tiles % kTiles == 0 && knobs_.values[2] == kBalanced) {
      // No block is left with tiles that are loaded in vain: each thread's last tile.
      p.global_load_bytes =
          (tile_reads(w) * filter_blocks + w.tiles / kTiles * filter_blocks * steps * kFilterStage) * 4;
    }
    return p;
  }

  static std::int64_t shared_bytes(int buffers) {
    const std::int64_t stages = buffers * kFilterStage + (buffers == 1 ? 1 : 2) * kInputStage;
    return (stages > kHalfSums ? stages : kHalfSums) * 4;
  }
  static std::int64_t padded_rows(const Winograd& w) {
    return std::int64_t{w.batch} * w.channels * (2 * w.tiles_down + 2);
  }
  int tiles_of_group(const Winograd& w) const {
    return knobs_.values[2] == kBalanced ? w.tiles : w.tiles_down * w.tiles_across;
  }
  std::int64_t blocks(const Winograd& w) const {
    const std::int64_t groups = w.tiles / tiles_of_group(w);
    return groups * blocks_for(tiles_of_group(w), kTiles) * blocks_for(w.filters, kFilters);
  }

  Configuration knobs_{{2, kMask, kBalanced}};
  Workspace u_, padded_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradFused)
