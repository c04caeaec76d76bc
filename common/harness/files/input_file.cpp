#include "common/harness/files/input_file.hpp"

#include <fmt/format.h>

#include <system_error>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {

void refuse_file(const std::filesystem::path& path, const std::string& what) {
  throw UsageError(in_quotes(path.string()) + ": " + what);
}

void require_input_file(const std::filesystem::path& path, std::string_view kind) {
  if (path.empty()) refuse_file(path, fmt::format("the path is empty; give the path of {}", kind));
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    refuse_file(path, fmt::format("there is no such file; give the path of {}", kind));
  if (!std::filesystem::is_regular_file(status))
    refuse_file(path, fmt::format("this is not a regular file; give the path of {}", kind));
}

}  // namespace convladder
