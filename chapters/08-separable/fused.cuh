// 08 separable, both passes in one kernel: the row sums stay in registers (fused=yes).
//
// A warp goes down a strip of 128 columns, row by row. Global memory sees the input and the output, and no image
// between them; shared memory sees the input alone.
//
//        the next rows, on their way             the sums of 4 columns, in registers
//      +-----------------------------+
//      |           pixels            |   row     h      s[0] = s[1] + column[rows - 1] * h   ----->  an output
//      +-----------------------------+  ---->  4 sums   s[1] = s[2] + column[rows - 2] * h
//      |                             |                  ...
//      +-----------------------------+                  s[rows - 1] =   column[0] * h
//          128 + columns - 1
//
//   1. The pixels of the next rows are on their way, by cp.async, into a ring of rows that is the warp's own: it waits
//      for no other warp.
//   2. Row: a lane sums 4 neighbours from one window.
//   3. Column: a row sum belongs to as many outputs as the column has taps. s[i] is what the output i rows below the
//      one that is complete next has by now. Each multiply-add takes the old sum of one output and writes the new one
//      to the register beside it, so all of them move on by a row, and no register is copied (a transposed FIR filter).
//      s[0] is complete, and leaves.
//
// A strip is cut into segments, so that all schedulers have some. Each begins with rows that the one above sums too.
#pragma once
#include "chapters/08-separable/separable.cuh"

namespace convladder {
namespace {

constexpr int kFusedEach = 4;  // neighbouring columns of a lane: a float4
constexpr int kStrip = 32 * kFusedEach;
constexpr int kFusedRows = 2;                  // that a warp sums at a time, so that a weight serves 8 sums
constexpr int kFusedWarps = 4;                 // of a block, one for each scheduler
constexpr int kRing = 16;                      // rows of a warp in shared memory
constexpr int kSkip = 8;                       // sums that are left out together where no output needs them
constexpr int kLeastSide = 3, kMostSide = 31;  // of the filter: above, the sums do not fit registers

// Columns that a strip's row in shared memory has before the first output: half of the filter, rounded up so that the
// row may begin at a multiple of 16 bytes.
__host__ __device__ constexpr int lead_of(int side) { return (side / 2 + 3) / 4 * 4; }
// Of these, how many no output needs.
__host__ __device__ constexpr int shift_of(int side) { return lead_of(side) - side / 2; }
// 16-byte reads of a lane's window.
__host__ __device__ constexpr int vectors_of(int side) { return (shift_of(side) + kFusedEach + side - 1 + 3) / 4; }
// Floats of a row.
__host__ __device__ constexpr int pitch_of(int side) { return kStrip - kFusedEach + 4 * vectors_of(side); }

// A strip's ring. kSide: rows and columns of the filter, an odd number.
template <int kSide>
struct Strip {
  static constexpr int kShift = shift_of(kSide), kVectors = vectors_of(kSide), kPitch = pitch_of(kSide);
  static constexpr int kBytes = kFusedWarps * kRing * kPitch * static_cast<int>(sizeof(float));
  static_assert(kBytes <= 48 << 10, "every device has as much for a block");
  // Rows at either end of a segment for which some sums are left out.
  static constexpr int kPartly = (kSide - kSkip / 2) / kSkip * kSkip;
};

// The sums [First, Last) of a column, as a type.
template <int First, int Last>
struct Sums {
  static constexpr int kFirst = First, kLast = Last;
};

// Calls step(Sums) for the steps that begin a segment: its first rows belong to its first outputs alone, whose sums are
// the last ones by then.
template <int kSide, int kFirst, class Step>
__device__ __forceinline__ void first_steps(int& r, const Step& step) {
  if constexpr (kFirst >= kSkip / 2) {
    UNROLL_BY(1)
    for (int to = r + kSkip; r < to; r += kFusedRows) step(Sums<kFirst, kSide>{}, r);
    first_steps<kSide, kFirst - kSkip>(r, step);
  }
}
// And for those that end it, whose rows belong to its last outputs alone: the first sums.
template <int kSide, int kLast, class Step>
__device__ __forceinline__ void last_steps(int& r, const Step& step) {
  if constexpr (kLast > 0) {
    UNROLL_BY(1)
    for (int to = r + kSkip; r < to; r += kFusedRows) step(Sums<0, kLast>{}, r);
    last_steps<kSide, kLast - kSkip>(r, step);
  }
}

// A segment of a strip: `height` rows of `width` outputs, from (y, x) on.
struct Segment {
  int y, x, height, width;
};

// Whether each pixel that the segment reads has its own place in the input, or is zero.
__host__ __device__ __forceinline__ bool reads_in_place(const Image& image, const Segment& s) {
  const int top = s.y - image.pad_y, left = s.x - image.pad_x;
  return image.padding == Padding::zero || (top >= 0 && top + s.height + image.rows - 1 <= image.height && left >= 0 &&
                                            left + s.width + image.columns - 1 <= image.width);
}

// Whether its rows are copied 16 bytes at a time: each copy is of pixels that all are inside the input, or all zero.
__host__ __device__ __forceinline__ bool copies_vectors(const Image& image, const Segment& s) {
  return image.width % 4 == 0 && image.pad_x == image.columns / 2 && reads_in_place(image, s);
}

// kVector: copies_vectors().
template <int kSide, bool kVector>
__device__ __forceinline__ void walk(const float* in, float* out, const Image& image, const Segment& segment) {
  using S = Strip<kSide>;
  constexpr int kCopied = kVector ? 4 : 1;  // floats of one copy
  constexpr int kRounds = (S::kPitch / kCopied + 31) / 32;
  const int lane = threadIdx.x;
  float* const ring = dynamic_shared<float>() + threadIdx.y * (kRing * S::kPitch);  // [kRing][kPitch]
  const int rows = segment.height + kSide - 1;

  // 1. Pixel (0, 0) of the segment is pixel (top, left) of the input. Zeros where no output needs one.
  const int top = segment.y - image.pad_y, left = segment.x - image.pad_x - S::kShift;
  const bool in_place = kVector || reads_in_place(image, segment);
  const float* from = in + static_cast<std::int64_t>(top) * image.width + left + kCopied * lane;
  const int first_row = max(0, -top), inner_rows = max(0, min(rows, image.height - top) - first_row);
  const int first_column = max(kVector ? 0 : S::kShift, -left);
  const int inner_columns = max(0, min(S::kShift + segment.width + kSide - 1, image.width - left) - first_column);
  const auto start = [&](int r, float* slot) {
    UNROLL
    for (int m = 0; m < kFusedRows; ++m) {
      float* to = slot + m * S::kPitch + kCopied * lane;
      if (in_place) {
        const bool inside = static_cast<unsigned>(r + m - first_row) < static_cast<unsigned>(inner_rows);
        UNROLL
        for (int u = 0; u < kRounds; ++u) {
          const int t = kCopied * (lane + 32 * u);
          if (t < S::kPitch)
            copy_async<sizeof(float) * kCopied>(
                to + kCopied * 32 * u, from + kCopied * 32 * u,
                inside && static_cast<unsigned>(t - first_column) < static_cast<unsigned>(inner_columns));
        }
      } else {
        const int i = r + m < rows ? border_index(top + r + m, image.height, image.padding) : -1;
        const float* row = in + static_cast<std::int64_t>(i) * image.width;
        UNROLL_BY(1)
        for (int t = lane; t < S::kPitch; t += 32) {
          const bool needed = t >= S::kShift && t < S::kShift + segment.width + kSide - 1;
          const int j = needed ? border_index(left + t, image.width, image.padding) : -1;
          copy_async<sizeof(float)>(to + t - lane, row + j, i >= 0 && j >= 0);
        }
      }
      from += image.width;
    }
    commit_copies();
  };

  float window[kFusedRows][4 * S::kVectors];
  const auto read = [&](const float* slot) {
    wait_copies<kRing / kFusedRows - 2>();
    __syncwarp();  // these rows are there, and all lanes have read the ones before
    UNROLL
    for (int m = 0; m < kFusedRows; ++m) {
      const float4* own = reinterpret_cast<const float4*>(slot + m * S::kPitch + kFusedEach * lane);
      UNROLL
      for (int u = 0; u < S::kVectors; ++u) {
        const float4 four = own[u];
        window[m][4 * u] = four.x;
        window[m][4 * u + 1] = four.y;
        window[m][4 * u + 2] = four.z;
        window[m][4 * u + 3] = four.w;
      }
    }
  };

  float sum[kSide][kFusedEach] = {};
  int at = 0;  // of the rows in the window, in the ring
  float* to = out + static_cast<std::int64_t>(segment.y - kSide + 1) * image.out_width + segment.x + kFusedEach * lane;
  const bool whole = kVector || image.out_width % kFusedEach == 0;
  const int own = segment.width - kFusedEach * lane;  // outputs of the lane in a row, if positive
  const unsigned height = own > 0 ? segment.height : 0;
  const auto step = [&](auto sums, int r) {
    constexpr int kFirst = decltype(sums)::kFirst, kLast = decltype(sums)::kLast;
    // 2.
    float h[kFusedRows][kFusedEach] = {};
    UNROLL
    for (int t = 0; t < kSide; ++t) {
      UNROLL
      for (int m = 0; m < kFusedRows; ++m) {
        UNROLL
        for (int e = 0; e < kFusedEach; ++e) h[m][e] += window[m][S::kShift + t + e] * c_row[t];
      }
    }
    float* const done = ring + at;
    at = at + kFusedRows * S::kPitch == kRing * S::kPitch ? 0 : at + kFusedRows * S::kPitch;
    read(ring + at);
    start(r + kRing, done);
    // 3. Row r makes s[i] = s[i + 1] + tap i * h; then row r + 1 does.
    float first[kFusedEach];  // the output of row r
    UNROLL
    for (int e = 0; e < kFusedEach; ++e) first[e] = sum[1][e] + c_column[kSide - 1] * h[0][e];
    UNROLL
    for (int i = kFirst; i < kLast; ++i) {
      UNROLL
      for (int e = 0; e < kFusedEach; ++e) {
        float next = i + 2 < kSide ? sum[i + 2][e] : 0.0f;
        if (i + 1 < kSide) next += c_column[kSide - 2 - i] * h[0][e];
        sum[i][e] = next + c_column[kSide - 1 - i] * h[1][e];
      }
    }
    UNROLL
    for (int m = 0; m < kFusedRows; ++m) {
      const float* result = m == 0 ? first : sum[0];
      const bool stores = kFirst == 0 && static_cast<unsigned>(r + m - kSide + 1) < height;
      if (whole) {
        if (stores) *reinterpret_cast<float4*>(to) = make_float4(result[0], result[1], result[2], result[3]);
      } else {
        UNROLL
        for (int e = 0; e < kFusedEach; ++e)
          if (stores && e < own) to[e] = result[e];
      }
      to += image.out_width;
    }
  };

  UNROLL_BY(1)
  for (int r = 0; r < kRing; r += kFusedRows) start(r, ring + r * S::kPitch);
  read(ring);
  int r = 0;
  // A low segment takes every sum in every step; so do segments whose rows are copied word by word, for shorter code.
  const int last = kVector && rows >= 2 * S::kPartly ? S::kPartly : 0;
  if (kVector && last > 0) first_steps<kSide, kSide - kSkip>(r, step);
  UNROLL_BY(1)
  for (; r < rows - last; r += kFusedRows) step(Sums<0, kSide>{}, r);
  if (kVector && last > 0) last_steps<kSide, S::kPartly>(r, step);
}

template <int kSide>
__global__ void __launch_bounds__(32 * kFusedWarps) convolve_both(const float* input,  // [batch][height][width]
                                                                  float* output,       // [batch][out_height][out_width]
                                                                  Image image,
                                                                  int segment_rows) {  // of outputs of a warp
  image.rows = image.columns = kSide;
  const int across = (image.out_width + kStrip - 1) / kStrip;
  const int index = blockIdx.x * kFusedWarps + threadIdx.y, n = blockIdx.y + gridDim.y * blockIdx.z;
  const unsigned below = static_cast<unsigned>(index / across) * segment_rows;  // past the image it may not fit an int
  if (n >= image.batch || below >= static_cast<unsigned>(image.out_height)) return;
  const int y = static_cast<int>(below), x = index % across * kStrip;
  const Segment segment{y, x, min(segment_rows, image.out_height - y), min(kStrip, image.out_width - x)};
  const float* in = input + n * input_pixels(image);
  float* out = output + n * output_pixels(image);
  if (copies_vectors(image, segment))
    walk<kSide, true>(in, out, image, segment);
  else
    walk<kSide, false>(in, out, image, segment);
}

// Warps of a scheduler at a time. More of them hide more latency, and begin more segments.
constexpr int warps_of(int side) { return side > 15 ? 1 : 2; }

// Rows of outputs of a segment: such that the schedulers, with `warps` warps at a time, take the fewest rows.
int segment_of(const Image& image, int multiprocessors, int warps) {
  const std::int64_t strips = static_cast<std::int64_t>((image.out_width + kStrip - 1) / kStrip) * image.batch;
  const std::int64_t at_once =
      static_cast<std::int64_t>(kFusedWarps) * warps * (multiprocessors > 0 ? multiprocessors : 1);
  std::int64_t best = image.out_height, fewest = INT64_MAX;
  for (int waves = 1; waves <= 8; ++waves) {
    std::int64_t segments = waves * at_once / strips;
    if (segments == 0) segments = 1;
    if (segments > image.out_height) segments = image.out_height;
    const std::int64_t height = (image.out_height + segments - 1) / segments;
    const std::int64_t taken = (strips * ((image.out_height + height - 1) / height) + at_once - 1) / at_once;
    const std::int64_t rows = taken * (height + image.rows - 1);
    if (rows >= fewest) continue;
    fewest = rows;
    best = height;
  }
  return static_cast<int>(best);
}

template <int kSide = kMostSide>
void launch_both(const float* input, float* output, const Image& image, int segment_rows, Stream stream) {
  if (image.rows < kSide) {
    if constexpr (kSide > kLeastSide) launch_both<kSide - 2>(input, output, image, segment_rows, stream);
    return;
  }
  dim3 grid = image_grid(image, segment_rows, kStrip);
  grid.x = (grid.x + kFusedWarps - 1) / kFusedWarps;
  launch(convolve_both<kSide>, grid, dim3(32, kFusedWarps), Strip<kSide>::kBytes, stream)(input, output, image,
                                                                                          segment_rows);
}

}  // namespace
}  // namespace convladder
