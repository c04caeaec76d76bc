// 33 winograd-hopper: F(2,3) along the height, the three columns of the filter as they are, all in one kernel.
//
//   V0 = d0 - d2, V1 = d1 + d2, V2 = d2 - d1, V3 = d3 - d1      from four rows of the input
//   Mi[filters][pixels] = sum over the columns s of Ui,s [filters][64] x Vi, s pixels further [64][pixels]
//   row 0 = M0 + M1 + M2, row 1 = M1 - M2 + M3                  of the output
//
// Since 32: 12 products in place of 18 for two rows of outputs, on the same machine: a ring in shared memory, resident
// filters, wgmma, a column shift that is an address. The rows of the ring are no longer copies of the input, so threads
// fill it, not the copy engine. Since 28: nothing but the input is read and nothing but the output written.
//
//   1. In prepare(): the filters' transform along the height, as halves, laid out as shared memory has them: 96 KB for
//      each 64 filters.
//   2. The images of the batch stand side by side in one long row, with the columns of padding that lie between them. A
//      block goes down a strip of it, 112 or 120 positions wide, two rows of outputs at a time: a pair.
//   3. Eight warps load the input's rows to registers, two for each pair; add, subtract, and store to the ring.
//   4. Two warpgroups multiply, every other pair each. M1 and M2 come first: in place, they become their sum and their
//      difference. M0 is added onto the one, M3 onto the other.
//   5. The outputs go out as halves, through shared memory, by a bulk copy for each image that the strip meets.

#include "common/kernel/tracks/winograd_half.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"
//
#include "common/kernel/hopper.hpp"
#include "common/kernel/mma.hpp"
#include "common/kernel/tracks/axis.hpp"
#include "common/kernel/wide_load.hpp"

namespace convladder {
namespace {

constexpr int kSize = kTileSize<F2>, kOutputRows = kTileOutputs<F2>;  // of a pair: rows of the input, of the output
constexpr int kChannels = 64, kFilters = 64;                          // of a block
constexpr int kRow = kChannels * 2;                                   // bytes of a pixel or filter in shared memory
constexpr int kChunk = 8, kChunks = kChannels / kChunk;               // halves in 16 bytes; of a pixel
constexpr int kTap = kFilters * kRow;                                 // bytes of the filters of one column
constexpr int kFilterRow = kWinogradTaps * kTap;                      // of Ui
constexpr int kSlots = 3;                                             // of the ring, two transformed rows each
constexpr int kGroups = 2, kGroupThreads = 128;                       // that multiply
constexpr int kLoaders = 256, kThreads = kGroups * kGroupThreads + kLoaders;
constexpr int kLoadedTogether = kLoaders / kChunks;  // pixels
constexpr int kPackThreads = 256;
constexpr int kFilterHalves = kSize * kFilterRow / 2;  // of a block of filters, transformed

// The problem as the kernels take it.
struct Strips {
  Winograd w;
  int pitch;  // positions of an image
  Divisor by_pitch;
  int strips, pairs;  // in all; of a block
  int blocks_down;    // of a strip
  int filter_blocks;  // of 64
};

// Where chunk c of row r lies in rows of 128 bytes, in bytes: as bulk copies and wgmma swizzle.
__device__ __forceinline__ int place(int row, int chunk) { return row * kRow + (chunk ^ row % 8) * 16; }

// 16 bytes that are moved at once.
struct __align__(16) Halves8 {
  half2 pairs[4];
};

// 1. A thread for a column s of a filter and channel. V1 and V2 are multiplied first, so U1 and U2 come first.
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  half* u,              // [block of 64 filters][U1, U2, U0, U3][s][64][64 swizzled]
                                  Strips g) {
  const int i = blockIdx.x * kPackThreads + threadIdx.x, block = i / (kWinogradTaps * kFilters * kChannels);
  if (block >= g.filter_blocks) return;
  const int row = i / kChannels % kFilters, c = i % kChannels, s = i / (kFilters * kChannels) % kWinogradTaps;
  const int k = block * kFilters + row;
  const bool inside = k < g.w.filters && c < g.w.channels;
  float taps[kWinogradTaps], transformed[kSize];
  UNROLL
  for (int r = 0; r < kWinogradTaps; ++r)
    taps[r] = inside ? filter[((k * g.w.channels + c) * kWinogradTaps + r) * kWinogradTaps + s] : 0.0f;
  transform_filter_line<F2>(taps, transformed);
  const int at = place(row, c / kChunk) / 2 + c % kChunk;
  constexpr int kOrder[kSize] = {1, 2, 0, 3};
  UNROLL
  for (int v = 0; v < kSize; ++v)
    u[((block * kSize + v) * kWinogradTaps + s) * (kTap / 2) + at] = __float2half_rn(transformed[kOrder[v]]);
}

// What a block can rely on when it loads and stores pixels.
enum class Pixels {
  chunks,  // channels and filters are whole chunks
  any      // nothing
};

template <int Positions>
constexpr int kRingRow = (Positions + kWinogradTaps - 1 + 7) / 8 * 8 * kRow;  // bytes
template <int Positions>
constexpr int kSharedBytes = kSize* kFilterRow + kSlots * 2 * kRingRow<Positions> + kGroups* Positions* kRow +
                             (2 * kSlots + kSize) * static_cast<int>(sizeof(Mbarrier));

template <int Positions, Pixels Kind>
__global__ void __launch_bounds__(kThreads, 1)
    convolve(const half* input,                             // [batch][height][width][channels]
             const half* u,                                 // as transform_filters() leaves it
             half* output,                                  // [batch][out_height][out_width][filters]
             const __grid_constant__ TensorMap output_map,  // of it, with boxes of Positions x 64; not for Pixels::any
             Strips g) {
  static_assert(Positions % 8 == 0, "swizzles repeat after 8 pixels: rows of the ring and stages begin with one");
  static_assert(kSharedBytes<Positions> <= 227 * 1024, "what a block may have");
  constexpr int kSlot = 2 * kRingRow<Positions>, kStage = Positions * kRow;
  unsigned char* const filters = dynamic_shared_1024<unsigned char>();  // [U1, U2, U0, U3][s][64][kRow]
  unsigned char* const ring = filters + kSize * kFilterRow;             // [kSlots][2][Positions + 2, rounded up][kRow]
  unsigned char* const stages = ring + kSlots * kSlot;                  // [group][Positions][kRow]
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(stages + kGroups * kStage);  // [kSlots]
  Mbarrier* const empty = full + kSlots;                                          // [kSlots]
  Mbarrier* const filters_full = empty + kSlots;                                  // [U1, U2, U0, U3]
  // 2.
  const Winograd& w = g.w;
  const int thread = threadIdx.x, lane = thread % 32, warp = warp_index();
  const int filter_block = static_cast<int>(blockIdx.x) % g.filter_blocks;
  const int strip = static_cast<int>(blockIdx.x) / g.filter_blocks % g.strips;
  const int first_pair = static_cast<int>(blockIdx.x) / g.filter_blocks / g.strips * g.pairs;
  const int pairs = min(g.pairs, w.tiles_down - first_pair);
  const int first_position = strip * Positions;

  const auto load_filters = [&](int v) {
    mbarrier_expect(filters_full + v, kFilterRow);
    bulk_load(filters + v * kFilterRow, u + (filter_block * kSize + v) * (kFilterRow / 2), kFilterRow,
              filters_full + v);
  };
  if (thread == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      mbarrier_init(full + slot, kLoaders / 32);
      mbarrier_init(empty + slot, kGroupThreads / 32);
    }
    for (int v = 0; v < kSize; ++v) mbarrier_init(filters_full + v, 1);
    fence_mbarrier_init();
    load_filters(0);
    load_filters(1);
  }
  // Others use the mbarriers only then. The first rows are on their way by that time.
  const auto meet = [] { named_barrier_sync(1 + kGroups, kThreads); };

  // 3. A thread has one chunk of every 32nd pixel.
  if (warp >= kGroups * kGroupThreads / 32) {
    set_max_registers_decrease<104>();
    constexpr int kLoads = blocks_for(Positions + kWinogradTaps - 1, kLoadedTogether);
    const int loader = thread - kGroups * kGroupThreads, chunk = loader % kChunks, pixel = loader / kChunks;
    const int c = chunk * kChunk;
    int at[kLoads];  // in the input, without the row; -1 where it reads zeros
    UNROLL
    for (int i = 0; i < kLoads; ++i) {
      const int in_strip = pixel + i * kLoadedTogether;
      const unsigned position = static_cast<unsigned>(first_position + in_strip);
      const int image = static_cast<int>(position / g.by_pitch);
      const int column = tile_index(static_cast<int>(position % g.by_pitch) - w.pad_x, w.width, w.pad_x, w.padding);
      const bool inside = in_strip < Positions + kWinogradTaps - 1 && image < w.batch && column >= 0 && c < w.channels;
      at[i] = inside ? (image * w.height * w.width + column) * w.channels + c : -1;
    }
    const int top = first_pair * kOutputRows - w.pad_y, rows = pairs * kOutputRows + kWinogradTaps - 1;
    constexpr int kRowsHeld = Kind == Pixels::chunks ? 5 : 4;  // single halves take registers of their own
    Halves8 d[kRowsHeld][kLoads];                              // row i in i % kRowsHeld
    const auto load = [&](int row, Halves8(&to)[kLoads]) {
      const int y = row < rows ? tile_index(top + row, w.height, w.pad_y, w.padding) : -1;
      UNROLL
      for (int i = 0; i < kLoads; ++i) {
        const half* const from = input + (at[i] + y * w.width * w.channels);
        const bool inside = y >= 0 && at[i] >= 0;
        if constexpr (Kind == Pixels::chunks) {
          *reinterpret_cast<uint4*>(&to[i]) = load_or_zero(from, inside);
        } else {
          const half zero = __float2half_rn(0.0f);
          UNROLL
          for (int j = 0; j < 4; ++j)
            to[i].pairs[j] = __halves2half2(inside && c + 2 * j < w.channels ? from[2 * j] : zero,
                                            inside && c + 2 * j + 1 < w.channels ? from[2 * j + 1] : zero);
        }
      }
    };
    // One transformed row of the ring.
    const bool has_last = pixel + (kLoads - 1) * kLoadedTogether < Positions + kWinogradTaps - 1;
    const auto store = [&](unsigned char* row, const auto& combine) {
      UNROLL
      for (int i = 0; i < kLoads; ++i) {
        if (i == kLoads - 1 && !has_last) continue;
        Halves8 v;
        UNROLL
        for (int j = 0; j < 4; ++j) v.pairs[j] = combine(i, j);
        *reinterpret_cast<uint4*>(row + place(pixel, chunk) + i * kLoadedTogether * kRow) =
            *reinterpret_cast<const uint4*>(&v);
      }
    };
    load(1, d[1]);
    load(2, d[2]);
    load(0, d[0]);
    load(3, d[3]);
    if constexpr (kRowsHeld > 4) load(4, d[4]);
    meet();
    UNROLL_BY(1)
    for (int first = 0; first < pairs; first += kRowsHeld) {
      UNROLL
      for (int j = 0; j < kRowsHeld; ++j) {
        const int pair = first + j;
        if (pair >= pairs) break;
        Halves8(&d0)[kLoads] = d[2 * j % kRowsHeld], (&d1)[kLoads] = d[(2 * j + 1) % kRowsHeld];
        Halves8(&d2)[kLoads] = d[(2 * j + 2) % kRowsHeld], (&d3)[kLoads] = d[(2 * j + 3) % kRowsHeld];
        const auto begin = [&](int fill) {
          if (fill >= kSlots) mbarrier_wait(empty + fill % kSlots, (fill / kSlots - 1) & 1);
          return ring + fill % kSlots * kSlot;
        };
        const auto end = [&](int fill) {
          __syncwarp();
          if (lane == 0) mbarrier_arrive(full + fill % kSlots);
        };
        unsigned char* row = begin(2 * pair);
        store(row, [&](int i, int e) { return __hadd2(d1[i].pairs[e], d2[i].pairs[e]); });
        store(row + kRingRow<Positions>, [&](int i, int e) { return __hsub2(d2[i].pairs[e], d1[i].pairs[e]); });
        end(2 * pair);
        row = begin(2 * pair + 1);
        store(row, [&](int i, int e) { return __hsub2(d0[i].pairs[e], d2[i].pairs[e]); });
        store(row + kRingRow<Positions>, [&](int i, int e) { return __hsub2(d3[i].pairs[e], d1[i].pairs[e]); });
        end(2 * pair + 1);
        load(2 * pair + kRowsHeld, d0);
        load(2 * pair + kRowsHeld + 1, d1);
      }
    }
    return;
  }

  // 4.
  set_max_registers_increase<152>();
  meet();
  const int group = warp / (kGroupThreads / 32);
  const bool leads = thread % kGroupThreads == 0;
  unsigned char* const stage = stages + group * kStage;
  const auto image_at = [&](int position) { return static_cast<int>(static_cast<unsigned>(position) / g.by_pitch); };
  const int first_image = image_at(first_position);
  const int last_image = min(image_at(first_position + Positions - 1), w.batch - 1);
  float sums[Positions / 2], differences[Positions / 2];
  for (int pair = group; pair < pairs; pair += kGroups) {
    // Adds to `m`, or begins it: Ui Vi for i = 1, 2, 0, 3.
    const auto multiply = [&](float(&m)[Positions / 2], int i, bool add) {
      const int slot = (2 * pair + i / 2) % kSlots;
      const std::uint64_t a = swizzled_descriptor(filters + i * kFilterRow, Swizzle::bytes128);
      const std::uint64_t b = swizzled_descriptor(ring + slot * kSlot + i % 2 * kRingRow<Positions>, Swizzle::bytes128);
      if (pair == group) mbarrier_wait(filters_full + i, 0);
      wgmma_fence();
      UNROLL
      for (int s = 0; s < kWinogradTaps; ++s) {
        UNROLL
        for (int c = 0; c < kRow; c += 32)
          wgmma<Positions>(m, a + (s * kTap + c) / 16, b + (s * kRow + c) / 16, add || s + c > 0);
      }
      wgmma_commit();
    };
    // The fence stands with the reader: with the writer, it would wait for the rows that are on their way to registers.
    const auto wait_full = [&](int fill) {
      mbarrier_wait(full + fill % kSlots, fill / kSlots & 1);
      fence_async_proxy();
    };
    const auto release = [&](int fill) {
      if (lane == 0) mbarrier_arrive(empty + fill % kSlots);
    };
    wait_full(2 * pair);
    multiply(sums, 0, false);
    multiply(differences, 1, false);
    if (thread == 0 && pair == 0) {  // those needed later come later: the first rows are on their way until now
      load_filters(2);
      load_filters(3);
    }
    wgmma_wait<0>();
    pin(sums);
    pin(differences);
    release(2 * pair);
    UNROLL
    for (int i = 0; i < Positions / 2; ++i) {
      sums[i] += differences[i];                              // M1 + M2
      differences[i] = fmaf(-2.0f, differences[i], sums[i]);  // M1 - M2
    }
    pin(sums);
    pin(differences);
    wait_full(2 * pair + 1);
    multiply(sums, 2, true);
    multiply(differences, 3, true);

    // 5. Of a sum, a lane holds two neighbouring positions of a filter. Transposed, they are rows of filters.
    const auto send = [&](const float(&m)[Positions / 2], int p) {
      if (leads) bulk_wait_read<0>();
      named_barrier_sync(1 + group, kGroupThreads);  // the stage is free
      const auto halves = [&](int i) {
        const half2 pair_of_sums = __floats2half2_rn(m[i], m[i + 1]);
        return *reinterpret_cast<const unsigned*>(&pair_of_sums);
      };
      unsigned char* const row = stage + place(lane / 16 * 8 + lane % 8, warp % 4 * 2 + lane / 8 % 2);
      UNROLL
      for (int j = 0; j + 1 < Positions / 8; j += 2)
        stmatrix_transposed(row + j * 8 * kRow,
                            {halves(4 * j), halves(4 * j + 2), halves(4 * j + 4), halves(4 * j + 6)});
      if constexpr (Positions / 8 % 2 == 1) {
        constexpr int kLast = Positions / 8 - 1;
        stmatrix_transposed(row + kLast * 8 * kRow, {halves(4 * kLast), halves(4 * kLast + 2)});
      }
      fence_async_proxy();
      named_barrier_sync(1 + group, kGroupThreads);
      if (p >= w.out_height) return;
      if (Kind == Pixels::chunks && first_image == last_image) {
        if (!leads) return;
        tensor_store(output_map, stage, filter_block * kFilters, first_position - first_image * g.pitch, p,
                     first_image);
        bulk_commit();
        return;
      }
      // Positions of several images, which a box cannot be cut into: it may not begin before its tensor.
      constexpr int kTogether = Kind == Pixels::chunks ? kChunk : 1;  // halves
      for (int i = thread % kGroupThreads; i < Positions * kFilters / kTogether; i += kGroupThreads) {
        const int row_of_stage = i * kTogether / kFilters, of_row = i * kTogether % kFilters;
        const unsigned position = static_cast<unsigned>(first_position + row_of_stage);
        const int image = static_cast<int>(position / g.by_pitch), q = static_cast<int>(position % g.by_pitch);
        const int k = filter_block * kFilters + of_row;
        if (image >= w.batch || q >= w.out_width || k >= w.filters) continue;
        half* const to = output + (((image * w.out_height + p) * w.out_width + q) * w.filters + k);
        const unsigned char* const from = stage + place(row_of_stage, of_row / kChunk) + of_row % kChunk * 2;
        if constexpr (Kind == Pixels::chunks)
          *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
        else
          *to = *reinterpret_cast<const half*>(from);
      }
    };
    const int p = (first_pair + pair) * kOutputRows;
    wgmma_wait<1>();
    pin(sums);
    send(sums, p);
    wgmma_wait<0>();
    pin(differences);
    release(2 * pair + 1);
    send(differences, p + 1);
  }
  if (leads) bulk_wait_read<0>();  // shared memory is the block's as long as that
}

// ---- Strips and blocks ----------------------------------------------------------------------------------------------

// The knob: positions of a strip.
constexpr int kPositions[] = {112, 120};
constexpr Knob kKnobs[] = {{"strip", kPositions, nullptr, 2}};

// Positions of an image: its outputs, and the columns that its last windows reach further. Zeros at its right end are
// also those at the left end of the next one.
int pitch_of(const Winograd& w) {
  constexpr int kFurther = kWinogradTaps - 1;
  const int shared = w.padding != Padding::zero ? 0 : w.pad_x < kFurther ? w.pad_x : kFurther;
  return w.out_width + kFurther - shared;
}

int strips_across(const Winograd& w, int positions) {
  return blocks_for((w.batch - 1) * pitch_of(w) + w.out_width, positions);
}

// How a strip is cut: a block takes about as long as two pairs to begin, and blocks run in rounds.
struct Cut {
  int pairs;
  std::int64_t time;  // positions times pairs
};

Cut cut_of(const ConvProblem& problem, int positions, int multiprocessors) {
  constexpr int kStart = 2, kMostRounds = 16;
  const Winograd w = winograd_of(problem, kOutputRows);
  const std::int64_t columns = std::int64_t{strips_across(w, positions)} * blocks_for(w.filters, kFilters);
  Cut best{w.tiles_down, -1};
  for (int down = 1; down <= w.tiles_down; ++down) {
    const std::int64_t blocks = columns * down, rounds = (blocks - 1) / multiprocessors + 1;
    const int pairs = blocks_for(w.tiles_down, down);
    const std::int64_t time = rounds * (pairs + kStart) * positions;
    if (best.time < 0 || time < best.time) best = {pairs, time};
    if (rounds > kMostRounds) break;
  }
  return best;
}

Strips strips_of(const ConvProblem& problem, int positions) {
  Strips g{};
  g.w = winograd_of(problem, kOutputRows);
  g.pitch = pitch_of(g.w);
  g.by_pitch = divisor_of(g.pitch);
  g.strips = strips_across(g.w, positions);
  g.pairs = cut_of(problem, positions, device_limits().multiprocessors).pairs;
  g.blocks_down = blocks_for(g.w.tiles_down, g.pairs);
  g.filter_blocks = blocks_for(g.w.filters, kFilters);
  return g;
}

std::int64_t blocks_of(const Strips& g) { return std::int64_t{g.filter_blocks} * g.strips * g.blocks_down; }

class WinogradHopper final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 1}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration&) const override {
    return check(problem, limits);
  }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const bool wider =
        cut_of(problem, 120, limits.multiprocessors).time < cut_of(problem, 112, limits.multiprocessors).time;
    return {{wider ? 120 : 112}};
  }
  void use(const Configuration& configuration) override { positions_ = configuration.values[0]; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_winograd_form(problem);
    if (!verdict.accepted()) return verdict;
    if (problem.c > kChannels)
      return Verdict::refuse("there must be at most %d channels, whose filters fill shared memory; got c=%lld",
                             kChannels, static_cast<long long>(problem.c));
    constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - 1024;
    const std::int64_t elements[] = {problem.input_size(), problem.output_size(),
                                     problem.n * (problem.q() + kWinogradTaps - 1)};
    for (const std::int64_t count : elements)
      if (count > kLimit)
        return Verdict::refuse("input, output and n (q + 2) must have fewer than 2^31 - 1024 elements; got %lld",
                               static_cast<long long>(count));
    constexpr std::int64_t kMostFilters = kLimit / kFilterHalves * kFilters;
    if (problem.k > kMostFilters)
      return Verdict::refuse("there must be at most %lld filters; got k=%lld", static_cast<long long>(kMostFilters),
                             static_cast<long long>(problem.k));
    return Verdict::accept();
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Strips g = strips_of(problem, positions_);
    const int threads = g.filter_blocks * kWinogradTaps * kFilters * kChannels;
    u_.allocate<half>(std::int64_t{kSize} * threads, "transformed filter");
    convladder::launch(transform_filters, dim3(blocks_for(threads, kPackThreads)), dim3(kPackThreads), 0, stream)(
        tensors.filter, u_.as<half>(), g);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    if (positions_ == 112)
      launch_kernel<112>(problem, tensors, stream);
    else
      launch_kernel<120>(problem, tensors, stream);
  }

  template <int Positions>
  void launch_kernel(const ConvProblem& problem, const Tensors& tensors, Stream stream) const {
    const Strips g = strips_of(problem, Positions);
    const bool chunks = problem.c % kChunk == 0 && problem.k % kChunk == 0;
    TensorMap map{};
    if (chunks) {
      const auto filters = static_cast<std::uint64_t>(problem.k), width = static_cast<std::uint64_t>(problem.q()),
                 height = static_cast<std::uint64_t>(problem.p()), batch = static_cast<std::uint64_t>(problem.n);
      map = make_tensor_map(tensors.half_output, {TensorElement::fp16,
                                                  Swizzle::bytes128,
                                                  4,
                                                  {{filters, 2, kFilters},
                                                   {width, filters * 2, Positions},
                                                   {height, width * filters * 2, 1},
                                                   {batch, height * width * filters * 2, 1}}});
    }
    const auto kernel = chunks ? convolve<Positions, Pixels::chunks> : convolve<Positions, Pixels::any>;
    convladder::launch(kernel, dim3(static_cast<unsigned>(blocks_of(g))), dim3(kThreads), kSharedBytes<Positions>,
                       stream)(tensors.half_input, u_.as<half>(), tensors.half_output, map, g);
  }

  std::int64_t workspace_bytes() const override { return u_.bytes(); }
  bool workspace_intact() const override { return u_.intact(); }
  WinogradForm winograd(const ConvProblem&) const override {
    return {kOutputRows, false, Precision::fp16, false, true};
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Strips g = strips_of(problem, positions_);
    const Winograd& w = g.w;
    const std::int64_t blocks = blocks_of(g), pairs = std::int64_t{g.filter_blocks} * g.strips * w.tiles_down;
    const Axis down{w.height, w.out_height, kWinogradTaps, w.pad_y, w.padding};
    const std::int64_t rows = reads_by_tile(down, kOutputRows * g.pairs);
    const bool chunks = problem.c % kChunk == 0 && problem.k % kChunk == 0;
    Prediction p;
    p.global_load_bytes = 2 * (columns_loaded(g) * rows * w.channels * g.filter_blocks + blocks * kFilterHalves);
    p.global_store_bytes = 2 * problem.output_size();
    // Of a pair: four pixels a request, of four transformed rows; 16 positions a request of each of four warps, of two
    // rows of outputs.
    const int pixels = positions_ + kWinogradTaps - 1, warps = kGroupThreads / 32;
    p.shared_store_requests =
        pairs * (kSize * blocks_for(pixels, 4) + kOutputRows * warps * blocks_for(positions_, 16));
    p.shared_store_conflicts = 0;
    if (chunks && w.batch == 1) p.shared_load_requests = p.shared_load_conflicts = 0;
    p.barriers = 0;
    p.constant_load_requests = 0;
    p.flops = 2 * kSize * kWinogradTaps * std::int64_t{w.tiles_down} * w.batch * w.out_width * w.channels * w.filters;
    return p;
  }

  // Columns of the input that the strips load, all together. Two positions are in two strips.
  std::int64_t columns_loaded(const Strips& g) const {
    const Axis across{g.w.width, g.w.out_width, kWinogradTaps, g.w.pad_x, g.w.padding};
    std::int64_t columns = g.w.batch * reads_by_tile(across, g.w.out_width);
    for (std::int64_t strip = 1; strip < g.strips; ++strip)
      for (std::int64_t i = strip * positions_; i < strip * positions_ + kWinogradTaps - 1; ++i)
        columns += reads_of_range(across, i % g.pitch - g.w.pad_x, 1);
    return columns;
  }

  int positions_ = 112;
  Workspace u_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradHopper)
