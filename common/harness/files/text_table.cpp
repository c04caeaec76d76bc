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

/// The text, if it is not wider; else its beginning and "…".
std::string first_of(const std::string& text, std::size_t columns) {
  if (width(text) <= columns) return text;
  std::size_t end = 0;
  for (std::size_t taken = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && ++taken == columns) break;
  }
  return text.substr(0, end) + "…";
}

}  // namespace

TextTable::TextTable(std::vector<std::string> headings, std::size_t left) : left_(left) {
  rows_.push_back(std::move(headings));
}

void TextTable::add(std::vector<std::string> cells) {
  if (cells.size() != rows_.front().size()) throw std::logic_error("a table's row does not fit its headings");
  rows_.push_back(std::move(cells));
}

struct TextTable::Layout {
  std::vector<std::size_t> widths;
  std::vector<bool> shown;
  std::string left_out;  ///< the headings of the columns that are not, with commas
  bool cut = false;      ///< whether the last column is narrower than its cells
};

TextTable::Layout TextTable::fitted(std::size_t columns) const {
  constexpr std::size_t kGap = 2, kLeast = 20;  // of the last column, where it is cut
  const std::size_t count = rows_.front().size();
  Layout layout{std::vector<std::size_t>(count, 0), std::vector<bool>(count, true), "", false};
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < count; ++i) layout.widths[i] = std::max(layout.widths[i], width(row[i]));
  std::size_t& last = layout.widths.back();
  std::size_t before = kGap * (count - 1);
  for (std::size_t i = 0; i + 1 < count; ++i) before += layout.widths[i];
  for (std::size_t i = count - 1; columns > 0 && before + last > columns;) {
    layout.cut = before + kLeast <= columns;
    if (layout.cut) {
      last = columns - before;
    } else {
      if (--i == 0) break;
      layout.shown[i] = false;
      before -= layout.widths[i] + kGap;
      layout.left_out = rows_.front()[i] + (layout.left_out.empty() ? "" : ", ") + layout.left_out;
    }
  }
  return layout;
}

std::string TextTable::text(const Terminal& terminal) const {
  const Layout layout = fitted(terminal.columns);
  const std::size_t last = layout.widths.size() - 1;
  std::string result;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < last; ++i) {
      if (!layout.shown[i]) continue;
      const std::string padding(layout.widths[i] - width(row[i]), ' ');
      line += (i < left_ ? row[i] + padding : padding + row[i]) + "  ";
    }
    const std::string end = first_of(row[last], layout.widths[last]);
    line += rows_.front()[last] == "status" ? with_coloured_status(end, terminal) : end;
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  if (!layout.left_out.empty())
    result += fmt::format("  left out in {} columns: {} (--json has all)\n", terminal.columns, layout.left_out);
  if (layout.cut) result += fmt::format("  cut in {} columns: {}\n", terminal.columns, rows_.front()[last]);
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

std::string remaining_text(std::size_t done, std::size_t steps, double seconds) {
  constexpr std::size_t kLeast = 5;
  constexpr double kLeastSeconds = 10, kMinute = 60, kSoon = 90;
  const std::string count = fmt::format("{}/{}", done, steps);
  if (done < kLeast || seconds < kLeastSeconds || done >= steps) return fmt::format("[{}] ", count);
  const double left = seconds / static_cast<double>(done) * static_cast<double>(steps - done);
  return left < kSoon ? fmt::format("[{}, {:.0f} s left] ", count, left)
                      : fmt::format("[{}, {:.0f} min left] ", count, left / kMinute);
}

std::string ratio_text(double ratio) { return short_number(ratio) + "x"; }

std::string percent_text(double fraction) { return fmt::format("{:.{}f}%", 100 * fraction, fraction < 0.01 ? 2 : 1); }

}  // namespace convladder
