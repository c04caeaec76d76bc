// 30 winograd-int8: transformed tiles and filters in 8 bits. F(2 x 2, 3 x 3), activations in fp16.
//
//   v = scale_v[position] * q_v,  u = scale_u[position][filter] * q_u,  q from -127 to 127
//   M = scale_v scale_u * sum over c of q_v q_u        the sum is exact, in 32 bits
//
// Since 28 and 29: Tensor Cores take bytes at up to twice the rate of halves, and a transformed tile half the memory.
// What is quantised is the transformed tile, not the image: so nothing is lost before the transform. Its 16 positions
// have different ranges (a sum of four pixels, a difference), and each gets a scale of its own; filters have one for
// each position and output channel. F(4 x 4) would magnify the quantisation errors too much.
//
//   1. In prepare(): each filter's scale is its largest element at the position. The input's scale comes from a sample:
//      of eight clipping values, the one that leaves the smallest squared error.
//   2. A block computes TBM tiles x TBN filters at all 16 positions. A warp has a column of them, and half the filters.
//   3. A step transforms and quantises 64 channels of the tiles: into shared memory (as in 28), or into the block's own
//      piece of global memory that fits in L2 (as in 29). A barrier before the loads, and one after them.
//   4. The sums leave as halves, multiplied by their scales, and are transformed back in a kernel of its own.

#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

using Form = F2;

constexpr int kSize = kTileSize<Form>;
constexpr int kGroups = 2;  // warps of a column
constexpr int kWarps = kGroups * kSize, kThreads = 32 * kWarps;
constexpr int kStepBlocks = 4;  // channel blocks of a step
constexpr int kSums = 1024;     // of a block at a position
constexpr float kLargest = 127.0f;

constexpr int kSampleTiles = 1024;  // at most, evenly spread over the batch, with all their channels
constexpr int kCandidates = 8;      // clipping values: the largest element, and 9, 8, ... 3 tenths of it
constexpr int kCalibrationThreads = 256;

template <int Tiles>
constexpr int kFilters = kSums / Tiles;
// Bytes from one channel block of a step to the next. In shared memory 32 more than it takes: the four blocks that a
// warp stores at once then lie in different banks.
template <int Tiles, bool Llc>
constexpr int kBlockPitch = Tiles* kBlock + (Llc ? 0 : 32);
// Bytes of a step's tiles: [position][channel block][Tiles][16]
template <int Tiles, bool Llc>
constexpr int kStage = kPositions<Form>* kStepBlocks* kBlockPitch<Tiles, Llc>;

__device__ __forceinline__ int quantise(float value, float inverse) {
  const float scaled = value * inverse;
  return __float2int_rn(fminf(fmaxf(scaled, -kLargest), kLargest));
}

// 1. A warp quantises one filter, all channels of it.
__global__ void quantise_filters(const float* filter,  // [filters][channels][3][3]
                                 signed char* u,       // [position][channel block][padded filters][16]
                                 float* scales,        // [position][padded filters]
                                 Winograd w) {
  const int filters = padded_filters(w), channels = channel_blocks(w) * kBlock;
  const int k = (blockIdx.x * kHalfThreads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (k >= filters) return;
  float largest[kPositions<Form>] = {}, tile[kSize][kSize];
  for (int c = lane; c < channels; c += 32) {
    load_filter<Form>(filter, w, k, c, tile);
    UNROLL
    for (int i = 0; i < kPositions<Form>; ++i) largest[i] = fmaxf(largest[i], fabsf(tile[i / kSize][i % kSize]));
  }
  UNROLL
  for (int i = 0; i < kPositions<Form>; ++i) {
    UNROLL
    for (int bits = 16; bits > 0; bits /= 2) largest[i] = fmaxf(largest[i], __shfl_xor_sync(~0u, largest[i], bits));
    if (lane == 0) scales[i * filters + k] = largest[i] / kLargest;
  }
  for (int c = lane; c < channels; c += 32) {
    load_filter<Form>(filter, w, k, c, tile);
    UNROLL
    for (int i = 0; i < kPositions<Form>; ++i)
      u[((i * channels / kBlock + c / kBlock) * filters + k) * kBlock + c % kBlock] = static_cast<signed char>(
          quantise(tile[i / kSize][i % kSize], largest[i] > 0.0f ? kLargest / largest[i] : 0.0f));
  }
}

// The largest, or the sum, of the block's values: the same order in every run.
template <bool Sum>
__device__ __forceinline__ float reduce(float value, float* shared) {
  shared[threadIdx.x] = value;
  for (int half = kCalibrationThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) {
      const float other = shared[threadIdx.x + half], mine = shared[threadIdx.x];
      shared[threadIdx.x] = Sum ? mine + other : fmaxf(mine, other);
    }
  }
  __syncthreads();
  const float result = shared[0];
  __syncthreads();  // it is read
  return result;
}

// A block finds the scale of its position.
__global__ void __launch_bounds__(kCalibrationThreads) calibrate(const half* input,  // [batch][height][width][channels]
                                                                 float* scale,       // [position], then the inverses
                                                                 Winograd w) {
  __shared__ float shared[kCalibrationThreads];
  const int position = blockIdx.x, pairs = (w.channels + 1) / 2, sample = min(w.tiles, kSampleTiles);
  const auto for_sample = [&](const auto& work) {
    for (int i = threadIdx.x; i < sample * pairs; i += kCalibrationThreads) {
      half2 tile[kSize][kSize];
      const int t = static_cast<int>(static_cast<long long>(i / pairs) * w.tiles / sample);
      load_tile<Form>(input, w, t, i % pairs * 2, tile);
      float low = 0.0f, high = 0.0f;
      UNROLL
      for (int p = 0; p < kPositions<Form>; ++p) {
        low = p == position ? __low2float(tile[p / kSize][p % kSize]) : low;
        high = p == position ? __high2float(tile[p / kSize][p % kSize]) : high;
      }
      work(low, high);
    }
  };
  float largest = 0.0f;
  for_sample([&](float low, float high) { largest = fmaxf(largest, fmaxf(fabsf(low), fabsf(high))); });
  largest = reduce<false>(largest, shared);

  float errors[kCandidates] = {};
  for_sample([&](float low, float high) {
    UNROLL
    for (int j = 0; j < kCandidates; ++j) {
      const float step = largest * (10 - j) / 10 / kLargest, inverse = step > 0.0f ? 1.0f / step : 0.0f;
      const float a = low - step * quantise(low, inverse), b = high - step * quantise(high, inverse);
      errors[j] += a * a + b * b;
    }
  });
  float best = 0.0f, best_step = 0.0f;
  UNROLL
  for (int j = 0; j < kCandidates; ++j) {
    const float error = reduce<true>(errors[j], shared);
    if (j == 0 || error < best) {
      best = error;
      best_step = largest * (10 - j) / 10 / kLargest;
    }
  }
  if (threadIdx.x == 0) {
    scale[position] = best_step;
    scale[kPositions<Form> + position] = best_step > 0.0f ? 1.0f / best_step : 0.0f;
  }
}

// 2.
template <int Tiles, bool Llc>
__global__ void __launch_bounds__(kThreads, 2)
    multiply(const half* input,     // [batch][height][width][channels]
             const signed char* u,  // [position][channel block][padded filters][16]
             const float* scale_v,  // [position], then the inverses
             const float* scale_u,  // [position][padded filters]
             signed char* pieces,   // [block][kStage], with Llc
             half* m,               // [position][padded tiles][padded filters]
             Winograd w) {
  constexpr int kDown = Tiles / 16, kAcross = kFilters<Tiles> / 16 / kGroups;
  constexpr int kPitch = kBlockPitch<Tiles, Llc>;
  __shared__ __align__(32) int patches[kWarps][kPatch];
  signed char* const stage =
      Llc ? pieces + static_cast<int>(blockIdx.x) * kStage<Tiles, Llc> : dynamic_shared<signed char>();
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_parts = blocks_for(filters, kFilters<Tiles>), parts = tiles / Tiles * filter_parts;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, column = warp % kSize;

  UNROLL_BY(1)
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    const int first_k = part % filter_parts * kFilters<Tiles> + warp / kSize * (kFilters<Tiles> / kGroups);
    const int first_t = part / filter_parts * Tiles;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sums[kSize][kDown][kAcross];
    UNROLL
    for (int i = 0; i < kSize * kDown * kAcross; ++i)
      wmma::fill_fragment(sums[i / kAcross / kDown][i / kAcross % kDown][i % kAcross], 0);

    UNROLL_BY(1)
    for (int first_block = 0; first_block < blocks; first_block += kStepBlocks) {
      // 3.
      const int step_blocks = min(kStepBlocks, blocks - first_block);
      UNROLL_BY(1)
      for (int i = thread; i < Tiles * step_blocks * kBlock / 2; i += kThreads) {
        const int pair = i % 8, block = i / 8 % step_blocks, t = i / 8 / step_blocks;
        half2 tile[kSize][kSize];
        load_tile<Form>(input, w, first_t + t, (first_block + block) * kBlock + pair * 2, tile);
        signed char* out = stage + block * kPitch + t * kBlock + pair * 2;
        UNROLL
        for (int p = 0; p < kPositions<Form>; ++p) {
          const float inverse = scale_v[kPositions<Form> + p];
          const int low = quantise(__low2float(tile[p / kSize][p % kSize]), inverse);
          const int high = quantise(__high2float(tile[p / kSize][p % kSize]), inverse);
          *reinterpret_cast<short*>(out + p * kStepBlocks * kPitch) = static_cast<short>((low & 255) | high << 8);
        }
      }
      __syncthreads();
      UNROLL_BY(1)
      for (int block = 0; block < step_blocks; ++block) {
        UNROLL
        for (int row = 0; row < kSize; ++row) {
          const int position = row * kSize + column;
          wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a[kDown];
          wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
          UNROLL
          for (int i = 0; i < kDown; ++i)
            wmma::load_matrix_sync(a[i], stage + (position * kStepBlocks + block) * kPitch + 16 * i * kBlock, kBlock);
          UNROLL
          for (int j = 0; j < kAcross; ++j) {
            if (first_k + 16 * j >= filters) continue;
            wmma::load_matrix_sync(
                b, u + ((position * blocks + first_block + block) * filters + first_k + 16 * j) * kBlock, kBlock);
            UNROLL
            for (int i = 0; i < kDown; ++i) wmma::mma_sync(sums[row][i][j], a[i], b, sums[row][i][j]);
          }
        }
      }
      __syncthreads();  // the stage is read
    }

    // 4. A lane has eight sums of a row.
    UNROLL
    for (int row = 0; row < kSize; ++row) {
      UNROLL
      for (int i = 0; i < kDown * kAcross; ++i) {
        const int position = row * kSize + column, k = first_k + 16 * (i % kAcross), t = first_t + 16 * (i / kAcross);
        if (k >= filters) continue;
        int* const patch = patches[warp];
        wmma::store_matrix_sync(patch, sums[row][i / kAcross][i % kAcross], kPatchPitch, wmma::mem_row_major);
        __syncwarp();
        const int y = lane / 2, x = lane % 2 * 8;
        const float scale = scale_v[position];
        int4 eight[2];
        load_eight(patch, lane, eight[0], eight[1]);
        Halves8 halves;
        UNROLL
        for (int j = 0; j < 2; ++j) {
          const int4& sum = eight[j];
          const float4 of_filter = *reinterpret_cast<const float4*>(scale_u + position * filters + k + x + 4 * j);
          halves.pairs[2 * j] = __floats2half2_rn(static_cast<float>(sum.x) * (scale * of_filter.x),
                                                  static_cast<float>(sum.y) * (scale * of_filter.y));
          halves.pairs[2 * j + 1] = __floats2half2_rn(static_cast<float>(sum.z) * (scale * of_filter.z),
                                                      static_cast<float>(sum.w) * (scale * of_filter.w));
        }
        __syncwarp();  // the patch is read
        *reinterpret_cast<uint4*>(m + (position * tiles + t + y) * filters + k + x) =
            *reinterpret_cast<const uint4*>(&halves);
      }
    }
  }
}

template <int Tiles>
std::int64_t parts(const Winograd& w) {
  return std::int64_t{padded_tiles(w) / Tiles} * blocks_for(padded_filters(w), kFilters<Tiles>);
}

// Blocks that are started with Llc: two for each multiprocessor, as long as their pieces take at most half of L2.
template <int Tiles>
int resident_blocks(const Winograd& w) {
  const DeviceLimits limits = device_limits();
  const std::int64_t fitting = limits.l2_bytes / 2 / kStage<Tiles, true>;
  std::int64_t blocks = 2 * limits.multiprocessors < fitting ? 2 * limits.multiprocessors : fitting;
  if (parts<Tiles>(w) < blocks) blocks = parts<Tiles>(w);
  return blocks < 1 ? 1 : static_cast<int>(blocks);
}

// What the kernel reads and writes.
struct Int8Tensors {
  const half* input;
  const signed char* u;
  const float *scale_v, *scale_u;
  signed char* pieces;
  half* m;
};

template <int Tiles, bool Llc>
void launch_multiply(const Int8Tensors& t, const Winograd& w, Stream stream) {
  const unsigned blocks = static_cast<unsigned>(Llc ? resident_blocks<Tiles>(w) : parts<Tiles>(w));
  launch(multiply<Tiles, Llc>, dim3(blocks), dim3(kThreads), Llc ? 0 : kStage<Tiles, Llc>, stream)(
      t.input, t.u, t.scale_v, t.scale_u, t.pieces, t.m, w);
}

// The knobs: where the transformed tiles lie, and TBM.
enum { kShmem, kLlc };
constexpr int kFusions[] = {kShmem, kLlc};
constexpr const char* kFusionWords[] = {"shmem", "llc"};
constexpr int kTileCounts[] = {16, 32};
constexpr Knob kKnobs[] = {{"fusion", kFusions, kFusionWords, 2}, {"tbm", kTileCounts, nullptr, 2}};

class WinogradInt8 final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 2}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration&) const override {
    return check(problem, limits);
  }
  Configuration default_configuration(const ConvProblem&, const DeviceLimits&) const override { return {{kShmem, 16}}; }
  bool searched() const override { return false; }
  void use(const Configuration& configuration) override { knobs_ = configuration; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    constexpr std::int64_t kMaxChannels = 0x7fffffff / (127 * 127);
    if (problem.c > kMaxChannels)
      return Verdict::refuse("32-bit sums of products of bytes take %lld channels; got c=%lld",
                             static_cast<long long>(kMaxChannels), static_cast<long long>(problem.c));
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  bool llc() const { return knobs_.values[0] == kLlc; }
  int tbm() const { return knobs_.values[1]; }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    u_.allocate<signed char>(filter_elements<Form>(w), "transformed filter");
    scales_u_.allocate(kPositions<Form> * padded_filters(w), "scales of the filters");
    scales_v_.allocate(2 * kPositions<Form>, "scales of the input");
    m_.allocate<half>(product_elements<Form>(w), "products");
    if (llc())
      pieces_.allocate<signed char>(tbm() == 16 ? resident_blocks<16>(w) * std::int64_t{kStage<16, true>}
                                                : resident_blocks<32>(w) * std::int64_t{kStage<32, true>},
                                    "the blocks' transformed tiles");
    convladder::launch(quantise_filters, dim3(blocks_for(padded_filters(w), kHalfThreads / 32)), dim3(kHalfThreads), 0,
                       stream)(tensors.filter, u_.as<signed char>(), scales_u_.floats(), w);
    convladder::launch(calibrate, dim3(kPositions<Form>), dim3(kCalibrationThreads), 0, stream)(tensors.half_input,
                                                                                                scales_v_.floats(), w);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const auto multiply = llc()         ? tbm() == 16 ? launch_multiply<16, true> : launch_multiply<32, true>
                                  : tbm() == 16 ? launch_multiply<16, false>
                                        : launch_multiply<32, false>;
    multiply({tensors.half_input, u_.as<signed char>(), scales_v_.floats(), scales_u_.floats(),
              pieces_.as<signed char>(), m_.as<half>()},
             w, stream);
    launch_transform_outputs<Form>(m_.as<half>(), tensors.half_output, w, stream);
  }

  std::int64_t workspace_bytes() const override {
    return u_.bytes() + scales_u_.bytes() + scales_v_.bytes() + pieces_.bytes() + m_.bytes();
  }
  bool workspace_intact() const override {
    return u_.intact() && scales_u_.intact() && scales_v_.intact() && pieces_.intact() && m_.intact();
  }
  WinogradForm winograd(const ConvProblem&) const override {
    return {kTileOutputs<Form>, false, Precision::int8, true};
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const std::int64_t filter_parts = blocks_for(padded_filters(w), kSums / tbm()),
                       tile_parts = padded_tiles(w) / tbm();
    const std::int64_t steps = blocks_for(channel_blocks(w), kStepBlocks);
    Prediction p;
    p.global_store_bytes = (llc() ? input_elements<Form>(w) * filter_parts : 0) + 2 * product_elements<Form>(w) +
                           2 * problem.output_size();
    p.constant_load_requests = 0;
    p.barriers = tile_parts * filter_parts * steps * 2;
    p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
    return p;
  }

  Configuration knobs_{{kShmem, 16}};
  Workspace u_, scales_u_, scales_v_, pieces_, m_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradInt8)
