#include "common/harness/files/output_file.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/folder.hpp"
#include "tests/usage_error.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

TEST_CASE("files appear whole, replace what was there, and leave nothing beside them") {
  const Folder folder;
  const fs::path file = folder / "out.json";
  require_writable(file);
  CHECK(fs::is_empty(folder.path()));
  write_file(file, "one");
  write_file(file, "two");
  std::ifstream stream(file);
  CHECK(std::string(std::istreambuf_iterator<char>(stream), {}) == "two");
  CHECK(folder.entries() == 1);
}

TEST_CASE("paths that cannot be written are told before the work") {
  const Folder folder;
  for (const fs::path& path : {folder.path(), folder / "missing" / "out.json", fs::path("/dev/null"), fs::path("")}) {
    CAPTURE(path.string());
    CHECK(has(usage_error([&] { require_writable(path); }), "cannot write"));
  }
  CHECK(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace convladder
