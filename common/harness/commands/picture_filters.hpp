/// @file
/// The filters of pictures: those that have a name, and a user's own.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convladder {

/// A filter of pictures: each sample becomes sum / divisor, or, of two sums, the square root of the sum of their
/// squares. Then it is rounded and saturated.
struct PictureFilter {
  std::string name;  ///< "gaussian, sigma 2"
  std::int64_t rows = 0, columns = 0;
  std::vector<std::vector<float>> taps;  ///< one set, or two: (rows, columns) each
  double divisor = 1;                    ///< a number of taps: at least 1
};

/// What the command line may say about a filter.
struct PictureFilterOptions {
  std::string name;  ///< sharpen, gaussian, box, sobel, emboss or custom
  std::optional<double> sigma;
  std::optional<std::int64_t> size;
  std::optional<std::filesystem::path> file;
};

/// The names, for messages.
inline constexpr std::string_view kPictureFilterNames = "sharpen, gaussian, box, sobel, emboss, custom";
/// Of a Gaussian, where no option says otherwise.
inline constexpr double kDefaultSigma = 2;
/// Of a box, likewise.
inline constexpr std::int64_t kDefaultBoxSize = 5;
/// The most rows and columns: those of the 2-D stages.
inline constexpr std::int64_t kLargestPictureFilter = 65;

/// The filter. A Gaussian reaches to 3 sigma unless `size` says otherwise, and is the product of a column and a row.
/// @throws UsageError for an unknown name, an option that is not the filter's or out of range, an unusable file
PictureFilter picture_filter(const PictureFilterOptions& options);

/// A filter from a file: float32 .npy of one or two dimensions, or text with a row of numbers on each line, separated
/// by spaces or commas; what follows a # is a comment. @throws UsageError, naming the file
PictureFilter read_filter(const std::filesystem::path& path);

}  // namespace convladder
