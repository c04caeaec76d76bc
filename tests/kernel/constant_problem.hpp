/// @file
/// A depthwise problem whose numbers are constants, as NVRTC is given them.
#pragma once
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {

/// With the members of Depthwise; padded by half of the filter.
template <int kBatch, int kChannels, int kHeight, int kWidth, int kRows, int kColumns, int kStride, Padding kPadding>
struct ConstantProblem {
  static constexpr int batch = kBatch, channels = kChannels, height = kHeight, width = kWidth, rows = kRows,
                       columns = kColumns, pad_y = (kRows - 1) / 2, pad_x = (kColumns - 1) / 2, stride_y = kStride,
                       stride_x = kStride, dilation_y = 1, dilation_x = 1;
  static constexpr int out_height = (height - 1) / kStride + 1, out_width = (width - 1) / kStride + 1;
  static constexpr Padding padding = kPadding;
};

}  // namespace convladder
