// 22, exercise: a tile of outputs in registers, and work for every thread.
//
// The im2win tensor is there, and so are the packed filters. What is missing is the product: a tile of 6 pixels by 16
// filters, whose 96 sums stay in registers while the tile goes through the whole window.
//
//                 16 filters, side by side
//                +--+--+--+-- ... --+--+
//                |  a tap of each      |    one load of 16
//                +--+--+--+-- ... --+--+
//   pixel 0  [x] | sums                |
//   pixel 1  [x] |                     |    6 x 16 products
//      ...       |                     |    for 6 + 16 floats
//   pixel 5  [x] |                     |
//                +--+--+--+-- ... --+--+
//
//   prepare: the filters are packed (given).
//   1. The im2win tensor is made (given).
//   2. A tile: for each tap of the window, 16 filters meet the element of each of 6 pixels.
//   3. All tiles of all images and filters are spread over the threads.
//
// Rules: plain C++20 with OpenMP; the sums of a tile are local variables; an output is stored once, by one thread.
// Graded: the outputs of whole tiles, of cut ones, and of every size, stride, padding and batch; no fault; at most 1.05
// bytes loaded for a product; work for all threads, be there one image, one block of filters or one tile.

#include <algorithm>

#include "common/kernel/border.hpp"
#include "common/kernel/grid.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kPixels = 6, kLanes = 16;  // outputs of a tile: pixels that follow one another, by filters

// As in 22: [k][c][r][s] as [k / 16][c][s][r][16], with zeros for filters past the last.
void pack_filters(const Lowering& l, const float* filters, float* packed) {
  const int groups = blocks_for(l.filters, kLanes);
#pragma omp parallel for
  for (int group = 0; group < groups; ++group) {
    float* next = packed + std::int64_t{group} * depth(l) * kLanes;
    for (int c = 0; c < l.channels; ++c)
      for (int s = 0; s < l.columns; ++s)
        for (int r = 0; r < l.rows; ++r)
          for (int lane = 0; lane < kLanes; ++lane) {
            const std::int64_t k = std::int64_t{group} * kLanes + lane;
            *next++ = k < l.filters ? filters[((k * l.channels + c) * l.rows + r) * l.columns + s] : 0.0f;
          }
  }
}

// 1. [n][c][p][w + 2 pad_w][r]: for each row of outputs the input rows that its windows read, column after column.
void im2win(const Lowering& l, const float* input, float* to) {
#pragma omp parallel for collapse(2)
  for (int plane = 0; plane < l.batch * l.channels; ++plane)
    for (int p = 0; p < l.out_height; ++p) {
      float* row = to + std::int64_t{plane} * im2win_plane(l) + std::int64_t{p} * im2win_row(l);
      for (int x = 0; x < padded_width(l); ++x) {
        const int column = border_index(x - l.pad_x, l.width, l.padding);
        for (int r = 0; r < l.rows; ++r) {
          const int y = border_index(p * l.stride_y - l.pad_y + r * l.dilation_y, l.height, l.padding);
          *row++ = y < 0 || column < 0 ? 0.0f : input[plane * input_plane(l) + std::int64_t{y} * l.width + column];
        }
      }
    }
}

// 2. The outputs of `pixels` pixels and `filters` filters, at most kPixels and kLanes of them.
// @param windows where the window of each pixel begins, in channel 0. Tap (c, s, r) of a window lies
//   c * im2win_plane(l) + s * l.dilation_x * l.rows + r behind its beginning.
// @param packed [c][s][r][kLanes]: the taps of these filters
// @param output of the first pixel and filter: pixels are 1 apart, filters output_plane(l)
void multiply_tile(const Lowering& l, const float* const* windows, const float* packed, int pixels, int filters,
                   float* output) {
  // SOLUTION
  // A pixel that does not exist computes what the last one does, and nobody stores it.
  const float* window[kPixels];
  for (int j = 0; j < kPixels; ++j) window[j] = windows[std::min(j, pixels - 1)];
  float sums[kPixels][kLanes] = {};
  for (int c = 0; c < l.channels; ++c)
    for (int s = 0; s < l.columns; ++s)
      for (int r = 0; r < l.rows; ++r) {
        const std::int64_t tap = std::int64_t{c} * im2win_plane(l) + std::int64_t{s} * l.dilation_x * l.rows + r;
        float filter[kLanes];
#pragma omp simd
        for (int k = 0; k < kLanes; ++k) filter[k] = packed[k];
        packed += kLanes;
        for (int j = 0; j < kPixels; ++j) {
          const float element = window[j][tap];
#pragma omp simd
          for (int k = 0; k < kLanes; ++k) sums[j][k] += element * filter[k];
        }
      }
  for (int k = 0; k < filters; ++k)
    for (int j = 0; j < pixels; ++j) output[std::int64_t{k} * output_plane(l) + j] = sums[j][k];
  // STARTER
  // | // Now one output of the tile is summed, and the others are never written. Yours: all of them, in one go
  // | // through the window.
  // | float sum = 0.0f;
  // | for (int c = 0; c < l.channels; ++c)
  // |   for (int s = 0; s < l.columns; ++s)
  // |     for (int r = 0; r < l.rows; ++r) {
  // |       const std::int64_t tap = std::int64_t{c} * im2win_plane(l) + std::int64_t{s} * l.dilation_x * l.rows + r;
  // |       sum += windows[0][tap] * packed[0];
  // |       packed += kLanes;
  // |     }
  // | if (pixels > 0 && filters > 0) output[0] = sum;
  // END
}

// One tile: `tile` of an image's plane, where rows of outputs follow one another, and `group` of the filters.
void one_tile(const Lowering& l, const float* windows, const float* packed, float* output, int image, int tile,
              int group) {
  const int first = tile * kPixels, pixels = std::min(kPixels, output_plane(l) - first);
  const int k = group * kLanes, filters = std::min(kLanes, l.filters - k);
  const float* begin[kPixels] = {};
  for (int j = 0; j < pixels; ++j) {
    const int p = (first + j) / l.out_width, q = (first + j) % l.out_width;
    begin[j] = windows + std::int64_t{image} * l.channels * im2win_plane(l) + std::int64_t{p} * im2win_row(l) +
               std::int64_t{q} * l.stride_x * l.rows;
  }
  multiply_tile(l, begin, packed + std::int64_t{k} * depth(l), pixels, filters,
                output + (std::int64_t{image} * l.filters + k) * output_plane(l) + first);
}

// 3. All tiles.
void multiply(const Lowering& l, const float* windows, const float* packed, float* output) {
  const int tiles = blocks_for(output_plane(l), kPixels), groups = blocks_for(l.filters, kLanes);
  // SOLUTION
#pragma omp parallel for collapse(3)
  // STARTER
  // | // Now one thread does all of it.
  // END
  for (int image = 0; image < l.batch; ++image)
    for (int tile = 0; tile < tiles; ++tile)
      for (int group = 0; group < groups; ++group) one_tile(l, windows, packed, output, image, tile, group);
}

class Exercise final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    const Lowering l = lowering_of(problem);
    windows_.allocate(im2win_size(problem));
    packed_.allocate(std::int64_t{blocks_for(l.filters, kLanes)} * kLanes * depth(l));
    pack_filters(l, tensors.filter, packed_.floats());
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    const Lowering l = lowering_of(problem);
    im2win(l, tensors.input, windows_.floats());
    multiply(l, windows_.floats(), packed_.floats(), tensors.output);
  }

  Workspace windows_{*this, "im2win tensor"};
  Workspace packed_{*this, "packed filters"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Exercise)
