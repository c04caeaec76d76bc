/// @file
/// Pictures in PNG files, by libpng: every colour type and depth is read; grey and RGB, with alpha or not, is written.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace convladder {

/// A chunk of the file that says how its numbers are meant: passed on as it is.
struct PictureChunk {
  std::string name;                ///< "gAMA"
  std::vector<std::uint8_t> data;  ///< without length and CRC
  bool after_pixels = false;       ///< where it stands in the file
};

/// A grey or RGB picture, with or without alpha.
struct Picture {
  std::int64_t width = 0, height = 0;
  int channels = 0;                 ///< 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  int depth = 8;                    ///< bits of a sample: 8 or 16
  std::vector<std::uint8_t> bytes;  ///< (height, width, channels); samples of 16 bits as in PNG, high byte first
  std::vector<PictureChunk> chunks;

  int colours() const { return channels - (channels % 2 == 0 ? 1 : 0); }  ///< channels without alpha
  int white() const { return (1 << depth) - 1; }                          ///< the largest sample

  /// A sample by its place in (height, width, channels).
  int sample(std::int64_t index) const {
    const std::uint8_t* const at = bytes.data() + (depth == 8 ? index : 2 * index);
    return depth == 8 ? at[0] : at[0] << 8 | at[1];
  }
  /// Sets it. @param value 0 to white()
  void set_sample(std::int64_t index, int value) {
    std::uint8_t* const at = bytes.data() + (depth == 8 ? index : 2 * index);
    if (depth == 16) at[0] = static_cast<std::uint8_t>(value >> 8);
    at[depth == 8 ? 0 : 1] = static_cast<std::uint8_t>(value);
  }
};

/// "640x480, RGB and alpha, 8 bits".
std::string to_string(const Picture& picture);

/// Reads a PNG. Grey of 1, 2 and 4 bits becomes grey of 8, a palette RGB, a transparent colour alpha; interlaced files
/// are read. Of the other chunks those are kept that tell colours, resolution and orientation (gAMA, cHRM, sRGB, iCCP,
/// cICP, mDCV, cLLI, pHYs, eXIf).
/// @param most_samples of a picture of this size and kind (its bytes are empty yet): one with more is refused before
/// memory is taken for it. What it throws passes through.
/// @throws UsageError, naming the file: missing, no PNG (JPEG and others are named), damaged, cut off, with more data
/// than its size says, too large
Picture read_png(const std::filesystem::path& path, const std::function<std::int64_t(const Picture&)>& most_samples);

/// Writes a PNG of the picture's own channels and depth, not interlaced, with its chunks. By write_file(): it appears
/// only whole. @throws UsageError if it cannot be written
void write_png(const std::filesystem::path& path, const Picture& picture);

}  // namespace convladder
