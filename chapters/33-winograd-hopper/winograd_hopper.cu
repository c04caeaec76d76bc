// 33 winograd-hopper, host side: the knob, how a problem is cut into strips and blocks, and what is refused. The kernel
// is in winograd_hopper.cuh.

#include "chapters/33-winograd-hopper/many_channels.cuh"
#include "chapters/33-winograd-hopper/prediction.hpp"
#include "chapters/33-winograd-hopper/winograd_hopper.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// ---- Strips and blocks ----------------------------------------------------------------------------------------------

// The knob: positions of a strip, or with more than 64 channels of a tile.
constexpr int kPositions[] = {112, 120, 64, 96, 128, 160, 192, 208};
constexpr int kStripPositions[] = {112, 120}, kTilePositions[] = {64, 96, 128, 160, 192, 208};
constexpr Knob kKnobs[] = {{"strip", kPositions, 112}};

// Positions of an image: its outputs, and the columns that its last windows reach further. Zeros at its right end are
// also those at the left end of the next one.
int pitch_of(const Winograd& w) {
  constexpr int kFurther = kWinogradTaps - 1;
  const int shared = w.padding != Padding::zero ? 0 : w.pad_x < kFurther ? w.pad_x : kFurther;
  return w.out_width + kFurther - shared;
}

int strips_across(const Winograd& w, int positions) {
  return blocks_for((w.batch - 1) * pitch_of(w) + w.out_width, positions);
}

// How a strip is cut: a block takes about as long as two pairs to begin, and blocks run in rounds.
struct Cut {
  int pairs;
  std::int64_t time;  // positions times pairs
};

Cut cut_of(const ConvProblem& problem, int positions, int multiprocessors) {
  constexpr int kStart = 2, kMostRounds = 16;
  const Winograd w = winograd_of(problem, kOutputRows);
  const std::int64_t columns = std::int64_t{strips_across(w, positions)} * blocks_for(w.filters, kFilters);
  Cut best{w.tiles_down, -1};
  for (int down = 1; down <= w.tiles_down; ++down) {
    const std::int64_t blocks = columns * down, rounds = (blocks - 1) / multiprocessors + 1;
    const int pairs = blocks_for(w.tiles_down, down);
    const std::int64_t time = rounds * (pairs + kStart) * positions;
    if (best.time < 0 || time < best.time) best = {pairs, time};
    if (rounds > kMostRounds) break;
  }
  return best;
}

Strips strips_of(const ConvProblem& problem, int positions) {
  Strips g{};
  g.w = winograd_of(problem, kOutputRows);
  g.pitch = pitch_of(g.w);
  g.by_pitch = divisor_of(g.pitch);
  g.strips = strips_across(g.w, positions);
  g.pairs = cut_of(problem, positions, device_limits().multiprocessors).pairs;
  g.blocks_down = blocks_for(g.w.tiles_down, g.pairs);
  g.filter_blocks = blocks_for(g.w.filters, kFilters);
  return g;
}

// ---- The line and its tiles, for more channels ----------------------------------------------------------------------

bool has_line(const ConvProblem& problem) { return problem.c > kChannels; }

Line line_of(const ConvProblem& problem, int positions) {
  Line g{};
  g.w = winograd_of(problem, kOutputRows);
  g.pitch = pitch_of(g.w);
  g.by_pitch = divisor_of(g.pitch);
  g.parts = blocks_for(g.w.channels, kPart);
  g.tiles = blocks_for(g.w.batch * g.w.tiles_down * g.pitch, positions);
  const int filter_blocks = blocks_for(g.w.filters, kTileFilters);
  g.works = g.tiles * filter_blocks;
  g.by_filter_blocks = divisor_of(filter_blocks);
  return g;
}

int blocks_of(const Line& g) {
  const int multiprocessors = device_limits().multiprocessors;
  return g.works < multiprocessors ? g.works : multiprocessors;
}

template <int N>
struct Tile {
  static constexpr int kPositions = N;
};

// Columns of so many pixels, 32 channels of each, one for each position: every second row of the image, and in the row
// as many pixels as an image has positions.
TensorMap columns_of(const void* input, const Line& g, int pixels) {
  const Winograd& w = g.w;
  const auto channels = static_cast<std::uint64_t>(w.channels), width = static_cast<std::uint64_t>(w.width),
             height = static_cast<std::uint64_t>(w.height);
  TensorForm form{TensorElement::fp16,
                  Swizzle::bytes64,
                  4,
                  {{channels, 2, kPart},
                   {width, channels * 2, 1},
                   {height, width * channels * 2, 1, kOutputRows},
                   {static_cast<std::uint64_t>(w.batch), height * width * channels * 2, 1}}};
  form.pixels = static_cast<unsigned>(pixels);
  form.lower[0] = -w.pad_x;
  form.lower[1] = -w.pad_y;
  form.upper[0] = g.pitch - w.pad_x - w.width;
  form.upper[1] = (w.tiles_down - 1) * kOutputRows + 1 - w.pad_y - w.height;
  return make_tensor_map(input, form);
}

// Tiles that the stage takes by itself, the ones that were measured, and the cycles in which a work item of them begins
// and ends, as fitted to those times.
struct MeasuredTile {
  int positions, item;
};
constexpr MeasuredTile kMeasuredTiles[] = {{128, 6000}, {208, 16500}};

// Cycles of the busiest block: of each product 5/4 of those of shared memory, or of the Tensor Cores if these are more;
// and the work items' own.
std::int64_t cycles_of(const ConvProblem& problem, const MeasuredTile& tile, int multiprocessors) {
  constexpr std::int64_t kBytesPerCycle = 128;
  const Line g = line_of(problem, tile.positions);
  const std::int64_t wgmmas = kGroups * kWinogradTaps * (kPartRow / 32), tensor = wgmmas * tile.positions / 2;
  const std::int64_t bytes =
      wgmmas * (kFilters * 32 + tile.positions * 32) + kFilterSlot + std::int64_t{3} * tile.positions * kPartRow;
  const std::int64_t product = tensor * kBytesPerCycle > bytes ? tensor : bytes / kBytesPerCycle;
  return blocks_for(g.works, multiprocessors) * (g.parts * kSize * product * 5 / 4 + tile.item);
}

// Work items that are fewer leave more than a third of the multiprocessors idle, and only a third of the products is
// saved.
int fewest_works(int multiprocessors) { return multiprocessors * 2 / 3; }

template <int Count>
bool is_one_of(int value, const int (&values)[Count]) {
  bool found = false;
  for (const int each : values) found = found || value == each;
  return found;
}

template <class T>
class WinogradHopper final : public TunableStage {
  // Of the measured tiles the one that makes most work items.
  static constexpr int kMostWorks = kMeasuredTiles[0].positions;

  static bool has_few_works(const ConvProblem& problem, const DeviceLimits& limits) {
    return line_of(problem, kMostWorks).works < fewest_works(limits.multiprocessors);
  }

  Knobs knobs() const override { return kKnobs; }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    Configuration configuration = knobs();
    // It stays a strip's, and is refused.
    if (has_line(problem) && has_few_works(problem, limits)) return configuration;
    std::int64_t least = 0;
    const auto consider = [&](int positions, std::int64_t time) {
      if (least > 0 && time >= least) return;
      least = time;
      configuration["strip"] = positions;
    };
    if (has_line(problem))
      for (const MeasuredTile& tile : kMeasuredTiles)
        consider(tile.positions, cycles_of(problem, tile, limits.multiprocessors));
    else
      for (const int positions : kStripPositions)
        consider(positions, cut_of(problem, positions, limits.multiprocessors).time);
    return configuration;
  }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    const int positions = configuration["strip"];
    if (has_line(problem) ? is_one_of(positions, kTilePositions) : is_one_of(positions, kStripPositions))
      return Verdict::accept();
    if (has_line(problem) && has_few_works(problem, limits))
      return Verdict::refuse(
          "tiles of {} positions make {} work items, and fewer than {} for {} multiprocessors are slower than stage "
          "32: "
          "take that, or strip={}",
          kMostWorks, line_of(problem, kMostWorks).works, fewest_works(limits.multiprocessors), limits.multiprocessors,
          kMostWorks);
    return Verdict::refuse(
        "up to 64 channels have strips of 112 or 120 positions, more have tiles of 64, 96, 128, 160, 192 or 208; got "
        "c={}, strip={}",
        problem.c, positions);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_winograd_form(problem);
    if (!verdict.accepted()) return verdict;
    if (has_line(problem))
      if (const Verdict of_line = check_line(problem); !of_line.accepted()) return of_line;
    constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - 1024;
    const std::int64_t elements[] = {problem.input_size(), problem.output_size(),
                                     problem.n * (problem.q() + kWinogradTaps - 1)};
    for (const std::int64_t count : elements)
      if (count > kLimit)
        return Verdict::refuse("input, output and n (q + 2) must have fewer than 2^31 - 1024 elements; got {}", count);
    constexpr std::int64_t kMostFilters = kLimit / kFilterHalves * kFilters;
    if (problem.k > kMostFilters)
      return Verdict::refuse("there must be at most {} filters; got k={}", kMostFilters, problem.k);
    return Verdict::accept();
  }

  // What TMA can load as columns.
  static Verdict check_line(const ConvProblem& problem) {
    constexpr std::int64_t kMostPadding = 127, kMostElements = std::int64_t{1} << 31;
    if (problem.padding != Padding::zero)
      return Verdict::refuse("with more than 64 channels the padding must be zeros; got {}",
                             problem.padding == Padding::replicate ? "replicate" : "reflect");
    if (problem.c % kChunk != 0)
      return Verdict::refuse("more than 64 channels must be a multiple of {}; got c={}", kChunk, problem.c);
    if (problem.pad_h > kMostPadding || problem.pad_w > kMostPadding)
      return Verdict::refuse("with more than 64 channels the padding is at most {}; got pad_h={}, pad_w={}",
                             kMostPadding, problem.pad_h, problem.pad_w);
    const std::int64_t positions =
        problem.n * ((problem.p() + kOutputRows - 1) / kOutputRows) * (problem.q() + kWinogradTaps - 1);
    if (positions >= kMostElements - 1024)
      return Verdict::refuse(
          "with more than 64 channels the positions of all images must be fewer than 2^31 - 1024; got {}", positions);
    const std::int64_t elements = (problem.k + kTileFilters) * (problem.c + kPart) * kSize * kWinogradTaps;
    if (elements > kMostElements)
      return Verdict::refuse(
          "with more than 64 channels the transformed filters have at most 2^31 elements, with padding; got {}",
          elements);
    return Verdict::accept();
  }

  int positions() const { return knob("strip"); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    if (has_line(problem)) {
      const Line g = line_of(problem, positions());
      u_.allocate<T>(std::int64_t{g.works / g.tiles} * g.parts * kPartHalves);
      launch_transform(tensors.filter, u_.as<T>(), g, stream);
      return;
    }
    const Strips g = strips_of(problem, positions());
    u_.allocate<T>(std::int64_t{g.filter_blocks} * kFilterHalves);
    launch_transform(tensors.filter, u_.as<T>(), g, stream);
  }

  // Calls `with` with the tile's positions as a constant.
  template <class With>
  auto for_tile(const With& with) const {
    switch (positions()) {
      case 64:
        return with(Tile<64>{});
      case 96:
        return with(Tile<96>{});
      case 128:
        return with(Tile<128>{});
      case 160:
        return with(Tile<160>{});
      case 192:
        return with(Tile<192>{});
      default:
        return with(Tile<208>{});
    }
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    if (has_line(problem))
      for_tile([&](auto tile) { launch_line<decltype(tile)::kPositions>(problem, tensors, stream); });
    else if (positions() == 112)
      launch_kernel<112>(problem, tensors, stream);
    else
      launch_kernel<120>(problem, tensors, stream);
  }

  template <int N>
  void launch_line(const ConvProblem& problem, const Tensors& tensors, Stream stream) const {
    const Line g = line_of(problem, N);
    launch_convolve<T, N>(columns_of(input_of<T>(tensors), g, LineMemory<N>::kPiece), u_.as<T>(), output_of<T>(tensors),
                          g, blocks_of(g), stream);
  }

  template <int Positions>
  void launch_kernel(const ConvProblem& problem, const Tensors& tensors, Stream stream) const {
    const Strips g = strips_of(problem, Positions);
    const bool chunks = problem.c % kChunk == 0 && problem.k % kChunk == 0;
    TensorMap map{};
    if (chunks) {
      const auto filters = static_cast<std::uint64_t>(problem.k), width = static_cast<std::uint64_t>(problem.q()),
                 height = static_cast<std::uint64_t>(problem.p()), batch = static_cast<std::uint64_t>(problem.n);
      map = make_tensor_map(output_of<T>(tensors), {TensorElement::fp16,
                                                    Swizzle::bytes128,
                                                    4,
                                                    {{filters, 2, kFilters},
                                                     {width, filters * 2, Positions},
                                                     {height, width * filters * 2, 1},
                                                     {batch, height * width * filters * 2, 1}}});
    }
    const auto launch =
        chunks ? launch_convolve<T, Positions, Pixels::chunks> : launch_convolve<T, Positions, Pixels::any>;
    launch(input_of<T>(tensors), u_.as<T>(), output_of<T>(tensors), map, g, stream);
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    constexpr Precision kStored = std::is_same_v<T, half> ? Precision::fp16 : Precision::bf16;
    return WinogradForm{kOutputRows, false, kStored, false, true};
  }

  Prediction predict(const ConvProblem& problem) const override {
    if (has_line(problem))
      return for_tile([&](auto tile) {
        const Line g = line_of(problem, decltype(tile)::kPositions);
        return prediction_of_line<decltype(tile)::kPositions>(g, blocks_of(g));
      });
    return prediction_of(strips_of(problem, positions()), positions());
  }

  Workspace u_{*this, "transformed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradHopper<half>)
CONVLADDER_STAGE_IN_BF16(convladder::WinogradHopper<convladder::bfloat16>)
