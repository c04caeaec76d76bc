// 35 winograd-fp32: the largest tile that the error allows.
//
//   output tile (m x m') = A^T [ sum over c of (G g G'^T) . (B^T d B') ] A'      F(m, 3) down, F(m', 3) across
//
// Since 25: tiles of up to 7 x 7 outputs, which take 81 products in place of 441. They do not fit a fused kernel, so
// there are three kernels again, as in 24; the one in the middle multiplies at nearly the rate of the multiply-add
// units. A larger tile has less work and larger rounding errors. The user names a bound of the error; of the tiles that
// stay within it, the stage takes the one with the least work.
//
//   1. In prepare(): the filters are transformed in double, rounded once, and laid out as blocks copy them. Filters
//      change places with their neighbours, and registers of a product lie in different banks (stage 20).
//   2. V: a thread transforms one tile of one channel. Four tiles stand side by side: so a warp, with four tiles of
//      eight channels, reads whole sectors of NHWC, and writes 128 bytes in one piece.
//   3. A block multiplies 128 tiles x 64 filters at one position, each of its threads 8 x 8.
//   4. 16 channels are a step. Two steps are on their way while a third is multiplied. One barrier a step.
//   5. A thread transforms the sums of one tile and filter back.
//   6. The tile: its error follows from its matrices and the channels, its work from the sizes.

#include "common/kernel/divisor.hpp"
#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/winograd.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kTiles = 128, kFilters = 64;  // of a block
constexpr int kQuads = kTiles / 4;          // tiles go by fours
constexpr int kDepth = 16;                  // channels of a step
constexpr int kStages = 3;                  // steps that shared memory holds
constexpr int kQuadPitch = 4 * kDepth + 4;  // floats; four more, and the quads that a warp reads lie in different banks

// The problem as the kernels take it. V, M and U are padded to whole blocks and steps.
struct Plan {
  Winograd w;
  int tiles, channels, filters;     // padded to multiples of kTiles, kDepth and kFilters
  Divisor by_channels, by_filters;  // for division by the padded channels, and by the filters themselves
};

// 1. A thread a filter and channel.
template <class Down, class Across>
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  float* u,             // [position][filter block][channel][64]
                                  Plan p) {
  constexpr int kRows = kTileSize<Down>, kColumns = kTileSize<Across>;
  const int i = blockIdx.x * kThreads + threadIdx.x;  // its place at a position
  if (i >= p.channels * p.filters) return;
  const int c = i / kFilters % p.channels, k = i / kFilters / p.channels * kFilters + (i % kFilters ^ 1);
  const bool inside = k < p.w.filters && c < p.w.channels;
  const float* taps = filter + (k * p.w.channels + c) * 9;
  double rows[kWinogradTaps][kColumns];  // g G'^T
  UNROLL
  for (int r = 0; r < kWinogradTaps; ++r) {
    double line[kWinogradTaps];
    UNROLL
    for (int s = 0; s < kWinogradTaps; ++s) line[s] = inside ? taps[r * kWinogradTaps + s] : 0.0f;
    transform_filter_line<Across>(line, rows[r]);
  }
  UNROLL
  for (int j = 0; j < kColumns; ++j) {
    const double line[kWinogradTaps] = {rows[0][j], rows[1][j], rows[2][j]};
    double column[kRows];
    transform_filter_line<Down>(line, column);
    UNROLL
    for (int r = 0; r < kRows; ++r) u[(r * kColumns + j) * p.channels * p.filters + i] = static_cast<float>(column[r]);
  }
}

// 2.
template <class Down, class Across, bool InZeros>
__global__ void __launch_bounds__(kThreads) transform_inputs(const float* input,  // [batch][height][width][channels]
                                                             float* v,            // [position][tile / 4][channel][4]
                                                             Plan p) {
  constexpr int kRows = kTileSize<Down>, kColumns = kTileSize<Across>;
  const Winograd& w = p.w;
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;  // its place at a position
  const int c = static_cast<int>(i / 4 % p.by_channels), t = static_cast<int>(i / 4 / p.by_channels * 4 + i % 4);
  const bool exists = t < w.tiles && c < w.channels;
  const TilePlace place = place_of(w, min(t, w.tiles - 1));
  const auto index = [&](int i, int size, int pad) {
    if constexpr (InZeros) return static_cast<unsigned>(i) < static_cast<unsigned>(size) ? i : -1;
    return tile_index(i, size, pad, w.padding);
  };
  int columns[kColumns];  // where they begin in a row of pixels; negative where they are zeros
  UNROLL
  for (int x = 0; x < kColumns; ++x)
    columns[x] = exists ? index(place.column - w.pad_x + x, w.width, w.pad_x) * w.channels : -1;
  const float* channel = input + place.image * w.height * w.width * w.channels + c;
  float tile[kRows][kColumns];
  UNROLL
  for (int y = 0; y < kRows; ++y) {
    const int row = index(place.row - w.pad_y + y, w.height, w.pad_y);
    const float* pixels = channel + row * w.width * w.channels;
    UNROLL
    for (int x = 0; x < kColumns; ++x) tile[y][x] = row >= 0 && columns[x] >= 0 ? pixels[columns[x]] : 0.0f;
  }
  UNROLL
  for (int x = 0; x < kColumns; ++x) {
    float line[kRows], column[kRows];
    UNROLL
    for (int y = 0; y < kRows; ++y) line[y] = tile[y][x];
    transform_input_line<Down>(line, column);
    UNROLL
    for (int y = 0; y < kRows; ++y) tile[y][x] = column[y];
  }
  float* to = v + i;
  UNROLL
  for (int y = 0; y < kRows; ++y) {
    float row[kColumns];
    transform_input_line<Across>(tile[y], row);
    UNROLL
    for (int x = 0; x < kColumns; ++x, to += p.tiles * p.channels) *to = row[x];
  }
}

__device__ __forceinline__ void unpack(const float4& v, float* values) {
  values[0] = v.x;
  values[1] = v.y;
  values[2] = v.z;
  values[3] = v.w;
}

// 3.
__global__ void __launch_bounds__(kThreads, 4) multiply(const float* u,  // [position][filter block][channel][64]
                                                        const float* v,  // [position][tile / 4][channel][4]
                                                        float* m,        // [position][tile][filter]
                                                        Plan p) {
  __shared__ __align__(16) float tile_stage[kStages][kQuads][kQuadPitch];  // [..][quad][channel][4]
  __shared__ __align__(16) float filter_stage[kStages][kDepth][kFilters];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  // Blocks with the same tiles and other filters are neighbours; then other tiles, then other positions.
  const int filter_blocks = p.filters / kFilters, filter_block = static_cast<int>(blockIdx.x) % filter_blocks;
  const int tile_blocks = p.tiles / kTiles, row = static_cast<int>(blockIdx.x) / filter_blocks;
  const int first_tile = row % tile_blocks * kTiles, position = row / tile_blocks;

  // 4.
  constexpr int kCopiedTogether = kThreads / kDepth;  // quads
  const int copied_quad = thread / kDepth, copied_channel = thread % kDepth;
  const float* tiles = v + (position * p.tiles + first_tile + 4 * copied_quad) * p.channels + 4 * copied_channel;
  const float* filters = u + (position * filter_blocks + filter_block) * p.channels * kFilters + 4 * thread;
  const auto start_copies = [&](int stage) {
    UNROLL
    for (int i = 0; i < kQuads / kCopiedTogether; ++i)
      copy_async<16>(&tile_stage[stage][copied_quad + i * kCopiedTogether][4 * copied_channel],
                     tiles + i * kCopiedTogether * 4 * p.channels);
    UNROLL
    for (int i = 0; i < kDepth * kFilters / 4 / kThreads; ++i)
      copy_async<16>(&filter_stage[stage][0][0] + 4 * (thread + i * kThreads), filters + 4 * i * kThreads);
    tiles += 4 * kDepth;
    filters += kDepth * kFilters;
  };

  // The thread's tiles are those of quads y and y + 4, its filters four from x on and four from x + 32 on. Of eight
  // lanes that read 16 bytes at a time, two have different quads, and four different filters.
  const int y = warp * 8 + (lane / 2 % 2 + lane / 16 * 2), x = 4 * (lane % 2 + lane / 4 % 4 * 2);
  float sums[8][8] = {};
  float4 down[2][2], across[2][2];
  const auto fetch = [&](int stage, int c) {
    UNROLL
    for (int half = 0; half < 2; ++half) {
      down[c % 2][half] = *reinterpret_cast<const float4*>(&tile_stage[stage][y + 4 * half][4 * c]);
      across[c % 2][half] = *reinterpret_cast<const float4*>(&filter_stage[stage][c][x + 32 * half]);
    }
  };
  const auto multiply_add = [&](int c) {
    float a[8], b[8];
    UNROLL
    for (int half = 0; half < 2; ++half) {
      unpack(down[c % 2][half], a + 4 * half);
      unpack(across[c % 2][half], b + 4 * half);
    }
    UNROLL
    for (int i = 0; i < 8; ++i) {
      UNROLL
      for (int column = 0; column < 8; ++column) {
        const int j = i % 2 ? 7 - column : column;  // there and back: the last filter is used again
        sums[i][j] += a[i] * b[j ^ 1];
      }
    }
  };

  const int steps = p.channels / kDepth;
  UNROLL
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) start_copies(step);
    commit_copies();
  }
  wait_copies<kStages - 2>();
  __syncthreads();
  fetch(0, 0);
  int reading = 0, writing = kStages - 1;
  UNROLL_BY(1)
  for (int step = 0; step < steps; ++step) {
    if (step + kStages - 1 < steps) start_copies(writing);
    commit_copies();
    UNROLL
    for (int c = 0; c + 1 < kDepth; ++c) {
      fetch(reading, c + 1);
      multiply_add(c);
    }
    reading = reading + 1 == kStages ? 0 : reading + 1;
    writing = writing + 1 == kStages ? 0 : writing + 1;
    if (step + 1 < steps) {
      wait_copies<kStages - 2>();
      __syncthreads();  // the next step's stage is everybody's, and nobody reads this one's any more
      fetch(reading, 0);
    }
    multiply_add(kDepth - 1);
  }

  float* to = m + (position * p.tiles + first_tile + 4 * y) * p.filters + filter_block * kFilters + x;
  UNROLL
  for (int i = 0; i < 8; ++i) {
    UNROLL
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float4*>(to + (i / 4 * 16 + i % 4) * p.filters + 32 * half) =
          make_float4(sums[i][4 * half], sums[i][4 * half + 1], sums[i][4 * half + 2], sums[i][4 * half + 3]);
  }
}

// 5.
template <class Down, class Across>
__global__ void __launch_bounds__(kThreads) transform_outputs(const float* m,  // [position][tile][filter]
                                                              float* output,  // [batch][out_height][out_width][filters]
                                                              Plan p) {
  constexpr int kRows = kTileSize<Down>, kColumns = kTileSize<Across>;
  constexpr int kOutputRows = kTileOutputs<Down>, kOutputColumns = kTileOutputs<Across>;
  const Winograd& w = p.w;
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  const int k = static_cast<int>(i % p.by_filters), t = static_cast<int>(i / p.by_filters);
  if (t >= w.tiles) return;
  const float* from = m + t * p.filters + k;
  float sums[kRows][kColumns];
  UNROLL
  for (int y = 0; y < kRows; ++y) {
    UNROLL
    for (int x = 0; x < kColumns; ++x, from += p.tiles * p.filters) sums[y][x] = *from;
  }
  float rows[kRows][kOutputColumns];
  UNROLL
  for (int y = 0; y < kRows; ++y) transform_output_line<Across>(sums[y], rows[y]);
  const TilePlace place = place_of(w, t);
  float* to = output + ((place.image * w.out_height + place.row) * w.out_width + place.column) * w.filters + k;
  UNROLL
  for (int x = 0; x < kOutputColumns; ++x) {
    float line[kRows], column[kOutputRows];
    UNROLL
    for (int y = 0; y < kRows; ++y) line[y] = rows[y][x];
    transform_output_line<Down>(line, column);
    UNROLL
    for (int y = 0; y < kOutputRows; ++y)
      if (place.row + y < w.out_height && place.column + x < w.out_width)
        to[(y * w.out_width + x) * w.filters] = column[y];
  }
}

// ---- 6. The tile ----------------------------------------------------------------------------------------------------

// The knobs: the bound, and the tile.
constexpr int kBounds[] = {1, 2, 5, 10, 20, 50, 100};  // in 1e-6
constexpr const char* kBoundWords[] = {"1e-6", "2e-6", "5e-6", "1e-5", "2e-5", "5e-5", "1e-4"};
enum { kAuto, k2x2, k4x4, k6x6, k7x4, k7x7 };
constexpr int kTileNumbers[] = {kAuto, k2x2, k4x4, k6x6, k7x4, k7x7};
constexpr const char* kTileWords[] = {"auto", "2x2", "4x4", "6x6", "7x4", "7x7"};
constexpr Knob kKnobs[] = {{"bound", kBounds, kBoundWords, 7}, {"tile", kTileNumbers, kTileWords, 6}};

// Calls `work` with the tile's forms, down and across.
template <class Work>
auto with_forms(int tile, const Work& work) {
  switch (tile) {
    case k2x2:
      return work(F2{}, F2{});
    case k4x4:
      return work(F4Fractions{}, F4Fractions{});
    case k6x6:
      return work(F6{}, F6{});
    case k7x4:
      return work(F7{}, F4Fractions{});
    default:
      return work(F7{}, F7{});
  }
}

struct TileSize {
  int down, across;  // outputs
  double amplification;
};

TileSize size_of(int tile) {
  return with_forms(tile, [](auto down, auto across) {
    using Down = decltype(down);
    using Across = decltype(across);
    constexpr double kAmplification = winograd_amplification<Down>() * winograd_amplification<Across>();
    return TileSize{kTileOutputs<Down>, kTileOutputs<Across>, kAmplification};
  });
}

Plan plan_of(const ConvProblem& problem, int tile) {
  const TileSize size = size_of(tile);
  Plan p{winograd_of(problem, size.down, size.across), 0, 0, 0, {}, divisor_of(static_cast<int>(problem.k))};
  p.tiles = blocks_for(p.w.tiles, kTiles) * kTiles;
  p.channels = blocks_for(p.w.channels, kDepth) * kDepth;
  p.filters = blocks_for(p.w.filters, kFilters) * kFilters;
  p.by_channels = divisor_of(p.channels);
  return p;
}

int positions_of(const Plan& p) { return (p.w.m + 2) * (p.w.m_across + 2); }
std::int64_t filter_elements(const Plan& p) { return std::int64_t{positions_of(p)} * p.channels * p.filters; }
std::int64_t input_elements(const Plan& p) { return std::int64_t{positions_of(p)} * p.tiles * p.channels; }
std::int64_t sum_elements(const Plan& p) { return std::int64_t{positions_of(p)} * p.tiles * p.filters; }
std::int64_t blocks_of(const Plan& p) { return sum_elements(p) / (kTiles * kFilters); }

double error_of(const ConvProblem& problem, int tile) {
  const Winograd w = plan_of(problem, tile).w;
  return winograd_error(size_of(tile).amplification, problem.c, 1.0 * w.tiles * w.filters);
}

// The product's multiply-adds, padding and masked outputs included; and the transforms: each number of V and M is
// written once and read once, and a byte takes as long as about six multiply-adds.
std::int64_t work_of(const ConvProblem& problem, int tile) {
  constexpr std::int64_t kMultiplyAddsOfByte = 6;
  const Plan p = plan_of(problem, tile);
  const std::int64_t bytes = 2 * 4 * (input_elements(p) + sum_elements(p));
  return input_elements(p) * p.filters + kMultiplyAddsOfByte * bytes;
}

Verdict check_tile(const ConvProblem& problem, int tile) {
  return check_winograd(problem, size_of(tile).down, size_of(tile).across, kTiles);
}

double value_of_bound(int bound) { return bound * 1e-6; }

class WinogradFp32 final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 2}; }
  Configuration default_configuration(const ConvProblem&, const DeviceLimits&) const override { return {{10, kAuto}}; }
  // Of the tiles within the bound the one with the least work; auto if there is none.
  Configuration decided(const ConvProblem& problem, const DeviceLimits&,
                        const Configuration& configuration) const override {
    if (configuration.values[1] != kAuto) return configuration;
    Configuration best = configuration;
    for (int tile = k2x2; tile <= k7x7; ++tile) {
      if (!check_tile(problem, tile).accepted() || error_of(problem, tile) > value_of_bound(configuration.values[0]))
        continue;
      if (best.values[1] == kAuto || work_of(problem, tile) < work_of(problem, best.values[1])) best.values[1] = tile;
    }
    return best;
  }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const int tile = configuration.values[1] == kAuto ? k2x2 : configuration.values[1];
    if (const Verdict verdict = check_tile(problem, tile); !verdict.accepted()) return verdict;
    if (error_of(problem, tile) > value_of_bound(configuration.values[0]))
      return Verdict::refuse("tiles of %dx%d have relative RMS errors of up to %.1e with c=%lld; the bound is %.0e",
                             size_of(tile).down, size_of(tile).across, error_of(problem, tile),
                             static_cast<long long>(problem.c), value_of_bound(configuration.values[0]));
    return Verdict::accept();
  }
  bool searched() const override { return false; }
  void use(const Configuration& configuration) override { tile_ = configuration.values[1]; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    Verdict verdict = Verdict::accept();
    for (int tile = k2x2; tile <= k7x7; ++tile)
      if (verdict = check_tile(problem, tile); verdict.accepted()) break;
    return verdict;
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Plan p = plan_of(problem, tile_);
    u_.allocate(filter_elements(p), "transformed filter");
    v_.allocate(input_elements(p), "transformed input");
    sums_.allocate(sum_elements(p), "products");
    with_forms(tile_, [&](auto down, auto across) {
      convladder::launch(transform_filters<decltype(down), decltype(across)>,
                         dim3(blocks_for(p.channels * p.filters, kThreads)), dim3(kThreads), 0,
                         stream)(tensors.filter, u_.floats(), p);
    });
  }

  // 2. to 5.
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Plan p = plan_of(problem, tile_);
    with_forms(tile_, [&](auto down, auto across) {
      using Down = decltype(down);
      using Across = decltype(across);
      const auto transform = problem.padding == Padding::zero ? transform_inputs<Down, Across, true>
                                                              : transform_inputs<Down, Across, false>;
      convladder::launch(transform, dim3(p.tiles * p.channels / kThreads), dim3(kThreads), 0, stream)(tensors.input,
                                                                                                      v_.floats(), p);
      convladder::launch(multiply, dim3(static_cast<unsigned>(blocks_of(p))), dim3(kThreads), 0, stream)(
          u_.floats(), v_.floats(), sums_.floats(), p);
      convladder::launch(transform_outputs<Down, Across>, dim3(blocks_for(p.w.tiles * p.w.filters, kThreads)),
                         dim3(kThreads), 0, stream)(sums_.floats(), tensors.output, p);
    });
  }

  std::int64_t workspace_bytes() const override { return u_.bytes() + v_.bytes() + sums_.bytes(); }
  bool workspace_intact() const override { return u_.intact() && v_.intact() && sums_.intact(); }
  WinogradForm winograd(const ConvProblem&) const override {
    const TileSize size = size_of(tile_);
    return {size.down, true, Precision::fp32, false, false, size.across};
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Plan p = plan_of(problem, tile_);
    const std::int64_t steps = p.channels / kDepth, block_steps = blocks_of(p) * steps;
    const std::int64_t sums_read = std::int64_t{positions_of(p)} * p.w.tiles * p.w.filters;
    Prediction result;
    result.global_load_bytes = 4 * (tile_reads(p.w) + block_steps * (kTiles + kFilters) * kDepth + sums_read);
    result.global_store_bytes = 4 * (input_elements(p) + sum_elements(p) + problem.output_size());
    result.shared_load_requests = block_steps * kDepth * kWarps * 4;
    result.shared_store_requests = block_steps * (kTiles + kFilters) * kDepth / 4 / 32;
    result.shared_load_conflicts = result.shared_store_conflicts = 0;
    result.constant_load_requests = 0;
    result.atomic_requests = 0;
    result.barriers = block_steps;
    result.flops = 2 * sums_read * p.w.channels;
    return result;
  }

  int tile_ = k2x2;
  Workspace u_, v_, sums_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradFp32)
