// 39 depthwise-fp16: pairs of channels in half2, NHWC.
//
// Since 15: half the bytes, and another layout. In NHWC the channels of a pixel lie side by side, and a depthwise layer
// does the same with each of them. So neighbouring lanes take neighbouring channels, not neighbouring pixels, and two
// channels fill the 32 bits of a half2. Where a strip of outputs is as wide as the plane, no lane shares anything with
// another: there is no shared memory, and no barrier. Where strips lie side by side, their pixels overlap: a thread
// walks down a whole band (columns.cuh), or a block stages them. pairs.cuh has the kernel and its numbered steps; this
// file has the strips, the filter's copy and the launch.

#include "chapters/39-depthwise-fp16/columns.cuh"
#include "chapters/39-depthwise-fp16/pairs.cuh"
#include "common/kernel/compiled_kernel.hpp"
#include "common/kernel/tracks/depthwise.hpp"
#include "common/kernel/tracks/depthwise_source.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// All but `threads` are Strip's members.
constexpr int kRows[] = {1, 2, 4, 8, 16, 32, 64}, kColumns[] = {1, 2, 4, 7, 8, 14}, kThreads[] = {64, 128, 256};
constexpr int kStaged[] = {0, 4, 8, 16, 32}, kAhead[] = {0, 1, 2};
constexpr Knob kKnobs[] = {{"rows", kRows, 2},
                           {"columns", kColumns, 4},
                           {"threads", kThreads, 128},
                           {"staged", kStaged, 0},
                           {"ahead", kAhead, 0}};

// Whether a smaller value covers everything already.
template <int kCount>
bool is_twin(const int (&values)[kCount], int value, int needed) {
  for (const int smaller_one : values)
    if (smaller_one < value && smaller_one >= needed) return true;
  return false;
}

// Of a block that stages: strips for its threads, down and across, so that all blocks together do least. To stage a
// pixel costs about as much as eight products. The strips of a warp lie side by side, as many as there are: an odd
// number of pixels apart, they read different banks.
Strip strip_of(const Depthwise& d, const Configuration& c) {
  Strip best{c["rows"], c["columns"], c["staged"]};
  best.ahead = c["ahead"];
  if (best.staged == 0 || best.ahead > 0) return best;
  constexpr double kProductsOfPixel = 8;
  const int strips = c["threads"] / best.staged, all_across = strips_across(d, best);
  double least = 0;
  for (int down = 1; down <= smaller(strips, strips_down(d, best)); ++down) {
    const Strip s{best.rows, best.columns, best.staged, down, smaller(strips / down, all_across)};
    if (s.across * s.staged < 32 && s.across < all_across) break;
    const double outputs = down * s.rows * s.across * s.columns;
    const double pixels = static_cast<double>(staged_rows(d, s)) * static_cast<double>(staged_columns(d, s));
    const double cost = static_cast<double>(staging_blocks(d, s)) *
                        (kProductsOfPixel * pixels + static_cast<double>(filter_plane(d)) * outputs);
    if (down == 1 || cost < least) least = cost, best = s;
  }
  return best;
}

std::int64_t blocks_of(const Depthwise& d, const Strip& s, int threads) {
  if (s.ahead > 0) return (threads_of_band(d, s) - 1) / threads + 1;
  return s.staged > 0 ? staging_blocks(d, s) : (threads_in_all(d, s) - 1) / threads + 1;
}

Verdict check_strip(const Depthwise& d, const Strip& s, int threads, std::int64_t shared_bytes_per_block) {
  if (is_twin(kRows, s.rows, d.out_height) || is_twin(kColumns, s.columns, d.out_width) ||
      is_twin(kStaged, s.staged, pairs_of(d)))
    return Verdict::refuse("a smaller value covers all rows, columns or pairs already");
  if (s.ahead > 0) {
    constexpr int kMostBands = 65535;
    if (s.staged > 0) return Verdict::refuse("a thread that walks down an image stages nothing: staged is 0");
    if (d.stride_y > d.rows || d.dilation_y > 1)
      return Verdict::refuse("a thread that walks down an image adds each row: no dilation, and stride_h up to r");
    if (filter_plane(d) > kMostTaps || d.rows > kMostTapRows || s.columns > kMostColumns ||
        window_of(d, s, 1) > kMostPixels)
      return Verdict::refuse(
          "a thread that walks down an image holds up to {} taps in {} rows, {} columns of outputs and {} of input",
          kMostTaps, kMostTapRows, kMostColumns, kMostPixels);
    if (blocks_of(d, s, threads) > INT32_MAX || strips_down(d, s) > kMostBands)
      return Verdict::refuse("a grid has at most 2^31 - 1 blocks of {} bands; got {} of {}", kMostBands,
                             blocks_of(d, s, threads), strips_down(d, s));
    return Verdict::accept();
  }
  if (s.rows * s.columns > kMostPairs)
    return Verdict::refuse("a thread has at most {} outputs of two channels; got {}", kMostPairs, s.rows * s.columns);
  if (s.staged > 0 && asks_for_each(d, s, 1))
    return Verdict::refuse(
        "staged is for windows that registers hold: up to {} pixels and {} products of a row of taps", kMostWindow,
        kMostUnrolled);
  if (s.staged > 0 && staged_bytes(d, s) > shared_bytes_per_block)
    return Verdict::refuse("a block's pixels and taps must fit in {} bytes of shared memory; got {}",
                           shared_bytes_per_block, staged_bytes(d, s));
  if (blocks_of(d, s, threads) > INT32_MAX)
    return Verdict::refuse("a grid has at most 2^31 - 1 blocks; got {}", blocks_of(d, s, threads));
  return Verdict::accept();
}

constexpr int kWarps = 8;                            // that a multiprocessor should have: two for each scheduler
constexpr int kWalkedTaps = 25, kUnstagedTaps = 49;  // what was measured: 3 x 3 and 5 x 5; 7 x 7

bool keep_busy(std::int64_t threads, int warps, const DeviceLimits& limits) {
  return threads >= std::int64_t{limits.multiprocessors} * warps * 32;
}

// The largest strip of up to 28 outputs, of which at most a ninth lie past the plane, that leaves warps enough.
Strip largest_strip(const Depthwise& d, const DeviceLimits& limits) {
  constexpr int kOutputs = 28;
  Strip best{1, 1};
  for (const int columns : kColumns) {
    for (int rows = 1; rows <= 8; rows *= 2) {
      const Strip s{rows, columns};
      const std::int64_t covered = std::int64_t{strips_down(d, s)} * rows * strips_across(d, s) * columns;
      const bool fits = check_strip(d, s, kThreads[0], 0).accepted() && covered <= output_plane(d) / 8 * 9;
      const bool busy = keep_busy(threads_in_all(d, s), kWarps, limits);
      if (fits && busy && rows * columns <= kOutputs && rows * columns > best.rows * best.columns) best = s;
    }
  }
  return best;
}

// The largest band to walk down that leaves three warps for each scheduler, with few columns past the plane. Only such
// as were measured: zero padding, up to 5 x 5 taps, 8 or 16 rows, 4 to 8 columns. Others have no rows.
Strip largest_band(const Depthwise& d, const DeviceLimits& limits) {
  constexpr int kWalkingWarps = 12, kBandRows[] = {8, 16}, kBandColumns[] = {4, 7, 8};
  Strip best{0, 0};
  if (filter_plane(d) > kWalkedTaps || d.padding != Padding::zero) return best;
  for (const int columns : kBandColumns) {
    for (const int rows : kBandRows) {
      Strip s{rows, columns};
      s.ahead = 1;
      const bool fits = check_strip(d, s, kKnobs[2].usual, 0).accepted() &&
                        std::int64_t{strips_across(d, s)} * columns <= std::int64_t{d.out_width} * 9 / 8;
      const bool busy = keep_busy(strips_down(d, s) * threads_of_band(d, s), kWalkingWarps, limits);
      if (fits && busy && rows * columns > best.rows * best.columns) best = s;
    }
  }
  return best;
}

// Where one strip spans the plane, the largest strip. Where strips lie side by side, a band to walk down, if there are
// bands enough; or else, with 26 to 49 taps and enough threads, strips that stage nothing: both were faster than
// staging. Otherwise blocks that stage: the smallest of which shared memory holds warps enough, with as many pairs as
// possible, up to 16 (64 bytes of a pixel), of which at most an eighth lie past the channels.
Configuration default_of(const Depthwise& d, const DeviceLimits& limits) {
  constexpr std::int64_t kSystemBytes = 1024;  // of shared memory, for each block
  constexpr int kUnstagedWarps = 32;           // half of those that a multiprocessor holds
  const Strip strip = largest_strip(d, limits);
  Configuration c(kKnobs);
  c["rows"] = strip.rows;
  c["columns"] = strip.columns;
  if (strips_across(d, strip) == 1) return c;
  if (const Strip band = largest_band(d, limits); band.rows > 0) {
    c["rows"] = band.rows;
    c["columns"] = band.columns;
    c["ahead"] = band.ahead;
    return c;
  }
  if (filter_plane(d) > kWalkedTaps && filter_plane(d) <= kUnstagedTaps &&
      keep_busy(threads_in_all(d, strip), kUnstagedWarps, limits))
    return c;
  for (int threads = 128; threads <= 256; threads *= 2) {
    for (int staged = 16; staged >= 4; staged /= 2) {
      c["threads"] = threads;
      c["staged"] = staged;
      const Strip s = strip_of(d, c);
      if (!check_strip(d, s, threads, limits.shared_bytes_per_block).accepted()) continue;
      const std::int64_t held = (limits.shared_bytes_per_block + kSystemBytes) / (staged_bytes(d, s) + kSystemBytes);
      const bool full = round_up(pairs_of(d), staged) <= pairs_of(d) / 8 * 9 || staged == 4;
      if (full && held * ceil_div(staging_threads(s), 32) >= kWarps) return c;
    }
  }
  c["threads"] = kKnobs[2].usual;
  c["staged"] = 0;
  return c;
}

// ---- The launch ----------------------------------------------------------------------------------------------------

__global__ void depthwise_pairs_any(const half* input, const half2* taps, half* output, Depthwise d, Strip s) {
  convolve_pairs(input, taps, output, d, s);
}
__global__ void depthwise_columns_any(const half* input, const half2* taps, half* output, Depthwise d, Strip s) {
  convolve_columns(input, taps, output, d, s);
}

// What NVRTC compiles.
KernelSource source_of(const Depthwise& d, const Configuration& configuration) {
  const Strip s = strip_of(d, configuration);
  KernelSource source;
  source.add(R"(#include "chapters/39-depthwise-fp16/columns.cuh"
namespace convladder {)");
  source.add_problem(d);
  source.add("struct Point {");
  source.add_knobs(configuration);
  source.constant("down", s.down);
  source.constant("across", s.across);
  source.add(R"(};
}
extern "C" __global__ void __launch_bounds__(convladder::Point::threads)
    depthwise_pairs(const half* __restrict__ input, const half2* __restrict__ taps, half* __restrict__ output) {
  constexpr convladder::Problem d{};
  constexpr convladder::Point s{};
  if constexpr (s.ahead > 0)
    convladder::convolve_columns(input, taps, output, d, s);
  else
    convladder::convolve_pairs(input, taps, output, d, s);
})");
  return source;
}

class DepthwiseFp16 final : public TunableStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_depthwise_past_plane(problem, 14);
    if (!verdict.accepted()) return verdict;
    return check_configuration(problem, limits, default_of(depthwise_of(problem), limits));
  }

  Knobs knobs() const override { return kKnobs; }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    const Depthwise d = depthwise_of(problem);
    return check_strip(d, strip_of(d, configuration), configuration["threads"], limits.shared_bytes_per_block);
  }

  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return default_of(depthwise_of(problem), limits);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    constexpr int kPairing = 256;
    const Depthwise d = depthwise_of(problem);
    const std::int64_t count = filter_plane(d) * pairs_of(d);
    taps_.allocate<half2>(count);
    ::convladder::launch(pair_taps<Depthwise>, dim3(static_cast<unsigned>((count - 1) / kPairing + 1)), dim3(kPairing),
                         0, stream)(tensors.filter, taps_.as<half2>(), d, count);
    kernel_.compile(source_of(d, configuration()).text, "depthwise_pairs");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Depthwise d = depthwise_of(problem);
    const Strip s = strip_of(d, configuration());
    const int threads = s.staged > 0 ? staging_threads(s) : knob("threads");
    const dim3 grid(static_cast<unsigned>(blocks_of(d, s, threads)), s.ahead > 0 ? strips_down(d, s) : 1);
    const dim3 block(static_cast<unsigned>(threads));
    const std::size_t bytes = s.staged > 0 ? static_cast<std::size_t>(staged_bytes(d, s)) : 0;
    const half2* const taps = taps_.as<half2>();
    if (kernel_.compiled())
      kernel_.launch(grid, block, bytes, stream)(tensors.half_input, taps, tensors.half_output);
    else
      ::convladder::launch(s.ahead > 0 ? depthwise_columns_any : depthwise_pairs_any, grid, block, bytes, stream)(
          tensors.half_input, taps, tensors.half_output, d, s);
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Depthwise d = depthwise_of(problem);
    const Strip s = strip_of(d, configuration());
    const Axis down = vertical(d), across = horizontal(d);
    const bool whole = strips_across(d, s) == 1;
    Prediction p;
    p.global_store_bytes = problem.output_size() * 2;
    p.flops = problem.flops();
    if (s.ahead > 0) {  // each thread its part of each row of its band, and all of its taps
      std::int64_t rows = 0;
      for (int band = 0; band < strips_down(d, s); ++band)
        rows += reads_of_range(readable(down), std::int64_t{band_top(band, d, s)} * d.stride_y - readable(down).pad,
                               band_span(d, s));
      const std::int64_t columns = whole ? d.width : reads_of_tiles(readable(across), s.columns, 0, window_of(d, s, 1));
      p.global_load_bytes =
          d.batch * rows * columns * d.channels * 2 + strips_down(d, s) * threads_of_band(d, s) * filter_plane(d) * 4;
      p.shared_load_requests = p.barriers = 0;
      return p;
    }
    if (s.staged > 0) {  // each block its pixels once, and its taps
      const std::int64_t blocks = staging_blocks(d, s), groups = ceil_div(pairs_of(d), s.staged);
      const std::int64_t rows = reads_of_tiles(readable(down), s.down * s.rows, 0, staged_rows(d, s));
      const std::int64_t columns =
          whole ? d.width : reads_of_tiles(readable(across), s.across * s.columns, 0, staged_columns(d, s));
      p.global_load_bytes =
          d.batch * rows * columns * d.channels * 2 + blocks / groups * filter_plane(d) * pairs_of(d) * 4;
      p.barriers = blocks;
      return p;
    }
    const std::int64_t served = reads_by_output(down);  // pairs of a row of outputs and a row of taps
    const bool asks = asks_for_each(d, s, 1);
    const std::int64_t rows = asks ? served : reads_of_tiles(readable(down), s.rows, 0, span_down(d, s));
    const std::int64_t columns = asks    ? reads_by_output(across)
                                 : whole ? d.width
                                         : reads_of_tiles(readable(across), s.columns, 0, window_of(d, s, 1));
    if (asks || !by_pairs(d, s))  // else rows past the last output are read, too
      p.global_load_bytes =
          d.batch * (rows * columns * d.channels * 2 + served * strips_across(d, s) * d.columns * pairs_of(d) * 4);
    p.shared_load_requests = p.barriers = 0;
    return p;
  }

  Workspace taps_{*this, "paired taps"};
  CompiledKernel kernel_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseFp16)
