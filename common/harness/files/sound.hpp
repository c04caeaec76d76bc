/// @file
/// Sounds in WAV files, by libsndfile, which the build can do without.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace convladder {

/// A sound, with what its file says of it.
struct Sound {
  int sample_rate = 0;  ///< samples a second of one channel
  int channels = 0;
  std::int64_t frames = 0;       ///< samples of one channel
  int format = 0;                ///< the file's, as libsndfile numbers it
  std::string type{};            ///< of the file's samples: "16 bits"
  std::vector<float> samples{};  ///< (channels, frames); 1 is full scale
};

/// "44100 Hz, 2 channels of 3.000 s, 16 bits".
std::string to_string(const Sound& sound);

/// @throws UsageError, with the package to install, if the program was built without libsndfile
void require_sound_files();

/// Reads a WAV of integers of 8, 16, 24 or 32 bits or of floats of 32 or 64. Of the rest of the file nothing is kept.
/// @param accept is given the sound before its samples are read. What it throws passes through.
/// @throws UsageError, naming the file: missing, no sound, another format (which is named), damaged, cut off, without
/// samples, with a NaN or an infinity
Sound read_sound(const std::filesystem::path& path, const std::function<void(const Sound&)>& accept);

/// Writes a WAV of the sound's own format. Samples of integers are rounded to the nearest, halves upwards, and clipped
/// at full scale. By write_file(): it appears only whole.
/// @return samples that were clipped  @throws UsageError if it cannot be written
std::int64_t write_sound(const std::filesystem::path& path, const Sound& sound);

}  // namespace convladder
