// 08 separable, the stage: the split filter, the two passes of separable.cuh with their choices as knobs or the one
// kernel of fused.cuh, and what the lesson predicts.

#include "chapters/08-separable/fused.cuh"
#include "chapters/08-separable/prediction.hpp"
#include "chapters/08-separable/rank_one.cuh"
#include "chapters/08-separable/separable.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kManyThreads = 256;
constexpr int kRowCounts[] = {1, 2, 4};
constexpr int kThreadCounts[] = {kRowThreads, kManyThreads};
enum { kTogether, kInTurn };
constexpr int kLoads[] = {kTogether, kInTurn};
constexpr const char* kLoadWords[] = {"together", "in-turn"};
enum { kBorder, kEvery };
constexpr int kIndices[] = {kBorder, kEvery};
constexpr const char* kIndexWords[] = {"border", "every"};
enum { kGroups, kSingle };
constexpr int kRests[] = {kGroups, kSingle};
constexpr const char* kRestWords[] = {"groups", "single"};
enum { kAuto, kTwoPasses, kOneKernel };
constexpr int kFused[] = {kAuto, kTwoPasses, kOneKernel};
constexpr const char* kFusedWords[] = {"auto", "no", "yes"};
constexpr int kWarpCounts[] = {0, 1, 2, 4};  // of a scheduler at a time; 0: by the filter
constexpr const char* kWarpWords[] = {"auto", "1", "2", "4"};
constexpr Knob kKnobs[] = {{"fused", kFused, kFusedWords, kAuto},
                           {"warps", kWarpCounts, kWarpWords, 0},
                           {"rows", kRowCounts, 2},
                           {"threads", kThreadCounts, kRowThreads},
                           {"loads", kLoads, kLoadWords, kTogether},
                           {"index", kIndices, kIndexWords, kBorder},
                           {"rest", kRests, kRestWords, kGroups}};

constexpr std::int64_t kLargeImage = 1 << 20;  // pixels

class Separable final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, false}; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_image(problem); }

  // The choices a to e are of the two passes alone.
  static bool of_two_passes(const Configuration& configuration) {
    for (int k = 0; k < configuration.knobs.count; ++k) {
      const int* values = configuration.knobs.knobs[k].values;
      if (values != kFused && values != kWarpCounts && configuration.values[k] != kKnobs[k].usual) return true;
    }
    return false;
  }

  // fused=auto: one kernel for images that give every scheduler segments enough, where it takes the filter.
  Configuration decided(const ConvProblem& problem, const DeviceLimits& limits,
                        const Configuration& configuration) const override {
    Configuration c = configuration;
    if (c["fused"] == kAuto) {
      c["fused"] = kOneKernel;
      if (problem.input_size() < kLargeImage || !check_configuration(problem, limits, c).accepted())
        c["fused"] = kTwoPasses;
    }
    if (c["fused"] == kOneKernel && c["warps"] == 0) c["warps"] = warps_of(static_cast<int>(problem.r));
    return c;
  }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    if (configuration["fused"] == kTwoPasses && configuration["warps"] != 0)
      return Verdict::refuse("warps is a choice of the one kernel: leave it out, or set fused=yes");
    if (configuration["fused"] != kOneKernel) return Verdict::accept();
    if (of_two_passes(configuration))
      return Verdict::refuse(
          "rows, threads, loads, index and rest are choices of the two passes: leave them out, or set fused=no");
    if (problem.r != problem.s || problem.r % 2 == 0 || problem.r < kLeastSide || problem.r > kMostSide)
      return Verdict::refuse("one kernel takes square filters with an odd side from {} to {}: set fused=no", kLeastSide,
                             kMostSide);
    return Verdict::accept();
  }

  static std::int64_t between_pixels(const ConvProblem& problem) { return problem.n * problem.h * problem.q(); }
  bool fused() const { return knob("fused") == kOneKernel; }

  Verdict check_filter(const ConvProblem& problem, const float* filter) const override {
    return check_rank_one(filter, static_cast<int>(problem.r), static_cast<int>(problem.s));
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    if (!fused()) between_.allocate(between_pixels(problem));
    parts_.allocate(2 * kMaxFilterSide);
    convladder::launch(split_filter, 1, 96, 0, stream)(tensors.filter, parts_.floats(), static_cast<int>(problem.r),
                                                       static_cast<int>(problem.s));
    const float* const parts = parts_.floats();
    upload_constant(c_column, parts, static_cast<std::size_t>(problem.r), stream);
    upload_constant(c_row, parts + kMaxFilterSide, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Image image = image_of(problem);
    if (fused()) return launch_both(tensors.input, tensors.output, image, segment(image), stream);
    if (knob("rows") == 1)
      rows_of<1>(tensors.input, image, stream);
    else if (knob("rows") == 2)
      rows_of<2>(tensors.input, image, stream);
    else
      rows_of<4>(tensors.input, image, stream);
    columns(tensors.output, image, stream);
  }

  int segment(const Image& image) const { return segment_of(image, device_limits().multiprocessors, knob("warps")); }

  // Pass 1, with as many rows a thread.
  template <int kRows>
  void rows_of(const float* input, const Image& image, Stream stream) {
    if (knob("threads") == kRowThreads)
      rows_of<kRows, 1>(input, image, stream);
    else
      rows_of<kRows, kManyThreads / kRowThreads>(input, image, stream);
  }
  template <int kRows, int kDown>
  void rows_of(const float* input, const Image& image, Stream stream) {
    const bool border_only = knob("index") == kBorder;
    if (knob("loads") == kTogether && border_only)
      launch_rows<RowForm<kRows, kDown, true, true>>(input, between_.floats(), image, stream);
    else if (knob("loads") == kTogether)
      launch_rows<RowForm<kRows, kDown, true, false>>(input, between_.floats(), image, stream);
    else if (border_only)
      launch_rows<RowForm<kRows, kDown, false, true>>(input, between_.floats(), image, stream);
    else
      launch_rows<RowForm<kRows, kDown, false, false>>(input, between_.floats(), image, stream);
  }

  // Pass 2.
  void columns(float* output, const Image& image, Stream stream) {
    const float* const between = between_.floats();
    const bool groups = knob("rest") == kGroups;
    if (knob("index") == kBorder && groups)
      launch_columns<true, true>(between, output, image, stream);
    else if (knob("index") == kBorder)
      launch_columns<true, false>(between, output, image, stream);
    else if (groups)
      launch_columns<false, true>(between, output, image, stream);
    else
      launch_columns<false, false>(between, output, image, stream);
  }

  // Both passes: the input by rows, the intermediate image by columns. The same for all their choices.
  Prediction predict(const ConvProblem& problem) const override {
    const Image image = image_of(problem);
    if (fused()) return prediction_of_both(problem, image, segment(image));
    const std::int64_t row_reads = image.height * reads_by_tile(horizontal(image), kRowTile);
    const std::int64_t column_reads = reads_by_tile(vertical(image), kColumnTile) * image.out_width;
    const std::int64_t between = problem.n * problem.h * problem.q();
    Prediction p;
    p.global_load_bytes = (row_reads + column_reads) * image.batch * 4;
    p.global_store_bytes = (between + problem.output_size()) * 4;
    p.shared_load_conflicts = p.shared_store_conflicts = 0;
    p.flops = 2 * (between * problem.s + problem.output_size() * problem.r);
    return p;
  }

  // Two shorter sums, and a few roundings more for the split; and what the rank test lets pass.
  ErrorModel error_model(const ConvProblem& problem, const float* filter) const override {
    const int rows = static_cast<int>(problem.r), columns = static_cast<int>(problem.s);
    return {rows + columns + 8, largest_deviation(filter, rows, columns).beyond};
  }

  Workspace between_{*this, "the intermediate image"};
  Workspace parts_{*this, "the filter's column and row"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Separable)
