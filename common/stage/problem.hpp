/// @file
/// The one problem definition that every stage, the reference and the cuDNN baseline share.
#pragma once
#include <cstdint>

namespace convladder {

/// What a position outside the input reads. Reflect does not repeat the edge: ... 2 1 | 0 1 2 ...
enum class Padding : int {
  zero,       ///< 0
  replicate,  ///< the nearest element of the input
  reflect,    ///< the input mirrored at its edge
};

/// What is done with a sum before it is stored. It is a part of the problem and not a way to solve it: the result
/// differs.
enum class Epilogue : int {
  none,                ///< nothing
  bias,                ///< + bias(k)
  bias_relu,           ///< max(0, ... + bias(k))
  bias_residual_relu,  ///< max(0, ... + bias(k) + residual(n, k, p, q))
};

/// A batched 2-D cross-correlation, as cuDNN and PyTorch define "convolution" (the filter is not flipped):
///
///     output(n, k, p, q) = sum over c, r, s of
///         filter(k, c, r, s) * input(n, g*C/groups + c, p*stride_h - pad_h + r*dilation_h, q*stride_w - pad_w + ...)
///
/// Names as in cuDNN. A 1-D signal is h = r = 1; an image filter is n = c = k = 1; depthwise is groups = c = k.
/// Input is (n, c, h, w), filter (k, c/groups, r, s), output (n, k, p(), q()), all NCHW, float32 on the host.
struct ConvProblem {
  std::int64_t n = 1, c = 1, h = 1, w = 1;
  std::int64_t k = 1, r = 1, s = 1;
  std::int64_t pad_h = 0, pad_w = 0;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t groups = 1;
  Padding padding = Padding::zero;
  Epilogue epilogue = Epilogue::none;

  /// Output height. Only meaningful for a problem that validate() accepted.
  std::int64_t p() const { return (h + 2 * pad_h - dilation_h * (r - 1) - 1) / stride_h + 1; }
  /// Output width, likewise.
  std::int64_t q() const { return (w + 2 * pad_w - dilation_w * (s - 1) - 1) / stride_w + 1; }

  /// Elements of the input; validate() has ruled out overflow, here and below.
  std::int64_t input_size() const { return n * c * h * w; }
  /// Elements of the filter.
  std::int64_t filter_size() const { return k * (c / groups) * r * s; }
  /// Elements of the output.
  std::int64_t output_size() const { return n * k * p() * q(); }
  /// Products that are summed for one output.
  std::int64_t reduction_length() const { return (c / groups) * r * s; }
  bool has_bias() const { return epilogue != Epilogue::none; }                         ///< a number for each filter
  bool has_residual() const { return epilogue == Epilogue::bias_residual_relu; }       ///< one for each output
  bool has_relu() const { return epilogue == Epilogue::bias_relu || has_residual(); }  ///< none is negative
  /// Operations of the direct form: a multiplication and an addition for each product.
  std::int64_t flops() const { return 2 * output_size() * reduction_length(); }
};

}  // namespace convladder
