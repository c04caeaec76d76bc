#include "common/harness/files/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace convladder {
namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

std::size_t columns_of(int descriptor) {
  const std::string_view set = environment("COLUMNS");
  std::size_t columns = 0;
  const auto read = std::from_chars(set.data(), set.data() + set.size(), columns);
  if (read.ec == std::errc() && read.ptr == set.data() + set.size() && columns > 0) return columns;
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

Terminal terminal_of(std::FILE* stream) {
  const int descriptor = fileno(stream);
  if (isatty(descriptor) == 0) return {};
  return {columns_of(descriptor), environment("NO_COLOR").empty() && environment("TERM") != "dumb"};
}

std::string with_coloured_status(const std::string& text, const Terminal& terminal) {
  constexpr std::pair<std::string_view, std::string_view> kColours[] = {
      {"wrong", "\033[31m"}, {"fault", "\033[31m"}, {"error", "\033[31m"}, {"refused", "\033[2m"}};
  if (!terminal.colours) return text;
  for (const auto& [status, colour] : kColours) {
    if (text.starts_with(status))
      return std::string(colour).append(status).append("\033[0m").append(text, status.size());
  }
  return text;
}

}  // namespace convladder
