/// @file
/// Files of the project that kernels compiled at run time may include; the build writes their text (cmake/Embed.cmake).
#pragma once
#include <span>

namespace convladder {

/// A file by the path that `include` directives name.
struct EmbeddedFile {
  const char* path;
  const char* text;
};
/// Every one.
std::span<const EmbeddedFile> embedded_files();

}  // namespace convladder
