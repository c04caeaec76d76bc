#include "common/harness/files/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string_view why) {
  throw UsageError(fmt::format("cannot write {}: {}; choose another path", in_quotes(path.string()), why));
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

/// /dev/shm is a folder like others.
bool is_special(const fs::path& path) {
  return lies_in(path, "/proc") || (lies_in(path, "/dev") && !lies_in(path, "/dev/shm"));
}

/// The path without links and dots, of a file that need not exist.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  const fs::path result = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : result;
}

/// The file that a rename may replace: where `path` is a link, what it leads to.
fs::path target_of(const fs::path& path) {
  if (path.empty()) fail(path, "the path is empty");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!path.has_filename() || fs::is_directory(status)) fail(path, "it is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) fail(path, "it is no ordinary file");
  if (fs::exists(status) && access(path.c_str(), W_OK) != 0) fail(path, std::generic_category().message(errno));
  const bool is_link = fs::is_symlink(path, error);
  if (is_link && !fs::exists(status)) fail(path, "it is a link that leads to no file");
  // Also by its name: /dev/stdout leads to an ordinary file where the output is redirected to one.
  if (is_special(fs::absolute(path, error).lexically_normal()) || is_special(resolved(path)))
    fail(path, "it is no ordinary file");
  return is_link ? resolved(path) : path;
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

void require_writable(const fs::path& path) { PartFile probe(target_of(path)); }

void require_ending(std::string_view option, const fs::path& path, std::string_view ending) {
  std::string own = path.extension().string();
  std::transform(own.begin(), own.end(), own.begin(), [](unsigned char c) { return std::tolower(c); });
  if (own.empty() || own == ending) return;
  throw UsageError(
      fmt::format("{} must end in {}, the one kind that is written; got {}", option, ending, in_quotes(path.string())));
}

void require_different(std::string_view option, const fs::path& path, std::string_view other_option,
                       const fs::path& other) {
  std::error_code ignored;
  if (!fs::equivalent(path, other, ignored) && resolved(path) != resolved(other)) return;
  throw UsageError(
      fmt::format("{} and {} are the same file, {}; give two paths", option, other_option, in_quotes(path.string())));
}

void write_file(const fs::path& path, std::string_view text) { PartFile(target_of(path)).commit(text); }

}  // namespace convladder
