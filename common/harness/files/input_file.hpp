/// @file
/// What is said of a path that a user gives to read from.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace convladder {

/// Refuses a file for a reason. @throws UsageError: the path in quotes, then `what`
[[noreturn]] void refuse_file(const std::filesystem::path& path, const std::string& what);

/// Makes sure that there is a regular file. @param kind that the message asks for: "a PNG file"
/// @throws UsageError, naming the path
void require_input_file(const std::filesystem::path& path, std::string_view kind);

}  // namespace convladder
