/// @file
/// Where a stage runs, and what it refuses there.
#pragma once
#include <string>
#include <string_view>

#include "common/harness/device/device.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/stage/gpus.hpp"

namespace convladder {

/// The GPU that `--gpu` names, of those that are known.
/// @param hint ends the message where there is none of the name  @throws UsageError
const Gpu& gpu_named(std::string_view name, std::string_view hint = "");

/// The device that the stage runs on: the program's, or the host.
DeviceInfo device_of(const StageInfo& stage);

/// What a stage may ask of that device; zeros for the host.
DeviceLimits limits_of(const StageInfo& stage);

/// What a stage refuses on this device, whatever the problem: "" or the rule ("needs a GPU of sm_90 or later; ...").
std::string device_refusal(const StageInfo& stage);

/// The rule by which the device or the stage refuses the problem, or "". Cheap: nothing is allocated or computed.
/// @param filter (k, c/groups, r, s) on the host, or null where it is not known yet: then no rule about it is asked
std::string refusal(const StageInfo& stage, const ConvProblem& problem, const float* filter);
/// The rule by which this instance of the stage refuses the problem, or "".
std::string refusal(const StageInfo& stage, const Stage& instance, const ConvProblem& problem, const float* filter);

}  // namespace convladder
