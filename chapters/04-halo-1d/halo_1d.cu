// 04 halo-1d, the stage: the ideas of halo_1d.cuh as knobs, the kernel of long_filter.cuh as one more value, and what
// the lesson predicts for each of their settings.

#include "chapters/04-halo-1d/halo_1d.cuh"
#include "chapters/04-halo-1d/long_filter.cuh"
#include "chapters/04-halo-1d/prediction.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

enum { kSplit, kWhole };
constexpr int kLoads[] = {kSplit, kWhole};
constexpr const char* kLoadWords[] = {"split", "whole"};
constexpr int kTileCounts[] = {1, 2, 4};
constexpr int kAuto = 0;
constexpr int kOutputCounts[] = {kAuto, 1, 4, kLongEach};
constexpr const char* kOutputWords[] = {"auto", "1", "4", "16"};
constexpr int kWindows[] = {4, 16};
enum { kKnown, kRunTime };
constexpr int kTaps[] = {kKnown, kRunTime};
constexpr const char* kTapsWords[] = {"known", "run-time"};
constexpr int kUsualTiles = 2;
constexpr Knob kKnobs[] = {{"load", kLoads, kLoadWords, kSplit},
                           {"tiles", kTileCounts, kUsualTiles},
                           {"outputs", kOutputCounts, kOutputWords, kAuto},
                           {"window", kWindows, 16},
                           {"taps", kTaps, kTapsWords, kKnown}};

// outputs=auto: the kernel for long filters from so many taps on, and for signals that give all multiprocessors several
// of its larger blocks.
constexpr std::int64_t kLongTaps = 31, kLongSignal = 1 << 20;

class Halo1d final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, false}; }

  Configuration decided(const ConvProblem& problem, const DeviceLimits& limits,
                        const Configuration& configuration) const override {
    Configuration c = configuration;
    if (c["outputs"] != kAuto) return c;
    c["outputs"] = kLongEach;
    if (problem.s < kLongTaps || problem.output_size() < kLongSignal ||
        !check_configuration(problem, limits, c).accepted())
      c["outputs"] = 4;
    return c;
  }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    if (configuration["load"] == kWhole && configuration["tiles"] > 1)
      return Verdict::refuse("with load=whole a thread waits for each element, and no tile is on its way: set tiles=1");
    if (configuration["outputs"] == 1 && configuration["window"] == 16)
      return Verdict::refuse("with outputs=1 a window may begin at any word, not only at 16 bytes: set window=4");
    if (configuration["outputs"] == kLongEach) {
      for (int k = 0; k < configuration.knobs.count; ++k)
        if (configuration.knobs.knobs[k].values != kOutputCounts && configuration.values[k] != kKnobs[k].usual)
          return Verdict::refuse(
              "with outputs=16 a kernel for long filters runs, which has no other choice: leave {} out",
              kKnobs[k].name);
      return check_tile(problem, limits, long_bytes(problem.s));
    }
    return check_tile(problem, limits, tile_bytes(configuration["tiles"], problem.s));
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_constant_filter(problem);
    if (!verdict.accepted()) return verdict;
    return check_tile(problem, limits, tile_bytes(kUsualTiles, problem.s));
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Signal s = signal_of(problem);
    if (knob("outputs") == kLongEach) return launch_long_filter(tensors, s, stream);
    if (knob("load") == kWhole) return launch_tiles<false, 1>(tensors, s, stream);
    switch (knob("tiles")) {
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
    const bool known_taps = knob("taps") == kKnown;
    if (knob("outputs") == 1)
      launch_halo_1d<Form<kSplitLoad, kTiles, 1, 4>>(tensors, s, known_taps, stream);
    else if (knob("window") == 4)
      launch_halo_1d<Form<kSplitLoad, kTiles, 4, 4>>(tensors, s, known_taps, stream);
    else
      launch_halo_1d<Form<kSplitLoad, kTiles, 4, 16>>(tensors, s, known_taps, stream);
  }

  // The same elements as in 03, in fewer sectors. Every thread of a tile reads its window, taps - 1 floats longer than
  // its outputs: 16 bytes at a time, or words. Words of lanes with four outputs each lie in 8 banks: four passes.
  Prediction predict(const ConvProblem& problem) const override {
    const Signal s = signal_of(problem);
    if (knob("outputs") == kLongEach) return prediction_of_long(problem, s);
    const int outputs = knob("outputs") == kAuto ? 4 : knob("outputs"), window = knob("window"),
              in_flight = knob("tiles");
    const std::int64_t tiles = (s.out_length + kTile - 1) / kTile;
    const std::int64_t warps = tiles * (kTile / outputs / 32) * s.batch;
    const std::int64_t words = s.taps + outputs - 1;
    Prediction p;
    p.global_load_bytes = reads_by_tile(s, kTile) * 4;
    p.global_store_bytes = problem.output_size() * 4;
    p.shared_load_requests = warps * (window == 16 ? 1 + (s.taps + 1) / 4 : words);
    p.shared_load_conflicts = outputs == 4 && window == 4 ? 3 * p.shared_load_requests : 0;
    p.shared_store_conflicts = 0;
    p.constant_load_requests = warps * s.taps;
    p.barriers = (tiles + in_flight - 1) / in_flight * static_cast<std::int64_t>(s.batch);
    p.flops = problem.flops();
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Halo1d)
