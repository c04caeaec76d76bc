/// @file
/// The programs of a build come in pairs, side by side: one over the simulator, and its "-gpu" sibling. Which of the
/// two runs a command is decided here.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "common/harness/device/device.hpp"

namespace convladder {

/// What `--backend` asks for.
enum class BackendChoice {
  automatic,  ///< the GPU where there is one, else the simulator
  gpu,        ///< the GPU, or an error
  sim,        ///< the simulator
};

/// @param text "auto", "gpu" or "sim"
BackendChoice parse_backend(std::string_view text);

/// Continues in the sibling program, with the same arguments, if that is the one for `choice`; returns if this one is.
/// Automatic is the GPU's where there are a usable GPU and a program for it.
/// @throws MachineError if the chosen backend is not there, naming what is missing
void continue_on(BackendChoice choice, char** arguments);

/// The file of the GPU program of this pair. @throws MachineError if it was not built
std::filesystem::path gpu_program();

/// Why the CUDA driver shows no GPU; "" if it shows one.
std::string no_gpu_reason();

/// What the driver tells of a GPU, with either program.
struct GpuFacts {
  std::string name;
  int multiprocessors = 0, l2_bytes = 0, shared_bytes_per_block = 0;  ///< the last is the opt-in maximum
};
/// Of the first GPU that the driver shows; none if it shows none.
std::optional<GpuFacts> first_gpu();

}  // namespace convladder
