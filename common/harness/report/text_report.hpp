/// @file
/// One stage's result as text for the terminal.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "common/harness/device/device.hpp"
#include "common/harness/files/terminal.hpp"
#include "common/harness/run/run_result.hpp"

namespace convladder {

/// "NVIDIA H200 (sm_90, 132 multiprocessors, 140 GiB, L2 60 MiB, CUDA driver 13.0), clocks 1980 and 3201 MHz"
std::string device_line(const DeviceInfo& info);

/// Whether the stage's track is one of those that lower a convolution to a matrix product: their memory is shown.
bool lowers(const StageInfo& stage);

/// 12345678 as "12.3 MB".
std::string bytes_text(std::int64_t bytes);

/// What the two rearrangements of the input take by their formulas: "input 25.7 MB, im2col's matrix 215 MB, ..."
std::string memory_text(const ConvProblem& problem);

/// What held the GPU's clocks down while a row was timed, where that matters to the time; else "".
std::string throttle_text(const GpuConditions& gpu);

/// "verified: ...", or the status and its reason.
std::string verdict_line(const RunResult& result);

/// "configuration (tuned): block_planes 1, ..."
std::string configuration_line(const UsedConfiguration& used);

/// What the ratio over the previous stage is over, where that is not the stage as it comes: "winograd-bgemm m=4; tiles
/// of 2x2 against 4x4". Else "".
std::string other_configuration(const RunResult& result);

/// Why there is no ratio over cuDNN: why none of its algorithms of this family worked, or none at all where it is "".
std::string cudnn_reason(const std::optional<CudnnBaseline>& cudnn, std::string_view prefix);

/// Everything about one result but its device: the stage, the problem, the verdict, times or counters, faults.
/// @param terminal that the text goes to, whose width the tables fit
std::string run_text(const RunResult& result, const Terminal& terminal = {});

/// What a result's counters come to for each output and request: the simulator's headline figures.
struct CounterFigures {
  double load_bytes_per_output, unique_bytes_per_output, sectors_per_output, sectors_per_load, sectors_per_store;
};
/// @param outputs elements of the output
CounterFigures figures_of(const Counters& counters, std::int64_t outputs);

}  // namespace convladder
