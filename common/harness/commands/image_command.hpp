/// @file
/// The command image: a filter on a PNG picture, computed by a stage of the track images.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "common/harness/commands/picture_filters.hpp"

namespace convladder {

/// What `image` was asked for.
struct ImageCommand {
  PictureFilterOptions filter;
  std::filesystem::path input, output;  ///< PNG
  std::optional<std::string> stage;     ///< default: the last of the track that takes filter and picture
  std::optional<std::string> padding;   ///< default: replicate
};

/// Checks what can be checked before a device is chosen and the picture is read: filter, stage, padding and paths.
/// @throws UsageError
void require_usable(const ImageCommand& command);

/// Filters the picture, and says how. @return the exit status: 0
/// @throws UsageError, RefusedError, MachineError, DeviceError: then no file was written
int image_command(const ImageCommand& command);

}  // namespace convladder
