// 43 halo-direct, its kernels: steps 1 to 4 of halo_direct.cu.
#pragma once
#include <algorithm>
#include <cstdint>

#include "chapters/42-halo-overlap/interior.cuh"
#include "common/kernel/signals.hpp"

namespace convladder {
namespace {

// A rank's signals: of each rank whether its rows are complete, of each whether it has read; and the epoch, the number
// of launches that are over, which each rank counts for itself.
constexpr int kReady = 0, kDone = kMostRanks, kEpoch = 2 * kMostRanks;

// A block of the borders has 8 rows of 128 outputs. A thread owns 8 adjacent outputs, a warp two rows of them. With 32
// registers a thread, 4096 a block, it fits beside ten blocks of 09 with 3 x 3 taps, which leave just as many.
constexpr int kBorderWarps = 4, kBorderRows = 2 * kBorderWarps;
constexpr int kOwned = 8, kBorderColumns = kWarp / 2 * kOwned;

// Rows of padding, above and below each: the borders of a rank that has both, a filter's rows and what is left of a
// tile are then at most 65535 tiles, a grid's blocks in y.
constexpr std::int64_t kMostPadding = 250000;

// Columns of a staged row that are read: to the end of the last thread's last 16-byte read.
__host__ __device__ constexpr int staged_columns(int columns) {
  return kBorderColumns - kOwned + (kOwned + columns - 1 + 3) / 4 * 4;
}
// Floats from one staged row to the next: such that 4 lanes across (kOwned words apart) and 4 in the row below meet 8
// different groups of 4 banks.
__host__ __device__ constexpr int border_pitch(int columns) {
  return (staged_columns(columns) - 4 + kOwned - 1) / kOwned * kOwned + 4;
}

// Where the rows of all images lie.
struct Bands {
  int first, height;                        // the row of the image that the rank's buffer begins with; all rows
  int first_row[kMostRanks];                // of the image: that a rank owns; `height` where it has none
  int above[kMostRanks], rows[kMostRanks];  // of its buffer: before its own rows, and in all
};

// Rows of outputs: [0, above) and [below, end).
struct Borders {
  int above, below, end;
};
__host__ __device__ __forceinline__ int tiles_of(int rows) { return (rows + kBorderRows - 1) / kBorderRows; }

__host__ __device__ __forceinline__ int tiles_across(int columns) {
  return (columns + kBorderColumns - 1) / kBorderColumns;
}

__device__ __forceinline__ void wait_for(const unsigned* signal, unsigned epoch) {
  while (load_signal(signal) != epoch) {
  }
}

// 1. and 4. Tells the ranks of the set `to` that this rank's rows are complete, or that it has read; then waits until
// those of the set `from` have told the same. A thread a rank.
__global__ void meet(const __grid_constant__ Peers peers, int self, unsigned to, unsigned from, int what) {
  unsigned* own = peers.signals[self];
  const unsigned rank = threadIdx.x, epoch = own[kEpoch] + 1;
  if (to >> rank & 1) store_signal(peers.signals[rank] + what + self, epoch);
  if (from >> rank & 1) wait_for(own + what + rank, epoch);
  __syncthreads();
  if (rank == 0 && what == kDone) own[kEpoch] = epoch;  // this launch is over
}

// Where the row of a border lies that is `at` rows below the first of the rank's buffer; null for a row of zeros.
__device__ __forceinline__ const float* find_row(const Image& image, const Bands& bands, const Peers& peers, int number,
                                                 int at) {
  const int source = border_index(bands.first + at, bands.height, image.padding);
  if (source < 0) return nullptr;
  int owner = 0;
  UNROLL
  for (int rank = 1; rank < kMostRanks; ++rank) owner += source >= bands.first_row[rank];
  const int row = bands.above[owner] + source - bands.first_row[owner];
  return peers.buffers[owner] + (static_cast<std::int64_t>(number) * bands.rows[owner] + row) * image.width;
}

__device__ __forceinline__ const float* of_lane(int lane, const float* pointer) {
  return reinterpret_cast<const float*>(__shfl_sync(kAllLanes, reinterpret_cast<std::uintptr_t>(pointer), lane));
}

// Adds kTaps taps of one filter row to the outputs of a thread, whose first window begins at `staged`.
template <int kTaps>
__device__ __forceinline__ void add_row_taps(float (&sum)[kOwned], const float* staged, const float* taps) {
  constexpr int kVectors = (kOwned + kTaps - 1 + 3) / 4;
  float window[4 * kVectors];
  UNROLL
  for (int u = 0; u < kVectors; ++u) {
    const float4 four = load_four(staged + 4 * u);
    window[4 * u] = four.x;
    window[4 * u + 1] = four.y;
    window[4 * u + 2] = four.z;
    window[4 * u + 3] = four.w;
  }
  UNROLL
  for (int t = 0; t < kTaps; ++t) {
    const float tap = taps[t];
    UNROLL
    for (int e = 0; e < kOwned; ++e) sum[e] += window[t + e] * tap;
  }
}

// 3. Outputs whose windows reach into rows of other ranks. kColumns: of the filter, or 0 to take it from `image`.
template <int kColumns>
__global__ void __launch_bounds__(kWarp* kBorderWarps)
    filter_borders(float* output,  // [batch][out_height][out_width]
                   Image image, Borders borders, const __grid_constant__ Bands bands,
                   const __grid_constant__ Peers peers) {
  if (kColumns > 0) image.columns = kColumns;
  float* staged = dynamic_shared<float>();  // [kBorderRows + rows - 1][pitch]
  const int pitch = border_pitch(image.columns);
  // The tile: first those above, then those below.
  const int across = tiles_across(image.out_width), above = tiles_of(borders.above), tile = blockIdx.y;
  const int number = blockIdx.x / across, x = blockIdx.x % across * kBorderColumns;
  const int y = tile < above ? tile * kBorderRows : borders.below + (tile - above) * kBorderRows;
  const int height = min(kBorderRows, (tile < above ? borders.above : borders.end) - y);
  const int needed_y = height + image.rows - 1;
  const int needed_x = min(kBorderColumns, image.out_width - x) + image.columns - 1;

  // A warp has every fourth row. A lane finds out where one of them lies, and tells the others.
  static_assert(kBorderRows + kMaxFilterSide - 1 <= kBorderWarps * kWarp, "a lane finds one row");
  const int lane = threadIdx.x, warp = threadIdx.y, found = warp + kBorderWarps * lane;
  const float* found_row = found < needed_y ? find_row(image, bands, peers, number, y + found) : nullptr;

  // From wherever they lie into shared memory, all on their way at once: the way to another GPU is long. Such copies
  // stay in L1, which other GPUs' stores do not change. But no line of the launch before is read: a kernel begins
  // without the lines of those that ended before it, and this one begins when `meet` has acquired. By PTX's memory
  // model: release, acquire, and the order of the stream put the owner's stores before these copies.
  constexpr int kLoads = (staged_columns(kColumns > 0 ? kColumns : kMaxFilterSide) + kWarp - 1) / kWarp;
  const int staged_x = staged_columns(image.columns);
  int columns[kLoads];  // -1: zeros, also where no output needs a pixel
  UNROLL
  for (int u = 0; u < kLoads; ++u) {
    const int c = lane + u * kWarp;
    columns[u] = c < needed_x ? border_index(x - image.pad_x + c, image.width, image.padding) : -1;
  }
  float* to = staged + warp * pitch + lane;
  for (int i = 0; warp + kBorderWarps * i < needed_y; ++i, to += kBorderWarps * pitch) {
    const float* row = of_lane(i, found_row);
    UNROLL
    for (int u = 0; u < kLoads; ++u)
      if ((u + 1) * kWarp <= staged_x || lane + u * kWarp < staged_x)
        copy_async<4>(to + u * kWarp, row + columns[u], row != nullptr && columns[u] >= 0);
  }
  commit_copies();
  wait_copies<0>();
  __syncthreads();

  // In the order of 09, so that the bits are its own. Lanes: 4 across, 2 down, and again.
  const int own_y = 2 * warp + lane / 4 % 2, own_x = (lane % 4 + lane / 8 * 4) * kOwned;
  if (own_y >= height) return;
  float sum[kOwned] = {};
  for (int r = 0; r < image.rows; ++r) {
    const float* window = staged + (own_y + r) * pitch + own_x;
    const float* taps = c_filter + r * image.columns;
    if (kColumns > 0) {
      add_row_taps<(kColumns > 0 ? kColumns : 1)>(sum, window, taps);
      continue;
    }
    int s = 0;
    for (; s + 8 <= image.columns; s += 8) add_row_taps<8>(sum, window + s, taps + s);
    if (s + 4 <= image.columns) {
      add_row_taps<4>(sum, window + s, taps + s);
      s += 4;
    }
    if (s + 3 == image.columns) add_row_taps<3>(sum, window + s, taps + s);
    if (s + 2 == image.columns) add_row_taps<2>(sum, window + s, taps + s);
    if (s + 1 == image.columns) add_row_taps<1>(sum, window + s, taps + s);
  }

  const int first = x + own_x;
  float* out = output + number * output_pixels(image) + static_cast<std::int64_t>(y + own_y) * image.out_width + first;
  UNROLL
  for (int e = 0; e < kOwned; e += kFour) {
    if (image.out_width % kFour == 0) {  // rows of whole vectors
      if (first + e < image.out_width) store_four(out + e, sum[e], sum[e + 1], sum[e + 2], sum[e + 3], 1.0f);
    } else {
      UNROLL
      for (int f = e; f < e + kFour; ++f)
        if (first + f < image.out_width) out[f] = sum[f];
    }
  }
}

// ---- On the host ----------------------------------------------------------------------------------------------------

// Ranks, other than itself, that own rows which rank `of` reads: a bit each.
inline unsigned owners_of(const ConvProblem& problem, int of, int ranks) {
  const Part its = band_part(problem, of, ranks);
  unsigned owners = 0;
  for (std::int64_t at = 0; its.problem.n > 0 && at < its.problem.h; ++at) {
    const std::int64_t source = source_row(problem, its, at);
    for (int owner = 0; source >= 0 && owner < ranks; ++owner) {
      const Part part = band_part(problem, owner, ranks);
      if (owner != of && source >= part.first_row && source < part.first_row + part.rows) owners |= 1u << owner;
    }
  }
  return owners;
}

inline unsigned readers_of(const ConvProblem& problem, int of, int ranks) {
  unsigned readers = 0;
  for (int rank = 0; rank < ranks; ++rank)
    if (owners_of(problem, rank, ranks) >> of & 1) readers |= 1u << rank;
  return readers;
}

inline Bands bands_of(const ConvProblem& problem, const Part& own, int ranks) {
  Bands bands{};
  bands.first = static_cast<int>(own.first_row - own.above);
  bands.height = static_cast<int>(problem.h);
  std::fill_n(bands.first_row, kMostRanks, bands.height);
  for (int rank = 0; rank < ranks; ++rank) {
    const Part part = band_part(problem, rank, ranks);
    if (part.problem.n == 0) break;  // more ranks than rows
    bands.first_row[rank] = static_cast<int>(part.first_row);
    bands.above[rank] = static_cast<int>(part.above);
    bands.rows[rank] = static_cast<int>(part.problem.h);
  }
  return bands;
}

// The interior's tiles: they begin with its first row, and none is cut off. What is left below them is a border.
inline SomeTiles interior_tiles(const Part& own) {
  const Image image = image_of(own.problem);
  const Interior rows = interior_of(own);
  const int tiles = static_cast<int>(rows.end - rows.begin) / tile_height(image);
  return {image, tiles, 0, static_cast<int>(rows.begin)};
}

// Of one image.
inline std::int64_t barriers_of(const SomeTiles& interior) {
  if (is_small(interior)) return 0;
  return std::int64_t{3} * image_grid(interior, kTileHeight, kTileWidth).x;
}

inline Borders borders_of(const SomeTiles& interior) {
  return {interior.gap, interior.gap + interior.tiles * tile_height(interior), interior.out_height};
}

inline void launch_borders(const Part& own, const Borders& borders, const Bands& bands, Stream stream) {
  const Image image = image_of(own.problem);
  const int across = tiles_across(image.out_width) * image.batch;
  const int down = tiles_of(borders.above) + tiles_of(borders.end - borders.below);
  if (down == 0) return;
  const int floats = (kBorderRows + image.rows - 1) * border_pitch(image.columns);
  const auto start = [&](auto kernel) {
    launch(kernel, dim3(static_cast<unsigned>(across), static_cast<unsigned>(down)), dim3(kWarp, kBorderWarps),
           static_cast<std::size_t>(floats) * sizeof(float), stream)(own.output, image, borders, bands, own.peers);
  };
  switch (image.columns) {
    case 3:
      return start(filter_borders<3>);
    case 5:
      return start(filter_borders<5>);
    case 7:
      return start(filter_borders<7>);
    case 9:
      return start(filter_borders<9>);
    case 11:
      return start(filter_borders<11>);
    case 15:
      return start(filter_borders<15>);
    case 31:
      return start(filter_borders<31>);
    default:
      return start(filter_borders<0>);
  }
}

}  // namespace
}  // namespace convladder
