#include "common/harness/commands/shard.hpp"

#include <fmt/format.h>

#include <charconv>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {

Shard parse_shard(std::string_view text) {
  constexpr std::size_t kMost = 10000;
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), end, shard.number);
  if (error == std::errc() && slash != end && *slash == '/') {
    const auto [rest, second] = std::from_chars(slash + 1, end, shard.of);
    if (second == std::errc() && rest == end && shard.number >= 1 && shard.number <= shard.of && shard.of <= kMost)
      return shard;
  }
  throw UsageError(fmt::format("--shards takes I/N, the I-th of N parts, as in 2/4, with N up to {}; got {}", kMost,
                               in_quotes(text)));
}

std::string to_string(const Shard& shard) {
  return shard.is_part() ? fmt::format("{}/{}", shard.number, shard.of) : "";
}

}  // namespace convladder
