// Lab 09: 16-byte loads from rows that begin anywhere.
//
//   The words of one row, as memory has them. Vectors begin at every 4th word of the input, the windows do not:
//
//     | .  .  .  w | w  w  w  w | w  w  w  w | w  w  w  w | ...      w: words of the warp's windows
//       shift = 3  ^ first                                           .: words before them
//       lane 0       lane 1       lane 2       lane 3
//
//   1. Each lane loads one vector, 16 bytes at a multiple of 16 bytes.
//   2. The words move `shift` places to the left: what a lane lacks then, its neighbour on the right has loaded.
//   3. Now each lane has 4 columns of its own. The rest of its windows it borrows from the right, as in 09.
//
// Rules: a warp makes 4 rows of 120 outputs, each lane 4 x 4 of them, but the last two lanes none; no shared memory.
// Graded: the outputs inside, at the borders for every padding mode, and of every size and batch; no fault; one load
// request for a row; each vector loaded once.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kFour = 4;       // words of a vector: 16 bytes; columns of a lane
constexpr int kStripRows = 4;  // outputs of a lane, down
constexpr int kWarps = 4;      // of a block, one below the other
constexpr int kHeight = kWarps * kStripRows;
constexpr int kWidth = (kWarp - 2) * kFour;  // outputs of a warp, across: the last two lanes only lend
constexpr int kMaxColumns = 5;               // of the filter: a window is then the words of two lanes

__constant__ float c_filter[kMaxFilterTaps];

// The pixel at a position of the padded image; zero where no output needs one.
__device__ __forceinline__ float padded_pixel(const float* in, int y, int x, const Image& image) {
  if (y >= image.height + image.pad_y || x >= image.width + image.pad_x) return 0.0f;
  const int i = border_index(y, image.height, image.padding);
  const int j = border_index(x, image.width, image.padding);
  return i < 0 || j < 0 ? 0.0f : in[static_cast<std::int64_t>(i) * image.width + j];
}

// Stores a warp's row: lane l has the columns 4 l to 4 l + 3. Shuffles hand them over, so that each store is of 32
// neighbours. `count`: how many outputs the row has, at most kWidth.
__device__ __forceinline__ void store_row(float* row, const float (&sum)[kFour], int count) {
  const int lane = threadIdx.x;
  UNROLL
  for (int k = 0; k < kFour; ++k) {
    const int holder = (kWarp * k + lane) / kFour;  // of column 32 k + lane
    float held[kFour];
    UNROLL
    for (int e = 0; e < kFour; ++e) held[e] = __shfl_sync(kAllLanes, sum[e], holder);
    const float low = lane & 1 ? held[1] : held[0], high = lane & 1 ? held[3] : held[2];
    if (kWarp * k + lane < count) row[kWarp * k + lane] = lane & 2 ? high : low;
  }
}

__global__ void any_width(const float* input,  // [batch][height][width], begins at a multiple of 16 bytes
                          float* output,       // [batch][out_height][out_width]
                          Image image) {
  const BlockTile tile = block_tile(image, kHeight, kWidth);
  const int y = tile.y + kStripRows * threadIdx.y;  // the warp's first row of outputs
  if (tile.image >= image.batch || y >= image.out_height) return;
  const std::int64_t image_begin = tile.image * input_pixels(image);
  const float* in = input + image_begin;
  const int lane = threadIdx.x;
  const int top = y - image.pad_y, left = tile.x - image.pad_x;  // where the warp's first window begins
  const int count = kStripRows + image.rows - 1;                 // rows that the warp's windows need

  // May the warp load vectors? Its windows must lie inside the image. Its vectors may go on into the next row, but not
  // past the end of all images.
  const std::int64_t last_row = image_begin + static_cast<std::int64_t>(top + count - 1) * image.width + left;
  const bool inside = top >= 0 && top + count <= image.height && left >= 0 &&
                      left + kWidth + image.columns - 1 <= image.width &&
                      last_row + kWarp * kFour <= image.batch * input_pixels(image);

  float sum[kStripRows][kFour] = {};
  for (int i = 0; i < count; ++i) {
    // The lane's own 4 columns, and what is right of them: columns left + 4 lane to left + 4 lane + 7 of row top + i.
    float window[2 * kFour];
    // Not yet: no window inside the image, and at the border nothing that other lanes hold.
    if (inside) return;
    for (int e = 0; e < kFour; ++e) {
      window[e] = padded_pixel(in, top + i, left + lane * kFour + e, image);
      window[kFour + e] = 0.0f;
    }

    // Row i of the windows is row i - v of output v's window.
    UNROLL
    for (int v = 0; v < kStripRows; ++v) {
      if (i < v || i - v >= image.rows) continue;
      const float* taps = c_filter + (i - v) * image.columns;
      UNROLL
      for (int s = 0; s < kMaxColumns; ++s) {
        if (s >= image.columns) break;
        UNROLL
        for (int e = 0; e < kFour; ++e) sum[v][e] += window[s + e] * taps[s];
      }
    }
  }

  float* out = output + tile.image * output_pixels(image) + static_cast<std::int64_t>(y) * image.out_width + tile.x;
  for (int v = 0; v < min(kStripRows, image.out_height - y); ++v)
    store_row(out + static_cast<std::int64_t>(v) * image.out_width, sum[v], min(kWidth, image.out_width - tile.x));
}

void launch_any_width(const Tensors& tensors, const Image& image, Stream stream) {
  launch(any_width, image_grid(image, kHeight, kWidth), dim3(kWarp, kWarps), 0, stream)(tensors.input, tensors.output,
                                                                                        image);
}

class AnyWidth final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_image(problem);
    if (verdict.accepted() && problem.s > kMaxColumns)
      return Verdict::refuse("the filter has at most {} columns; got s={}", kMaxColumns, problem.s);
    return verdict;
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_any_width(tensors, image_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::AnyWidth)
