// 22 im2win-cpu: the window order on a CPU.
//
// Stages 18 to 21 multiply windows on a GPU. Here the same tensor is multiplied on a CPU: a core has 16 or 32 vector
// registers, two levels of cache of its own, and one thread, so that independent sums have to hide its latencies. The
// five switches are the techniques of Lu's thesis (docs/references.md); each builds on those before:
//
//   order      source: as Lu has it, one output after the other, a sum along its window.
//              reordered: one window element meets all filters before the next one is read.
//   unroll     a tile of filters x outputs is summed in registers: an element that is loaded once serves all of it.
//   simd       the tile's filters are the lanes of vectors: four on any CPU, 8 by AVX2 with FMA, 16 by AVX-512.
//   blocking   the im2win tensor is made in bands that stay in the second-level cache until they are used up, and is
//              multiplied with a block of the filters that stays there, too.
//   threads    bands and blocks of filters are spread over the cores.
//
// The file, top to bottom:
//   1. The transform: rows of the input, interleaved into im2win rows.
//   2. The filters, packed in the order in which they are read.
//   3. Products without a register tile: Lu's order, and the other.
//   4. Tiles: the windows and filters of each. micro_kernels.hpp multiplies one.
//   5. Blocking: how large a band and a block are.
//   6. The stage: switches, rules, launch.

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "chapters/22-im2win-cpu/micro_kernels.hpp"
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

std::int64_t ceil_div(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

// Floats that start at a cache line.
class Floats {
 public:
  void allocate(std::int64_t count) {
    floats_.reset(static_cast<float*>(::operator new(static_cast<std::size_t>(count) * 4, kLine)));
    count_ = count;
  }
  float* get() const { return floats_.get(); }
  std::int64_t bytes() const { return count_ * 4; }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(float* floats) const { ::operator delete(floats, kLine); }
  };
  std::unique_ptr<float, Free> floats_;
  std::int64_t count_ = 0;
};

// ---- 1. The transform -----------------------------------------------------------------------------------------------

#if defined(__x86_64__)
// The columns of four input rows, side by side: squares of 4 x 4 are turned in registers. Stores four elements a
// column, columns `pitch` apart, the first column first; the last columns are left to the caller, who is told how many
// are done.
int interleave(const float* const (&rows)[4], int width, int pitch, float* to) {
  if (pitch == 1) {  // a window of one row: as it lies
    std::copy_n(rows[0], width, to);
    return width;
  }
  int x = 0;
  for (; x + 4 < width; x += 4) {
    __m128 a = _mm_loadu_ps(rows[0] + x), b = _mm_loadu_ps(rows[1] + x);
    __m128 c = _mm_loadu_ps(rows[2] + x), d = _mm_loadu_ps(rows[3] + x);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    for (const __m128 column : {a, b, c, d}) {
      _mm_storeu_ps(to, column);
      to += pitch;
    }
  }
  return x;
}
#else
int interleave(const float* const (&)[4], int, int, float*) { return 0; }
#endif

// One im2win row, [w + 2 pad_x][rows]: column after column of the padded input, each with the elements that the windows
// of output row `p` have in it, from top to bottom. Four rows of the input are taken together; the last four overlap
// those before where `rows` is no multiple of 4. Of fewer than four, a column's surplus elements fall on the next
// column, which is written after it.
void im2win_one_row(const Lowering& l, const float* plane, int p, bool vectors, float* to) {
  const auto input_row = [&](int h) {
    const int y = border_index(p * l.stride_y - l.pad_y + h * l.dilation_y, l.height, l.padding);
    return y < 0 ? nullptr : plane + std::int64_t{y} * l.width;
  };
  for (int next = 0; next < l.rows; next += 4) {
    const int first = std::max(0, std::min(next, l.rows - 4)), end = std::min(first + 4, l.rows);
    const float* from[4];
    for (int i = 0; i < 4; ++i) from[i] = input_row(std::min(first + i, end - 1));
    int done = 0;
    float* const interior = to + std::int64_t{l.pad_x} * l.rows + first;
    if (vectors && from[0] && from[1] && from[2] && from[3]) done = interleave(from, l.width, l.rows, interior);
    for (int h = first; h < end; ++h) {
      const float* row = from[h - first];
      const auto copy = [&](int x, int source) {
        interior[std::int64_t{x} * l.rows + h - first] = row && source >= 0 ? row[source] : 0.0f;
      };
      for (int x = -l.pad_x; x < 0; ++x) copy(x, border_index(x, l.width, l.padding));
      for (int x = done; x < l.width; ++x) copy(x, x);
      for (int x = l.width; x < l.width + l.pad_x; ++x) copy(x, border_index(x, l.width, l.padding));
    }
  }
}

// ---- 2. The filters -------------------------------------------------------------------------------------------------

// Packs [k][channel][row][column] as [k / lanes][channel][column][row][lanes]: the window's order, and `lanes` filters
// side by side, so that one load fetches a tap of all of them. Lanes past the last filter are 0, and nobody stores what
// comes of them.
void pack_filters(const Lowering& l, const float* filters, int lanes, float* packed) {
#pragma omp parallel for
  for (std::int64_t group = 0; group < ceil_div(l.filters, lanes); ++group) {
    float* next = packed + group * depth(l) * lanes;
    for (int c = 0; c < l.channels; ++c)
      for (int s = 0; s < l.columns; ++s)
        for (int r = 0; r < l.rows; ++r)
          for (int lane = 0; lane < lanes; ++lane) {
            const std::int64_t k = group * lanes + lane;
            *next++ = k < l.filters ? filters[((k * l.channels + c) * l.rows + r) * l.columns + s] : 0.0f;
          }
  }
}

// ---- 3. Without a register tile -------------------------------------------------------------------------------------

// Where tap (channel, column, row) of a window lies, counted from the window's first element; `pitch` is what channels
// are apart. Without dilation the taps of one channel are side by side.
std::vector<std::int32_t> tap_offsets(const Lowering& l, int channels, std::int64_t pitch) {
  std::vector<std::int32_t> offsets;
  for (int c = 0; c < channels; ++c)
    for (int s = 0; s < l.columns; ++s)
      for (int r = 0; r < l.rows; ++r)
        offsets.push_back(static_cast<std::int32_t>(c * pitch + std::int64_t{s} * l.dilation_x * l.rows + r));
  return offsets;
}

// One output: each sum waits for the one before it, and each product for two loads.
float dot(const float* window, const std::int32_t* taps, const float* filter, int depth) {
  float sum = 0;
  for (int d = 0; d < depth; ++d) sum += window[taps[d]] * filter[d];
  return sum;
}

// One window with all filters: no sum waits for another, and the window is read once.
// @param filters [depth][filters]   @param sums [filters]
void dots(const float* window, const std::int32_t* taps, const float* filters, int depth, int count, float* sums) {
  std::fill_n(sums, count, 0.0f);
  for (int d = 0; d < depth; ++d)
    for (int k = 0; k < count; ++k) sums[k] += window[taps[d]] * filters[static_cast<std::int64_t>(d) * count + k];
}

// ---- 4. Tiles -------------------------------------------------------------------------------------------------------

// The im2win tensor, all of it or a band of its rows: row p of an image lies at image * image_pitch + p * im2win_row -
// origin. What channels are apart is in the taps.
struct Windows {
  const float* floats;
  std::int64_t image_pitch, origin;
};

// What is multiplied in one go.
struct Part {
  std::int64_t first_row, end_row;  // of outputs, counted through the batch: n p of them
  int first_filter, end_filter;     // the first is a multiple of the lanes
  int first_channel, channels;
};

// Tiles follow one another in the output plane of an image, from one row into the next, so that short rows fill them as
// well as long ones; they are of equal size, or one pixel more. A tile's windows stay in the first-level cache while
// the filters pass by.
void multiply(const Lowering& l, const Simd& simd, const Windows& windows, const Part& part, const std::int32_t* taps,
              const float* packed, float* output) {
  const std::int64_t pixel = std::int64_t{l.stride_x} * l.rows, end_of_row = im2win_row(l) - l.out_width * pixel;
  const std::int64_t plane = output_plane(l), group = std::int64_t{depth(l)} * simd.lanes;
  const float* const first_tap = packed + std::int64_t{part.first_channel} * window(l) * simd.lanes;
  for (std::int64_t row = part.first_row, end; row < part.end_row; row = end) {
    const std::int64_t image = row / l.out_height, p = row % l.out_height;
    end = std::min(part.end_row, (image + 1) * l.out_height);
    const std::int64_t pixels = (end - row) * l.out_width, tiles = ceil_div(pixels, simd.pixels);
    std::int64_t next = image * windows.image_pitch + p * im2win_row(l) - windows.origin;
    float* first_output = output + image * l.filters * plane + p * l.out_width;
    int q = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const int count = static_cast<int>(pixels / tiles + (tile < pixels % tiles));
      const float* begin[16];
      for (int j = 0; j < count; ++j) {
        begin[j] = windows.floats + next;
        next += pixel;
        if (++q < l.out_width) continue;
        q = 0;
        next += end_of_row;
      }
      for (int k = part.first_filter; k < part.end_filter; k += 2 * simd.lanes) {
        const int filters = std::min(part.end_filter - k, 2 * simd.lanes);
        simd.kernels[filters > simd.lanes][count - 1]({begin, taps, part.channels * window(l),
                                                       first_tap + k / simd.lanes * group, group, filters,
                                                       first_output + k * plane, plane, part.first_channel > 0});
      }
      first_output += count;
    }
  }
}

// ---- 5. Blocking ----------------------------------------------------------------------------------------------------

struct Blocking {
  std::int64_t rows;  // of outputs in a band
  int channels;       // of a band
  int filters;        // in a block
  int shares;         // among which the filters of a band are divided, where there are fewer bands than threads
};

// One answer of sysconf, or a common size where it has none.
std::int64_t cache_bytes(int name, std::int64_t common) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : common;
}

// `count` in parts of at most `most`, which is at least 1: as few as possible, then as equal as possible.
std::int64_t equal_parts(std::int64_t count, std::int64_t most) { return ceil_div(count, ceil_div(count, most)); }

// A tile's windows fill a quarter to a half of the first-level cache, by the number of its pixels, as long as
// neighbours share most of their elements; the filters' block half of the second level, the band a quarter of it.
Blocking blocking_for(const Lowering& l, const Simd& simd, int threads) {
  const std::int64_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10) / 4;
  const std::int64_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 512 << 10) / 4;
  const std::int64_t step = 2 * simd.lanes, all_rows = std::int64_t{l.batch} * l.out_height;
  Blocking b;
  b.channels = static_cast<int>(equal_parts(l.channels, std::max<std::int64_t>(1, l1 / 12 / window(l))));
  const std::int64_t taps = std::int64_t{b.channels} * window(l);
  b.filters =
      static_cast<int>(step * equal_parts(ceil_div(l.filters, step), std::max<std::int64_t>(1, l2 / 2 / taps / step)));
  // As many bands as the cache asks for, in whole rounds of the threads, but none of less than a few tiles.
  const std::int64_t most_rows = std::max<std::int64_t>(1, l2 / 4 / (std::int64_t{b.channels} * im2win_row(l)));
  const std::int64_t few_rows = std::min(most_rows, ceil_div(4 * simd.pixels, l.out_width));
  const std::int64_t rounds = ceil_div(ceil_div(all_rows, most_rows), threads);
  b.rows = ceil_div(all_rows, std::max<std::int64_t>(1, std::min(rounds * threads, all_rows / few_rows)));
  b.shares = static_cast<int>(std::min(ceil_div(threads, ceil_div(all_rows, b.rows)), ceil_div(l.filters, step)));
  return b;
}

// ---- 6. The stage ---------------------------------------------------------------------------------------------------

constexpr int kSwitch[] = {0, 1}, kSimds[] = {kPortable, kAvx2, kAvx512};
constexpr const char* kOrderWords[] = {"source", "reordered"};
constexpr const char* kSwitchWords[] = {"off", "on"};
constexpr const char* kSimdWords[] = {"portable", "avx2", "avx512"};
constexpr const char* kThreadWords[] = {"one", "all"};
constexpr Knob kKnobs[] = {{"order", kSwitch, kOrderWords, 1},
                           {"unroll", kSwitch, kSwitchWords, 1},
                           {"simd", kSimds, kSimdWords, kPortable},
                           {"blocking", kSwitch, kSwitchWords, 1},
                           {"threads", kSwitch, kThreadWords, 1}};

class Im2winCpu final : public TunableStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  Knobs knobs() const override { return kKnobs; }

  Verdict check_configuration(const ConvProblem&, const DeviceLimits&, const Configuration& c) const override {
    const int unroll = c["unroll"], simd = c["simd"];
    if (unroll && !c["order"]) return Verdict::refuse("unroll=on tiles the reordered loops; got order=source");
    if (simd != kPortable && !unroll) return Verdict::refuse("vectors hold a tile: simd wants unroll=on");
    if (c["blocking"] && !unroll) return Verdict::refuse("bands are cut into tiles: blocking wants unroll=on");
    if (!host_has(simd)) return Verdict::refuse("this CPU has no {}", kSimdWords[simd]);
    return Verdict::accept();
  }

  Configuration default_configuration(const ConvProblem&, const DeviceLimits&) const override {
    Configuration c = knobs();
    c["simd"] = host_has(kAvx512) ? kAvx512 : host_has(kAvx2) ? kAvx2 : kPortable;
    return c;
  }

  // Packs the filters, and takes memory for the im2win tensor: all of it, or a band for each thread.
  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    reordered_ = knob("order");
    unroll_ = knob("unroll");
    vectors_ = knob("simd") != kPortable;
    simd_ = &simd_of(knob("simd"));
    blocking_ = knob("blocking");
    threads_ = knob("threads") ? omp_get_max_threads() : 1;
    l_ = lowering_of(problem);
    const int lanes = unroll_ ? simd_->lanes : reordered_ ? l_.filters : 1;
    packed_.allocate(ceil_div(l_.filters, lanes) * lanes * depth(l_));
    pack_filters(l_, tensors.filter, lanes, packed_.get());
    if (blocking_) {
      b_ = blocking_for(l_, *simd_, threads_);
      channel_pitch_ = b_.rows * im2win_row(l_);
      im2win_.allocate(std::int64_t{threads_} * b_.channels * channel_pitch_);
    } else {
      b_ = {ceil_div(std::int64_t{l_.batch} * l_.out_height, threads_), l_.channels, l_.filters, 1};
      channel_pitch_ = im2win_plane(l_);
      im2win_.allocate(im2win_size(problem));
    }
    taps_ = tap_offsets(l_, b_.channels, channel_pitch_);
    state_memory(im2win_.bytes() + packed_.bytes());  // with blocking, the bands instead of the tensor
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    if (blocking_) return launch_blocked(tensors);
#pragma omp parallel for num_threads(threads_)
    for (std::int64_t plane = 0; plane < std::int64_t{l_.batch} * l_.channels; ++plane)
      for (int p = 0; p < l_.out_height; ++p)
        im2win_one_row(l_, tensors.input + plane * input_plane(l_), p, vectors_,
                       im2win_.get() + (plane * l_.out_height + p) * im2win_row(l_));
    launch_without_transform(problem, tensors, stream);
  }

  // With blocking, bands do not outlive their use: there is nothing to multiply without making it again.
  bool launch_without_transform(const ConvProblem&, const Tensors& tensors, Stream) override {
    if (blocking_) return false;
    const std::int64_t rows = std::int64_t{l_.batch} * l_.out_height;
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (std::int64_t first = 0; first < rows; first += b_.rows) {
      const std::int64_t end = std::min(rows, first + b_.rows);
      if (unroll_)
        multiply(l_, *simd_, {im2win_.get(), l_.channels * channel_pitch_, 0},
                 {first, end, 0, l_.filters, 0, l_.channels}, taps_.data(), packed_.get(), tensors.output);
      else
        multiply_without_tiles(first, end, tensors.output);
    }
    return true;
  }

  // Output by output; the filters' place in the loops is the difference.
  void multiply_without_tiles(std::int64_t first_row, std::int64_t end_row, float* output) const {
    const std::int64_t plane = output_plane(l_);
    std::vector<float> sums(static_cast<std::size_t>(l_.filters));
    const auto window_at = [&](std::int64_t row, int q) {
      return im2win_.get() + row / l_.out_height * l_.channels * channel_pitch_ + row % l_.out_height * im2win_row(l_) +
             std::int64_t{q} * l_.stride_x * l_.rows;
    };
    const auto output_at = [&](std::int64_t row, int q) {
      return output + row / l_.out_height * l_.filters * plane + row % l_.out_height * l_.out_width + q;
    };
    if (reordered_) {
      for (std::int64_t row = first_row; row < end_row; ++row)
        for (int q = 0; q < l_.out_width; ++q) {
          dots(window_at(row, q), taps_.data(), packed_.get(), depth(l_), l_.filters, sums.data());
          for (int k = 0; k < l_.filters; ++k) output_at(row, q)[k * plane] = sums[static_cast<std::size_t>(k)];
        }
      return;
    }
    for (std::int64_t row = first_row, end; row < end_row; row = end) {
      end = std::min(end_row, (row / l_.out_height + 1) * l_.out_height);  // of the image
      for (int k = 0; k < l_.filters; ++k)
        for (std::int64_t p = row; p < end; ++p)
          for (int q = 0; q < l_.out_width; ++q)
            output_at(p, q)[k * plane] =
                dot(window_at(p, q), taps_.data(), packed_.get() + std::int64_t{k} * depth(l_), depth(l_));
    }
  }

  // For each band and share of the filters, some channels at a time: transform, then multiply with one block of filters
  // after the other. Sums of further channels are added to the output.
  void launch_blocked(const Tensors& tensors) const {
    const int row = im2win_row(l_), step = 2 * simd_->lanes;
    const std::int64_t rows = std::int64_t{l_.batch} * l_.out_height, tasks = ceil_div(rows, b_.rows) * b_.shares;
    const std::int64_t steps = ceil_div(l_.filters, step);
#pragma omp parallel for num_threads(threads_) schedule(dynamic)
    for (std::int64_t task = 0; task < tasks; ++task) {
      float* const band = im2win_.get() + std::int64_t{omp_get_thread_num()} * b_.channels * channel_pitch_;
      const std::int64_t first = task / b_.shares * b_.rows, end = std::min(rows, first + b_.rows);
      const std::int64_t share = task % b_.shares;
      const int first_filter = static_cast<int>(steps * share / b_.shares) * step;
      const int end_filter = std::min(l_.filters, static_cast<int>(steps * (share + 1) / b_.shares) * step);
      for (int c = 0; c < l_.channels; c += b_.channels) {
        const int channels = std::min(b_.channels, l_.channels - c);
        for (int i = 0; i < channels; ++i)
          for (std::int64_t r = first; r < end; ++r)
            im2win_one_row(l_, tensors.input + (r / l_.out_height * l_.channels + c + i) * input_plane(l_),
                           static_cast<int>(r % l_.out_height), vectors_,
                           band + i * channel_pitch_ + (r - first) * row);
        for (int k = first_filter; k < end_filter; k += b_.filters)
          multiply(l_, *simd_, {band, std::int64_t{l_.out_height} * row, first * row},
                   {first, end, k, std::min(end_filter, k + b_.filters), c, channels}, taps_.data(), packed_.get(),
                   tensors.output);
      }
    }
  }

  bool reordered_ = true, unroll_ = true, vectors_ = true, blocking_ = true;
  const Simd* simd_ = nullptr;
  int threads_ = 1;
  Lowering l_{};
  Blocking b_{};
  std::int64_t channel_pitch_ = 0;  // floats from one channel's rows to the next one's
  std::vector<std::int32_t> taps_;
  Floats im2win_, packed_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Im2winCpu)
