#include "common/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "common/problem_io.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string_view why) {
  throw UsageError(fmt::format("cannot write {}: {}; choose another path", path.string(), why));
}

fs::path beside(const fs::path& path) { return path.string() + fmt::format(".{}.part", getpid()); }

/// A file that is gone with its owner, unless it was renamed.
class PartFile {
 public:
  explicit PartFile(const fs::path& target) : target_(target), part_(beside(target)), stream_(part_, std::ios::binary) {
    if (!stream_) fail(target_, std::generic_category().message(errno));
  }
  ~PartFile() {
    std::error_code ignored;
    fs::remove(part_, ignored);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  void commit(std::string_view text) {
    stream_ << text;
    stream_.close();
    if (!stream_) fail(target_, std::generic_category().message(errno));
    std::error_code error;
    fs::rename(part_, target_, error);
    if (error) fail(target_, error.message());
  }

 private:
  fs::path target_, part_;
  std::ofstream stream_;
};

}  // namespace

void require_writable(const fs::path& path) {
  std::error_code ignored;
  if (!path.has_filename() || fs::is_directory(path, ignored)) fail(path, "it is a folder");
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) fail(path, "it is no ordinary file");
  PartFile probe(path);
}

void write_file(const fs::path& path, std::string_view text) {
  require_writable(path);
  PartFile(path).commit(text);
}

}  // namespace convladder
