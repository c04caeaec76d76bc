#include "common/harness/files/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace convladder {
namespace {

/// Code points of a UTF-8 text.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

TextTable::TextTable(std::vector<std::string> headings, std::size_t left) : left_(left) {
  rows_.push_back(std::move(headings));
}

void TextTable::add(std::vector<std::string> cells) {
  if (cells.size() != rows_.front().size()) throw std::logic_error("a table's row does not fit its headings");
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], width(row[i]));

  std::string result;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      if (i > 0) line += "  ";
      line += i < left_ || i + 1 == columns ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

std::string Footnotes::mark(std::string_view cell, const std::string& reason) {
  auto found = std::find(reasons_.begin(), reasons_.end(), reason);
  if (found == reasons_.end()) found = reasons_.insert(found, reason);
  return fmt::format("{} [{}]", cell, found - reasons_.begin() + 1);
}

std::string Footnotes::text() const {
  std::string result;
  for (std::size_t i = 0; i < reasons_.size(); ++i) result += fmt::format("  [{}] {}\n", i + 1, reasons_[i]);
  return result;
}

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string short_number(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 1e6 || (magnitude > 0 && magnitude < 1e-3)) return fmt::format("{:.3g}", value);
  if (magnitude >= 100) return fmt::format("{:.0f}", value);
  if (magnitude >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.{}f}", value, magnitude >= 1 || value == 0 ? 2 : 3);
}

std::string time_text(double microseconds) {
  if (microseconds >= 1e6) return short_number(microseconds * 1e-6) + " s";
  if (microseconds >= 1e4) return short_number(microseconds * 1e-3) + " ms";
  return short_number(microseconds) + " us";
}

std::string ratio_text(double ratio) { return short_number(ratio) + "x"; }

std::string percent_text(double fraction) { return fmt::format("{:.{}f}%", 100 * fraction, fraction < 0.01 ? 2 : 1); }

}  // namespace convladder
