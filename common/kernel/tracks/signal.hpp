/// @file
/// What the 1-D stages share: a batch of one-channel signals, the rule that refuses anything else, and the counts that
/// their lessons predict.
#pragma once
#include "common/kernel/kernel.hpp"

namespace convladder {

/// A batch of signals, small enough for 32-bit indices within one. Passed to kernels by value.
struct Signal {
  int batch;       ///< signals, one behind the other
  int length;      ///< samples of one input signal
  int out_length;  ///< samples of one output signal
  int taps;        ///< filter length, odd
  int pad;         ///< position i of the output starts reading at input position i - pad
  Padding padding;
};

/// What a `__constant__` filter holds: 64 KB.
inline constexpr int kMaxConstantTaps = 16384;

/// Accepts n one-channel signals (h = r = c = k = 1) with an odd filter, stride 1 and dilation 1.
Verdict check_signal(const ConvProblem& problem);
/// The same, where the filter must also fit constant memory.
Verdict check_constant_filter(const ConvProblem& problem);
/// The same, where the block's tile of `tile_bytes` must also fit its shared memory.
Verdict check_tile(const ConvProblem& problem, const DeviceLimits& limits, std::int64_t tile_bytes);
/// The problem as the 1-D kernels take it.
Signal signal_of(const ConvProblem& problem);

/// Blocks in x cover one output signal, `outputs_per_block` samples each; y and z cover the batch:
/// signal number = blockIdx.y + gridDim.y * blockIdx.z, which may exceed the batch in the last z.
dim3 signal_grid(const Signal& signal, int outputs_per_block);

/// How many (output, tap) pairs read inside the input; outside, zero padding reads nothing.
std::int64_t reads_by_output(const Signal& signal);
/// How many elements are read if every `outputs` outputs load their outputs + taps - 1 elements once.
std::int64_t reads_by_tile(const Signal& signal, int outputs);
/// Warp-wide requests that one access by every output makes: blocks end within a warp where the signal does.
std::int64_t warps_over_outputs(const Signal& signal);

}  // namespace convladder
