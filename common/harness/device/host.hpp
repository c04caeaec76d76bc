/// @file
/// The host as a machine: its memory, and its processor as the device of the stages that run there.
#pragma once
#include <cstdint>

#include "common/harness/device/device.hpp"

namespace convladder {

/// Physical memory of the host in bytes.
std::int64_t host_memory_bytes();

/// The host as a device: its name is the processor's model and the number of threads that OpenMP uses.
DeviceInfo host_info();

}  // namespace convladder
