// 31 implicit-gemm: the product of im2col on Tensor Cores, without im2col's matrix.
//
//   [outputs][filters] = [outputs][(r, c, s)] x [(r, c, s)][filters]      outputs: all (n, p, q) of the batch
//
// Since 17 and 21: the left matrix exists nowhere. A tile of it is gathered from the input, NHWC, straight to shared
// memory: 32 channels of a pixel are 64 bytes in one piece. Since 26: the matrix instructions themselves, ldmatrix and
// mma.sync, where it is known which lane holds what; and shared memory without a padded row or a bank conflict.
//
//   1. In prepare(): the filters as halves, step by step, padded with zeros: a step is 32 channels of one tap.
//   2. A block of 4 warps computes 256 x 64, 128 x 128 or 128 x 64 outputs x filters, a warp 64 x 64 or 64 x 32.
//   3. The copies of a step: 16 bytes of a pixel or a filter each. Outside of the image they write zeros, or read the
//      pixel that the padding puts there.
//   4. Three steps are on their way while a fourth is multiplied. One barrier a step.
//   5. A step is multiplied: 16 x 16 pieces of both tiles come by ldmatrix; an instruction adds 16 x 8 x 16 products.
//   6. The sums go out as halves, through shared memory, 16 bytes a lane.

#include "common/border.hpp"
#include "common/divisor.hpp"
#include "common/lowering.hpp"
#include "common/tunable.hpp"
#include "common/workspace.hpp"
//
#include "common/half.hpp"
#include "common/mma.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kDepth = 32;  // channels of a step: rows of 64 bytes in shared memory
constexpr int kChunk = 8;   // halves in 16 bytes
constexpr int kStages = 4;  // steps that shared memory holds
constexpr int kWarpOutputs = 64;
constexpr int kFilterUnit = 128;  // the most filters of a block

// The problem as the kernels take it.
struct Gemm {
  Lowering l;
  Divisor by_height, by_width;  // for division by out_height and out_width
  int outputs;                  // of the batch: rows of the product
  int channel_blocks;           // of 32
  int padded_filters;           // to whole blocks
};

__host__ __device__ __forceinline__ int steps_of(const Gemm& g) { return window(g.l) * g.channel_blocks; }

// Where a chunk of 16 bytes lies in a tile of rows of 64 bytes, in halves. Two rows take all 32 banks. The places of
// the chunks change with every second row: so the same chunk of eight rows, which ldmatrix reads, is in all banks too.
__device__ __forceinline__ int place(int row, int chunk) { return row * kDepth + (chunk ^ row / 2 % 4) * kChunk; }

// 16 bytes that are copied at once.
struct __align__(16) Halves8 {
  half2 pairs[4];
};

// 1. A thread an element.
__global__ void pack(const float* filter,  // [filters][channels][rows][columns]
                     half* packed,         // [row, channel block, column][padded filters][32]
                     Gemm g) {
  const int i = blockIdx.x * kThreads + threadIdx.x, step = i / kDepth / g.padded_filters;
  if (step >= steps_of(g)) return;
  const int k = i / kDepth % g.padded_filters, c = step / g.l.columns % g.channel_blocks * kDepth + i % kDepth;
  const int r = step / g.l.columns / g.channel_blocks, s = step % g.l.columns;
  const bool inside = k < g.l.filters && c < g.l.channels;
  packed[i] = __float2half_rn(inside ? filter[((k * g.l.channels + c) * g.l.rows + r) * g.l.columns + s] : 0.0f);
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

template <int WarpsAcross, int WarpFilters, Pixels Kind>
__global__ void __launch_bounds__(kThreads, WarpFilters == 64 ? 2 : 3)
    multiply(const half* input,   // [batch][height][width][channels]
             const half* packed,  // [row, channel block, column][padded filters][32]
             half* output,        // [batch][out_height][out_width][filters]
             Gemm g) {
  constexpr int kOutputs = kWarps / WarpsAcross * kWarpOutputs, kFilters = WarpsAcross * WarpFilters;
  constexpr int kOutputTile = kOutputs * kDepth, kStage = (kOutputs + kFilters) * kDepth;  // halves
  constexpr int kCopiedTogether = kThreads / (kDepth / kChunk);                            // rows
  constexpr int kRows = kOutputs / kCopiedTogether;  // of outputs, a chunk of which a thread copies in a step
  constexpr int kDown = kWarpOutputs / 16, kAcross = WarpFilters / 8;  // products of a warp
  half* const shared = dynamic_shared<half>();                         // [stage][outputs, then filters][32]
  // 2.
  const Lowering& l = g.l;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int filter_blocks = g.padded_filters / kFilters, filter_block = static_cast<int>(blockIdx.x) % filter_blocks;
  const int first_output = static_cast<int>(blockIdx.x) / filter_blocks * kOutputs;
  const int first_filter = filter_block * kFilters;
  const int y = warp / WarpsAcross * kWarpOutputs, x = warp % WarpsAcross * WarpFilters;

  // 3. The thread's chunk of its rows. A row is an output: its image, and where its window begins.
  const int copied_row = thread / (kDepth / kChunk), chunk = thread % (kDepth / kChunk);
  const int copied = place(copied_row, chunk);
  int image[kRows], top[kRows], left[kRows];  // image: its first row among those of the batch; past the end -1
  UNROLL
  for (int i = 0; i < kRows; ++i) {
    const int o = first_output + copied_row + i * kCopiedTogether;
    const unsigned row = static_cast<unsigned>(o) / g.by_width;
    image[i] = o < g.outputs ? static_cast<int>(row / g.by_height) * l.height : -1;
    top[i] = static_cast<int>(row % g.by_height) * l.stride_y - l.pad_y;
    left[i] = static_cast<int>(static_cast<unsigned>(o) % g.by_width) * l.stride_x - l.pad_x;
  }
  const auto index = [&](int i, int size) {
    if constexpr (Kind == Pixels::in_zeros) return static_cast<unsigned>(i) < static_cast<unsigned>(size) ? i : -1;
    return border_index(i, size, l.padding);
  };
  int row[kRows];  // of tap r: pixels of the batch before the image's row that it reads; -1 where it reads zeros
  const auto find_rows = [&](int r) {
    UNROLL
    for (int i = 0; i < kRows; ++i) {
      const int in_image = index(top[i] + r * l.dilation_y, l.height);
      row[i] = image[i] < 0 || in_image < 0 ? -1 : (image[i] + in_image) * l.width;
    }
  };
  int r = 0, s = 0, c = chunk * kChunk;  // of the next copy
  const half* taps = packed + (first_filter + copied_row) * kDepth + chunk * kChunk;
  const auto start_copies = [&](half* stage) {
    UNROLL
    for (int i = 0; i < kRows; ++i) {
      const int column = index(left[i] + s * l.dilation_x, l.width);
      const bool inside = row[i] >= 0 && column >= 0 && c < l.channels;
      const half* const from = input + ((inside ? row[i] + column : 0) * l.channels + c);
      half* const to = stage + copied + i * kCopiedTogether * kDepth;
      if constexpr (Kind != Pixels::any)
        copy_async<16, true>(to, from, inside);  // the next tap's windows overlap with this one's
      else
        copy_halves(to, from, inside ? l.channels - c : 0);
    }
    UNROLL
    for (int i = 0; i < kFilters / kCopiedTogether; ++i)
      copy_async<16>(stage + kOutputTile + copied + i * kCopiedTogether * kDepth, taps + i * kCopiedTogether * kDepth);
    taps += g.padded_filters * kDepth;
    if (++s < l.columns) return;
    s = 0;
    c += kDepth;
    if (c - chunk * kChunk < l.channels) return;
    c = chunk * kChunk;
    if (++r < l.rows) find_rows(r);
  };

  // 4.
  find_rows(0);
  const int steps = steps_of(g);
  UNROLL
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) start_copies(shared + step * kStage);
    commit_copies();
  }
  float sums[kDown][kAcross][4] = {};
  // A lane's rows for ldmatrix. The chunk after next is 32 bytes away, with this bit of the place turned over.
  const int output_place = place(y + lane % 16, lane / 16);
  const int filter_place = kOutputTile + place(x + lane / 16 * 8 + lane % 8, lane / 8 % 2);
  constexpr int kNextPair = 2 * kChunk;
  int reading = 0, writing = kStages - 1;
  UNROLL_BY(1)
  for (int step = 0; step < steps; ++step) {
    wait_copies<kStages - 2>();
    __syncthreads();  // the step's tiles are there, and those of the step before are read
    if (step + kStages - 1 < steps) start_copies(shared + writing * kStage);
    commit_copies();
    // 5.
    const half* const stage = shared + reading * kStage;
    UNROLL
    for (int depth = 0; depth < kDepth / 16; ++depth) {
      unsigned a[kDown][4], b[kAcross][2];
      UNROLL
      for (int i = 0; i < kDown; ++i) ldmatrix(a[i], stage + (output_place ^ depth * kNextPair) + i * 16 * kDepth);
      UNROLL
      for (int j = 0; j < kAcross; j += 2) {
        unsigned pair[4];
        ldmatrix(pair, stage + (filter_place ^ depth * kNextPair) + j * 8 * kDepth);
        b[j][0] = pair[0];
        b[j][1] = pair[1];
        b[j + 1][0] = pair[2];
        b[j + 1][1] = pair[3];
      }
      UNROLL
      for (int i = 0; i < kDown; ++i) {
        UNROLL
        for (int j = 0; j < kAcross; ++j) mma_m16n8k16(sums[i][j], a[i], b[j]);
      }
    }
    reading = reading + 1 == kStages ? 0 : reading + 1;
    writing = writing + 1 == kStages ? 0 : writing + 1;
  }

  // 6. Tiles [32 filters][outputs][32], laid out as the others. What a warp stores there it reads itself.
  __syncthreads();
  UNROLL
  for (int i = 0; i < kDown; ++i) {
    UNROLL
    for (int j = 0; j < kAcross; ++j) {
      half* const tile = shared + (x + 8 * j) / kDepth * kOutputTile;
      UNROLL
      for (int below = 0; below < 2; ++below)
        *reinterpret_cast<half2*>(tile + place(y + 16 * i + 8 * below + lane / 4, j % 4) + lane % 4 * 2) =
            __floats2half2_rn(sums[i][j][2 * below], sums[i][j][2 * below + 1]);
    }
  }
  __syncwarp();
  UNROLL
  for (int column = 0; column < WarpFilters; column += kDepth) {
    const half* const tile = shared + (x + column) / kDepth * kOutputTile;
    const int o = first_output + y, k = first_filter + x + column;
    if (l.filters % kChunk == 0) {
      const int of_lane = k + lane % 4 * kChunk;
      UNROLL
      for (int i = lane / 4; i < kWarpOutputs; i += 8) {
        if (o + i < g.outputs && of_lane < l.filters)
          *reinterpret_cast<uint4*>(output + (o + i) * l.filters + of_lane) =
              *reinterpret_cast<const uint4*>(tile + place(y + i, lane % 4));
      }
    } else if (k + lane < l.filters) {
      for (int i = 0; i < min(kWarpOutputs, g.outputs - o); ++i)
        output[(o + i) * l.filters + k + lane] = tile[place(y + i, lane / kChunk) + lane % kChunk];
    }
  }
}

// ---- Tiles ----------------------------------------------------------------------------------------------------------

// The knob: outputs x filters of a block.
constexpr int kTiles[] = {0, 1, 2};
constexpr const char* kTileWords[] = {"128x64", "256x64", "128x128"};
constexpr Knob kKnobs[] = {{"tile", kTiles, kTileWords, 3}};

struct Tile {
  int outputs, filters;
  int shared_loads;  // of a warp in a step
};
constexpr Tile kTileSizes[] = {{128, 64, 2 * (4 + 2)}, {256, 64, 2 * (4 + 4)}, {128, 128, 2 * (4 + 4)}};

Gemm gemm_of(const ConvProblem& problem, const Tile& tile) {
  const Lowering l = lowering_of(problem);
  return {l,
          divisor_of(l.out_height),
          divisor_of(l.out_width),
          l.batch * output_plane(l),
          blocks_for(l.channels, kDepth),
          blocks_for(l.filters, tile.filters) * tile.filters};
}

std::int64_t blocks_of(const Gemm& g, const Tile& tile) {
  return std::int64_t{blocks_for(g.outputs, tile.outputs)} * (g.padded_filters / tile.filters);
}

std::int64_t packed_size(const Gemm& g) { return std::int64_t{steps_of(g)} * g.padded_filters * kDepth; }

template <Pixels Kind>
auto kernel_of(int tile) {
  return tile == 0 ? multiply<2, 32, Kind> : tile == 1 ? multiply<1, 64, Kind> : multiply<2, 64, Kind>;
}

class ImplicitGemm final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 1}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration&) const override {
    return check(problem, limits);
  }
  // A warp with 64 x 64 sums loads a third less from shared memory for each product. But where it leaves fewer than
  // four blocks for a multiprocessor, the last round of blocks would be too thin.
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const int larger = problem.k > 64 ? 2 : 1;
    const Tile& tile = kTileSizes[larger];
    return {{blocks_of(gemm_of(problem, tile), tile) >= 4 * limits.multiprocessors ? larger : 0}};
  }
  bool searched() const override { return false; }
  void use(const Configuration& configuration) override { tile_ = configuration.values[0]; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_implicit_gemm(problem, kDepth, kFilterUnit);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Gemm g = gemm_of(problem, kTileSizes[tile_]);
    packed_.allocate<half>(packed_size(g), "packed filter");
    convladder::launch(pack, dim3(blocks_for(static_cast<int>(packed_size(g)), kThreads)), dim3(kThreads), 0, stream)(
        tensors.filter, packed_.as<half>(), g);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Tile& tile = kTileSizes[tile_];
    const Gemm g = gemm_of(problem, tile);
    const auto kernel = problem.c % kChunk != 0            ? kernel_of<Pixels::any>(tile_)
                        : problem.padding != Padding::zero ? kernel_of<Pixels::padded>(tile_)
                                                           : kernel_of<Pixels::in_zeros>(tile_);
    const std::size_t shared_bytes = std::size_t{kStages} * (tile.outputs + tile.filters) * kDepth * sizeof(half);
    convladder::launch(kernel, dim3(static_cast<unsigned>(blocks_of(g, tile))), dim3(kThreads), shared_bytes, stream)(
        tensors.half_input, packed_.as<half>(), tensors.half_output, g);
  }

  std::int64_t workspace_bytes() const override { return packed_.bytes(); }
  bool workspace_intact() const override { return packed_.intact(); }

  Prediction predict(const ConvProblem& problem) const override {
    const Tile& tile = kTileSizes[tile_];
    const Gemm g = gemm_of(problem, tile);
    const std::int64_t blocks = blocks_of(g, tile), block_steps = blocks * steps_of(g);
    const std::int64_t pixels = problem.n * reads_by_output(vertical(g.l)) * reads_by_output(horizontal(g.l));
    // Requests that take the outputs from shared memory and store them, 32 filters of eight outputs or of one.
    const std::int64_t ways_out =
        std::int64_t{blocks_for(g.outputs, problem.k % kChunk == 0 ? 8 : 1)} * blocks_for(g.l.filters, kDepth);
    Prediction p;
    p.global_load_bytes =
        2 * (pixels * problem.c * (g.padded_filters / tile.filters) + block_steps * tile.filters * kDepth);
    p.global_store_bytes = 2 * problem.output_size();
    p.global_store_requests = ways_out;
    p.shared_load_requests = block_steps * kWarps * tile.shared_loads + ways_out;
    p.shared_store_requests =
        (block_steps * (tile.outputs + tile.filters) * kDepth / kChunk + blocks * tile.outputs * tile.filters / 2) / 32;
    p.shared_load_conflicts = p.shared_store_conflicts = 0;
    p.constant_load_requests = 0;
    p.atomic_requests = 0;
    p.barriers = block_steps + blocks;
    p.flops = problem.flops();
    return p;
  }

  int tile_ = 0;
  Workspace packed_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::ImplicitGemm)
