/// @file
/// Reading, checking and writing a ConvProblem on the host side.
#pragma once
#include <string>
#include <string_view>

#include "common/stage/problem.hpp"

namespace convladder {

/// The problem with pad_h = (r-1)/2 and pad_w = (s-1)/2, rounded down.
ConvProblem with_default_padding(ConvProblem problem);

/// Parses "c=64,h=56,..." over `problem`, by default every size, stride, dilation and groups 1; a padding that is not
/// among the keys is that of with_default_padding(). Keys are ConvProblem's names, the epilogue's value a name of its
/// own ("epilogue=bias_relu"); each at most once.
/// @throws UsageError for an empty text or item, an unknown key, a repeated key, a value that is no integer or does not
/// fit. Signs and sizes are validate()'s.
ConvProblem parse_shape(std::string_view text, ConvProblem problem = {});

/// @throws UsageError for anything but "zero", "replicate", "reflect"
Padding parse_padding(std::string_view text);
/// The name that parse_padding() reads.
const char* to_string(Padding padding);

/// The name that parse_shape() reads: "none", "bias", "bias_relu", "bias_residual_relu".
const char* to_string(Epilogue epilogue);

/// Checks everything that does not depend on a stage, in this order: sizes at least 1, pads at least 0; no product
/// (tensor elements, their bytes, flops) overflows 63 bits; groups divide c and k; the output has at least one element;
/// the tensors and the reference fit in `memory_bytes`; reflect padding is smaller than the input's height and
/// width.
/// @param whose memory that is, for the message
/// @throws UsageError, and RefusedError for the reflect rule
void validate(const ConvProblem& problem, std::int64_t memory_bytes, std::string_view whose = "this machine");

/// "n=1,c=1,h=1,w=4096,k=1,r=1,s=5", then what differs from parse_shape's defaults; parse_shape reads it back. The
/// padding mode is not part of it.
std::string to_string(const ConvProblem& problem);

}  // namespace convladder
