/// @file
/// A folder for a test's files.
#pragma once
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

namespace convladder {

/// A folder of the test's own that disappears with it.
class Folder {
 public:
  /// Empty.
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "convladder_test.XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  /// A path in it.
  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  /// Its own path.
  const std::filesystem::path& path() const { return path_; }
  /// Files and folders in it.
  std::ptrdiff_t entries() const {
    return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

}  // namespace convladder
