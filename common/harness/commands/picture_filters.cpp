#include "common/harness/commands/picture_filters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/harness/commands/filter_command.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/input_file.hpp"
#include "common/harness/files/npy.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

/// Of the magnitudes of all taps: so that no sum over samples of 16 bits overflows.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr double kLargestSum = 1e30;
/// Of a filter's text: more than 65 x 65 numbers of any spelling need.
constexpr std::uintmax_t kLongestText = 1 << 20;
/// Of a word, in a message.
constexpr std::size_t kQuoted = 30;

PictureFilter gaussian(const PictureFilterOptions& options) {
  const double sigma = options.sigma.value_or(kDefaultSigma);
  if (!(sigma > 0) || !std::isfinite(sigma))
    throw UsageError(fmt::format("--sigma must be a finite number above 0; got {}", sigma));
  const double reach = std::ceil(3 * sigma);
  constexpr int kMostReach = kLargestPictureFilter / 2;
  if (!options.size && reach > kMostReach) {
    throw UsageError(fmt::format(
        "--sigma {} needs a filter of more than {}x{}; use at most {:.2f}, or cut the filter off by --size {}", sigma,
        kLargestPictureFilter, kLargestPictureFilter, kMostReach / 3.0 - 0.005, kLargestPictureFilter));
  }
  const std::int64_t size = options.size.value_or(2 * static_cast<std::int64_t>(reach) + 1);
  if (size % 2 == 0) throw UsageError(fmt::format("--size of a gaussian must be odd; got {}", size));

  std::vector<double> line(static_cast<std::size_t>(size));
  double sum = 0;
  const std::int64_t middle = size / 2;
  for (std::int64_t i = 0; i < size; ++i) {
    const double distance = static_cast<double>(i - middle) / sigma;
    sum += line[i] = std::exp(-distance * distance / 2);
  }
  PictureFilter filter{fmt::format("gaussian, sigma {}", sigma), size, size, {{}}};
  for (const double column : line) {
    for (const double row : line) filter.taps[0].push_back(static_cast<float>(column / sum * (row / sum)));
  }
  return filter;
}

PictureFilter box(const PictureFilterOptions& options) {
  const std::int64_t size = options.size.value_or(kDefaultBoxSize);
  const auto taps = static_cast<std::size_t>(size * size);
  return {"box", size, size, {std::vector<float>(taps, 1.0f)}, static_cast<double>(taps)};
}

/// Numbers of one line. @param number of the line, for the message
std::vector<float> parse_row(const fs::path& path, std::int64_t number, std::string_view line) {
  const auto separates = [](char c) { return c == ' ' || c == ',' || c == '\t'; };
  std::vector<float> row;
  if (number == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  char before = ' ';  // the comma that a number follows, or none
  for (auto at = line.begin(); at != line.end();) {
    if (separates(*at)) {
      if (*at == ',' && before == ',')
        refuse_file(path, fmt::format("line {}: there is no number between two commas; give one", number));
      if (*at == ',') before = ',';
      ++at;
      continue;
    }
    before = ' ';
    const auto end = std::find_if(at, line.end(), separates);
    const std::string word(at, end);
    const char* const first = word.data() + (word[0] == '+' && word[1] != '-' ? 1 : 0);
    double tap = 0;  // what is too small for fp32 becomes 0
    const auto [rest, error] = std::from_chars(first, word.data() + word.size(), tap);
    if (error != std::errc() || rest != word.data() + word.size() || std::abs(tap) > std::numeric_limits<float>::max())
      refuse_file(path, fmt::format("line {}: {} is no number of fp32; give numbers, separated by spaces or commas",
                                    number, in_quotes(word.substr(0, kQuoted))));
    row.push_back(static_cast<float>(tap));
    at = end;
  }
  return row;
}

PictureFilter read_text(const fs::path& path) {
  require_input_file(path, "a .npy or text file");
  std::error_code error;
  if (fs::file_size(path, error) > kLongestText)
    refuse_file(path, "this is too long for a filter; give at most 65x65 numbers");
  std::ifstream file(path);
  if (!file) refuse_file(path, "cannot be opened; make it readable");

  PictureFilter filter{"", 0, 0, {{}}};
  std::string line;
  for (std::int64_t number = 1; std::getline(file, line); ++number) {
    const std::vector<float> row = parse_row(path, number, line.substr(0, line.find('#')));
    if (row.empty()) continue;
    const auto columns = static_cast<std::int64_t>(row.size());
    if (filter.rows > 0 && columns != filter.columns)
      refuse_file(path, fmt::format("line {} has {} numbers where the rows above have {}; make all rows as long",
                                    number, columns, filter.columns));
    filter.columns = columns;
    filter.rows += 1;
    filter.taps[0].insert(filter.taps[0].end(), row.begin(), row.end());
  }
  if (filter.rows == 0) refuse_file(path, "there are no numbers; give a row of them on each line");
  return filter;
}

PictureFilter read_array(const fs::path& path) {
  NpyArray array = read_npy(path);
  if (array.shape.size() > 2)
    refuse_file(path, fmt::format("the array has {} dimensions; save one of 2, (rows, columns)", array.shape.size()));
  if (array.shape.size() == 1) array.shape.insert(array.shape.begin(), 1);
  return {"", array.shape[0], array.shape[1], {std::move(array.values)}};
}

}  // namespace

PictureFilter read_filter(const fs::path& path) {
  PictureFilter filter = path.extension() == ".npy" ? read_array(path) : read_text(path);
  filter.name = "custom, " + path.filename().string();
  if (filter.rows > kLargestPictureFilter || filter.columns > kLargestPictureFilter)
    refuse_file(path, fmt::format("the filter has {} rows and {} columns; at most {} of each", filter.rows,
                                  filter.columns, kLargestPictureFilter));
  double sum = 0;
  for (const float tap : filter.taps[0]) sum += std::abs(static_cast<double>(tap));
  if (!(sum <= kLargestSum))
    refuse_file(path, "a number is infinite, NaN or too large for fp32 sums; give smaller numbers");
  return filter;
}

PictureFilter picture_filter(const PictureFilterOptions& options) {
  const std::string& name = options.name;
  require_filter_name(name, {"sharpen", "gaussian", "box", "sobel", "emboss", "custom"});
  refuse_option(options.sigma && name != "gaussian", "--sigma", name, "gaussian");
  refuse_option(options.size && name != "gaussian" && name != "box", "--size", name, "box and gaussian");
  refuse_option(options.file && name != "custom", "--filter", name, "custom");
  if (options.size && (*options.size < 1 || *options.size > kLargestPictureFilter))
    throw UsageError(fmt::format("--size must be from 1 to {}; got {}", kLargestPictureFilter, *options.size));

  if (name == "sharpen") return {name, 3, 3, {{0, -1, 0, -1, 5, -1, 0, -1, 0}}};
  if (name == "emboss") return {name, 3, 3, {{-2, -1, 0, -1, 1, 1, 0, 1, 2}}};
  if (name == "sobel") return {name, 3, 3, {{-1, 0, 1, -2, 0, 2, -1, 0, 1}, {-1, -2, -1, 0, 0, 0, 1, 2, 1}}};
  if (name == "gaussian") return gaussian(options);
  if (name == "box") return box(options);
  if (!options.file) throw UsageError("custom needs the filter's file; give --filter FILE, a .npy or a text file");
  return read_filter(*options.file);
}

}  // namespace convladder
