/// @file
/// What every stage is tested with: the shape suite of its track, each shape with every padding mode and with inputs
/// that show different mistakes. The same tests run in the simulator and on a GPU.
///
/// With CONVLADDER_SUITE=1/3 in the environment the second third of the cases runs. A third of a track's suite has
/// every padding mode, and every kind of inputs of which there are three cases or more; which third it is differs
/// between stages and between values of knobs. The program says at its end how many cases it has left out.
#pragma once
#include <array>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"

namespace convladder {

struct SuiteCase {
  ConvProblem problem;
  InputKind inputs;
  FilterForm filter = FilterForm::dense;
};
std::string to_string(const SuiteCase& suite_case);

/// 1-D signals: length 1, below the radius, below and around a multiple of the tile, primes; radius 0 to 512; batches;
/// padding other than the radius. Reflect only where it is defined.
std::vector<SuiteCase> signal_suite();

/// Batches of one-channel images: 1x1, smaller than the filter, around tiles of 16, 32 and 64, primes; filters 1x1 to
/// 65x65, even and odd, a single row or column; padding other than the radius. Reflect only where it is defined.
std::vector<SuiteCase> image_suite(FilterForm filter);

/// A depthwise shape: `channels` in, out and as groups, and the other sizes.
std::string depthwise_shape(int channels, const std::string& sizes);

/// Batches of planes with a filter each: 1x1, smaller than the filter, around tiles of 16 and 32, primes; one channel
/// to more than a warp of them; filters 1x1 to 31x31, odd, a single row or column, once longer than 64; strides 1 to 3
/// and longer than the plane; dilations; padding other than the radius; rows of whole vectors and others. Reflect only
/// where it is defined.
std::vector<SuiteCase> depthwise_suite();

/// Batches of images with many channels and filters: 1x1, smaller than the filter; outputs around 64 and 128, of one
/// image and across several, whole vectors of them and not; filters around 16, 64, 96 and 128; products around 8, 16
/// and 32; filters 1x1 to 11x11, even, a single row or column; strides 1 to 7 and far beyond; dilations;
/// padding other than the radius. Reflect only where it is defined.
std::vector<SuiteCase> lowering_suite();

/// Sizes with 3 x 3 filters.
std::string winograd_shape(const std::string& sizes);

/// Batches of images with many channels and 3 x 3 filters: 1x1, smaller than the filter; outputs of every remainder of
/// 2, 4 and 6 down and across; tiles around 16, 32, 64 and 128, of one image and across several; channels around 16, 32
/// and 64, filters around these and 128, both even and odd; padding other than 1, unlike down and across. Reflect only
/// where it is defined.
std::vector<SuiteCase> winograd_suite();
/// Some of these, for the values of a knob.
std::vector<SuiteCase> short_winograd_suite();

/// Batches of images for products on Tensor Cores: 1x1, smaller than the filter; outputs around 128, of one image and
/// across several; channels around 8, 16, 32 and 64; filters around 8, 16, 64 and 128; filters of 1x1 to 7x7, even, a
/// single row or column; strides 1 to 3 and far beyond; dilations; padding other than the radius. Reflect only where it
/// is defined.
std::vector<SuiteCase> implicit_gemm_suite();
/// Some of these, for the values of a knob.
std::vector<SuiteCase> short_implicit_gemm_suite();

/// Of implicit_gemm_suite() the cases with zero padding and strides of 1 and 2 whose taps lie near each other.
std::vector<SuiteCase> near_taps_suite();
/// More of that kind, for tiles that are one line of positions: outputs around a tile's, of one image, of a part of it
/// and of several; phases of a stride that have no pixel; channels and filters around 64.
/// @param many_filters whether all have more than 64
std::vector<SuiteCase> line_tiles_suite(bool many_filters);
/// Some of these, for the values of a knob.
std::vector<SuiteCase> short_line_tiles_suite(bool many_filters);
/// More of that kind, of which TMA can load columns of im2col's matrix: filters in multiples of 16, more channels than
/// are folded; outputs around a tile's, of many images and of a part of a row; taps that see none of the image.
/// @param many_filters whether all have more than 64
std::vector<SuiteCase> columns_suite(bool many_filters);
/// Some of these, for the values of a knob.
std::vector<SuiteCase> short_columns_suite(bool many_filters);
/// More of that kind, with 1 to 8 channels and filters of several columns, so that a stage may take a row of the filter
/// for one pixel: odd and even columns, padding that the image does not have, columns that no output reads, rows of
/// one and of several tiles; and with dilation across.
std::vector<SuiteCase> few_channels_suite();

/// Batches of images with a 1 x 1 filter, for products of whole multiples of 8 channels and filters: pixels, channels
/// and filters around 64.
std::vector<SuiteCase> pointwise_suite();

/// Each of these cases with every epilogue.
std::vector<SuiteCase> with_epilogues(const std::vector<SuiteCase>& suite);
/// Products on Tensor Cores with every epilogue: filters around 8, 16 and 64, odd ones and of several blocks; images of
/// a row, of several rows and a batch of them; strides; the inputs that show other mistakes.
std::vector<SuiteCase> epilogue_suite();

/// One of `count` parts of all cases, the first of which is 0.
struct SuitePart {
  int index = 0, count = 1;
};
/// As CONVLADDER_SUITE has it: "1/3", or null for all. @throws UsageError
SuitePart parse_suite_part(const char* text);

/// Which cases of a loop are in the part that runs; counts those that are not.
class SuiteShare {
 public:
  /// @param loop names the loop: others begin with another of the parts
  explicit SuiteShare(std::string_view loop, SuitePart part = parse_suite_part(std::getenv("CONVLADDER_SUITE")));
  /// To be asked once for each case, in the loop's order.
  bool takes(const ConvProblem& problem, InputKind inputs);

 private:
  SuitePart part_;
  std::uint32_t first_;
  std::map<std::array<int, 3>, int> seen_;  // of each kind of inputs, padding mode and epilogue
};

/// The suite of a track (Track::suite); that of images with dense filters.
std::vector<SuiteCase> suite_of_track(const Track& track);

/// Runs the stage once on one case. The same seed gives the same tensors. Stages of fp16 and int8, whose inputs are
/// halves, have large_half instead of large.
/// @param settings knobs by name, the others as by default
RunResult run_case(const StageInfo& stage, const SuiteCase& suite_case, std::string_view settings = {});

/// Runs a stage once on a shape with exactly these inputs.
RunResult run_stage_of(std::string_view stage, std::string_view shape, InputKind inputs);

/// Requires every case of the part that runs to be right; and of normal inputs with 1000 outputs or more, that the
/// relative root mean square error is what the project promises for the stage's type.
void check_suite(std::string_view stage, const std::vector<SuiteCase>& suite, std::string_view settings = {});

/// Requires that the stage refuses the shape, with `rule` in the reason.
void check_refusal(std::string_view stage, std::string_view shape, std::string_view rule);

/// Requires that the stage refuses what 32 bits do not index, and groups, each by its rule (lowering.hpp). No tensor is
/// made.
void check_refusals_of_lowering(std::string_view stage);

/// The configuration with these values, in the order of the knobs.
Configuration with_values(const Knobs& knobs, std::initializer_list<int> values);

/// Requires that the stage refuses what check_winograd() does, each by its rule (winograd.hpp). No tensor is made.
void check_refusals_of_winograd(std::string_view stage);

/// Requires that the stage refuses what check_implicit_gemm() does, each by its rule (lowering.hpp). No tensor is made.
void check_refusals_of_implicit_gemm(std::string_view stage);

/// Requires that the stage refuses what check_pointwise() does, each by its rule (lowering.hpp). No tensor is made.
/// @param unit of which channels and filters are multiples
void check_refusals_of_pointwise(std::string_view stage, int unit);

/// Requires of each shape that launch_without_transform() gives, on what launch() left, the outputs of launch().
void check_product_alone(std::string_view stage, const std::vector<std::string>& shapes);

/// For cases named "... (simulator)": every counter that the stage predicts is what was measured, for each shape and
/// padding mode.
void check_prediction(std::string_view stage, const std::vector<std::string>& shapes);
/// With filters of this form.
void check_prediction(std::string_view stage, const std::vector<std::string>& shapes, FilterForm filter,
                      std::string_view settings = {});
/// Of a Winograd stage, on some shapes, with these settings.
void check_winograd_prediction(std::string_view stage, std::string_view settings = {});

/// For cases named "... (simulator)": of a Winograd stage, that some of the configurations that its rules let in,
/// evenly spread over all of them, are right and have the counters that the stage predicts, on an image whose tiles,
/// filters and channels end within a block's.
/// @return how many there are in all
int check_configurations(std::string_view stage);

/// For cases named "... (simulator)": of a stage for several devices, that for each shape and padding mode its output
/// on 1, 2, 3, 4 and 8 of them has the bits of stage 09's.
void check_bits_of_one_device(std::string_view stage, const std::vector<std::string>& shapes);

/// For cases named "... (simulator)": counters of each line of the stage's own kernel file that accesses memory.
std::vector<LineCounters> lines_of(std::string_view stage, std::string_view shape, std::string_view settings = {});

}  // namespace convladder
