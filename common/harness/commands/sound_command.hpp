/// @file
/// The command sound: a filter on a WAV file, computed by a stage of the track signals.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "common/harness/commands/sound_filters.hpp"
#include "common/harness/files/sound.hpp"
#include "common/harness/run/run_result.hpp"

namespace convladder {

/// What `sound` was asked for.
struct SoundCommand {
  SoundFilterOptions filter;
  std::filesystem::path input, output;  ///< WAV
  std::optional<std::string> stage;     ///< default: the last of the track that takes the filter
};

/// Checks what can be checked before a device is chosen and the sound is read: libsndfile, filter, stage and paths.
/// @throws UsageError
void require_usable(const SoundCommand& command);

/// The problem that stages are given: a signal for each channel, with silence around it.
/// @param sound only its channels and frames are looked at
ConvProblem sound_problem(const Sound& sound, const SoundFilter& filter);

/// Runs the stage on the sound, as `run` does: every sample is compared with the reference in double.
/// @param sound its samples become those of the result, and its frames as many
/// @param problem of sound_problem(), accepted by filters_refusal()
/// @throws DeviceError for a fault, a failed launch or a wrong result
RunResult filter_sound(const StageInfo& stage, const ConvProblem& problem, const SoundFilter& filter, Sound& sound);

/// Filters the sound, and says how. @return the exit status: 0
/// @throws UsageError, RefusedError, MachineError, DeviceError: then no file was written
int sound_command(const SoundCommand& command);

}  // namespace convladder
