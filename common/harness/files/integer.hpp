/// @file
/// Integers as a user types them.
#pragma once
#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <system_error>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {

/// In decimal, as in a shape: "011" is 11, and "0x11" is none.
/// @param option that has the value  @throws UsageError
template <class Integer>
Integer parse_integer(std::string_view option, std::string_view text, Integer least, Integer most) {
  Integer value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && rest == end && value >= least && value <= most) return value;
  throw UsageError(fmt::format("{} must be an integer from {} to {}; got {}", option, least, most, in_quotes(text)));
}

}  // namespace convladder
