// Checks the checks: each mutant must fail the suite that the stages pass, and for its own reason.
#include <doctest/doctest.h>

#include "tests/mutants/depthwise_mutants.hpp"
#include "tests/mutants/image_mutants.hpp"
#include "tests/mutants/signal_mutants.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

/// A mutated kernel as a stage of a track.
struct Mutant {
  std::string_view track;
  Stage* (*make)();
};

template <SignalMutation M>
constexpr Mutant signals{"signals", &make_signal_mutant<M>};
template <ImageMutation M>
constexpr Mutant images{"images", &make_image_mutant<M>};
template <DepthwiseMutation M>
constexpr Mutant depthwise{"depthwise", &make_depthwise_mutant<M>};

StageInfo stage_of(const Mutant& mutant) {
  StageInfo info{};
  info.name = info.folder = info.title = "mutant";
  info.track = mutant.track;
  info.dtype = "fp32";
  info.layout = "NCHW";
  info.requires_capability = "sm_70";
  info.make = mutant.make;
  return info;
}

/// The suite of the mutant's track; of images and planes without the cases that keep the simulator busy for seconds.
std::vector<SuiteCase> suite_of(const Mutant& mutant) {
  if (mutant.track == "signals") return signal_suite();
  const bool images = mutant.track == "images";
  const std::int64_t most_flops = images ? 1'000'000 : 300'000;
  std::vector<SuiteCase> suite = images ? image_suite(FilterForm::dense) : depthwise_suite();
  std::erase_if(suite, [&](const SuiteCase& suite_case) { return suite_case.problem.flops() > most_flops; });
  return suite;
}

/// Requires that the suite rejects the mutant, and at least once for the reason given.
/// @param in_simulator what a result's reason must contain there
/// @param on_gpu and on a GPU, where no access is checked
/// @param may_fail the cases that the mistake can show in; the others must pass
template <class MayFail>
void check_rejected(const Mutant& mutant, std::string_view in_simulator, std::string_view on_gpu,
                    const MayFail& may_fail) {
  const std::string_view evidence = backend() == Backend::sim ? in_simulator : on_gpu;
  int rejected = 0, with_evidence = 0, elsewhere = 0;
  std::string reason;
  for (const SuiteCase& suite_case : suite_of(mutant)) {
    const RunResult result = run_case(stage_of(mutant), suite_case);
    if (result.status == Status::ok) continue;
    ++rejected;
    reason = result.reason;
    with_evidence += result.reason.find(evidence) != std::string::npos;
    elsewhere += !may_fail(suite_case);
  }
  CHECK(rejected > 0);
  CHECK_MESSAGE(with_evidence > 0, reason);
  CHECK(elsewhere == 0);
}

void check_rejected(const Mutant& mutant, std::string_view in_simulator, std::string_view on_gpu) {
  check_rejected(mutant, in_simulator, on_gpu, [](const SuiteCase&) { return true; });
}

void check_wrong(const Mutant& mutant) { check_rejected(mutant, "outputs are wrong", "outputs are wrong"); }
template <class MayFail>
void check_wrong(const Mutant& mutant, const MayFail& may_fail) {
  check_rejected(mutant, "outputs are wrong", "outputs are wrong", may_fail);
}

void check_passes(const Mutant& mutant) {
  for (const SuiteCase& suite_case : suite_of(mutant)) {
    CAPTURE(to_string(suite_case));
    const RunResult result = run_case(stage_of(mutant), suite_case);
    CHECK_MESSAGE(result.status == Status::ok, result.reason);
  }
}

bool replicates(const SuiteCase& suite_case) { return suite_case.problem.padding == Padding::replicate; }
bool reflects(const SuiteCase& suite_case) { return suite_case.problem.padding == Padding::reflect; }
bool has_nan(const SuiteCase& suite_case) { return suite_case.inputs == InputKind::nan; }
bool is_batch(const SuiteCase& suite_case) { return suite_case.problem.n > 1; }
/// A halo on two sides of a corner.
bool has_corner(const SuiteCase& suite_case) { return suite_case.problem.r > 1 && suite_case.problem.s > 1; }
bool has_halo_rows(const SuiteCase& suite_case) { return suite_case.problem.r > 1; }
bool pads_differ(const SuiteCase& suite_case) { return suite_case.problem.pad_h != suite_case.problem.pad_w; }

bool has_channels(const SuiteCase& suite_case) { return suite_case.problem.c > 1; }
bool has_planes(const SuiteCase& suite_case) { return suite_case.problem.n * suite_case.problem.c > 1; }
bool is_batch_of_channels(const SuiteCase& suite_case) { return is_batch(suite_case) && has_channels(suite_case); }
bool has_more_than_32_channels(const SuiteCase& suite_case) { return suite_case.problem.c > 32; }
bool ends_in_part_of_a_tile(const SuiteCase& suite_case) { return suite_case.problem.q() % 16 != 0; }
bool ends_in_part_of_a_vector(const SuiteCase& suite_case) { return suite_case.problem.q() % 4 != 0; }
bool changes_size(const SuiteCase& suite_case) {
  const ConvProblem& problem = suite_case.problem;
  return has_planes(suite_case) && problem.p() * problem.q() != problem.h * problem.w;
}
bool strides_down(const SuiteCase& suite_case) { return suite_case.problem.stride_h > 1 && suite_case.problem.p() > 1; }
bool strides_differ(const SuiteCase& suite_case) {
  return suite_case.problem.stride_h != suite_case.problem.stride_w && suite_case.problem.p() > 1;
}
bool dilates_across(const SuiteCase& suite_case) {
  return suite_case.problem.dilation_w > 1 && suite_case.problem.s > 1;
}
bool dilations_differ(const SuiteCase& suite_case) {
  return suite_case.problem.dilation_h != suite_case.problem.dilation_w &&
         suite_case.problem.r * suite_case.problem.s > 1;
}
bool pads_zeros(const SuiteCase& suite_case) { return suite_case.problem.padding == Padding::zero; }

}  // namespace

TEST_CASE("mutants: the 1-D kernel they are made from passes") { check_passes(signals<SignalMutation::none>); }
TEST_CASE("mutants: a halo one element short is caught") {
  check_rejected(signals<SignalMutation::short_halo>, "uninitialized", "outputs are wrong");
}
TEST_CASE("mutants: a halo off by one is caught") { check_wrong(signals<SignalMutation::shifted_halo>); }
TEST_CASE("mutants: a flipped filter is caught") { check_wrong(signals<SignalMutation::flipped_filter>); }
TEST_CASE("mutants: an unwritten tail is caught") {
  check_rejected(signals<SignalMutation::unwritten_tail>, "never written", "never written");
}
TEST_CASE("mutants: a write past the end is caught") {
  check_rejected(signals<SignalMutation::write_past_end>, "out_of_bounds", "just outside");
}
TEST_CASE("mutants: a wrong padding value is caught, with replicate padding only") {
  check_wrong(signals<SignalMutation::replicate_reads_zero>, replicates);
}
TEST_CASE("mutants: reflect off by one is caught, with reflect padding only") {
  check_wrong(signals<SignalMutation::reflect_repeats_edge>, reflects);
}
TEST_CASE("mutants: a swallowed NaN is caught, by the NaN input only") {
  check_wrong(signals<SignalMutation::nan_swallowed>, has_nan);
}
TEST_CASE("mutants: an ignored batch is caught, by batches only") {
  check_wrong(signals<SignalMutation::batch_ignored>, is_batch);
}
// A GPU may well give the right result: that is why the simulator looks.
TEST_CASE("mutants: a missing barrier is caught, as a race (simulator)") {
  check_rejected(signals<SignalMutation::missing_barrier>, "race", "");
}

TEST_CASE("mutants: the 2-D kernel they are made from passes") { check_passes(images<ImageMutation::none>); }
TEST_CASE("mutants: a corner missing in a tile's halo is caught, where there are corners") {
  check_rejected(images<ImageMutation::missing_corner>, "uninitialized", "outputs are wrong", has_corner);
}
TEST_CASE("mutants: a tile one halo row short is caught") {
  check_rejected(images<ImageMutation::short_rows>, "uninitialized", "outputs are wrong", has_halo_rows);
}
TEST_CASE("mutants: a tile one column late is caught") { check_wrong(images<ImageMutation::shifted_columns>); }
TEST_CASE("mutants: a transposed filter is caught, where it has corners") {
  check_wrong(images<ImageMutation::transposed_filter>, has_corner);
}
TEST_CASE("mutants: the paddings of rows and columns swapped are caught, where they differ") {
  check_wrong(images<ImageMutation::swapped_padding>, pads_differ);
}
TEST_CASE("mutants: a flipped 2-D filter is caught") { check_wrong(images<ImageMutation::flipped_filter>); }
TEST_CASE("mutants: an unwritten column is caught") {
  check_rejected(images<ImageMutation::unwritten_column>, "never written", "never written");
}
TEST_CASE("mutants: a write past the end of a row is caught") {
  check_rejected(images<ImageMutation::write_past_row>, "out_of_bounds", "just outside");
}
TEST_CASE("mutants: a wrong 2-D padding value is caught, with replicate padding only") {
  check_wrong(images<ImageMutation::replicate_reads_zero>, replicates);
}
TEST_CASE("mutants: 2-D reflect off by one is caught, with reflect padding only") {
  check_wrong(images<ImageMutation::reflect_repeats_edge>, reflects);
}
TEST_CASE("mutants: a NaN swallowed in an image is caught, by the NaN input only") {
  check_wrong(images<ImageMutation::nan_swallowed>, has_nan);
}
TEST_CASE("mutants: an ignored batch of images is caught, by batches only") {
  check_wrong(images<ImageMutation::batch_ignored>, is_batch);
}
TEST_CASE("mutants: a missing barrier of a 2-D tile is caught, as a race (simulator)") {
  check_rejected(images<ImageMutation::missing_barrier>, "race", "");
}

TEST_CASE("mutants: the depthwise kernel they are made from passes") {
  check_passes(depthwise<DepthwiseMutation::none>);
}
TEST_CASE("mutants: one filter for all channels is caught, where there are channels") {
  check_wrong(depthwise<DepthwiseMutation::first_filter>, has_channels);
}
TEST_CASE("mutants: a filter chosen by the image is caught, where there are channels") {
  check_wrong(depthwise<DepthwiseMutation::filter_of_image>, has_channels);
}
TEST_CASE("mutants: a filter for each plane is caught, by batches only") {
  check_rejected(depthwise<DepthwiseMutation::filter_of_plane>, "out_of_bounds", "outputs are wrong", is_batch);
}
TEST_CASE("mutants: batch and channels swapped are caught, where there are both") {
  check_wrong(depthwise<DepthwiseMutation::planes_swapped>, is_batch_of_channels);
}
TEST_CASE("mutants: an ignored batch of planes is caught, by batches only") {
  check_wrong(depthwise<DepthwiseMutation::batch_ignored>, is_batch);
}
TEST_CASE("mutants: channels past a warp's are caught, where there are so many") {
  check_rejected(depthwise<DepthwiseMutation::channels_above_32>, "never written", "never written",
                 has_more_than_32_channels);
}
TEST_CASE("mutants: columns past the last whole tile are caught, where there are some") {
  check_rejected(depthwise<DepthwiseMutation::unwritten_tail>, "never written", "never written",
                 ends_in_part_of_a_tile);
}
TEST_CASE("mutants: a row filled up to whole vectors is caught, where it runs into the next") {
  check_rejected(depthwise<DepthwiseMutation::write_past_row>, "race", "just outside", ends_in_part_of_a_vector);
}
TEST_CASE("mutants: an input plane as large as an output plane is caught, where it is not") {
  check_wrong(depthwise<DepthwiseMutation::plane_of_output>, changes_size);
}
TEST_CASE("mutants: a stride ignored in one direction is caught") {
  check_wrong(depthwise<DepthwiseMutation::stride_ignored>, strides_down);
}
TEST_CASE("mutants: one stride for both directions is caught, where they differ") {
  check_wrong(depthwise<DepthwiseMutation::stride_across_for_both>, strides_differ);
}
TEST_CASE("mutants: an ignored dilation is caught") {
  check_wrong(depthwise<DepthwiseMutation::dilation_ignored>, dilates_across);
}
TEST_CASE("mutants: dilations swapped are caught, where they differ") {
  check_wrong(depthwise<DepthwiseMutation::dilation_swapped>, dilations_differ);
}
TEST_CASE("mutants: paddings swapped in a plane are caught, where they differ") {
  check_wrong(depthwise<DepthwiseMutation::swapped_padding>, pads_differ);
}
TEST_CASE("mutants: padding that reads the plane above or below is caught, with zero padding only") {
  check_wrong(depthwise<DepthwiseMutation::reads_plane_above>,
              [](const SuiteCase& suite_case) { return pads_zeros(suite_case) && has_planes(suite_case); });
}
TEST_CASE("mutants: padding that reads the row before or after is caught, with zero padding only") {
  check_wrong(depthwise<DepthwiseMutation::reads_row_before>, pads_zeros);
}
TEST_CASE("mutants: a flipped depthwise filter is caught") {
  check_wrong(depthwise<DepthwiseMutation::flipped_filter>);
}
TEST_CASE("mutants: a transposed depthwise filter is caught, where it has corners") {
  check_wrong(depthwise<DepthwiseMutation::transposed_filter>, has_corner);
}
TEST_CASE("mutants: taps one column too far left are caught") {
  check_wrong(depthwise<DepthwiseMutation::even_centre>);
}
TEST_CASE("mutants: a wrong padding value of planes is caught, with replicate padding only") {
  check_wrong(depthwise<DepthwiseMutation::replicate_reads_zero>, replicates);
}
TEST_CASE("mutants: reflect off by one in a plane is caught, with reflect padding only") {
  check_wrong(depthwise<DepthwiseMutation::reflect_repeats_edge>, reflects);
}
TEST_CASE("mutants: a NaN swallowed in a plane is caught, by the NaN input only") {
  check_wrong(depthwise<DepthwiseMutation::nan_swallowed>, has_nan);
}
