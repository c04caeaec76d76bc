// 31 implicit-gemm: the product of im2col on Tensor Cores, without im2col's matrix.
//
//   [outputs][filters] = [outputs][(c, r, s)] x [(c, r, s)][filters]      outputs: all (n, p, q) of the batch
//
// Since 17 and 21: the left matrix exists nowhere. A tile of it is gathered from the input, NHWC, straight to shared
// memory: 32 channels of a pixel are 64 bytes in one piece. Where three taps side by side read the same pixels, a step
// gathers these once for all three. Since 26: the matrix instructions themselves, ldmatrix and mma.sync, where it is
// known which lane holds what; and shared memory without a padded row.
//
//   1. In prepare(): the filters as halves, step by step, padded with zeros: a step is 32 channels of one tap or three.
//   2. A block of 4 or 8 warps computes a tile of outputs x filters, a warp 64 x 64, 48 x 64 or 64 x 32 of it.
//   3. The copies of a step: 16 bytes of a pixel or a filter each. Outside of the image they write zeros, or read the
//      pixel that the padding puts there.
//   4. Two or three steps are on their way while another is multiplied. One barrier a step.
//   5. A step is multiplied, 16 channels of a tap at a time: 16 x 16 pieces of both tiles come by ldmatrix, while those
//      before them are multiplied. An instruction adds 16 x 8 x 16 products. The copies stand in between.
//   6. The sums go out as halves, through shared memory, 16 bytes a lane.

#include "common/kernel/border.hpp"
#include "common/kernel/divisor.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"
//
#include "common/kernel/half.hpp"
#include "common/kernel/mma.hpp"

namespace convladder {
namespace {

constexpr int kDepth = 32;  // channels of a step: rows of 64 bytes in shared memory
constexpr int kChunk = 8;   // halves in 16 bytes
constexpr int kChunks = kDepth / kChunk;
constexpr int kTaps = 3;          // that a step takes together, where they read the same pixels
constexpr int kFilterUnit = 128;  // the most filters of a block
constexpr int kPackThreads = 128;
constexpr int kNowhere = -(1 << 30);  // a row that no tap brings into the image

// The problem as the kernels take it.
struct Gemm {
  Lowering l;
  Divisor by_height, by_width;  // for division by out_height and out_width
  Divisor by_pitch;             // by the slots of a row of outputs
  int outputs;                  // of the batch: rows of the product
  int channel_blocks;           // of 32
  int filter_blocks, block_filters;
};

// Taps times blocks of channels.
__host__ __device__ __forceinline__ int depth_of(const Gemm& g) { return window(g.l) * g.channel_blocks; }

// Where a chunk of 16 bytes lies in a tile of rows of 64 bytes, in halves. Two rows take all 32 banks. The places of
// the chunks change with every second row: so the same chunk of eight rows, which ldmatrix reads, is in all banks too.
__device__ __forceinline__ int place(int row, int chunk) { return row * kDepth + (chunk ^ row / 2 % 4) * kChunk; }

// 16 bytes that are copied at once.
struct __align__(16) Halves8 {
  half2 pairs[4];
};

// 1. A thread an element.
__global__ void pack(const float* filter,  // [filters][channels][rows][columns]
                     half* packed,         // [filter block][channel block][row][column][filters of a block][32]
                     Gemm g) {
  const int i = blockIdx.x * kPackThreads + threadIdx.x, row = i / kDepth;
  const int tap = row / g.block_filters % depth_of(g), filter_block = row / g.block_filters / depth_of(g);
  if (filter_block >= g.filter_blocks) return;
  const int k = filter_block * g.block_filters + row % g.block_filters, c = tap / window(g.l) * kDepth + i % kDepth;
  const bool inside = k < g.l.filters && c < g.l.channels;
  packed[i] = __float2half_rn(inside ? filter[(k * g.l.channels + c) * window(g.l) + tap % window(g.l)] : 0.0f);
}

// 3. Of a pixel whose channels are no whole chunks: not aligned, so through registers, one by one.
__device__ __forceinline__ void copy_halves(half* shared, const half* global, int count) {
  const half zero = __float2half_rn(0.0f);
  Halves8 chunk;
  UNROLL
  for (int i = 0; i < 4; ++i)
    chunk.pairs[i] = __halves2half2(2 * i < count ? global[2 * i] : zero, 2 * i + 1 < count ? global[2 * i + 1] : zero);
  *reinterpret_cast<uint4*>(shared) = *reinterpret_cast<const uint4*>(&chunk);
}

// What a block can rely on when it copies pixels.
enum class Pixels {
  in_zeros,  // channels are whole chunks, the padding is zeros
  padded,    // channels are whole chunks
  any        // nothing
};

// A block's tile: so many warps, and what each of them computes. A multiprocessor should have so many blocks.
template <int WarpsDown, int WarpsAcross, int WarpOutputs, int WarpFilters, int Blocks>
struct Shape {
  static constexpr int warps_across = WarpsAcross, warp_outputs = WarpOutputs, warp_filters = WarpFilters;
  static constexpr int outputs = WarpsDown * WarpOutputs, filters = WarpsAcross * WarpFilters;
  static constexpr int threads = 32 * WarpsDown * WarpsAcross, blocks = Blocks;
  static constexpr int copied_together = threads / kChunks;  // rows of a tile
  // ldmatrix of all warps for 16 channels of a tap.
  static constexpr int shared_loads = WarpsDown * WarpsAcross * (WarpOutputs + WarpFilters) / 16;
};

// Pixels of a tile in shared memory, and steps that shared memory holds.
template <class S, int Taps>
constexpr int kSlots = S::outputs + (Taps == 1 ? 0 : S::copied_together);
template <int Taps>
constexpr int kStages = Taps == 1 ? 4 : 3;
template <class S, int Taps>
constexpr int kStageHalves = (kSlots<S, Taps> + Taps * S::filters) * kDepth;

template <class S, int Taps, Pixels Kind>
__global__ void __launch_bounds__(S::threads, S::blocks)
    multiply(const half* input,   // [batch][height][width][channels]
             const half* packed,  // [filter block][channel block][row][column][filters of a block][32]
             half* output,        // [batch][out_height][out_width][filters]
             Gemm g) {
  constexpr int kTile = kSlots<S, Taps> * kDepth, kStage = kStageHalves<S, Taps>;  // halves
  constexpr int kOutTile = S::outputs * kDepth;
  constexpr int kTogether = S::copied_together * kDepth;
  constexpr int kRows = kSlots<S, Taps> / S::copied_together;  // of pixels, a chunk of which a thread copies in a step
  constexpr int kCopies = kRows + Taps * S::filters / S::copied_together;
  constexpr int kDown = S::warp_outputs / 16, kAcross = S::warp_filters / 8;  // products of a warp
  constexpr int kSlices = Taps * kDepth / 16;                                 // of 16 channels of a tap
  half* const shared = dynamic_shared<half>();                                // [stage][pixels, then filters][32]
  // 2.
  const Lowering& l = g.l;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int filter_block = static_cast<int>(blockIdx.x) % g.filter_blocks, first_filter = filter_block * S::filters;
  const int first_output = static_cast<int>(blockIdx.x) / g.filter_blocks * S::outputs;
  const int y = warp / S::warps_across * S::warp_outputs, x = warp % S::warps_across * S::warp_filters;

  // 3. A slot of the tile is a pixel. Those that a row of outputs reads are side by side, and then come the next row's;
  // tap s of an output is s dilations after its first. With one tap a slot is an output.
  const unsigned first_row = static_cast<unsigned>(first_output) / g.by_width;
  const int first_column = static_cast<int>(static_cast<unsigned>(first_output) % g.by_width);
  const auto slot_of = [&](int o) {
    if (Taps == 1) return o - first_output;
    const unsigned row = static_cast<unsigned>(o) / g.by_width - first_row;
    return static_cast<int>(row * g.by_pitch.divisor + static_cast<unsigned>(o) % g.by_width) - first_column;
  };
  const int last_slot = slot_of(min(first_output + S::outputs, g.outputs) - 1) + (Taps - 1) * l.dilation_x;

  // The thread's chunk of its slots: where tap (0, 0) reads, row and column and the first element.
  const int copied_row = thread / kChunks, chunk = thread % kChunks, copied = place(copied_row, chunk);
  const unsigned width = l.width;
  int top[kRows], left[kRows];
  unsigned start[kRows];  // of the image, where the padding is not zeros
  UNROLL
  for (int i = 0; i < kRows; ++i) {
    const int slot = copied_row + i * S::copied_together;
    const unsigned at = static_cast<unsigned>(first_column + slot), row = first_row + at / g.by_pitch;
    top[i] = static_cast<int>(row % g.by_height) * l.stride_y - l.pad_y;
    left[i] = static_cast<int>(at % g.by_pitch) * l.stride_x - l.pad_x;
    const unsigned corner = Kind == Pixels::in_zeros ? top[i] * l.width + left[i] : 0;
    start[i] = (row / g.by_height * (l.height * l.width) + corner) * l.channels + chunk * kChunk;
    if (slot > last_slot || (Taps != 1 && static_cast<unsigned>(left[i]) >= width)) top[i] = kNowhere;
  }
  int r = 0, s = 0, c = 0;                           // of the next copies
  const int channels = l.channels - chunk * kChunk;  // from the thread's first one
  const half* taps = packed + (filter_block * depth_of(g) * S::filters + copied_row) * kDepth + chunk * kChunk;
  const auto start_copy = [&](half* stage, int i) {
    half* const to = stage + copied + i * kTogether;
    if (i >= kRows) {
      copy_async<16>(to, taps + (i - kRows) * kTogether);
      return;
    }
    int row = top[i] + r * l.dilation_y, column = left[i] + s * l.dilation_x;
    unsigned from = (r * l.dilation_y * l.width + s * l.dilation_x) * l.channels + c;
    bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(c < channels ? l.height : 0) &&
                  (Taps != 1 || static_cast<unsigned>(column) < width);
    if constexpr (Kind != Pixels::in_zeros) {
      row = border_index(row, l.height, l.padding);
      column = border_index(column, l.width, l.padding);
      inside = top[i] != kNowhere && c < channels && row >= 0 && column >= 0;
      from = (static_cast<unsigned>(row) * l.width + column) * l.channels + c;
    }
    if constexpr (Kind != Pixels::any)
      copy_async<16, Taps == 1>(to, input + (start[i] + from),
                                inside);  // the next tap's pixels overlap with this one's
    else
      copy_halves(to, input + (start[i] + from), inside ? channels - c : 0);
  };
  const auto next_taps = [&] {
    taps += Taps * S::filters * kDepth;
    if (Taps == 1) {
      if (++s < l.columns) return;
      s = 0;
    }
    if (++r < l.rows) return;
    r = 0;
    c += kDepth;
  };

  // 4.
  const int steps = depth_of(g) / Taps;
  constexpr int kAhead = kStages<Taps> - 1;
  UNROLL_BY(1)
  for (int step = 0; step < kAhead; ++step) {
    if (step < steps) {
      UNROLL
      for (int i = 0; i < kCopies; ++i) start_copy(shared + step * kStage, i);
      next_taps();
    }
    commit_copies();
  }
  float sums[kDown][kAcross][4] = {};
  // A lane's rows for ldmatrix: with one tap they follow each other, and the places of 16 rows are those of the
  // next 16. The chunk after next is 32 bytes away, with this bit of the place turned over.
  int slots[kDown];
  UNROLL
  for (int i = 0; i < kDown; ++i) slots[i] = slot_of(first_output + y + i * 16 + lane % 16);
  constexpr int kApart = Taps == 1 ? 16 * kDepth : 0;
  const int filter_place = kTile + place(x + lane / 16 * 8 + lane % 8, lane / 8 % 2);
  constexpr int kNextPair = 2 * kChunk;
  unsigned a[2][kDown][4], b[2][kAcross][2];  // of a slice, and of the next one
  const auto load = [&](const half* stage, int slice) {
    const int tap = slice / (kDepth / 16), pair = slice % (kDepth / 16) * kNextPair;
    UNROLL
    for (int i = 0; i < kDown; ++i)
      ldmatrix(a[slice % 2][i],
               stage + (place(slots[kApart == 0 ? i : 0] + tap * l.dilation_x, lane / 16) ^ pair) + i * kApart);
    UNROLL
    for (int j = 0; j < kAcross; j += 2) {
      unsigned two[4];
      ldmatrix(two, stage + (filter_place ^ pair) + (tap * S::filters + j * 8) * kDepth);
      b[slice % 2][j][0] = two[0];
      b[slice % 2][j][1] = two[1];
      b[slice % 2][j + 1][0] = two[2];
      b[slice % 2][j + 1][1] = two[3];
    }
  };
  wait_copies<kAhead - 1>();
  __syncthreads();
  load(shared, 0);
  int reading = 0, writing = kAhead;
  UNROLL_BY(1)
  for (int step = 0; step < steps; ++step) {
    const half* const stage = shared + reading * kStage;
    half* const free = shared + writing * kStage;
    const bool more = step + kAhead < steps;
    reading = reading == kAhead ? 0 : reading + 1;
    // 5.
    UNROLL
    for (int slice = 0; slice < kSlices; ++slice) {
      if (slice + 1 < kSlices) {
        load(stage, slice + 1);
      } else {
        commit_copies();
        wait_copies<kAhead - 1>();
        __syncthreads();  // the next step's tiles are there, and this one's are read
        if (step + 1 < steps) load(shared + reading * kStage, 0);
      }
      UNROLL
      for (int i = 0; i < kDown; ++i) {
        UNROLL
        for (int j = 0; j < kAcross; ++j) mma_m16n8k16(sums[i][j], a[slice % 2][i], b[slice % 2][j]);
        // The copies, evenly between the products of all slices but the last.
        constexpr int kCopiesAtOnce = (kCopies - 1) / ((kSlices - 1) * kDown) + 1;
        UNROLL
        for (int copy = 0; copy < kCopiesAtOnce; ++copy) {
          const int next = (slice * kDown + i) * kCopiesAtOnce + copy;
          if (slice + 1 < kSlices && next < kCopies && more) start_copy(free, next);
        }
      }
    }
    next_taps();
    writing = writing == kAhead ? 0 : writing + 1;
  }

  // 6. Tiles [32 filters][outputs][32], laid out as the others, over what nobody reads since the last barrier. What a
  // warp stores there it reads itself.
  UNROLL
  for (int i = 0; i < kDown; ++i) {
    UNROLL
    for (int j = 0; j < kAcross; ++j) {
      half* const tile = shared + (x + 8 * j) / kDepth * kOutTile;
      UNROLL
      for (int below = 0; below < 2; ++below)
        *reinterpret_cast<half2*>(tile + place(y + 16 * i + 8 * below + lane / 4, j % 4) + lane % 4 * 2) =
            __floats2half2_rn(sums[i][j][2 * below], sums[i][j][2 * below + 1]);
    }
  }
  __syncwarp();
  UNROLL
  for (int column = 0; column < S::warp_filters; column += kDepth) {
    const half* const tile = shared + (x + column) / kDepth * kOutTile;
    const int o = first_output + y, k = first_filter + x + column;
    if (l.filters % kChunk == 0) {
      const int of_lane = k + lane % 4 * kChunk;
      UNROLL
      for (int i = lane / 4; i < S::warp_outputs; i += 8) {
        if (o + i < g.outputs && of_lane < l.filters)
          *reinterpret_cast<uint4*>(output + (o + i) * l.filters + of_lane) =
              *reinterpret_cast<const uint4*>(tile + place(y + i, lane % 4));
      }
    } else if (k + lane < l.filters) {
      for (int i = 0; i < min(S::warp_outputs, g.outputs - o); ++i)
        output[(o + i) * l.filters + k + lane] = tile[place(y + i, lane / kChunk) + lane % kChunk];
    }
  }
}

// ---- Tiles ----------------------------------------------------------------------------------------------------------

// The knob: outputs x filters of a block.
constexpr int kTiles[] = {0, 1, 2, 3};
constexpr const char* kTileWords[] = {"128x64", "256x64", "128x128", "192x128"};
constexpr Knob kKnobs[] = {{"tile", kTiles, kTileWords, 4}};

using Small = Shape<2, 2, 64, 32, 3>;
using Tall = Shape<4, 1, 64, 64, 2>;
using Square = Shape<2, 2, 64, 64, 2>;
using Large = Shape<4, 2, 48, 64, 1>;

using Kernel = void (*)(const half*, const half*, half*, Gemm);

struct Tile {
  int outputs, filters, threads, warps_across;
  int shared_loads;  // of a block for 16 channels of a tap
  int slots;         // with three taps
  int time;          // of a block, as measured, where 10 is that of the smallest
  int shared_bytes[2];
};

template <class S>
constexpr Tile tile_of(int time) {
  return {S::outputs,
          S::filters,
          S::threads,
          S::warps_across,
          S::shared_loads,
          kSlots<S, kTaps>,
          time,
          {kStages<1> * kStageHalves<S, 1> * 2, kStages<kTaps> * kStageHalves<S, kTaps> * 2}};
}
constexpr Tile kTileSizes[] = {tile_of<Small>(10), tile_of<Tall>(18), tile_of<Square>(16), tile_of<Large>(25)};

// What the kernel can rely on when it copies pixels.
Pixels pixels_of(const Lowering& l) {
  return l.channels % kChunk != 0 ? Pixels::any : l.padding != Padding::zero ? Pixels::padded : Pixels::in_zeros;
}

// Taps of a step: three if they are a row of the filter and the pixels of a block's outputs fit into its tile. Each row
// of outputs reads a few more pixels than it has outputs.
int taps_of(const Lowering& l, const Tile& tile) {
  const std::int64_t rows = (tile.outputs - 2) / l.out_width + 2, more = (kTaps - 1) * std::int64_t{l.dilation_x};
  const bool fit = tile.outputs + rows * more <= tile.slots;
  return pixels_of(l) == Pixels::in_zeros && l.columns == kTaps && l.stride_x == 1 && fit ? kTaps : 1;
}

Gemm gemm_of(const ConvProblem& problem, const Tile& tile) {
  const Lowering l = lowering_of(problem);
  return {l,
          divisor_of(l.out_height),
          divisor_of(l.out_width),
          divisor_of(l.out_width + (taps_of(l, tile) - 1) * l.dilation_x),
          l.batch * output_plane(l),
          blocks_for(l.channels, kDepth),
          blocks_for(l.filters, tile.filters),
          tile.filters};
}

std::int64_t blocks_of(const Gemm& g, const Tile& tile) {
  return std::int64_t{blocks_for(g.outputs, tile.outputs)} * g.filter_blocks;
}

std::int64_t packed_size(const Gemm& g) {
  return std::int64_t{depth_of(g)} * g.filter_blocks * g.block_filters * kDepth;
}

template <int Taps, Pixels Kind>
Kernel kernel_of(int tile) {
  constexpr Kernel kKernels[] = {multiply<Small, Taps, Kind>, multiply<Tall, Taps, Kind>, multiply<Square, Taps, Kind>,
                                 multiply<Large, Taps, Kind>};
  return kKernels[tile];
}

Kernel kernel_of(int tile, int taps, Pixels kind) {
  if (taps != 1) return kernel_of<kTaps, Pixels::in_zeros>(tile);
  return kind == Pixels::any      ? kernel_of<1, Pixels::any>(tile)
         : kind == Pixels::padded ? kernel_of<1, Pixels::padded>(tile)
                                  : kernel_of<1, Pixels::in_zeros>(tile);
}

// ---- For the prediction ---------------------------------------------------------------------------------------------

// Pixels that the blocks of some filters copy where three taps share them: of each row of outputs of a block a piece of
// each row of its windows.
std::int64_t pixels_of_rows(const Gemm& g, const Tile& tile) {
  const Lowering& l = g.l;
  std::int64_t pixels = 0;
  for (std::int64_t o = 0, end = 0; o < g.outputs; o = end) {
    const std::int64_t row = o / l.out_width, end_of_row = (row + 1) * l.out_width;
    end = (o / tile.outputs + 1) * tile.outputs;
    if (end > end_of_row) end = end_of_row;
    const std::int64_t columns =
        reads_of_range(horizontal(l), o % l.out_width - l.pad_x, end - o + (kTaps - 1) * l.dilation_x);
    const std::int64_t top = row % l.out_height * l.stride_y - l.pad_y;
    for (int r = 0; r < l.rows; ++r) pixels += columns * reads_of_range(vertical(l), top + r * l.dilation_y, 1);
  }
  return pixels;
}

// Passes too many for the outputs of a block of channels and a tap: ldmatrix reads the slots of eight outputs, and
// every eighth slot is in the same banks.
std::int64_t conflicts_of_rows(const Gemm& g, const Tile& tile) {
  const int pitch = static_cast<int>(g.by_pitch.divisor), width = g.l.out_width;
  std::int64_t conflicts = 0;
  for (std::int64_t o = 0; o < std::int64_t{blocks_for(g.outputs, tile.outputs)} * tile.outputs; o += 8) {
    int count[8] = {}, most = 0;
    for (std::int64_t i = o; i < o + 8; ++i) {
      const int now = ++count[(i / width * pitch + i % width) % 8];
      if (now > most) most = now;
    }
    conflicts += most - 1;
  }
  return conflicts * (kDepth / kChunk) * tile.warps_across;
}

class ImplicitGemm final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 1}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration&) const override {
    return check(problem, limits);
  }
  // The tile with which the multiprocessor that has the most blocks is done first; of two the smaller.
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    int best = 0;
    std::int64_t shortest = 0;
    for (const int i : kTiles) {
      const Tile& tile = kTileSizes[i];
      const std::int64_t blocks = blocks_of(gemm_of(problem, tile), tile);
      const std::int64_t time = ((blocks - 1) / limits.multiprocessors + 1) * tile.time;
      if (i != 0 && time >= shortest) continue;
      best = i;
      shortest = time;
    }
    return {{best}};
  }
  void use(const Configuration& configuration) override { tile_ = configuration.values[0]; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_implicit_gemm(problem, kDepth, kFilterUnit);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Gemm g = gemm_of(problem, kTileSizes[tile_]);
    packed_.allocate<half>(packed_size(g), "packed filter");
    const int blocks = blocks_for(static_cast<int>(packed_size(g)), kPackThreads);
    convladder::launch(pack, dim3(blocks), dim3(kPackThreads), 0, stream)(tensors.filter, packed_.as<half>(), g);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Tile& tile = kTileSizes[tile_];
    const Gemm g = gemm_of(problem, tile);
    const int taps = taps_of(g.l, tile);
    const Kernel kernel = kernel_of(tile_, taps, pixels_of(g.l));
    convladder::launch(kernel, dim3(static_cast<unsigned>(blocks_of(g, tile))),
                       dim3(static_cast<unsigned>(tile.threads)), tile.shared_bytes[taps != 1],
                       stream)(tensors.half_input, packed_.as<half>(), tensors.half_output, g);
  }

  std::int64_t workspace_bytes() const override { return packed_.bytes(); }
  bool workspace_intact() const override { return packed_.intact(); }

  Prediction predict(const ConvProblem& problem) const override {
    const Tile& tile = kTileSizes[tile_];
    const Gemm g = gemm_of(problem, tile);
    const int taps = taps_of(g.l, tile);
    const bool together = taps != 1;
    const std::int64_t blocks = blocks_of(g, tile), block_taps = blocks * depth_of(g);
    const std::int64_t pixels = together
                                    ? pixels_of_rows(g, tile)
                                    : problem.n * reads_by_output(vertical(g.l)) * reads_by_output(horizontal(g.l));
    // Requests that take the outputs from shared memory and store them, 32 filters of eight outputs or of one.
    const std::int64_t ways_out =
        std::int64_t{blocks_for(g.outputs, problem.k % kChunk == 0 ? 8 : 1)} * blocks_for(g.l.filters, kDepth);
    Prediction p;
    p.global_load_bytes = 2 * (pixels * problem.c * g.filter_blocks + block_taps * tile.filters * kDepth);
    p.global_store_bytes = 2 * problem.output_size();
    p.global_store_requests = ways_out;
    p.shared_load_requests = block_taps * 2 * tile.shared_loads + ways_out;
    const int rows = (together ? tile.slots : tile.outputs) + taps * tile.filters;
    p.shared_store_requests =
        (block_taps / taps * rows * kDepth / kChunk + blocks * tile.outputs * tile.filters / 2) / 32;
    p.shared_load_conflicts = together ? conflicts_of_rows(g, tile) * depth_of(g) * g.filter_blocks : 0;
    p.shared_store_conflicts = 0;
    p.constant_load_requests = 0;
    p.atomic_requests = 0;
    p.barriers = block_taps / taps + blocks;
    p.flops = problem.flops();
    return p;
  }

  int tile_ = 0;
  Workspace packed_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::ImplicitGemm)
