/// @file
/// NumPy's .npy files (format 1.0 to 3.0), float32 only.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace convladder {

/// A float32 array.
struct NpyArray {
  std::vector<std::int64_t> shape;
  std::vector<float> values;  ///< C order, whatever the file's order was
};

/// @throws UsageError, naming the file and what is wrong: missing, not .npy, truncated, longer than its shape says,
/// other element type (named), big-endian, zero-sized, more elements than memory holds
NpyArray read_npy(const std::filesystem::path& path);

/// Writes by write_file(): the file appears only whole. @throws UsageError if it cannot be written
void write_npy(const std::filesystem::path& path, const NpyArray& array);

}  // namespace convladder
