/// @file
/// What a test says of a UsageError's message.
#pragma once
#include <string>
#include <string_view>

#include "common/harness/files/errors.hpp"

namespace convladder {

/// The message of the UsageError that `action` throws; "" if it throws none.
template <class Action>
std::string usage_error(const Action& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

inline bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace convladder
