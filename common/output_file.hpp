/// @file
/// Files that appear only whole.
#pragma once
#include <filesystem>
#include <string_view>

namespace convladder {

/// Makes sure, before the work begins, that a file can be written to this path. Leaves nothing behind.
/// @throws UsageError, naming the path and what is in the way
void require_writable(const std::filesystem::path& path);

/// Writes beside the target and renames.
/// @throws UsageError if it cannot be written
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace convladder
