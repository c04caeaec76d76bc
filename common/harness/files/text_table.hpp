/// @file
/// Text for people: aligned columns, footnotes, numbers with units.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/files/terminal.hpp"

namespace convladder {

/// Columns of text: the first `left` ones and the last aligned left, the others right.
class TextTable {
 public:
  /// @param left how many columns, from the first, hold words
  explicit TextTable(std::vector<std::string> headings, std::size_t left = 1);

  /// @param cells one for each heading
  void add(std::vector<std::string> cells);
  /// Every line ends in a newline; none has trailing blanks. On a terminal that is too narrow the last column is cut,
  /// and of those between it and the first as many left out as must be, from the right; a line below the table says so.
  /// In a last column "status" statuses have their colours.
  std::string text(const Terminal& terminal = {}) const;

 private:
  /// Which columns are shown, and how wide.
  struct Layout;
  Layout fitted(std::size_t columns) const;

  std::size_t left_;
  std::vector<std::vector<std::string>> rows_;  // the headings first
};

/// Reasons below a table, each once, under a number.
class Footnotes {
 public:
  /// "n/a [1]"
  std::string mark(std::string_view cell, const std::string& reason);
  /// "  [1] reason" for each.
  std::string text() const;

 private:
  std::vector<std::string> reasons_;
};

/// 1234567 as "1,234,567".
std::string grouped(std::int64_t value);
/// Three to four significant digits, without an exponent where that is readable.
std::string short_number(double value);
/// "31.2 us", "4.21 ms", "1.3 s".
std::string time_text(double microseconds);
/// "[17/312, 2 min left] " of `done` of `steps` in so many seconds; "[1/312] " as long as too little is known.
std::string remaining_text(std::size_t done, std::size_t steps, double seconds);
/// "3.14x"
std::string ratio_text(double ratio);
/// "87.1%", "0.12%"
std::string percent_text(double fraction);

}  // namespace convladder
