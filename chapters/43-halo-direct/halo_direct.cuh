// 43 halo-direct, its kernels: steps 1 to 4 of halo_direct.cu.
#pragma once
#include "chapters/42-halo-overlap/interior.cuh"
#include "common/kernel/signals.hpp"

namespace convladder {
namespace {

// A rank's signals: of each rank whether its rows are complete, of each whether it has read; and the epoch, the number
// of launches that are over, which each rank counts for itself.
constexpr int kReady = 0, kDone = kMostRanks, kEpoch = 2 * kMostRanks;

constexpr int kBorderRows = 8, kBorderColumns = 4 * kWarp;  // outputs of a block of the borders; a warp has a row

// Where the rows of all images lie.
struct Bands {
  int first, height;                        // the row of the image that the rank's buffer begins with; all rows
  int first_row[kMostRanks + 1];            // of the image: that a rank owns; behind the last rank all rows end
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

// 3. Outputs whose windows reach into rows of other ranks.
__global__ void __launch_bounds__(kWarp* kBorderRows)
    filter_borders(float* output,  // [batch][out_height][out_width]
                   Image image, Borders borders, const __grid_constant__ Bands bands,
                   const __grid_constant__ Peers peers) {
  const float** rows = dynamic_shared<const float*>();  // [kBorderRows + rows - 1]; null: zeros
  float* staged = reinterpret_cast<float*>(rows + kBorderRows + image.rows - 1);  // [kBorderRows + rows - 1][pitch]
  const int pitch = kBorderColumns + image.columns - 1;
  // The tile: first those above, then those below.
  const int across = tiles_across(image.out_width);
  const int above = tiles_of(borders.above), down = above + tiles_of(borders.end - borders.below);
  const int tile = blockIdx.x / across % down, number = blockIdx.x / across / down;
  const int x = blockIdx.x % across * kBorderColumns;
  const int y = tile < above ? tile * kBorderRows : borders.below + (tile - above) * kBorderRows;
  const int height = min(kBorderRows, (tile < above ? borders.above : borders.end) - y);
  const int needed_y = height + image.rows - 1;
  const int needed_x = min(kBorderColumns, image.out_width - x) + image.columns - 1;

  // A thread a row: it finds out where the row lies.
  const int lane = threadIdx.x, warp = threadIdx.y, t = warp * kWarp + lane;
  if (t < needed_y) {
    const int source = border_index(bands.first + y + t, bands.height, image.padding);
    rows[t] = nullptr;
    if (source >= 0) {
      int owner = 0;
      while (source >= bands.first_row[owner + 1]) ++owner;
      const int at = bands.above[owner] + source - bands.first_row[owner];
      rows[t] = peers.buffers[owner] + (static_cast<std::int64_t>(number) * bands.rows[owner] + at) * image.width;
    }
  }
  __syncthreads();

  // From wherever they lie into shared memory.
  for (int r = warp; r < needed_y; r += kBorderRows) {
    const float* row = rows[r];
    for (int first = lane; first < pitch; first += 4 * kWarp) {
      float held[4];  // loaded before any is stored: the way to another GPU is long
      UNROLL
      for (int e = 0; e < 4; ++e) {
        const int c = first + e * kWarp;
        const int j = c < needed_x ? border_index(x - image.pad_x + c, image.width, image.padding) : -1;
        held[e] = row == nullptr || j < 0 ? 0.0f : row[j];
      }
      UNROLL
      for (int e = 0; e < 4; ++e)
        if (first + e * kWarp < pitch) staged[r * pitch + first + e * kWarp] = held[e];
    }
  }
  __syncthreads();

  // In the order of 09, so that the bits are its own.
  if (warp >= height) return;
  float sum[4] = {};
  for (int r = 0; r < image.rows; ++r) {
    for (int s = 0; s < image.columns; ++s) {
      const float tap = c_filter[r * image.columns + s];
      UNROLL
      for (int e = 0; e < 4; ++e) sum[e] += staged[(warp + r) * pitch + lane + e * kWarp + s] * tap;
    }
  }
  float* out = output + number * output_pixels(image) + static_cast<std::int64_t>(y + warp) * image.out_width;
  UNROLL
  for (int e = 0; e < 4; ++e)
    if (const int column = x + lane + e * kWarp; column < image.out_width) out[column] = sum[e];
}

// ---- On the host
// ------------------------------------------------------------------------------------------------------

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
  for (int rank = 0; rank < ranks; ++rank) {
    const Part part = band_part(problem, rank, ranks);
    if (part.problem.n == 0) break;  // more ranks than rows
    bands.first_row[rank] = static_cast<int>(part.first_row);
    bands.first_row[rank + 1] = static_cast<int>(part.first_row + part.rows);
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
  const int across = tiles_across(image.out_width);
  const int blocks = across * (tiles_of(borders.above) + tiles_of(borders.end - borders.below)) * image.batch;
  const std::size_t rows = static_cast<std::size_t>(kBorderRows + image.rows - 1);
  const std::size_t row_bytes = static_cast<std::size_t>(kBorderColumns + image.columns - 1) * sizeof(float);
  if (blocks > 0)
    launch(filter_borders, dim3(static_cast<unsigned>(blocks)), dim3(kWarp, kBorderRows),
           rows * (sizeof(float*) + row_bytes), stream)(own.output, image, borders, bands, own.peers);
}

}  // namespace
}  // namespace convladder
