/// @file
/// Filters a picture by a stage, such that every stage and back end gives the same picture.
///
/// A sample of the result is what rounding the exact sum gives: floor(exact + 1/2), saturated. Stages add in fp32, in
/// orders of their own, and come only near. So the bound of a stage's error decides: where all numbers within it round
/// to one value, that is the result; where they do not, the host computes the sample in double.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "common/harness/commands/picture_filters.hpp"
#include "common/harness/files/picture.hpp"
#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// The problem that stages are given: an image for each colour channel. A filter of even size has an output row or
/// column more than the picture, which is cut off: its windows reach one further up or left than down or right.
ConvProblem picture_problem(const Picture& picture, const PictureFilter& filter, Padding padding);

/// Whether the stage reads and writes this picture as bytes. @param picture only its depth is looked at
bool filters_bytes(const StageInfo& stage, const Picture& picture, const PictureFilter& filter);

/// The most samples of a picture that fit host and device.
std::int64_t most_picture_samples(bool as_bytes);

/// A filtered picture, and how it was made.
struct FilteredPicture {
  Picture picture;           ///< alpha as it was
  bool as_bytes = false;     ///< the stage read and wrote bytes (ByteImageFilter)
  std::int64_t on_host = 0;  ///< samples that the host computed
  /// GPU only: the kernels alone, and with them the copies to and from the GPU and prepare(), microseconds.
  std::optional<double> kernels_us, whole_us;
};

/// Filters the colour channels. Outputs are poisoned before; every sample must have been written, and a few thousand
/// are compared with the host's.
/// @param problem of picture_problem(), accepted by filters_refusal()
/// @throws DeviceError for a fault, a failed launch, or a wrong or missing result
FilteredPicture filter_picture(const StageInfo& stage, const ConvProblem& problem, const Picture& picture,
                               const PictureFilter& filter);

}  // namespace convladder
