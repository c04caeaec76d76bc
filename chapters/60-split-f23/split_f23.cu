// 60 split-f23, its stage. The kernels, and what they do, are in split_f23.cuh.
#include "chapters/60-split-f23/split_f23.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs: positions of a tile, and when sums are added to the master sums.
constexpr int kPositions[] = {0, 64, 80, 88, 96, 104};
constexpr const char* kPositionWords[] = {"auto", "64", "80", "88", "96", "104"};
constexpr int kSums[] = {kSumsOfTap, kSumsOfPhase};
constexpr const char* kSumWords[] = {"tap", "phase"};
constexpr Knob kKnobs[] = {{"positions", kPositions, kPositionWords, 0}, {"sums", kSums, kSumWords, kSumsOfTap}};

class SplitF23 final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }
  // Products of all rounds, and what of a tile no product hides.
  Configuration decided(const ConvProblem& problem, const DeviceLimits& limits,
                        const Configuration& configuration) const override {
    Configuration best = configuration;
    std::int64_t least = 0;
    for (const int positions : kPositions) {
      if (positions == 0 || (configuration["positions"] != 0 && configuration["positions"] != positions)) continue;
      const Tiles g = fewest_tiles(lowering_of(problem), positions);
      if (g.images == 0) continue;
      // A wgmma takes N / 2 cycles, or as many as its operands take of shared memory with what else passes through it.
      const int of_tap = at_least(12 * positions, (24 * (2048 + 32 * positions) + 4 * kPart + 85 * g.slot) / 128);
      const std::int64_t cycles = std::int64_t{blocks_for(g.works, limits.multiprocessors)} *
                                  (std::int64_t{g.channel_blocks} * 12 * of_tap + 4000);
      if (least > 0 && cycles > least) continue;
      best["positions"] = positions, least = cycles;
    }
    return best;
  }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const int positions = configuration["positions"] == 0 ? 64 : configuration["positions"];
    if (fewest_tiles(lowering_of(problem), positions).images == 0)
      return Verdict::refuse("no tile of {} positions fits in shared memory with the pixels that it needs", positions);
    return Verdict::accept();
  }
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_implicit_gemm_hopper(problem, kBlock, 2 * kBlock);
  }
  Tiles tiles(const ConvProblem& problem) const { return fewest_tiles(lowering_of(problem), knob("positions")); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Tiles g = tiles(problem);
    const int size = g.filter_blocks * g.channel_blocks * 12 * kBlock * kBlock, filters = g.filter_blocks * kBlock;
    packed_.allocate<half>(2 * std::int64_t{size});
    scales_.allocate<SumScale>(filters);
    exponents_.allocate<int>(filters);
    input_scale_.allocate<InputScale>(1);
    largest_.allocate<int>(1);
    const auto run = [&](auto kernel, int blocks, int threads) {
      return convladder::launch(kernel, dim3(blocks), dim3(threads), 0, stream);
    };
    const std::int64_t input = problem.input_size();
    const int input_blocks = static_cast<int>(
        at_most(4 * device_limits().multiprocessors, static_cast<int>((input - 1) / kPackThreads + 1)));
    run(clear, 1, 1)(largest_.ints(), 1);
    run(find_largest, input_blocks, kPackThreads)(tensors.input, input, largest_.ints());
    run(scale_input, 1, 1)(largest_.ints(), input_scale_.as<InputScale>());
    run(scale_filters, filters / (kPackThreads / 32), kPackThreads)(tensors.filter, input_scale_.as<InputScale>(),
                                                                    exponents_.ints(), scales_.as<SumScale>(),
                                                                    g.of.filters, g.of.channels * 9);
    run(pack, blocks_for(size, kPackThreads), kPackThreads)(tensors.filter, exponents_.ints(), packed_.as<half>(), g,
                                                            size);
  }

  template <int N>
  void multiply(const Tiles& g, const Tensors& tensors, Stream stream) {
    const auto bytes = static_cast<std::size_t>(fixed_bytes(N) + g.slot * kPositionBytes);
    const int blocks = at_most(g.works, device_limits().multiprocessors);
    const auto kernel = knob("sums") == kSumsOfPhase ? split_multiply<N, kSumsOfPhase> : split_multiply<N, kSumsOfTap>;
    convladder::launch(kernel, dim3(blocks), dim3(kThreads), bytes, stream)(
        tensors.input, packed_.as<half>(), input_scale_.as<InputScale>(), scales_.as<SumScale>(), tensors.filter,
        tensors.output, g);
  }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Tiles g = tiles(problem);
    switch (knob("positions")) {
      case 64:
        return multiply<64>(g, tensors, stream);
      case 80:
        return multiply<80>(g, tensors, stream);
      case 88:
        return multiply<88>(g, tensors, stream);
      case 96:
        return multiply<96>(g, tensors, stream);
      default:
        return multiply<104>(g, tensors, stream);
    }
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    WinogradForm form;
    form.m = 2, form.along_height = true;
    return form;
  }

  // Of the counters it says only those that are simple.
  Prediction predict(const ConvProblem& problem) const override {
    Prediction p;
    p.barriers = at_most(tiles(problem).works, device_limits().multiprocessors);
    p.constant_load_requests = 0;
    p.atomic_requests = 0;
    p.flops = problem.flops();
    return p;
  }

  Workspace packed_{*this, "packed filter"};
  Workspace scales_{*this, "scales of the sums"};
  Workspace exponents_{*this, "exponents of the filters"};
  Workspace input_scale_{*this, "scale of the input"};
  Workspace largest_{*this, "largest magnitude"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::SplitF23)
