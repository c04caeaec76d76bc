// The transforms of fp32 Winograd convolution, as kernels of their own; stages 23 and 24 run them.
//
//   U [position][channel][filter]   = G g G^T      once, in prepare()
//   V [position][channel][tile]     = B^T d B
//   output                          = A^T M A      M [position][filter][tile]: the sum over the channels of U . V
//
// A position is an element of a transformed tile: (m + 2)^2 of them. Neighbouring threads take neighbouring tiles, so
// that V and M are read and written in one piece.
#pragma once
#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/winograd.hpp"

namespace convladder {
namespace {

constexpr int kTransformThreads = 128;

// U: a thread transforms one filter of one channel.
template <class Form>
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  float* u,             // [position][channels][filters]
                                  Winograd w) {
  constexpr int kSize = kTileSize<Form>;
  const int i = blockIdx.x * kTransformThreads + threadIdx.x;
  if (i >= w.filters * w.channels) return;
  const int k = i % w.filters, c = i / w.filters;
  const float* taps = filter + (k * w.channels + c) * 9;
  float g[3][3], tile[kSize][kSize];
  UNROLL
  for (int r = 0; r < 3; ++r) {
    UNROLL
    for (int s = 0; s < 3; ++s) g[r][s] = taps[r * 3 + s];
  }
  transform_filter<Form>(g, tile);
  UNROLL
  for (int r = 0; r < kSize; ++r) {
    UNROLL
    for (int s = 0; s < kSize; ++s) u[(r * kSize + s) * w.channels * w.filters + i] = tile[r][s];
  }
}

// V: a thread transforms one tile of one channel.
template <class Form>
__global__ void transform_inputs(const float* input,  // [batch][channels][height][width]
                                 float* v,            // [position][channels][tiles]
                                 Winograd w) {
  constexpr int kSize = kTileSize<Form>;
  const int t = blockIdx.x * kTransformThreads + threadIdx.x, c = block_in_y();
  if (t >= w.tiles || c >= w.channels) return;
  const TilePlace place = place_of(w, t);
  const float* plane = input + (place.image * w.channels + c) * w.height * w.width;
  float tile[kSize][kSize];
  int columns[kSize];
  UNROLL
  for (int j = 0; j < kSize; ++j) columns[j] = tile_index(place.column - w.pad_x + j, w.width, w.pad_x, w.padding);
  UNROLL
  for (int i = 0; i < kSize; ++i) {
    const int row = tile_index(place.row - w.pad_y + i, w.height, w.pad_y, w.padding);
    UNROLL
    for (int j = 0; j < kSize; ++j) tile[i][j] = row >= 0 && columns[j] >= 0 ? plane[row * w.width + columns[j]] : 0.0f;
  }
  transform_input<Form>(tile);
  UNROLL
  for (int i = 0; i < kSize; ++i) {
    UNROLL
    for (int j = 0; j < kSize; ++j) v[((i * kSize + j) * w.channels + c) * w.tiles + t] = tile[i][j];
  }
}

// The output: a thread transforms one tile of one filter back. Tiles at the end of a row or column are cut.
template <class Form>
__global__ void transform_outputs(const float* m,  // [position][filters][tiles]
                                  float* output,   // [batch][filters][out_height][out_width]
                                  Winograd w) {
  constexpr int kSize = kTileSize<Form>, kOutputs = kTileOutputs<Form>;
  const int t = blockIdx.x * kTransformThreads + threadIdx.x, k = block_in_y();
  if (t >= w.tiles || k >= w.filters) return;
  float tile[kSize][kSize], y[kOutputs][kOutputs];
  UNROLL
  for (int i = 0; i < kSize; ++i) {
    UNROLL
    for (int j = 0; j < kSize; ++j) tile[i][j] = m[((i * kSize + j) * w.filters + k) * w.tiles + t];
  }
  transform_output<Form>(tile, y);
  const TilePlace place = place_of(w, t);
  float* plane = output + (place.image * w.filters + k) * w.out_height * w.out_width;
  UNROLL
  for (int i = 0; i < kOutputs; ++i) {
    UNROLL
    for (int j = 0; j < kOutputs; ++j) {
      const int p = place.row + i, q = place.column + j;
      if (p < w.out_height && q < w.out_width) plane[p * w.out_width + q] = y[i][j];
    }
  }
}

template <class Form>
constexpr int kPositions = kTileSize<Form>* kTileSize<Form>;

// Elements of U, V and M.
template <class Form>
std::int64_t filter_elements(const Winograd& w) {
  return std::int64_t{kPositions<Form>} * w.channels * w.filters;
}
template <class Form>
std::int64_t input_elements(const Winograd& w) {
  return std::int64_t{kPositions<Form>} * w.channels * w.tiles;
}
template <class Form>
std::int64_t product_elements(const Winograd& w) {
  return std::int64_t{kPositions<Form>} * w.filters * w.tiles;
}

template <class Form>
void launch_transform_filters(const float* filter, float* u, const Winograd& w, Stream stream) {
  launch(transform_filters<Form>, dim3(blocks_for(w.filters * w.channels, kTransformThreads)), dim3(kTransformThreads),
         0, stream)(filter, u, w);
}

template <class Form>
void launch_transform_inputs(const float* input, float* v, const Winograd& w, Stream stream) {
  launch(transform_inputs<Form>, grid_in_y(blocks_for(w.tiles, kTransformThreads), w.channels), dim3(kTransformThreads),
         0, stream)(input, v, w);
}

template <class Form>
void launch_transform_outputs(const float* m, float* output, const Winograd& w, Stream stream) {
  launch(transform_outputs<Form>, grid_in_y(blocks_for(w.tiles, kTransformThreads), w.filters), dim3(kTransformThreads),
         0, stream)(m, output, w);
}

// Calls `work` with a value of the form that has m outputs along a side.
template <class Work>
void for_form(int m, const Work& work) {
  if (m == 2) work(F2{});
  if (m == 4) work(F4{});
  if (m == 6) work(F6{});
}

}  // namespace
}  // namespace convladder
