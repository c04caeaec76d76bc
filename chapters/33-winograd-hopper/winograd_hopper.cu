// 33 winograd-hopper, host side: the knob, how a problem is cut into strips and blocks, and what is refused. The kernel
// is in winograd_hopper.cuh.

#include "chapters/33-winograd-hopper/prediction.hpp"
#include "chapters/33-winograd-hopper/winograd_hopper.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// ---- Strips and blocks ----------------------------------------------------------------------------------------------

// The knob: positions of a strip.
constexpr int kPositions[] = {112, 120};
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

template <class T>
class WinogradHopper final : public TunableStage {
  Knobs knobs() const override { return kKnobs; }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const bool wider =
        cut_of(problem, 120, limits.multiprocessors).time < cut_of(problem, 112, limits.multiprocessors).time;
    Configuration configuration = knobs();
    if (wider) configuration["strip"] = 120;
    return configuration;
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_winograd_form(problem);
    if (!verdict.accepted()) return verdict;
    if (problem.c > kChannels)
      return Verdict::refuse("there must be at most {} channels, whose filters fill shared memory; got c={}", kChannels,
                             problem.c);
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

  int positions() const { return knob("strip"); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Strips g = strips_of(problem, positions());
    u_.allocate<T>(std::int64_t{g.filter_blocks} * kFilterHalves);
    launch_transform(tensors.filter, u_.as<T>(), g, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    if (positions() == 112)
      launch_kernel<112>(problem, tensors, stream);
    else
      launch_kernel<120>(problem, tensors, stream);
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
    return prediction_of(strips_of(problem, positions()), positions());
  }

  Workspace u_{*this, "transformed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradHopper<half>)
CONVLADDER_STAGE_IN_BF16(convladder::WinogradHopper<convladder::bfloat16>)
