/// @file
/// Notes and progress on standard error.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace convladder {

/// What cannot be written is lost; fmt::print would throw, and end a bench before its results are kept.
template <class... Values>
void print_stderr(fmt::format_string<Values...> format, Values&&... values) {
  std::fputs(fmt::format(format, std::forward<Values>(values)...).c_str(), stderr);
}

}  // namespace convladder
