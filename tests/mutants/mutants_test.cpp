// Checks the checks: each mutant must fail the suite that the stages pass, and for its own reason.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "common/harness/commands/prune.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/refusal.hpp"
#include "tests/mutants/byte_mutants.hpp"
#include "tests/mutants/depthwise_mutants.hpp"
#include "tests/mutants/hopper_mutants.hpp"
#include "tests/mutants/image_mutants.hpp"
#include "tests/mutants/line_mutants.hpp"
#include "tests/mutants/lowering_mutants.hpp"
#include "tests/mutants/signal_mutants.hpp"
#include "tests/mutants/winograd_mutants.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

/// A mutated kernel as a stage of a track.
struct Mutant {
  std::string_view track;
  Stage* (*make)();
  std::string_view dtype = "fp32";
  Elements tensors = Elements::floats;
  std::vector<SuiteCase> (*suite)() = nullptr;  ///< if not the track's
};

template <SignalMutation M>
constexpr Mutant signals{"signals", &make_signal_mutant<M>};
template <ImageMutation M>
constexpr Mutant images{"images", &make_image_mutant<M>};
template <DepthwiseMutation M>
constexpr Mutant depthwise{"depthwise", &make_depthwise_mutant<M>};
template <LoweringMutation M>
constexpr Mutant lowering{"lowering", &make_lowering_mutant<M>};
template <WinogradMutation M>
constexpr Mutant winograd{"winograd", &make_winograd_mutant<M>};
template <FragmentMutation M>
constexpr Mutant halves{"winograd", &make_half_mutant<M>, "fp16", Elements::halves};
template <FragmentMutation M>
constexpr Mutant bytes{"winograd", &make_int8_mutant<M>, "int8", Elements::halves};
template <GatherMutation M>
constexpr Mutant hopper{"hopper", &make_gather_mutant<M>, "fp16", Elements::halves};
template <GatherMutation M>
constexpr Mutant fused{"hopper", &make_gather_mutant<M>, "fp16", Elements::halves, &epilogue_suite};
template <ByteMutation M>
constexpr Mutant direct_bytes{"hopper", &make_byte_mutant<M>, "int8", Elements::bytes};
/// On the shapes of the track winograd, which are all 3 x 3.
template <LineMutation M>
constexpr Mutant line{"winograd", &make_line_mutant<M>, "fp16", Elements::halves};

StageInfo stage_of(const Mutant& mutant) {
  StageInfo info{};
  info.name = info.folder = info.title = "mutant";
  info.track = mutant.track;
  info.dtype = mutant.dtype;
  info.layout = mutant.dtype == "fp32" ? "NCHW" : "NHWC";
  info.tensors = mutant.tensors;
  info.requires_capability = mutant.track == "hopper" ? "sm_80" : "sm_70";
  info.make = mutant.make;
  return info;
}

/// The suite of the mutant's track, without the cases that keep the simulator busy for seconds.
std::vector<SuiteCase> suite_of(const Mutant& mutant) {
  const bool large = mutant.track == "images" || mutant.track == "signals", small = mutant.track == "hopper";
  const std::int64_t most_flops = large ? 1'000'000 : small ? 60'000 : 300'000;
  std::vector<SuiteCase> suite = mutant.suite ? mutant.suite() : suite_of_track(track_named(mutant.track));
  std::erase_if(suite, [&](const SuiteCase& suite_case) {
    return suite_case.problem.flops() > most_flops || !refusal(stage_of(mutant), suite_case.problem, nullptr).empty();
  });
  REQUIRE(!suite.empty());
  return suite;
}

/// Requires that the suite rejects the mutant, at least once for the reason given. The cases that the mistake can show
/// in are run until one has shown it, the others all.
/// @param in_simulator what a result's reason must contain there
/// @param on_gpu and on a GPU, where no access is checked
/// @param may_fail the cases that the mistake can show in; the others must pass
template <class MayFail>
void check_rejected(const Mutant& mutant, std::string_view in_simulator, std::string_view on_gpu,
                    const MayFail& may_fail) {
  const std::string_view evidence = backend() == Backend::sim ? in_simulator : on_gpu;
  bool rejected = false;
  std::string reason = "no case rejects it";
  for (const SuiteCase& suite_case : suite_of(mutant)) {
    const bool may = may_fail(suite_case);
    if (may && rejected) continue;
    const RunResult result = run_case(stage_of(mutant), suite_case);
    if (result.status == Status::ok) continue;
    CHECK_MESSAGE(may, to_string(suite_case) << ": " << result.reason);
    reason = result.reason;
    rejected |= reason.find(evidence) != std::string::npos;
  }
  CHECK_MESSAGE(rejected, reason);
}

void check_rejected(const Mutant& mutant, std::string_view in_simulator, std::string_view on_gpu) {
  check_rejected(mutant, in_simulator, on_gpu, [](const SuiteCase&) { return true; });
}

void check_wrong(const Mutant& mutant) { check_rejected(mutant, "outputs are wrong", "outputs are wrong"); }
template <class MayFail>
void check_wrong(const Mutant& mutant, const MayFail& may_fail) {
  check_rejected(mutant, "outputs are wrong", "outputs are wrong", may_fail);
}

/// Requires that the first case of the suite that rejects the mutant does so for this fault: what the simulator says of
/// every case takes it minutes to find out.
void check_fault(const Mutant& mutant, std::string_view fault) {
  for (const SuiteCase& suite_case : suite_of(mutant)) {
    const RunResult result = run_case(stage_of(mutant), suite_case);
    if (result.status == Status::ok) continue;
    CAPTURE(to_string(suite_case));
    CHECK_MESSAGE(result.reason.starts_with(fault), result.reason);
    return;
  }
  FAIL_CHECK("no case rejects it");
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
bool has_infinity(const SuiteCase& suite_case) { return suite_case.inputs == InputKind::infinity; }
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

bool pads_across(const SuiteCase& suite_case) { return suite_case.problem.pad_w > 0; }
bool dilates_down(const SuiteCase& suite_case) { return suite_case.problem.dilation_h > 1 && suite_case.problem.r > 1; }
bool strides_across(const SuiteCase& suite_case) {
  return suite_case.problem.stride_w > 1 && suite_case.problem.q() > 1;
}
bool has_more_than_128_filters(const SuiteCase& suite_case) { return suite_case.problem.k > 128; }
bool ends_in_part_of_a_step(const SuiteCase& suite_case) { return suite_case.problem.reduction_length() % 8 != 0; }
bool ends_in_part_of_a_filter_tile(const SuiteCase& suite_case) { return suite_case.problem.k % 16 != 0; }
std::int64_t outputs_of_image(const SuiteCase& suite_case) { return suite_case.problem.p() * suite_case.problem.q(); }
bool ends_in_part_of_four(const SuiteCase& suite_case) {
  return suite_case.problem.n * outputs_of_image(suite_case) % 4 != 0;
}
bool shares_tiles(const SuiteCase& suite_case) {
  return is_batch(suite_case) && outputs_of_image(suite_case) % 32 != 0;
}
bool shares_fours(const SuiteCase& suite_case) { return is_batch(suite_case) && outputs_of_image(suite_case) % 4 != 0; }
bool has_more_than_64_channels(const SuiteCase& suite_case) { return suite_case.problem.c > 64; }
bool has_tail_of_filters(const SuiteCase& suite_case) {
  return suite_case.problem.k > 16 && suite_case.problem.k % 16 != 0;
}
bool ends_in_part_of_a_row_of_tiles(const SuiteCase& suite_case) { return suite_case.problem.q() % 4 != 0; }
bool ends_in_part_of_a_column_of_tiles(const SuiteCase& suite_case) { return suite_case.problem.p() % 4 != 0; }
bool has_odd_channels(const SuiteCase& suite_case) { return suite_case.problem.c % 2 == 1; }
bool has_part_of_a_channel_block(const SuiteCase& suite_case) { return suite_case.problem.c % 16 != 0; }
bool has_odd_filters(const SuiteCase& suite_case) { return suite_case.problem.k % 2 == 1; }
bool has_filters(const SuiteCase& suite_case) { return suite_case.problem.k > 1; }
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

TEST_CASE("mutants: the im2win kernel they are made from passes") { check_passes(lowering<LoweringMutation::none>); }
TEST_CASE("mutants: taps in another order than the windows' are caught, where they have rows and columns") {
  check_wrong(lowering<LoweringMutation::taps_by_row>, has_corner);
}
TEST_CASE("mutants: the next channel's offset forgotten is caught, where there are channels") {
  check_wrong(lowering<LoweringMutation::channel_forgotten>, has_channels);
}
TEST_CASE("mutants: channels of the tensor as far apart as the input's are caught, where there are channels") {
  check_wrong(lowering<LoweringMutation::channel_of_input>, has_channels);
}
TEST_CASE("mutants: rows of the tensor without padded columns are caught, where there are some") {
  check_wrong(lowering<LoweringMutation::pad_columns_missing>, pads_across);
}
TEST_CASE("mutants: a transform without dilation down is caught") {
  check_wrong(lowering<LoweringMutation::rows_undilated>, dilates_down);
}
TEST_CASE("mutants: windows without dilation across are caught") {
  check_wrong(lowering<LoweringMutation::columns_undilated>, dilates_across);
}
TEST_CASE("mutants: windows one column apart are caught, where the stride is longer") {
  check_wrong(lowering<LoweringMutation::stride_ignored>, strides_across);
}
TEST_CASE("mutants: the stride across also down is caught, where they differ") {
  check_wrong(lowering<LoweringMutation::stride_across_for_both>, strides_differ);
}
TEST_CASE("mutants: a transform with its paddings swapped is caught, where they differ") {
  check_wrong(lowering<LoweringMutation::swapped_padding>, pads_differ);
}
TEST_CASE("mutants: windows of the first image alone are caught, by batches only") {
  check_wrong(lowering<LoweringMutation::batch_ignored>, is_batch);
}
TEST_CASE("mutants: flipped filters of many channels are caught") {
  check_wrong(lowering<LoweringMutation::flipped_filter>);
}
TEST_CASE("mutants: a wrong padding value of the transform is caught, with replicate padding only") {
  check_wrong(lowering<LoweringMutation::replicate_reads_zero>, replicates);
}
TEST_CASE("mutants: reflect off by one in the transform is caught, with reflect padding only") {
  check_wrong(lowering<LoweringMutation::reflect_repeats_edge>, reflects);
}
TEST_CASE("mutants: a NaN swallowed by the transform is caught, by the NaN input only") {
  check_wrong(lowering<LoweringMutation::nan_swallowed>, has_nan);
}
TEST_CASE("mutants: channels left out of a sum are caught, where there are so many") {
  check_wrong(lowering<LoweringMutation::channels_above_32>, has_more_than_32_channels);
}
TEST_CASE("mutants: filters past a tile's are caught, where there are so many") {
  check_rejected(lowering<LoweringMutation::filters_above_128>, "never written", "never written",
                 has_more_than_128_filters);
}
TEST_CASE("mutants: a last step that goes on into the next filter and channel is caught, where it is not full") {
  check_wrong(lowering<LoweringMutation::products_past_depth>, ends_in_part_of_a_step);
}
// The tap beside it is zero: on a GPU only a NaN or an infinity left in shared memory shows it.
TEST_CASE("mutants: a last step that nothing fills with zeros is caught, where it is not full (simulator)") {
  check_rejected(lowering<LoweringMutation::unfilled_last_step>, "uninitialized", "", ends_in_part_of_a_step);
}
TEST_CASE("mutants: a last step filled with pixels instead of zeros is caught, by an infinity only") {
  check_wrong(lowering<LoweringMutation::first_pixel_in_last_step>, has_infinity);
}
TEST_CASE("mutants: a filter too many is caught, where the last tile has room for it") {
  check_rejected(lowering<LoweringMutation::filters_past_end>, "out_of_bounds", "just outside",
                 ends_in_part_of_a_filter_tile);
}
TEST_CASE("mutants: filters past the last whole tile are caught, where there are some") {
  check_rejected(lowering<LoweringMutation::unwritten_filters>, "never written", "never written",
                 ends_in_part_of_a_filter_tile);
}
TEST_CASE("mutants: outputs past the last are caught, where four do not end with it") {
  check_rejected(lowering<LoweringMutation::outputs_past_end>, "out_of_bounds", "just outside", ends_in_part_of_four);
}
TEST_CASE("mutants: a tile that belongs to one image is caught, where it spans two") {
  check_rejected(lowering<LoweringMutation::image_of_first>, "race", "never written", shares_tiles);
}
TEST_CASE("mutants: four outputs that belong to one image are caught, where they span two") {
  check_rejected(lowering<LoweringMutation::image_of_first_of_four>, "race", "never written", shares_fours);
}
// On a GPU a misaligned store ends every later launch too.
TEST_CASE("mutants: vectors of outputs in any plane are caught, where four do not divide it (simulator)") {
  check_rejected(lowering<LoweringMutation::vector_of_any_plane>, "misaligned", "",
                 [](const SuiteCase& suite_case) { return outputs_of_image(suite_case) % 4 != 0; });
}
// As with a missing barrier, a GPU may well give the right result.
TEST_CASE("mutants: copies that nobody waits for are caught, by name (simulator)") {
  check_fault(lowering<LoweringMutation::missing_wait>, "missing_wait");
}
TEST_CASE("mutants: copies in no group are caught, by name (simulator)") {
  check_fault(lowering<LoweringMutation::missing_commit>, "missing_wait");
}
TEST_CASE("mutants: a wait for all groups but the newest is caught, by name (simulator)") {
  check_fault(lowering<LoweringMutation::one_group_unwaited>, "missing_wait");
}
TEST_CASE("mutants: a wait behind the barrier instead of before is caught, by name (simulator)") {
  check_fault(lowering<LoweringMutation::wait_after_barrier>, "missing_wait");
}
TEST_CASE("mutants: no barrier behind the wait is caught, as a race (simulator)") {
  check_fault(lowering<LoweringMutation::missing_barrier>, "race");
}
TEST_CASE("mutants: copies over a tile that others may still read are caught, as a race (simulator)") {
  check_fault(lowering<LoweringMutation::copies_before_barrier>, "race");
}
TEST_CASE("mutants: copies over the tile that is read meanwhile are caught, by name (simulator)") {
  check_fault(lowering<LoweringMutation::one_buffer>, "missing_wait");
}

TEST_CASE("mutants: the fused Winograd kernel they are made from passes") {
  check_passes(winograd<WinogradMutation::none>);
}
TEST_CASE("mutants: tiles that begin at a wrong column from the second image on are caught, by batches only") {
  check_wrong(winograd<WinogradMutation::second_image_shifted>, is_batch);
}
TEST_CASE("mutants: the rows of tiles of an image rounded down are caught, where they are not whole") {
  check_rejected(winograd<WinogradMutation::images_rounded_down>, "never written", "never written",
                 [](const SuiteCase& suite_case) { return suite_case.problem.p() > 4; });
}
TEST_CASE("mutants: a tile written into the next row is caught, where it is not whole") {
  check_rejected(winograd<WinogradMutation::unmasked_last_tile>, "race", "just outside",
                 ends_in_part_of_a_row_of_tiles);
}
TEST_CASE("mutants: a tile written into the next plane is caught, where it is not whole") {
  check_rejected(winograd<WinogradMutation::unmasked_last_row>, "race", "just outside",
                 ends_in_part_of_a_column_of_tiles);
}
// No output needs what is read there: nothing else shows it.
TEST_CASE("mutants: tiles that read beyond the padding are caught, where the last are not whole (simulator)") {
  check_rejected(winograd<WinogradMutation::past_padding>, "out_of_bounds", "", [](const SuiteCase& suite_case) {
    return ends_in_part_of_a_row_of_tiles(suite_case) || ends_in_part_of_a_column_of_tiles(suite_case);
  });
}
TEST_CASE("mutants: a tile that reads the row before or after is caught, with zero padding only") {
  check_wrong(winograd<WinogradMutation::reads_row_before>, pads_zeros);
}
TEST_CASE("mutants: a transposed mask is caught, with zero padding only") {
  check_wrong(winograd<WinogradMutation::mask_transposed>, pads_zeros);
}
TEST_CASE("mutants: paddings of tiles swapped are caught, where they differ") {
  check_wrong(winograd<WinogradMutation::swapped_padding>, pads_differ);
}
TEST_CASE("mutants: a NaN swallowed by a tile is caught, by the NaN input only") {
  check_wrong(winograd<WinogradMutation::nan_swallowed>, has_nan);
}
TEST_CASE("mutants: a wrong sign of a point is caught") { check_wrong(winograd<WinogradMutation::wrong_sign>); }
TEST_CASE("mutants: rows of the filter's positions taken for columns are caught") {
  check_wrong(winograd<WinogradMutation::transposed_position>);
}
TEST_CASE("mutants: a tile of outputs written in columns is caught, where it has more than one") {
  check_wrong(winograd<WinogradMutation::transposed_output>,
              [](const SuiteCase& suite_case) { return outputs_of_image(suite_case) > 1; });
}
TEST_CASE("mutants: channels past a step's are caught, where there are so many") {
  check_wrong(winograd<WinogradMutation::channels_above_64>, has_more_than_64_channels);
}
TEST_CASE("mutants: another block's filters past the last whole block are caught, where there are some") {
  check_wrong(winograd<WinogradMutation::tail_block_of_filters>, has_tail_of_filters);
}

TEST_CASE("mutants: the kernels on fragments they are made from pass") {
  check_passes(halves<FragmentMutation::none>);
  check_passes(halves<FragmentMutation::none_llc>);
  check_passes(bytes<FragmentMutation::none>);
  check_passes(bytes<FragmentMutation::none_llc>);
}
// The filter beside it is zero: only an infinity shows it, and the simulator, after the last pixel.
TEST_CASE("mutants: the next pixel's channel beside the last is caught, where channels are odd") {
  check_rejected(halves<FragmentMutation::pair_past_channels>, "out_of_bounds", "outputs are wrong", has_odd_channels);
}
TEST_CASE("mutants: a last channel block that is not filled with zeros is caught, where it is not whole") {
  check_wrong(halves<FragmentMutation::unfilled_channels>, has_part_of_a_channel_block);
}
TEST_CASE("mutants: the output beside the last filter's written is caught, where filters are odd") {
  check_rejected(halves<FragmentMutation::pairs_of_odd_filters>, "out_of_bounds", "just outside", has_odd_filters);
}
TEST_CASE("mutants: rows of the products' positions taken for columns are caught") {
  check_wrong(halves<FragmentMutation::position_of_transpose>);
}
// As with a missing barrier, a GPU may well give the right result.
TEST_CASE("mutants: fragments loaded without a barrier after the transform are caught (simulator)") {
  check_fault(halves<FragmentMutation::no_barrier_before_loads>, "race");
  check_fault(halves<FragmentMutation::no_barrier_before_loads_llc>, "race");
  check_fault(bytes<FragmentMutation::no_barrier_before_loads>, "race");
}
TEST_CASE("mutants: tiles transformed without a barrier after the loads are caught, as a race (simulator)") {
  check_fault(halves<FragmentMutation::no_barrier_after_loads>, "race");
  check_fault(halves<FragmentMutation::no_barrier_after_loads_llc>, "race");
  check_fault(bytes<FragmentMutation::no_barrier_after_loads>, "race");
}
TEST_CASE("mutants: a piece of memory that blocks share is caught, as a race (simulator)") {
  check_fault(halves<FragmentMutation::shared_piece>, "race");
}
TEST_CASE("mutants: sums that leave through another warp's memory are caught, as a race (simulator)") {
  check_fault(halves<FragmentMutation::patch_of_next_warp>, "race");
}
TEST_CASE("mutants: scales of the transposed position are caught") {
  check_wrong(bytes<FragmentMutation::scales_of_transpose>);
}
TEST_CASE("mutants: the next filter's scale is caught, where there is one") {
  check_wrong(bytes<FragmentMutation::scale_of_next_filter>, has_filters);
}
TEST_CASE("mutants: a filter's scale from one channel is caught, where there are more") {
  check_wrong(bytes<FragmentMutation::scale_of_first_channel>, has_channels);
}
TEST_CASE("mutants: numbers too large for a byte that wrap around are caught") {
  check_wrong(bytes<FragmentMutation::wraps>);
}
TEST_CASE("mutants: a byte that spoils the one beside it is caught, where channels come in pairs") {
  check_wrong(bytes<FragmentMutation::bytes_unsigned>, has_channels);
}

TEST_CASE("mutants: the direct form in int8 that they are made from passes") {
  check_passes(direct_bytes<ByteMutation::none>);
}
TEST_CASE("mutants: an output beyond 127 steps that wraps around is caught") {
  check_rejected(direct_bytes<ByteMutation::wraps>, "wrong, first at", "wrong, first at");
}
TEST_CASE("mutants: int8 sums scaled as those of the next filter are caught, where there is one") {
  check_wrong(direct_bytes<ByteMutation::scale_of_next_filter>, has_filters);
}
TEST_CASE("mutants: int8 sums scaled as those of the first filter are caught, where there are more") {
  check_wrong(direct_bytes<ByteMutation::one_scale>, has_filters);
}
TEST_CASE("mutants: bytes of the input without their sign are caught") {
  check_wrong(direct_bytes<ByteMutation::unsigned_input>);
}
TEST_CASE("mutants: int8 products added up in 16 bits are caught") {
  check_wrong(direct_bytes<ByteMutation::short_sums>);
}
TEST_CASE("mutants: filters of int8 in the order of the product's rows are caught") {
  check_wrong(direct_bytes<ByteMutation::filters_as_rows>, has_filters);
}

TEST_CASE("mutants: the implicit GEMM they are made from passes") { check_passes(hopper<GatherMutation::none>); }
TEST_CASE("mutants: a tile of outputs that belongs to one image is caught, by batches only") {
  check_wrong(hopper<GatherMutation::image_of_first>, is_batch);
}
TEST_CASE("mutants: strides swapped in a gather are caught, where they differ") {
  check_wrong(hopper<GatherMutation::strides_swapped>,
              [](const SuiteCase& suite_case) { return suite_case.problem.stride_h != suite_case.problem.stride_w; });
}
TEST_CASE("mutants: paddings swapped in a gather are caught, where they differ") {
  check_wrong(hopper<GatherMutation::swapped_padding>, pads_differ);
}
TEST_CASE("mutants: a gather without dilation across is caught") {
  check_wrong(hopper<GatherMutation::dilation_ignored>, dilates_across);
}
TEST_CASE("mutants: a wrong padding value of a gather is caught, with replicate padding only") {
  check_wrong(hopper<GatherMutation::replicate_reads_zero>, replicates);
}
TEST_CASE("mutants: a gather that reads the row before or after is caught, with zero padding only") {
  check_wrong(hopper<GatherMutation::reads_row_before>, pads_zeros);
}
// Their taps are zeros: what shows it is a NaN or an infinity, or that the last pixel has no next one.
TEST_CASE("mutants: channels of the next pixel are caught, where a block of channels is not whole") {
  check_rejected(hopper<GatherMutation::channels_of_next_pixel>, "out_of_bounds", "outputs are wrong",
                 has_part_of_a_channel_block);
}
TEST_CASE("mutants: taps packed column by column are caught, where they have rows and columns") {
  check_wrong(hopper<GatherMutation::taps_by_columns>, has_corner);
}
TEST_CASE("mutants: channels left out of a gather are caught, where there are so many") {
  check_wrong(hopper<GatherMutation::channels_above_32>, has_more_than_32_channels);
}
TEST_CASE("mutants: chunks read where they were not written are caught") {
  check_wrong(hopper<GatherMutation::unswizzled_reads>);
}
TEST_CASE("mutants: registers of a product that change places are caught") {
  check_wrong(hopper<GatherMutation::registers_swapped>);
}
TEST_CASE("mutants: filters transposed on their way to the registers are caught") {
  check_wrong(hopper<GatherMutation::filters_transposed>);
}
TEST_CASE("mutants: sums of a lane's lower rows that are not stored are caught") {
  check_rejected(hopper<GatherMutation::lower_rows_lost>, "never written", "never written");
}
TEST_CASE("mutants: an output past the last tile's end is caught") {
  check_rejected(hopper<GatherMutation::outputs_past_end>, "out_of_bounds", "just outside");
}
TEST_CASE("mutants: the output beside the last one of a pixel is caught, where filters are odd") {
  check_rejected(hopper<GatherMutation::filters_past_end>, "out_of_bounds", "just outside", has_odd_filters);
}
TEST_CASE("mutants: the epilogue they are made from passes") { check_passes(fused<GatherMutation::none>); }
TEST_CASE("mutants: a last block of filters without its bias is caught") {
  check_wrong(fused<GatherMutation::bias_of_last_block_lost>);
}
TEST_CASE("mutants: a residual of the row below is caught, where there is one") {
  check_wrong(fused<GatherMutation::residual_of_next_row>, [](const SuiteCase& suite_case) {
    return suite_case.problem.has_residual() && suite_case.problem.p() > 1;
  });
}
TEST_CASE("mutants: ReLU before the residual is caught, where there is one") {
  check_wrong(fused<GatherMutation::relu_before_residual>,
              [](const SuiteCase& suite_case) { return suite_case.problem.has_residual(); });
}
TEST_CASE("mutants: a lost ReLU is caught") {
  check_wrong(fused<GatherMutation::relu_lost>,
              [](const SuiteCase& suite_case) { return suite_case.problem.has_relu(); });
}
// As with a missing barrier, a GPU may well give the right result.
TEST_CASE("mutants: copies of taps that nobody waits for in time are caught (simulator)") {
  check_fault(hopper<GatherMutation::missing_wait>, "missing_wait");
  check_fault(hopper<GatherMutation::wait_after_barrier>, "race");
}
TEST_CASE("mutants: matrices loaded without a barrier, or copied over too early, are caught, as a race (simulator)") {
  check_fault(hopper<GatherMutation::missing_barrier>, "race");
  check_fault(hopper<GatherMutation::copies_before_barrier>, "race");
}

TEST_CASE("mutants: the convolution of images in a line that they are made from passes") {
  check_passes(line<LineMutation::none>);
}
TEST_CASE("mutants: one column between two rows is caught, where there is no padding across") {
  check_wrong(line<LineMutation::columns_always_shared>,
              [](const SuiteCase& suite_case) { return suite_case.problem.pad_w == 0; });
}
TEST_CASE("mutants: one row between two images is caught, where there is no padding down") {
  check_wrong(line<LineMutation::rows_always_shared>,
              [](const SuiteCase& suite_case) { return suite_case.problem.pad_h == 0; });
}
TEST_CASE("mutants: a line that nothing has written behind its last row is caught (simulator)") {
  check_fault(line<LineMutation::nothing_behind>, "uninitialized");
}
TEST_CASE("mutants: a position between two rows that is stored is caught") {
  check_rejected(line<LineMutation::between_stored>, "race", "just outside");
}
TEST_CASE("mutants: an image past the batch that is stored is caught") {
  check_rejected(line<LineMutation::images_past_batch>, "out_of_bounds", "just outside");
}

// Without any of its barriers a kernel has a race, on some shape. There are so many.
static void check_all_needed(const PruneReport& report, int barriers) {
  CHECK(static_cast<int>(report.findings.size()) == barriers);
  for (const BarrierFinding& finding : report.findings) {
    CAPTURE(finding.barrier.line);
    const Fault* fault = finding.first_fault().first;
    REQUIRE(fault);
    CHECK(fault->kind == "race");
  }
}

// The stages themselves, with each of their barriers taken away.
TEST_CASE("mutants: no Winograd stage has a barrier too many, and 27 none (simulator)") {
  struct Stage {
    const char *number, *settings;
    int barriers;
  };
  for (const auto& [stage, settings, barriers] : {Stage{"24", "", 1},
                                                  {"25", "", 3},
                                                  {"25", "buffers=1", 4},
                                                  {"26", "", 2},
                                                  {"27", "", 0},
                                                  {"28", "fused=input", 2},
                                                  {"29", "", 2},
                                                  {"30", "", 5},  // three of them in the calibration
                                                  {"30", "fusion=llc", 5}}) {
    CAPTURE(std::string(stage));
    CAPTURE(std::string(settings));
    RunOptions options;
    options.time = false;
    options.settings = settings;
    const PruneReport report = prune(find_stage(stage), {parse_shape("c=130,k=9,h=9,w=11,r=3,s=3")}, options);
    check_all_needed(report, barriers);
  }
}

// No bound forbids it, and normal inputs have much the same range at all positions; what is uniform in [0, 1) has not.
TEST_CASE("mutants: a scale for the whole input instead of one for each position makes larger errors") {
  const SuiteCase uniform{parse_shape("n=2,c=18,k=9,h=33,w=34,r=3,s=3"), InputKind::uniform};
  const auto error = [&](const Mutant& mutant) {
    const RunResult result = run_case(stage_of(mutant), uniform);
    REQUIRE(result.check);
    return result.check->rel_l2_err;
  };
  CHECK(error(bytes<FragmentMutation::scale_per_tensor>) > 1.1 * error(bytes<FragmentMutation::none>));
}

TEST_CASE("mutants: fp32 Winograd has no barrier too many (simulator)") {
  RunOptions options;
  options.time = false;
  options.settings = "tile=4x4";
  // Five steps: each stage is written again.
  const PruneReport report = prune(find_stage("35"), {parse_shape("c=70,k=3,h=3,w=4,r=3,s=3")}, options);
  check_all_needed(report, 2);
}

TEST_CASE("mutants: implicit GEMM has no barrier too many (simulator)") {
  RunOptions options;
  options.time = false;
  for (const char* tile : {"tile=128x64", "tile=256x64", "tile=128x128"}) {
    CAPTURE(std::string(tile));
    options.settings = tile;
    // Five steps: the last tiles are where the outputs go.
    const PruneReport report = prune(find_stage("31"), {parse_shape("n=2,c=130,k=70,h=9,w=11")}, options);
    check_all_needed(report, 2);
  }
}
