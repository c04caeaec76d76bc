// 37 winograd-split: Winograd's algorithm in fp32 with its products on Tensor Cores.
//
//   V = B^T d B' and U = G g G'^T, each number split into two halves; M = Ul Vh + Uh Vl + Uh Vh by wgmma; Y = A^T M A'
//
// Since 36: the tiles of 35, which leave a half to a fifth of the products. Since 35: its three kernels again, but the
// product in the middle is no longer the longest of them.
//
// Halves are from 2^-24 to 2^16, so V is scaled, by a power of two for each tile and 64 channels. A column of a product
// is a tile: all its sums over 64 channels are multiplied back by one number, as they are added to a master sum.
//
//   1. In prepare(): the filters are transformed in double, scaled by a power of two for each filter and position,
//      split, and laid out as wgmma reads them.
//   2. V: a warp transforms one tile of 64 channels, each of its threads two channels. It scales by the largest
//      magnitude among them, and stores the halves, with TMA's swizzle, in rows of 64 channels.
//   3. The product: a block has N tiles and 128 filters at one position. A producer thread copies 64 channels at a
//      time, both halves, into a ring of slots.
//   4. Two consumers, a warpgroup each, have 64 filters each. They multiply 64 channels three times, the small products
//      first, and add the sums, scaled back, to the master sum.
//   5. A thread transforms the sums of one tile and filter back. If an output is not finite it computes all of its
//      outputs anew, directly and in double: so NaN and infinity arrive where they should, and nothing overflows.
//   6. The tile and N: as in 35 the error follows from the matrices, and the time from the sizes (winograd_split.cu).
#pragma once
#include "common/kernel/divisor.hpp"
#include "common/kernel/half.hpp"
#include "common/kernel/hopper.hpp"
#include "common/kernel/tracks/winograd.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 64;            // channels at a time; filters of a consumer
constexpr int kRow = kBlock * 2;      // bytes of a tile's channels, or of a filter's, as halves
constexpr int kPart = kBlock * kRow;  // bytes of 64 filters: their high or their low halves
constexpr int kConsumers = 2;         // warpgroups
constexpr int kFilters = kConsumers * kBlock;
constexpr int kGroup = 128, kGroupWarps = kGroup / 32;       // threads of a warpgroup
constexpr int kMultiplyThreads = (kConsumers + 1) * kGroup;  // the last warpgroup has the producer
constexpr int kThreads = 128;                                // of the other kernels
constexpr int kMostShared = 227 * 1024;                      // bytes of a block

// Bytes of a slot, which has 64 channels: U's four parts, V's two, and what scales the sums of each tile back.
template <int N>
constexpr int kStage = kConsumers * 2 * kPart + N*(2 * kRow + 4);
// In whole lines of the swizzle.
template <int N>
constexpr int kStagePitch = (kStage<N> + 1023) / 1024 * 1024;
template <int N>
constexpr int kStages = (kMostShared - 256) / kStagePitch<N>;

// The problem as the kernels take it. V, M and U are padded to whole blocks.
struct Plan {
  Winograd w;
  int positions, channel_blocks, filters;  // filters: padded to a multiple of kFilters
  int tiles;                               // padded to a multiple of N
  int input_exponent;                      // of the largest factor between a tile's numbers and V's
  signed char down[9], across[9];          // exponents of the factors between a filter's numbers and U's, by position
  Divisor by_channel_blocks, by_filters;   // for division by the blocks, and by the filters themselves
};

std::int64_t filter_elements(const Plan& p) {
  return std::int64_t{p.positions} * p.channel_blocks * kBlock * p.filters;
}
std::int64_t input_elements(const Plan& p) { return std::int64_t{p.positions} * p.tiles * p.channel_blocks * kBlock; }
std::int64_t sum_elements(const Plan& p) { return std::int64_t{p.positions} * p.tiles * p.filters; }
// Of a product with `block` tiles in a block.
std::int64_t works_of(const Plan& p, int block) {
  return std::int64_t{p.positions} * (p.tiles / block) * (p.filters / kFilters);
}

// Two factors, powers of two, by which a filter's sums are multiplied: one alone could overflow, or fade, where the
// result does not.
struct alignas(8) SumScale {
  float first, second;
};

// The exponent of a positive number's leading bit; 128 of infinity and NaN.
__device__ __forceinline__ int leading_exponent(float value) {
  constexpr float kTwo64 = 18446744073709551616.0f;
  const bool small = value < 1.17549435e-38f;  // no leading bit in the format
  const float normal = small ? value * kTwo64 : value;
  return static_cast<int>(*reinterpret_cast<const unsigned*>(&normal) >> 23) - 127 - (small ? 64 : 0);
}
// 2 to this power, from -126 to 127.
__device__ __forceinline__ float power_of_two(int exponent) {
  const unsigned bits = static_cast<unsigned>(exponent + 127) << 23;
  return *reinterpret_cast<const float*>(&bits);
}
__device__ __forceinline__ bool is_finite(float value) { return value - value == 0.0f; }

// ---- 1. Filters -----------------------------------------------------------------------------------------------------

// A warp a filter: the power of two that brings its largest magnitude to 2^14, below 2^15, were it not transformed.
__global__ void find_exponents(const float* filter,  // [filters][taps]
                               int* exponents,       // [filters, padded]
                               int filters, int taps) {
  const int k = blockIdx.x * (kThreads / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  float most = 0.0f;
  for (int i = lane; k < filters && i < taps; i += 32) {
    const float magnitude = fabsf(filter[static_cast<std::int64_t>(k) * taps + i]);
    if (is_finite(magnitude)) most = fmaxf(most, magnitude);
  }
  UNROLL
  for (int bits = 16; bits > 0; bits /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, bits));
  if (lane == 0) exponents[k] = most > 0 ? 14 - leading_exponent(most) : 0;
}

// A thread a filter and channel. Rows of a part are permuted, so that a lane of a consumer gets the sums of two
// neighbouring filters.
template <class Down, class Across>
__global__ void transform_filters(const float* filter,   // [filters][channels][3][3]
                                  const int* exponents,  // [filters]
                                  half* u,               // [position][filters / 64][channels / 64][low, high][64][64]
                                  SumScale* scales,      // [position][filter]
                                  Plan p) {
  constexpr int kRows = kTileSize<Down>, kColumns = kTileSize<Across>;
  const int i = blockIdx.x * kThreads + threadIdx.x, channels = p.channel_blocks * kBlock;
  if (i >= channels * p.filters) return;
  const int c = i % channels, k = i / channels;
  const bool inside = k < p.w.filters && c < p.w.channels;
  const float* taps = filter + (static_cast<std::int64_t>(k) * p.w.channels + c) * 9;
  double rows[kWinogradTaps][kColumns];  // g G'^T
  UNROLL
  for (int r = 0; r < kWinogradTaps; ++r) {
    double line[kWinogradTaps];
    UNROLL
    for (int s = 0; s < kWinogradTaps; ++s) line[s] = inside ? taps[r * kWinogradTaps + s] : 0.0f;
    transform_filter_line<Across>(line, rows[r]);
  }
  const int row = k % kBlock / 16 * 16 + k % 2 * 8 + k % 16 / 2;
  half* to = u + (static_cast<std::int64_t>(k / kBlock) * p.channel_blocks + c / kBlock) * kPart + row * kBlock +
             ((c % kBlock / 8) ^ row % 8) * 8 + c % 8;
  const std::int64_t pitch = static_cast<std::int64_t>(p.filters) * channels * 2;
  UNROLL
  for (int j = 0; j < kColumns; ++j) {
    const double line[kWinogradTaps] = {rows[0][j], rows[1][j], rows[2][j]};
    double column[kRows];
    transform_filter_line<Down>(line, column);
    UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int position = r * kColumns + j, exponent = exponents[k] - p.down[r] - p.across[j];
      // In two steps, since a power of two of 2^163 is no float.
      const double value = column[r] * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2);
      const half high = __float2half_rn(static_cast<float>(value));
      to[position * pitch] = __float2half_rn(static_cast<float>(value - __half2float(high)));
      to[position * pitch + kPart / 2] = high;
      if (c == 0)
        scales[position * p.filters + k] = {power_of_two(-exponent / 2), power_of_two(-exponent - -exponent / 2)};
    }
  }
}

// ---- 2. Tiles of the input ------------------------------------------------------------------------------------------

// A warp has a tile and 64 channels, a lane two of them.
template <class Down, class Across, bool InZeros>
__global__ void __launch_bounds__(kThreads)
    transform_inputs(const float* input,  // [batch][height][width][channels]
                     unsigned* v,         // [position][channels / 64][high, low][tile][32 pairs of channels]
                     float* back,         // [channels / 64][tile]: what its sums are multiplied by
                     Plan p) {
  constexpr int kRows = kTileSize<Down>, kColumns = kTileSize<Across>;
  const Winograd& w = p.w;
  const int lane = threadIdx.x % 32;
  const unsigned warp = blockIdx.x * (kThreads / 32) + static_cast<unsigned>(warp_index());
  const int block = static_cast<int>(warp % p.by_channel_blocks), t = static_cast<int>(warp / p.by_channel_blocks);
  const int c = block * kBlock + 2 * lane;
  const TilePlace place = place_of(w, min(t, w.tiles - 1));
  const auto index = [&](int i, int size, int pad) {
    if constexpr (InZeros) return static_cast<unsigned>(i) < static_cast<unsigned>(size) ? i : -1;
    return tile_index(i, size, pad, w.padding);
  };
  int columns[kColumns];  // where they begin in a row of pixels; negative where they are zeros
  UNROLL
  for (int x = 0; x < kColumns; ++x)
    columns[x] = t < w.tiles && c < w.channels ? index(place.column - w.pad_x + x, w.width, w.pad_x) * w.channels : -1;
  const float* channel = input + place.image * w.height * w.width * w.channels + c;
  const bool paired = w.channels % 2 == 0, second = c + 1 < w.channels;
  float tiles[2][kRows][kColumns], most = 0.0f;
  UNROLL
  for (int y = 0; y < kRows; ++y) {
    const int row = index(place.row - w.pad_y + y, w.height, w.pad_y);
    const float* pixels = channel + row * w.width * w.channels;
    UNROLL
    for (int x = 0; x < kColumns; ++x) {
      float2 pair = make_float2(0.0f, 0.0f);
      if (row >= 0 && columns[x] >= 0) {
        if (paired) {
          pair = *reinterpret_cast<const float2*>(pixels + columns[x]);
        } else {
          pair.x = pixels[columns[x]];
          if (second) pair.y = pixels[columns[x] + 1];
        }
      }
      tiles[0][y][x] = pair.x;
      tiles[1][y][x] = pair.y;
    }
  }
  UNROLL
  for (int e = 0; e < 2; ++e) {
    UNROLL
    for (int x = 0; x < kColumns; ++x) {
      float line[kRows], column[kRows];
      UNROLL
      for (int y = 0; y < kRows; ++y) {
        line[y] = tiles[e][y][x];
        most = fmaxf(most, fabsf(line[y]));
      }
      transform_input_line<Down>(line, column);
      UNROLL
      for (int y = 0; y < kRows; ++y) tiles[e][y][x] = column[y];
    }
  }
  UNROLL
  for (int bits = 16; bits > 0; bits /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, bits));
  // Brings V below 2^15.
  const int exponent = most > 0.0f ? min(max(14 - p.input_exponent - leading_exponent(most), -126), 126) : 0;
  const float scale = power_of_two(exponent);
  if (lane == 0) back[block * p.tiles + t] = power_of_two(-exponent);

  const int half_pitch = p.tiles * (kRow / 4), chunk = (lane / 4) ^ (t % 8);  // of 16 bytes
  unsigned* to = v + block * 2 * half_pitch + t * (kRow / 4) + chunk * 4 + lane % 4;
  UNROLL
  for (int y = 0; y < kRows; ++y) {
    float rows[2][kColumns];
    transform_input_line<Across>(tiles[0][y], rows[0]);
    transform_input_line<Across>(tiles[1][y], rows[1]);
    UNROLL
    for (int x = 0; x < kColumns; ++x, to += 2 * half_pitch * p.channel_blocks) {
      const float first = rows[0][x] * scale, other = rows[1][x] * scale;
      const half2 high = __floats2half2_rn(first, other);
      const float2 rounded = __half22float2(high);
      const half2 low = __floats2half2_rn(first - rounded.x, other - rounded.y);
      to[0] = *reinterpret_cast<const unsigned*>(&high);
      to[half_pitch] = *reinterpret_cast<const unsigned*>(&low);
    }
  }
}

// ---- 3 and 4. The product -------------------------------------------------------------------------------------------

template <int N>
struct ProductBlock {
  const Plan& p;
  unsigned char* ring = dynamic_shared_1024<unsigned char>();  // [kStages][kStagePitch]
  Mbarrier* full = reinterpret_cast<Mbarrier*>(ring + kStages<N> * kStagePitch<N>);
  Mbarrier* empty = full + kStages<N>;
  int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;
  int groups = p.filters / kFilters, blocks = p.tiles / N, works = p.positions * blocks * groups;

  // A work item is N tiles and 128 filters at one position. Those with the same tiles are neighbours, and then those
  // with the same position.
  struct Work {
    int position, first_tile, filter_group;
  };
  __device__ __forceinline__ Work work_of(int number) const {
    const int row = number / groups;
    return {row / blocks, row % blocks * N, number % groups};
  }

  __device__ __forceinline__ void start() const {
    if (thread == 0) {
      for (int i = 0; i < kStages<N>; ++i) {
        mbarrier_init(full + i, 1);
        mbarrier_init(empty + i, kConsumers * kGroupWarps);
      }
      fence_mbarrier_init();
    }
  }

  // 3. Into each slot: U, low and high halves of 64 filters and then of the next 64; V, high and low; the scales.
  __device__ __forceinline__ void produce(const half* u, const unsigned* v, const float* back) const {
    int load = 0;
    for (int number = blockIdx.x; number < works; number += gridDim.x) {
      const Work work = work_of(number);
      const std::int64_t filters = (std::int64_t{work.position} * groups + work.filter_group) * kConsumers;
      for (int block = 0; block < p.channel_blocks; ++block, ++load) {
        const int slot = load % kStages<N>;
        if (load >= kStages<N>) mbarrier_wait(empty + slot, (load / kStages<N> - 1) & 1);
        mbarrier_expect(full + slot, kStage<N>);
        unsigned char* to = ring + slot * kStagePitch<N>;
        for (int i = 0; i < kConsumers; ++i, to += 2 * kPart)
          bulk_load(to, u + ((filters + i) * p.channel_blocks + block) * kPart, 2 * kPart, full + slot);
        const std::int64_t of_position = (std::int64_t{work.position} * p.channel_blocks + block) * 2;
        for (int i = 0; i < 2; ++i, to += N * kRow)
          bulk_load(to, v + ((of_position + i) * p.tiles + work.first_tile) * (kRow / 4), N * kRow, full + slot);
        bulk_load(to, back + block * p.tiles + work.first_tile, N * 4, full + slot);
      }
    }
  }

  // 4. A lane has two neighbouring filters (rows f and f + 8) of two neighbouring tiles.
  __device__ __forceinline__ void consume(const SumScale* scales, float* m) const {
    const int consumer = warp / kGroupWarps;
    int load = 0;
    for (int number = blockIdx.x; number < works; number += gridDim.x) {
      float sums[N / 2], master[N / 2];
      UNROLL
      for (int i = 0; i < N / 2; ++i) master[i] = 0.0f;
      UNROLL_BY(1)
      for (int block = 0; block < p.channel_blocks; ++block, ++load) {
        const int slot = load % kStages<N>;
        const unsigned char* const stage = ring + slot * kStagePitch<N>;
        mbarrier_wait(full + slot, load / kStages<N> & 1);
        const std::uint64_t low_u = swizzled_descriptor(stage + consumer * 2 * kPart, Swizzle::bytes128);
        const std::uint64_t high_u = low_u + kPart / 16;
        const std::uint64_t high_v = swizzled_descriptor(stage + kConsumers * 2 * kPart, Swizzle::bytes128);
        const std::uint64_t low_v = high_v + N * kRow / 16;
        wgmma_fence();
        UNROLL
        for (int k = 0; k < 4; ++k) wgmma<N>(sums, low_u + 2 * k, high_v + 2 * k, k > 0);
        UNROLL
        for (int k = 0; k < 4; ++k) wgmma<N>(sums, high_u + 2 * k, low_v + 2 * k, true);
        UNROLL
        for (int k = 0; k < 4; ++k) wgmma<N>(sums, high_u + 2 * k, high_v + 2 * k, true);
        wgmma_commit();
        wgmma_wait<0>();
        pin(sums);
        const float2* const back =
            reinterpret_cast<const float2*>(stage + kConsumers * 2 * kPart + 2 * N * kRow) + lane % 4;
        UNROLL
        for (int j = 0; j < N / 8; ++j) {
          const float2 scale = back[4 * j];
          UNROLL
          for (int i = 0; i < 4; ++i) master[4 * j + i] += sums[4 * j + i] * (i % 2 ? scale.y : scale.x);
        }
        __syncwarp();
        if (lane == 0) mbarrier_arrive(empty + slot);
      }

      const Work work = work_of(number);
      const int k = work.filter_group * kFilters + warp * 16 + lane / 4 * 2;
      const SumScale* const own = scales + work.position * p.filters + k;
      const SumScale even = own[0], odd = own[1];
      float* const to = m + (std::int64_t{work.position} * p.tiles + work.first_tile + lane % 4 * 2) * p.filters + k;
      UNROLL
      for (int j = 0; j < N / 8; ++j) {
        UNROLL
        for (int i = 0; i < 2; ++i)
          *reinterpret_cast<float2*>(to + (8 * j + i) * p.filters) =
              make_float2(master[4 * j + i] * even.first * even.second, master[4 * j + 2 + i] * odd.first * odd.second);
      }
    }
  }
};

template <int N>
__global__ void __launch_bounds__(kMultiplyThreads, 1)
    multiply(const half* u,           // [position][filters / 64][channels / 64][low, high][64][64]
             const unsigned* v,       // [position][channels / 64][high, low][tile][32 pairs of channels]
             const float* back,       // [channels / 64][tile]
             const SumScale* scales,  // [position][filter]
             float* m,                // [position][tile][filter]
             const __grid_constant__ Plan p) {
  const ProductBlock<N> block{p};
  block.start();
  __syncthreads();
  if (block.warp >= kConsumers * kGroupWarps) {
    set_max_registers_decrease<40>();
    if (block.thread == kConsumers * kGroup) block.produce(u, v, back);
    return;
  }
  set_max_registers_increase<232>();
  block.consume(scales, m);
}

// ---- 5. Outputs -----------------------------------------------------------------------------------------------------

// Outputs of a tile, without transforms.
__device__ inline void compute_anew(const float* input, const float* filter, float* output, const Winograd& w,
                                    TilePlace place, int k, int rows, int columns) {
  UNROLL_BY(1)
  for (int i = 0; i < rows * columns; ++i) {
    const int y = place.row + i / columns, x = place.column + i % columns;
    if (y >= w.out_height || x >= w.out_width) continue;
    double sum = 0;
    UNROLL_BY(1)
    for (int tap = 0; tap < 9; ++tap) {
      const int row = tile_index(y - w.pad_y + tap / 3, w.height, w.pad_y, w.padding);
      const int column = tile_index(x - w.pad_x + tap % 3, w.width, w.pad_x, w.padding);
      if (row < 0 || column < 0) continue;
      const float* const pixel = input + ((place.image * w.height + row) * w.width + column) * w.channels;
      const float* const weights = filter + k * w.channels * 9 + tap;
      UNROLL_BY(1)
      for (int c = 0; c < w.channels; ++c) sum += static_cast<double>(pixel[c]) * weights[c * 9];
    }
    output[((place.image * w.out_height + y) * w.out_width + x) * w.filters + k] = static_cast<float>(sum);
  }
}

// A thread has a tile and a filter.
template <class Down, class Across>
__global__ void __launch_bounds__(kThreads) transform_outputs(const float* m,  // [position][tile][filter]
                                                              const float* input, const float* filter,
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
  bool finite = true;
  UNROLL
  for (int x = 0; x < kOutputColumns; ++x) {
    float line[kRows], column[kOutputRows];
    UNROLL
    for (int y = 0; y < kRows; ++y) line[y] = rows[y][x];
    transform_output_line<Down>(line, column);
    UNROLL
    for (int y = 0; y < kOutputRows; ++y) {
      finite = finite && is_finite(column[y]);
      if (place.row + y < w.out_height && place.column + x < w.out_width)
        to[(y * w.out_width + x) * w.filters] = column[y];
    }
  }
  if (!finite) compute_anew(input, filter, output, w, place, k, kOutputRows, kOutputColumns);
}

}  // namespace
}  // namespace convladder
