#include "common/harness/files/sound.hpp"

#include <fmt/format.h>

#include "common/harness/files/errors.hpp"

#ifdef CONVLADDER_SNDFILE
#include <sndfile.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

#include "common/harness/files/input_file.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/spelling.hpp"
#endif

namespace convladder {

std::string to_string(const Sound& sound) {
  return fmt::format("{} Hz, {} channel{} of {:.3f} s, {}", sound.sample_rate, sound.channels,
                     sound.channels == 1 ? "" : "s", static_cast<double>(sound.frames) / sound.sample_rate, sound.type);
}

#ifdef CONVLADDER_SNDFILE

namespace {

namespace fs = std::filesystem;

/// How a file holds a sample.
struct SampleType {
  int format;  ///< of libsndfile
  int bits;    ///< of an integer; 0 of a float
  int bytes;
  std::string_view name;
};
constexpr SampleType kSampleTypes[] = {
    {SF_FORMAT_PCM_U8, 8, 1, "8 bits"},           {SF_FORMAT_PCM_16, 16, 2, "16 bits"},
    {SF_FORMAT_PCM_24, 24, 3, "24 bits"},         {SF_FORMAT_PCM_32, 32, 4, "32 bits"},
    {SF_FORMAT_FLOAT, 0, 4, "floats of 32 bits"}, {SF_FORMAT_DOUBLE, 0, 8, "floats of 64 bits"}};
constexpr int kContainers[] = {SF_FORMAT_WAV, SF_FORMAT_WAVEX, SF_FORMAT_RF64};
/// Samples that are read or written at a time, in one channel.
constexpr std::int64_t kPiece = 4096;
/// Bytes of a WAV, whose sizes have 32 bits; less than that, for what stands before the samples.
constexpr std::int64_t kLargestWav = 0xFFFF0000;

const SampleType* sample_type(int format) {
  const auto* const found = std::find_if(std::begin(kSampleTypes), std::end(kSampleTypes), [&](const SampleType& type) {
    return type.format == (format & SF_FORMAT_SUBMASK);
  });
  return found == std::end(kSampleTypes) ? nullptr : found;
}

/// What libsndfile calls a container or a sample's type: "FLAC (Free Lossless Audio Codec)".
std::string format_name(int format) {
  SF_FORMAT_INFO info{format, nullptr, nullptr};
  if (sf_command(nullptr, SFC_GET_FORMAT_INFO, &info, sizeof info) != 0 || !info.name) return "unknown";
  return info.name;
}

struct CloseFile {
  void operator()(SNDFILE* file) const { sf_close(file); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using SoundFile = std::unique_ptr<SNDFILE, CloseFile>;

/// Refuses what libsndfile would pass over: an empty file, and one that is shorter than its first bytes say.
void require_whole(const fs::path& path) {
  require_input_file(path, "a WAV file");
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) refuse_file(path, fmt::format("cannot be opened ({}); make it readable", std::strerror(errno)));
  unsigned char head[8];
  const std::size_t read = std::fread(head, 1, sizeof head, file.get());
  if (read == 0) refuse_file(path, "the file is empty; give the path of a WAV file");
  if (read < sizeof head || std::memcmp(head, "RIFF", 4) != 0) return;
  // What a program writes that cannot go back to the head of its output says 0 or all ones.
  const std::uint32_t says = head[4] | head[5] << 8 | head[6] << 16 | std::uint32_t{head[7]} << 24;
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  const bool known = says != 0 && says != UINT32_MAX;
  if (known && bytes + 1 < says + std::uintmax_t{sizeof head})  // some leave out the last byte, which pads
    refuse_file(path, "the WAV is cut off; copy or export it again");
}

/// A file in memory for libsndfile.
struct Memory {
  std::string bytes;
  sf_count_t at = 0;

  static Memory& of(void* user) { return *static_cast<Memory*>(user); }
  static sf_count_t size(void* user) { return static_cast<sf_count_t>(of(user).bytes.size()); }
  static sf_count_t tell(void* user) { return of(user).at; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? of(user).at : size(user);
    return of(user).at = from + offset;
  }
  static sf_count_t read(void* to, sf_count_t count, void* user) {
    const sf_count_t there = std::clamp<sf_count_t>(size(user) - of(user).at, 0, count);
    std::memcpy(to, of(user).bytes.data() + of(user).at, static_cast<std::size_t>(there));
    of(user).at += there;
    return there;
  }
  static sf_count_t write(const void* from, sf_count_t count, void* user) {
    const auto end = static_cast<std::size_t>(of(user).at + count);
    if (of(user).bytes.size() < end) of(user).bytes.resize(end);
    std::memcpy(of(user).bytes.data() + of(user).at, from, static_cast<std::size_t>(count));
    of(user).at += count;
    return count;
  }
};

}  // namespace

void require_sound_files() {}

Sound read_sound(const fs::path& path, const std::function<void(const Sound&)>& accept) {
  require_whole(path);
  SF_INFO info{};
  const SoundFile file(sf_open(path.c_str(), SFM_READ, &info));
  if (!file) {
    if (sf_error(nullptr) == SF_ERR_UNRECOGNISED_FORMAT)
      refuse_file(path, "this is not a sound file; give the path of a WAV file");
    std::string reason = sf_strerror(nullptr);
    while (reason.ends_with('.') || reason.ends_with(' ')) reason.pop_back();
    refuse_file(path, fmt::format("the sound cannot be read (libsndfile says: {}); export it again", reason));
  }
  const bool wav = std::find(std::begin(kContainers), std::end(kContainers), info.format & SF_FORMAT_TYPEMASK) !=
                   std::end(kContainers);
  const SampleType* const type = sample_type(info.format);
  if (!wav || !type) {
    const std::string name = format_name(info.format & (wav ? SF_FORMAT_SUBMASK : SF_FORMAT_TYPEMASK));
    refuse_file(path, fmt::format("this is {} of the format {}; convert it to a WAV of 16 bits, for example with SoX: "
                                  "sox {} -b 16 -e signed sound.wav",
                                  wav ? "a WAV with samples" : "a sound file", name, in_quotes(path.string())));
  }
  if (info.frames < 1) refuse_file(path, "there are no samples; record or export the sound again");

  Sound sound{info.samplerate, info.channels, info.frames, info.format, std::string(type->name), {}};
  accept(sound);
  sound.samples.resize(static_cast<std::size_t>(sound.channels * sound.frames));
  std::vector<float> piece(static_cast<std::size_t>(sound.channels * kPiece));
  for (std::int64_t at = 0; at < sound.frames;) {
    const std::int64_t read = sf_readf_float(file.get(), piece.data(), std::min(kPiece, sound.frames - at));
    if (read < 1) refuse_file(path, "the WAV is cut off; copy or export it again");
    for (std::int64_t i = 0; i < read; ++i, ++at) {
      for (std::int64_t c = 0; c < sound.channels; ++c) {
        const float sample = piece[static_cast<std::size_t>(i * sound.channels + c)];
        if (!std::isfinite(sample))
          refuse_file(path, fmt::format("sample {} of channel {} is {}; export the sound again", at, c, sample));
        sound.samples[static_cast<std::size_t>(c * sound.frames + at)] = sample;
      }
    }
  }
  return sound;
}

std::int64_t write_sound(const fs::path& path, const Sound& sound) {
  const auto fail = [&](std::string_view why) {
    throw UsageError(fmt::format("cannot write {}: {}; make the sound shorter", in_quotes(path.string()), why));
  };
  const SampleType& type = *sample_type(sound.format);
  const int bits = type.bits;
  const bool wide = (sound.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_RF64;
  if (!wide && sound.frames > kLargestWav / type.bytes / sound.channels) fail("a WAV holds at most 4 GB");

  Memory memory;
  SF_VIRTUAL_IO io{&Memory::size, &Memory::seek, &Memory::read, &Memory::write, &Memory::tell};
  SF_INFO info{};
  info.samplerate = sound.sample_rate;
  info.channels = sound.channels;
  info.format = sound.format;
  SoundFile file(sf_open_virtual(&io, SFM_WRITE, &info, &memory));
  if (!file) fail(sf_strerror(nullptr));
  sf_command(file.get(), SFC_SET_ADD_PEAK_CHUNK, nullptr, SF_FALSE);  // of floats: it holds the time of day

  const double scale = std::ldexp(1, bits - 1);
  std::int64_t clipped = 0;
  std::vector<float> floats(static_cast<std::size_t>(sound.channels * kPiece));
  std::vector<int> integers(floats.size());  // the sample in the highest bits, as libsndfile takes it
  for (std::int64_t at = 0; at < sound.frames; at += kPiece) {
    const std::int64_t count = std::min(kPiece, sound.frames - at);
    for (std::int64_t i = 0; i < count * sound.channels; ++i) {
      const float sample =
          sound.samples[static_cast<std::size_t>(i % sound.channels * sound.frames + at + i / sound.channels)];
      floats[static_cast<std::size_t>(i)] = sample;
      if (bits == 0) continue;
      const double level = std::floor(sample * scale + 0.5);
      const double kept = std::clamp(level, -scale, scale - 1);
      clipped += level == kept ? 0 : 1;
      integers[static_cast<std::size_t>(i)] = static_cast<int>(std::ldexp(kept, 32 - bits));
    }
    const sf_count_t written = bits == 0 ? sf_writef_float(file.get(), floats.data(), count)
                                         : sf_writef_int(file.get(), integers.data(), count);
    if (written != count) fail(sf_strerror(file.get()));
  }
  file.reset();
  write_file(path, memory.bytes);
  return clipped;
}

#else

void require_sound_files() {
  throw UsageError(
      "this program was built without libsndfile, which reads and writes sounds; install libsndfile1-dev and build "
      "again");
}

Sound read_sound(const std::filesystem::path&, const std::function<void(const Sound&)>&) {
  require_sound_files();
  return {};
}

std::int64_t write_sound(const std::filesystem::path&, const Sound&) {
  require_sound_files();
  return 0;
}

#endif

}  // namespace convladder
