// 04 halo-1d, the stage: the ideas of halo_1d.cuh as knobs, and what the lesson predicts for each of their settings.

#include "chapters/04-halo-1d/halo_1d.cuh"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

enum { kSplit, kWhole };
constexpr int kLoads[] = {kSplit, kWhole};
constexpr const char* kLoadWords[] = {"split", "whole"};
constexpr int kTileCounts[] = {1, 2, 4};
constexpr int kOutputCounts[] = {1, 4};
constexpr int kWindows[] = {4, 16};
enum { kKnown, kRunTime };
constexpr int kTaps[] = {kKnown, kRunTime};
constexpr const char* kTapsWords[] = {"known", "run-time"};
constexpr Knob kKnobs[] = {{"load", kLoads, kLoadWords, 2},
                           {"tiles", kTileCounts, nullptr, 3},
                           {"outputs", kOutputCounts, nullptr, 2},
                           {"window", kWindows, nullptr, 2},
                           {"taps", kTaps, kTapsWords, 2}};
constexpr Configuration kDefault{{kSplit, 2, 4, 16, kKnown}};

// A configuration by names.
struct Choice {
  int load, tiles, outputs, window, taps;
};
Choice choice_of(const Configuration& configuration) {
  const auto& values = configuration.values;
  return {values[0], values[1], values[2], values[3], values[4]};
}

class Halo1d final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 5}; }
  Configuration default_configuration(const ConvProblem&, const DeviceLimits&) const override { return kDefault; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    const Choice choice = choice_of(configuration);
    if (choice.load == kWhole && choice.tiles > 1)
      return Verdict::refuse("with load=whole a thread waits for each element, and no tile is on its way: set tiles=1");
    if (choice.outputs == 1 && choice.window == 16)
      return Verdict::refuse("with outputs=1 a window may begin at any word, not only at 16 bytes: set window=4");
    return check_tile(problem, limits, tile_bytes(choice.tiles, problem.s));
  }
  bool searched() const override { return false; }
  void use(const Configuration& configuration) override { choice_ = choice_of(configuration); }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_constant_filter(problem);
    if (!verdict.accepted()) return verdict;
    return check_tile(problem, limits, tile_bytes(choice_of(kDefault).tiles, problem.s));
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Signal s = signal_of(problem);
    if (choice_.load == kWhole) return launch_tiles<false, 1>(tensors, s, stream);
    switch (choice_.tiles) {
      case 1:
        return launch_tiles<true, 1>(tensors, s, stream);
      case 2:
        return launch_tiles<true, 2>(tensors, s, stream);
      default:
        return launch_tiles<true, 4>(tensors, s, stream);
    }
  }

  template <bool kSplitLoad, int kTiles>
  void launch_tiles(const Tensors& tensors, const Signal& s, Stream stream) const {
    const bool known_taps = choice_.taps == kKnown;
    if (choice_.outputs == 1)
      launch_halo_1d<Form<kSplitLoad, kTiles, 1, 4>>(tensors, s, known_taps, stream);
    else if (choice_.window == 4)
      launch_halo_1d<Form<kSplitLoad, kTiles, 4, 4>>(tensors, s, known_taps, stream);
    else
      launch_halo_1d<Form<kSplitLoad, kTiles, 4, 16>>(tensors, s, known_taps, stream);
  }

  // The same elements as in 03, in fewer sectors. Every thread of a tile reads its window, taps - 1 floats longer than
  // its outputs: 16 bytes at a time, or words. Words of lanes with four outputs each lie in 8 banks: four passes.
  Prediction predict(const ConvProblem& problem) const override {
    const Signal s = signal_of(problem);
    const std::int64_t tiles = (s.out_length + kTile - 1) / kTile;
    const std::int64_t warps = tiles * (kTile / choice_.outputs / 32) * s.batch;
    const std::int64_t words = s.taps + choice_.outputs - 1;
    Prediction p;
    p.global_load_bytes = reads_by_tile(s, kTile) * 4;
    p.global_store_bytes = problem.output_size() * 4;
    p.shared_load_requests = warps * (choice_.window == 16 ? 1 + (s.taps + 1) / 4 : words);
    p.shared_load_conflicts = choice_.outputs == 4 && choice_.window == 4 ? 3 * p.shared_load_requests : 0;
    p.shared_store_conflicts = 0;
    p.constant_load_requests = warps * s.taps;
    p.barriers = (tiles + choice_.tiles - 1) / choice_.tiles * static_cast<std::int64_t>(s.batch);
    p.flops = problem.flops();
    return p;
  }

  Choice choice_ = choice_of(kDefault);
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Halo1d)
