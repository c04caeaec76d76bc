#include "common/harness/files/picture.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "common/harness/commands/filter_command.hpp"
#include "common/harness/commands/picture_convolution.hpp"
#include "common/harness/commands/picture_filters.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/npy.hpp"
#include "common/kernel/tracks/byte_images.hpp"
#include "tests/folder.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

const auto kRoom = [](const Picture&) { return std::int64_t{1} << 20; };  // samples

// ---- PNG files, made without libpng ---------------------------------------------------------------------------------

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string chunk(const std::string& name, const std::string& data) {
  const std::string body = name + data;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(static_cast<std::uint32_t>(crc));
}

std::string deflated(const std::string& data) {
  uLongf size = compressBound(data.size());
  std::string result(size, '\0');
  REQUIRE(compress(reinterpret_cast<Bytef*>(result.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
                   data.size()) == Z_OK);
  result.resize(size);
  return result;
}

const std::string kSignature = "\x89PNG\r\n\x1a\n";
const std::string kEnd = chunk("IEND", "");

enum Color : char { grey = 0, rgb = 2, palette = 3, grey_alpha = 4, rgb_alpha = 6 };

std::string header(std::uint32_t width, std::uint32_t height, int depth, Color color, bool interlaced = false) {
  return chunk("IHDR", big_endian(width) + big_endian(height) + static_cast<char>(depth) + static_cast<char>(color) +
                           std::string(2, '\0') + (interlaced ? '\1' : '\0'));
}

/// @param rows each with its filter byte  @param before chunks between header and pixels
std::string png(const std::string& ihdr, const std::string& rows, const std::string& before = "",
                const std::string& after = "") {
  return kSignature + ihdr + before + chunk("IDAT", deflated(rows)) + after + kEnd;
}

/// Bytes as text: "\0" and all.
std::string text(std::initializer_list<int> bytes) {
  std::string result;
  for (const int byte : bytes) result += static_cast<char>(byte);
  return result;
}

Picture read(const std::string& file) {
  const Folder folder;
  std::ofstream(folder / "x.png", std::ios::binary) << file;
  return read_png(folder / "x.png", kRoom);
}

/// The message without the path before it, or "accepted".
std::string read_error(const std::string& file) {
  try {
    read(file);
  } catch (const UsageError& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    const std::size_t name = message.find("x.png': ");
    REQUIRE(name != std::string::npos);
    return message.substr(name + std::strlen("x.png': "));
  }
  return "accepted";
}

bool contains(const std::string& whole, const std::string& part) { return whole.find(part) != std::string::npos; }

std::vector<int> samples(const Picture& picture) {
  std::vector<int> values;
  for (std::int64_t i = 0; i < picture.width * picture.height * picture.channels; ++i)
    values.push_back(picture.sample(i));
  return values;
}

void check_picture(const std::string& file, const std::string& form, const std::vector<int>& values) {
  const Picture picture = read(file);
  CHECK(to_string(picture) == form);
  CHECK(samples(picture) == values);
}

TEST_CASE("PNG: every colour type and depth is read") {
  check_picture(png(header(3, 1, 1, grey), text({0, 0b10100000})), "3x1, grey, 8 bits", {255, 0, 255});
  check_picture(png(header(3, 1, 2, grey), text({0, 0b00011100})), "3x1, grey, 8 bits", {0, 85, 255});
  check_picture(png(header(3, 1, 4, grey), text({0, 0x0f, 0x70})), "3x1, grey, 8 bits", {0, 255, 119});
  check_picture(png(header(2, 2, 8, grey), text({0, 1, 2, 0, 3, 254})), "2x2, grey, 8 bits", {1, 2, 3, 254});
  check_picture(png(header(2, 1, 16, grey), text({0, 1, 2, 255, 254})), "2x1, grey, 16 bits", {258, 65534});
  check_picture(png(header(1, 1, 8, grey_alpha), text({0, 7, 9})), "1x1, grey and alpha, 8 bits", {7, 9});
  check_picture(png(header(1, 1, 16, grey_alpha), text({0, 0, 7, 1, 9})), "1x1, grey and alpha, 16 bits", {7, 265});
  check_picture(png(header(1, 2, 8, rgb), text({0, 1, 2, 3, 0, 4, 5, 6})), "1x2, RGB, 8 bits", {1, 2, 3, 4, 5, 6});
  check_picture(png(header(1, 1, 16, rgb), text({0, 1, 0, 2, 0, 3, 1})), "1x1, RGB, 16 bits", {256, 512, 769});
  check_picture(png(header(1, 1, 8, rgb_alpha), text({0, 1, 2, 3, 4})), "1x1, RGB and alpha, 8 bits", {1, 2, 3, 4});
  check_picture(png(header(1, 1, 16, rgb_alpha), text({0, 1, 0, 2, 0, 3, 1, 0, 4})), "1x1, RGB and alpha, 16 bits",
                {256, 512, 769, 4});
}

TEST_CASE("PNG: a palette becomes RGB, a transparent colour alpha") {
  const std::string colours = chunk("PLTE", text({10, 20, 30, 40, 50, 60}));
  for (const int depth : {1, 2, 4, 8}) {
    CAPTURE(depth);
    const std::string row = depth == 8 ? text({0, 1, 0}) : text({0, 1 << (8 - depth)});  // entry 1, then 0
    check_picture(png(header(2, 1, depth, palette), row, colours), "2x1, RGB, 8 bits", {40, 50, 60, 10, 20, 30});
  }
  check_picture(png(header(2, 1, 8, palette), text({0, 1, 0}), colours + chunk("tRNS", text({7}))),
                "2x1, RGB and alpha, 8 bits", {40, 50, 60, 255, 10, 20, 30, 7});
  check_picture(png(header(2, 1, 8, grey), text({0, 5, 6}), chunk("tRNS", text({0, 5}))), "2x1, grey and alpha, 8 bits",
                {5, 0, 6, 255});
  check_picture(png(header(2, 1, 16, grey), text({0, 1, 5, 2, 6}), chunk("tRNS", text({1, 5}))),
                "2x1, grey and alpha, 16 bits", {261, 0, 518, 65535});
}

TEST_CASE("PNG: an index beyond the palette is black") {
  check_picture(png(header(2, 1, 8, palette), text({0, 200, 1}), chunk("PLTE", "abcdef")), "2x1, RGB, 8 bits",
                {0, 0, 0, 'd', 'e', 'f'});
}

TEST_CASE("PNG: interlaced files are read") {
  constexpr int kStartX[] = {0, 4, 0, 2, 0, 1, 0}, kStartY[] = {0, 0, 4, 0, 2, 0, 1};
  constexpr int kStepX[] = {8, 8, 4, 4, 2, 2, 1}, kStepY[] = {8, 8, 8, 4, 4, 2, 2};
  for (const int size : {1, 3, 9}) {
    std::vector<int> values;
    for (int i = 0; i < size * size; ++i) values.push_back(i * 3 % 256);
    std::string rows;
    for (int pass = 0; pass < 7; ++pass) {
      for (int y = kStartY[pass]; y < size; y += kStepY[pass]) {
        if (kStartX[pass] < size) rows += '\0';
        for (int x = kStartX[pass]; x < size; x += kStepX[pass])
          rows += static_cast<char>(values[static_cast<std::size_t>(y * size + x)]);
      }
    }
    const auto side = static_cast<std::uint32_t>(size);
    check_picture(png(header(side, side, 8, grey, true), rows), fmt::format("{0}x{0}, grey, 8 bits", size), values);
  }
}

Picture random_picture(std::int64_t width, std::int64_t height, int channels, int depth, unsigned seed) {
  Picture picture{width, height, channels, depth, {}, {}};
  picture.bytes.resize(static_cast<std::size_t>(width * height * channels * depth / 8));
  std::mt19937 random(seed);
  for (std::int64_t i = 0; i < width * height * channels; ++i) {
    // Smooth, with a little noise and white areas: halves of sums come about, and saturation.
    const int value = static_cast<int>(random() % 64) + static_cast<int>(i * 5 % 384);
    const int low = depth == 16 ? static_cast<int>(random() % 256) : 0;
    picture.set_sample(i, std::min((value << (depth - 8)) + low, picture.white()));
  }
  return picture;
}

TEST_CASE("PNG: what is written is read again, with its colour chunks") {
  const Folder folder;
  for (const int depth : {8, 16}) {
    for (const int channels : {1, 2, 3, 4}) {
      Picture picture = random_picture(13, 7, channels, depth, 1);
      picture.chunks = {{"gAMA", {0, 0, 177, 143}, false}, {"eXIf", {'I', 'I', 42, 0}, true}};
      write_png(folder / "y.png", picture);
      const Picture again = read_png(folder / "y.png", kRoom);
      CHECK(to_string(again) == to_string(picture));
      CHECK(again.bytes == picture.bytes);
      REQUIRE(again.chunks.size() == 2);
      CHECK(again.chunks[0].name == "gAMA");
      CHECK(again.chunks[0].data == picture.chunks[0].data);
      CHECK_FALSE(again.chunks[0].after_pixels);
      CHECK(again.chunks[1].name == "eXIf");
      CHECK(again.chunks[1].after_pixels);
    }
  }
}

TEST_CASE("PNG: chunks of colour, resolution and orientation are kept, others are not") {
  std::string before;
  for (const char* name : {"gAMA", "cHRM", "sRGB", "iCCP", "cICP", "mDCV", "cLLI", "pHYs", "tEXt", "sBIT", "prVt"})
    before += chunk(name, "data");
  const Picture picture =
      read(png(header(1, 1, 8, grey), text({0, 5}), before, chunk("eXIf", "E") + chunk("zTXt", "t")));
  std::string names;
  for (const PictureChunk& kept : picture.chunks) names += kept.name + " ";
  CHECK(names == "gAMA cHRM sRGB iCCP cICP mDCV cLLI pHYs eXIf ");
}

// ---- Files that are wrong -------------------------------------------------------------------------------------------

std::string good_png() {
  return png(header(3, 2, 8, rgb), text({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
             chunk("gAMA", text({0, 0, 177, 143})));
}

TEST_CASE("PNG: a file that is cut off is told, wherever it was cut") {
  const std::string good = good_png();
  REQUIRE(read_error(good) == "accepted");
  for (std::size_t length = 0; length < good.size(); ++length) {
    CAPTURE(length);
    const std::string error = read_error(good.substr(0, length));
    const std::string part = length == 0 ? "the file is empty" : length < 4 ? "not a PNG file" : "is cut off";
    CHECK(contains(error, part));
  }
}

TEST_CASE("PNG: damaged bytes are told, and never more than that") {
  std::mt19937 random(7);
  const std::string good = good_png();
  const std::string interlaced = png(header(9, 9, 1, palette, true), std::string(60, '\0'), chunk("PLTE", "abcdef"));
  int told = 0;
  for (int i = 0; i < 600; ++i) {
    std::string file = i % 2 == 0 ? good : interlaced;
    for (unsigned flips = random() % 3 + 1; flips > 0; --flips)
      file[random() % file.size()] = static_cast<char>(random());
    told += read_error(file) != "accepted" ? 1 : 0;
  }
  CHECK(told > 500);
}

TEST_CASE("PNG: wrong sizes, checksums and amounts of data are told") {
  const std::string row = text({0, 5});
  const auto damaged = [](const std::string& error) { return contains(error, "the PNG is damaged (libpng says: "); };
  CHECK(contains(read_error(png(header(0x7fffffff, 0x7fffffff, 8, rgb), row)), "make the picture smaller"));
  CHECK(contains(read_error(png(header(1 << 10, (1 << 10) + 1, 8, grey), row)), "memory allows 1048576 samples"));
  CHECK(contains(read_error(png(header(1, 0x7fffffff, 16, rgb_alpha), row)), "make the picture smaller"));
  CHECK(damaged(read_error(png(header(0x80000000, 1, 8, grey), row))));
  CHECK(damaged(read_error(png(header(0, 1, 8, grey), row))));
  CHECK(damaged(read_error(png(header(1, 0, 8, grey), row))));
  CHECK(damaged(read_error(png(header(1, 1, 3, grey), row))));
  CHECK(damaged(read_error(png(header(1, 1, 8, static_cast<Color>(5)), row))));
  CHECK(damaged(read_error(png(header(1, 1, 8, palette), row))));                            // none
  CHECK(damaged(read_error(png(header(1, 1, 8, grey), ""))));                                // no row
  CHECK(damaged(read_error(png(header(1, 2, 8, grey), row))));                               // one row
  CHECK(damaged(read_error(png(header(1, 1, 8, grey), row + row))));                         // too many
  CHECK(damaged(read_error(png(header(1, 1, 8, grey), row + std::string(1 << 20, '\0')))));  // far too many
  CHECK(damaged(read_error(png(header(1, 1, 8, grey), row, "", chunk("tEXt", "") + chunk("IDAT", "more")))));
  CHECK(damaged(read_error(kSignature + header(1, 1, 8, grey) + chunk("IDAT", deflated(row) + "more") + kEnd)));
  CHECK(damaged(read_error(kSignature + header(1, 1, 8, grey) + kEnd)));
  CHECK(damaged(read_error(kSignature + chunk("IDAT", deflated(row)) + kEnd)));
  for (const char* name : {"IDAT", "gAMA", "tEXt"}) {
    std::string file = png(header(1, 1, 8, grey), row, chunk("gAMA", "data") + chunk("tEXt", "text"));
    file[file.find(name) + 5] ^= 1;
    CAPTURE(name);
    CHECK(damaged(read_error(file)));
  }
}

TEST_CASE("PNG: chunks that would explode are not unpacked") {
  const std::string bomb = "n" + text({0, 0}) + deflated(std::string(100 << 20, '\0'));
  REQUIRE(bomb.size() < 200'000);
  const std::string row = text({0, 5});
  CHECK(read(png(header(1, 1, 8, grey), row, chunk("zTXt", bomb) + chunk("iTXt", bomb))).chunks.empty());
  CHECK(read(png(header(1, 1, 8, grey), row, chunk("iCCP", bomb))).chunks.at(0).data.size() == bomb.size());
  CHECK(contains(read_error(png(header(1, 1, 8, grey), row, chunk("iCCP", std::string(9'000'000, 'x')))), "damaged"));
}

TEST_CASE("PNG: other files are named") {
  CHECK(contains(read_error("\xff\xd8\xff\xe0 JFIF"), "this is a JPEG file, not a PNG; convert it"));
  CHECK(contains(read_error("GIF89a......"), "a GIF file"));
  CHECK(contains(read_error("RIFF....WEBPVP8 "), "a WebP file"));
  CHECK(contains(read_error("....ftypheic...."), "a HEIF file"));
  CHECK(contains(read_error(text({'M', 'M', 0, 42, 0, 0})), "a TIFF file"));
  CHECK(contains(read_error("P6 3 3 255"), "a PPM file"));
  CHECK(contains(read_error("hello"), "not a PNG file; export"));
  const Folder folder;
  const auto error_of = [](const fs::path& path) -> std::string {
    try {
      read_png(path, kRoom);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(contains(error_of(folder / "none.png"), "no such file"));
  CHECK(contains(error_of(folder / "."), "not a regular file"));
  CHECK(contains(error_of(""), "the path is empty"));
}

// ---- Filters --------------------------------------------------------------------------------------------------------

PictureFilter named(const std::string& name) { return picture_filter({name, {}, {}, {}}); }

std::string filter_error(const PictureFilterOptions& options) {
  try {
    picture_filter(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("picture filters: sizes and taps") {
  CHECK(named("sharpen").taps[0] == std::vector<float>{0, -1, 0, -1, 5, -1, 0, -1, 0});
  CHECK(named("sobel").taps.size() == 2);
  CHECK(named("box").rows == 5);
  CHECK(named("box").divisor == 25);
  CHECK(picture_filter({"box", {}, 4, {}}).divisor == 16);
  CHECK(named("gaussian").rows == 13);
  CHECK(picture_filter({"gaussian", 0.5, {}, {}}).columns == 5);
  CHECK(picture_filter({"gaussian", 10.66, {}, {}}).columns == 65);
  CHECK(picture_filter({"gaussian", 50.0, 65, {}}).columns == 65);
  const PictureFilter gaussian = picture_filter({"gaussian", 1.0, {}, {}});
  REQUIRE(gaussian.rows == 7);
  double sum = 0;
  for (const float tap : gaussian.taps[0]) sum += tap;
  CHECK(std::abs(sum - 1) < 1e-6);
  CHECK(std::abs(gaussian.taps[0][24] / gaussian.taps[0][25] - std::exp(0.5)) < 1e-5);
  CHECK(std::abs(gaussian.taps[0][24] / gaussian.taps[0][32] - std::exp(1.0)) < 1e-5);
}

TEST_CASE("picture filters: what is refused") {
  CHECK(contains(filter_error({"sharpn", {}, {}, {}}), "did you mean sharpen?"));
  CHECK(contains(filter_error({"box", 2.0, {}, {}}), "--sigma does not belong to box"));
  CHECK(contains(filter_error({"sobel", {}, 5, {}}), "--size does not belong to sobel"));
  CHECK(contains(filter_error({"box", {}, {}, "f.txt"}), "--filter does not belong to box"));
  CHECK(contains(filter_error({"custom", {}, {}, {}}), "give --filter FILE"));
  CHECK(contains(filter_error({"box", {}, 0, {}}), "from 1 to 65"));
  CHECK(contains(filter_error({"box", {}, 66, {}}), "from 1 to 65"));
  CHECK(contains(filter_error({"gaussian", {}, 4, {}}), "odd"));
  CHECK(contains(filter_error({"gaussian", 0.0, {}, {}}), "above 0"));
  CHECK(contains(filter_error({"gaussian", NAN, {}, {}}), "above 0"));
  CHECK(contains(filter_error({"gaussian", 10.67, {}, {}}), "use at most 10.66"));
}

TEST_CASE("picture filters: text and arrays") {
  const Folder folder;
  const auto write = [&](const std::string& content) { std::ofstream(folder / "f.txt", std::ios::binary) << content; };
  const auto error = [&](const std::string& content) {
    write(content);
    return filter_error({"custom", {}, {}, folder / "f.txt"});
  };
  write("# a filter\n1, -2 +3\t\n\n 0.5,1e1 .25 # the second row\r\n");
  const PictureFilter filter = read_filter(folder / "f.txt");
  CHECK(filter.name == "custom, f.txt");
  CHECK(filter.rows == 2);
  CHECK(filter.columns == 3);
  CHECK(filter.taps[0] == std::vector<float>{1, -2, 3, 0.5f, 10, 0.25f});
  CHECK(contains(error("1 2\n3\n"), "line 2 has 1 numbers where the rows above have 2"));
  CHECK(contains(error("1 x\n"), "line 1: 'x' is no number"));
  CHECK(contains(error("1 1e99\n"), "no number of fp32"));
  CHECK(contains(error("# nothing\n"), "there are no numbers"));
  CHECK(contains(error("1,,3\n"), "line 1: there is no number between two commas"));
  CHECK(contains(error("1 2\r3 4\r"), "no number"));  // the lines of an old Mac
  CHECK(contains(error("+-1\n"), "'+-1' is no number"));
  std::ofstream(folder / "f.txt") << "\xEF\xBB\xBF"
                                     "1e-99, 2\r\n3 4\r\n";
  CHECK(read_filter(folder / "f.txt").taps[0] == std::vector<float>{0, 2, 3, 4});
  CHECK(contains(error("1 nan\n"), "infinite, NaN or too large"));
  CHECK(contains(error("1e31\n"), "infinite, NaN or too large"));
  std::string wide;
  for (int i = 0; i < 66; ++i) wide += "1 ";
  CHECK(contains(error(wide), "66 columns; at most 65"));
  CHECK(contains(error(std::string(2 << 20, ' ')), "too long"));
  CHECK(contains(filter_error({"custom", {}, {}, folder / "none.txt"}), "no such file"));

  write_npy(folder / "f.npy", {{2, 2}, {1, 2, 3, 4}});
  CHECK(read_filter(folder / "f.npy").rows == 2);
  write_npy(folder / "f.npy", {{4}, {1, 2, 3, 4}});
  CHECK(read_filter(folder / "f.npy").rows == 1);
  CHECK(read_filter(folder / "f.npy").columns == 4);
  write_npy(folder / "f.npy", {{1, 2, 2}, {1, 2, 3, 4}});
  CHECK(contains(filter_error({"custom", {}, {}, folder / "f.npy"}), "3 dimensions"));
}

// ---- Filtered pictures ----------------------------------------------------------------------------------------------

/// A sample beyond the edge, found by walking there.
int source(std::int64_t i, std::int64_t size, Padding padding) {
  std::int64_t at = 0, step = i < 0 ? -1 : 1;
  for (std::int64_t walked = 0; walked < std::abs(i); ++walked) {
    if (at + step < 0 || at + step >= size) {
      if (padding == Padding::zero) return -1;
      if (padding == Padding::replicate) break;
      step = -step;
    }
    at += step;
  }
  return static_cast<int>(at);
}

/// What the filter should give, with sums in long double, and the alpha as it was.
std::vector<int> expected(const Picture& picture, const PictureFilter& filter, Padding padding) {
  std::vector<int> rows, columns;  // that the windows meet
  for (std::int64_t i = 0; i < picture.height + filter.rows - 1; ++i)
    rows.push_back(source(i - filter.rows / 2, picture.height, padding));
  for (std::int64_t i = 0; i < picture.width + filter.columns - 1; ++i)
    columns.push_back(source(i - filter.columns / 2, picture.width, padding));
  const auto sum_at = [&](const std::vector<float>& taps, std::int64_t y, std::int64_t x, int c) {
    long double sum = 0;
    for (std::int64_t s = filter.columns - 1; s >= 0; --s) {
      for (std::int64_t r = filter.rows - 1; r >= 0; --r) {
        const int i = rows[static_cast<std::size_t>(y + r)], j = columns[static_cast<std::size_t>(x + s)];
        if (i < 0 || j < 0) continue;
        sum += static_cast<long double>(taps[static_cast<std::size_t>(r * filter.columns + s)]) *
               picture.sample((i * picture.width + j) * picture.channels + c);
      }
    }
    return sum;
  };
  std::vector<int> result = samples(picture);
  for (std::int64_t y = 0; y < picture.height; ++y) {
    for (std::int64_t x = 0; x < picture.width; ++x) {
      for (int c = 0; c < picture.colours(); ++c) {
        const long double first = sum_at(filter.taps[0], y, x, c);
        const long double second = filter.taps.size() == 2 ? sum_at(filter.taps[1], y, x, c) : 0;
        const long double level = filter.taps.size() == 2 ? std::sqrt(first * first + second * second)
                                                          : first / static_cast<long double>(filter.divisor);
        result[static_cast<std::size_t>((y * picture.width + x) * picture.channels + c)] =
            static_cast<int>(std::clamp<long double>(std::floor(level + 0.5L), 0, picture.white()));
      }
    }
  }
  return result;
}

std::vector<PictureFilter> filters() {
  std::vector<PictureFilter> all{named("sharpen"), named("emboss"), named("sobel"), named("box")};
  all.push_back(picture_filter({"gaussian", 1.3, {}, {}}));
  all.push_back(picture_filter({"box", {}, 4, {}}));
  all.push_back(picture_filter({"box", {}, 1, {}}));
  all.push_back({"halves", 1, 2, {{0.5f, 0.5f}}});  // many sums are halves
  all.push_back({"thirds", 3, 1, {{1 / 3.f, -0.7f, 2.1f}}});
  all.push_back({"product", 2, 2, {{3, 9, 5, 15}}});  // of rank one, but 5/3 is no float
  // Stage 08 takes it for the product of two unit vectors, and leaves 64 taps out.
  PictureFilter nearly{"nearly a product", 9, 9, {std::vector<float>(81, 9e-7f)}};
  for (std::size_t i = 0; i < 9; ++i) nearly.taps[0][9 * 4 + i] = nearly.taps[0][9 * i + 4] = i == 4 ? 1.0f : 0.0f;
  all.push_back(nearly);
  return all;
}

TEST_CASE("filtered pictures: every stage gives the exact picture") {
  struct Size {
    std::int64_t width, height;
  };
  int ran = 0;
  for (const StageInfo& stage : stages()) {
    if (!track_of(stage).pictures) continue;
    for (const Size size : {Size{1, 1}, Size{1, 7}, Size{37, 3}, Size{132, 21}}) {
      for (const int depth : {8, 16}) {
        for (const int channels : {1, 2, 3, 4}) {
          const Picture picture = random_picture(size.width, size.height, channels, depth, 3);
          for (const PictureFilter& filter : filters()) {
            if (filter.name != "sharpen" && channels != (depth == 8 ? 4 : 1)) continue;  // it takes time
            for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
              const ConvProblem problem = picture_problem(picture, filter, padding);
              if (size.width > 100 && padding != Padding::replicate) continue;
              if (padding == Padding::reflect && (problem.pad_h >= problem.h || problem.pad_w >= problem.w)) continue;
              if (!filters_refusal(stage, problem, filter.taps).empty()) continue;
              CAPTURE(stage.folder);
              CAPTURE(to_string(picture));
              CAPTURE(filter.name);
              CAPTURE(static_cast<int>(padding));
              const FilteredPicture filtered = filter_picture(stage, problem, picture, filter);
              REQUIRE(samples(filtered.picture) == expected(picture, filter, padding));
              ++ran;
            }
          }
        }
      }
    }
  }
  CHECK(ran > 100);
}

TEST_CASE("filtered pictures: sharpen and box of 8 bits need no help of the host") {
  const StageInfo& stage = find_stage("5");
  const Picture picture = random_picture(40, 30, 3, 8, 4);
  for (const char* name : {"sharpen", "emboss", "box", "sobel"}) {
    const PictureFilter filter = named(name);
    CHECK(filter_picture(stage, picture_problem(picture, filter, Padding::zero), picture, filter).on_host == 0);
  }
}

// ---- Stages that are wrong, or nearly ------------------------------------------------------------------------------

/// A direct sum on the host, off by a part of its magnitude; and what a derived stage does to single outputs.
class FakeStage : public Stage, public ByteImageFilter {
 public:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  void launch(const ConvProblem& p, const Tensors& tensors, Stream) override {
    for (std::int64_t i = 0; i < p.output_size(); ++i) {
      const Sum sum = sum_at(p, tensors.input, tensors.filter, i);
      if (writes(i)) tensors.output[i] = static_cast<float>(sum.value + error(i) * sum.magnitude);
    }
  }
  void prepare(const ConvProblem&, const Tensors& tensors, Stream) override { filter_ = tensors.filter; }
  void launch_bytes(const ConvProblem& p, const std::uint8_t* input, std::uint8_t* output, float divisor,
                    Stream) override {
    for (std::int64_t i = 0; i < p.output_size(); ++i) {
      const double level = sum_at(p, input, filter_, i).value / divisor + byte_error(i);
      if (writes(i)) output[i] = static_cast<std::uint8_t>(std::clamp(std::floor(level + 0.5), 0.0, 255.0));
    }
  }

 protected:
  virtual bool writes(std::int64_t) const { return true; }
  virtual double error(std::int64_t) const { return 0; }
  virtual double byte_error(std::int64_t) const { return 0; }

 private:
  struct Sum {
    double value = 0, magnitude = 0;
  };
  template <class Pixel>
  static Sum sum_at(const ConvProblem& p, const Pixel* input, const float* taps, std::int64_t index) {
    Sum sum;
    const std::int64_t x = index % p.q(), y = index / p.q() % p.p(), n = index / p.q() / p.p();
    for (std::int64_t r = 0; r < p.r; ++r) {
      for (std::int64_t s = 0; s < p.s; ++s) {
        const int i = source(y - p.pad_h + r, p.h, p.padding), j = source(x - p.pad_w + s, p.w, p.padding);
        if (i < 0 || j < 0) continue;
        const double term = static_cast<double>(taps[r * p.s + s]) * input[(n * p.h + i) * p.w + j];
        sum.value += term;
        sum.magnitude += std::abs(term);
      }
    }
    return sum;
  }
  const float* filter_ = nullptr;
};

/// Off by as much as the roundings of 8 taps may make it.
class InexactStage final : public FakeStage {
  double error(std::int64_t i) const override { return i % 2 == 0 ? 8 * 0x1p-24 : -8 * 0x1p-24; }
};
class WrongStage final : public FakeStage {
  double error(std::int64_t i) const override { return i % 64 == 0 ? 1e-4 : 0; }
  double byte_error(std::int64_t i) const override { return i % 64 == 0 ? 100 : 0; }
};
class ForgetfulStage final : public FakeStage {
  bool writes(std::int64_t i) const override { return i != 4321; }
};
class NanStage final : public FakeStage {
  double error(std::int64_t i) const override { return i == 4321 ? NAN : 0; }
};

template <class Type>
StageInfo fake() {
  StageInfo info = find_stage("5");
  info.folder = "99-fake";
  info.make = []() -> Stage* { return new Type; };
  return info;
}

std::string filtering_error(const StageInfo& stage, const Picture& picture, const PictureFilter& filter) {
  try {
    filter_picture(stage, picture_problem(picture, filter, Padding::zero), picture, filter);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("filtered pictures: roundings do not show") {
  const PictureFilter eighths{"eighths", 2, 4, {std::vector<float>(8, 0.125f)}};  // one sum in eight is a half
  const PictureFilter box = picture_filter({"box", {}, 8, {}});                   // with 16 bits, integers in vain
  for (const int depth : {8, 16}) {
    const Picture picture = random_picture(90, 61, 3, depth, 5);
    for (const PictureFilter& filter : {eighths, box}) {
      const ConvProblem problem = picture_problem(picture, filter, Padding::reflect);
      const FilteredPicture inexact = filter_picture(fake<InexactStage>(), problem, picture, filter);
      CHECK(samples(inexact.picture) == expected(picture, filter, Padding::reflect));
      if (inexact.as_bytes) continue;
      CHECK(inexact.on_host > 0);
      CHECK(inexact.on_host < 90 * 61 * 3 * 2 / 3);
    }
  }
}

TEST_CASE("filtered pictures: a stage that reads bytes is used where sums are exact") {
  const auto as_bytes = [](const PictureFilter& filter, int depth) {
    const Picture picture = random_picture(50, 33, 4, depth, 6);
    const ConvProblem problem = picture_problem(picture, filter, Padding::zero);
    const FilteredPicture filtered = filter_picture(fake<FakeStage>(), problem, picture, filter);
    CHECK(samples(filtered.picture) == expected(picture, filter, Padding::zero));
    return filtered.as_bytes;
  };
  CHECK(as_bytes(named("sharpen"), 8));
  CHECK(as_bytes(named("box"), 8));
  CHECK_FALSE(as_bytes(named("sharpen"), 16));
  CHECK_FALSE(as_bytes(named("gaussian"), 8));
  CHECK_FALSE(as_bytes(named("sobel"), 8));
  CHECK_FALSE(as_bytes({"large", 1, 1, {{65794}}}, 8));  // 255 * 65794 is above 2^24
  CHECK(most_picture_samples(true) > 4 * most_picture_samples(false));
}

TEST_CASE("filtered pictures: a wrong or missing result is told") {
  // So many that not all are compared; 4321 is not.
  const Picture bytes = random_picture(190, 61, 1, 8, 5), words = random_picture(190, 61, 1, 16, 5);
  const std::string place = "channel 0, row 22, column 141";  // 4321
  for (const PictureFilter& filter : {named("sharpen"), named("gaussian")}) {
    CHECK(filtering_error(fake<FakeStage>(), words, filter) == "accepted");
    CHECK(contains(filtering_error(fake<WrongStage>(), words, filter), "99-fake gave a wrong picture, which was not"));
    CHECK(contains(filtering_error(fake<ForgetfulStage>(), words, filter), place + " was never written"));
    CHECK(contains(filtering_error(fake<NanStage>(), words, filter), place + " is nan"));
  }
  CHECK(filtering_error(fake<FakeStage>(), bytes, named("sharpen")) == "accepted");
  CHECK(contains(filtering_error(fake<WrongStage>(), bytes, named("sharpen")), "channel 0, row 0, column 0 is"));
  CHECK(contains(filtering_error(fake<ForgetfulStage>(), bytes, named("sharpen")), place + " is"));
}

TEST_CASE("filtered pictures: even filters keep the size") {
  const Picture picture = random_picture(9, 5, 3, 8, 8);
  const PictureFilter filter{"even", 2, 4, {std::vector<float>(8, 1)}};
  const ConvProblem problem = picture_problem(picture, filter, Padding::replicate);
  CHECK(problem.n == 3);
  CHECK(problem.p() == 6);
  CHECK(problem.q() == 10);
  const FilteredPicture filtered = filter_picture(find_stage("5"), problem, picture, filter);
  CHECK(to_string(filtered.picture) == to_string(picture));
}

}  // namespace
}  // namespace convladder
