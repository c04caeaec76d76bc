/// @file
/// Files that appear only whole.
#pragma once
#include <filesystem>
#include <string_view>

namespace convladder {

/// Makes sure, before the work begins, that a file can be written to this path. Leaves nothing behind.
/// @throws UsageError, naming the path and what is in the way
void require_writable(const std::filesystem::path& path);

/// Makes sure that a file is not named as of another kind than is written; a name without an ending will do.
/// @param option that names it  @param ending in small letters, as ".png"  @throws UsageError
void require_ending(std::string_view option, const std::filesystem::path& path, std::string_view ending);

/// Makes sure that two options do not name one file, whether it exists or not. @throws UsageError if they do
void require_different(std::string_view option, const std::filesystem::path& path, std::string_view other_option,
                       const std::filesystem::path& other);

/// Writes beside the target and renames. A link stays one and its target is replaced; devices, pipes, what lies in
/// /dev or /proc and files that are protected from writing are refused.
/// @throws UsageError if it cannot be written
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace convladder
