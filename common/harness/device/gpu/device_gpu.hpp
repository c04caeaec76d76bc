/// @file
/// What the CUDA implementations of device.hpp and timing.hpp share.
#pragma once
#include <optional>

#include "common/harness/device/nvml.hpp"
#include "common/stage/stage.hpp"

namespace convladder {

/// The one stream that everything runs on. @throws MachineError where there is no usable GPU
Stream device_stream();

/// Waits for the stream. @throws DeviceError, naming `what`, if work on it failed
void wait_for_stream(const char* what);

/// What the driver tells of the GPU at this moment, if anything.
std::optional<GpuMoment> gpu_now();

}  // namespace convladder
