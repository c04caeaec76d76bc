// 42 halo-overlap: which tiles of a band are interior, and the kernel of 09 on some of its tiles.
#pragma once
#include "chapters/09-register-2d/register_2d.cuh"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

// Rows of outputs: [0, begin) need rows from above, [begin, end) none, [end, p) rows from below.
struct Interior {
  std::int64_t begin, end;
};

inline Interior interior_of(const Part& own) {
  const std::int64_t begin = own.above, end = own.above + own.rows - own.problem.r + 1;
  const std::int64_t p = own.problem.p();
  if (begin >= end) return {p, p};  // a band so thin that every output needs a row of others
  return {begin, end < p ? end : p};
}

// Images of which a launch makes so many rows of tiles, and leaves out `gap` rows of outputs, from row `gap_begin` on.
struct SomeTiles : Image {
  int tiles, gap_begin, gap;
};

inline int tile_height(const Image& image) { return is_small(image) ? kStripHeight : kTileHeight; }

// What image_grid() and block_tile() are for all tiles; the kernels and launches of 09 call these here instead.
inline dim3 image_grid(const SomeTiles& image, int tile_height, int tile_width) {
  dim3 grid = image_grid(static_cast<const Image&>(image), tile_height, tile_width);
  grid.x = static_cast<unsigned>((image.out_width + tile_width - 1) / tile_width * image.tiles);
  return grid;
}
__device__ __forceinline__ BlockTile block_tile(const SomeTiles& image, int tile_height, int tile_width) {
  BlockTile tile = block_tile(static_cast<const Image&>(image), tile_height, tile_width);
  if (tile.y >= image.gap_begin) tile.y += image.gap;
  return tile;
}

// The tiles of a band: of the interior, and all others.
struct BandTiles {
  SomeTiles interior, borders;
};

inline BandTiles band_tiles(const Part& own) {
  const Image image = image_of(own.problem);
  const Interior rows = interior_of(own);
  const int height = tile_height(image), all = (image.out_height + height - 1) / height;
  const int first = static_cast<int>((rows.begin + height - 1) / height);  // the first that needs no row from above
  const int last = rows.end == own.problem.p() ? all : static_cast<int>(rows.end / height);
  const int inner = first < last ? last - first : 0;
  return {{image, inner, 0, first * height}, {image, all - inner, first * height, inner * height}};
}

inline void filter_tiles(const Part& own, const SomeTiles& tiles, Stream stream) {
  if (tiles.tiles > 0) launch_register_2d(own.buffer, own.output, tiles, 1.0f, stream);
}

}  // namespace
}  // namespace convladder
