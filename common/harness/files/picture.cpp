#include "common/harness/files/picture.hpp"

#include <fmt/format.h>
#include <png.h>

#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/input_file.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

/// Names of five bytes, as libpng wants them.
constexpr char kKeptChunks[] = "gAMA\0cHRM\0sRGB\0iCCP\0cICP\0mDCV\0cLLI\0pHYs\0eXIf";
/// Of one kept chunk: more than any colour profile or camera's data takes.
constexpr png_alloc_size_t kLargestChunk = 8'000'000;
constexpr png_uint_32 kMostChunks = 32;
constexpr std::size_t kSignatureBytes = 16;

// ---- libpng ---------------------------------------------------------------------------------------------------------

/// libpng's last error.
using Message = char[160];

[[noreturn]] void note_and_jump(png_structp png, png_const_charp text) {
  std::snprintf(static_cast<char*>(png_get_error_ptr(png)), sizeof(Message), "%s", text);
  png_longjmp(png, 1);
}
void pass_over_warning(png_structp, png_const_charp) {}

/// Whether `work(state)` came to its end. libpng's errors jump out of it, and no destructor runs: nothing in `work` may
/// need one.
template <class State>
bool completes(void (*work)(State&), State& state) {
  if (setjmp(png_jmpbuf(state.png)) != 0) return false;
  work(state);
  return true;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// libpng's reading side, and what is known of the picture so far.
struct Reader {
  Message message = "";
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, message, note_and_jump, pass_over_warning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  std::FILE* file;
  std::uint8_t* bytes = nullptr;  // (height, row_bytes)
  std::size_t row_bytes = 0;

  explicit Reader(std::FILE* source) : file(source) {
    if (!info) throw std::bad_alloc();
  }
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::int64_t width() const { return png_get_image_width(png, info); }
  std::int64_t height() const { return png_get_image_height(png, info); }
  int channels() const {
    const int color = png_get_color_type(png, info);
    const bool alpha = (color & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png, info, PNG_INFO_tRNS) != 0;
    return ((color & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1) + (alpha ? 1 : 0);
  }
  int depth() const { return png_get_bit_depth(png, info) == 16 ? 16 : 8; }
};

/// All before the pixels. Nothing is decompressed: chunks are kept raw, or left out.
void read_header(Reader& reader) {
  png_structp png = reader.png;
  png_set_benign_errors(png, 0);  // they are errors: too much image data, for one
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the limit is memory: see read_png()
  png_set_chunk_malloc_max(png, kLargestChunk);
  png_set_chunk_cache_max(png, kMostChunks);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_ALWAYS, reinterpret_cast<png_const_bytep>(kKeptChunks),
                              sizeof kKeptChunks / 5);
  png_init_io(png, reader.file);
  png_read_info(png, reader.info);
}

/// From here on rows are as Picture has them.
void expand(Reader& reader) {
  png_set_expand(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  reader.row_bytes = png_get_rowbytes(reader.png, reader.info);
}

void read_rows(Reader& reader) {
  const bool interlaced = png_get_interlace_type(reader.png, reader.info) != PNG_INTERLACE_NONE;
  const png_uint_32 height = png_get_image_height(reader.png, reader.info);
  for (int pass = 0; pass < (interlaced ? PNG_INTERLACE_ADAM7_PASSES : 1); ++pass) {
    for (png_uint_32 y = 0; y < height; ++y) png_read_row(reader.png, reader.bytes + y * reader.row_bytes, nullptr);
  }
  png_read_end(reader.png, reader.info);
}

/// Runs a part of the reading, or says what is wrong with the file.
void run(void (*part)(Reader&), Reader& reader, const fs::path& path) {
  if (completes(part, reader)) return;
  if (std::feof(reader.file) != 0) refuse_file(path, "the PNG is cut off; copy or export it again");
  if (std::string_view(reader.message) == "Out of memory") throw std::bad_alloc();
  refuse_file(path, fmt::format("the PNG is damaged (libpng says: {}); export it again", reader.message));
}

std::vector<PictureChunk> chunks_of(const Reader& reader) {
  std::vector<PictureChunk> chunks;
  png_unknown_chunkp found = nullptr;
  const int count = png_get_unknown_chunks(reader.png, reader.info, &found);
  for (int i = 0; i < count; ++i) {
    chunks.push_back({reinterpret_cast<const char*>(found[i].name),
                      {found[i].data, found[i].data + found[i].size},
                      (found[i].location & PNG_AFTER_IDAT) != 0});
  }
  return chunks;
}

/// libpng's writing side, into memory.
struct Writer {
  Message message = "";
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, message, note_and_jump, pass_over_warning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  const Picture& picture;
  std::vector<png_unknown_chunk> chunks;
  char* text = nullptr;
  std::size_t size = 0;
  File stream{open_memstream(&text, &size)};

  explicit Writer(const Picture& source) : picture(source) {
    if (!info || !stream) throw std::bad_alloc();
    for (const PictureChunk& chunk : picture.chunks) {
      png_unknown_chunk raw{};
      std::memcpy(raw.name, chunk.name.c_str(), sizeof raw.name);
      raw.data = const_cast<png_bytep>(chunk.data.data());  // it is only read
      raw.size = chunk.data.size();
      raw.location = chunk.after_pixels ? PNG_AFTER_IDAT : PNG_HAVE_IHDR;
      chunks.push_back(raw);
    }
  }
  ~Writer() {
    png_destroy_write_struct(&png, &info);
    stream.reset();  // it sets `text`
    std::free(text);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
};

void write_all(Writer& writer) {
  const Picture& picture = writer.picture;
  png_structp png = writer.png;
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_init_io(png, writer.stream.get());
  const int color = (picture.colours() == 3 ? PNG_COLOR_MASK_COLOR : 0) |
                    (picture.colours() < picture.channels ? PNG_COLOR_MASK_ALPHA : 0);
  png_set_IHDR(png, writer.info, static_cast<png_uint_32>(picture.width), static_cast<png_uint_32>(picture.height),
               picture.depth, color, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_ALWAYS, nullptr, 0);
  png_set_unknown_chunks(png, writer.info, writer.chunks.data(), static_cast<int>(writer.chunks.size()));
  png_write_info(png, writer.info);
  const std::int64_t row_bytes = picture.width * picture.channels * picture.depth / 8;
  for (std::int64_t y = 0; y < picture.height; ++y) png_write_row(png, picture.bytes.data() + y * row_bytes);
  png_write_end(png, writer.info);
}

// ---- Files ----------------------------------------------------------------------------------------------------------

/// What a file is that is no PNG; "" if unknown.
std::string_view format_of(std::string_view head) {
  constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
      {"\xff\xd8\xff", "JPEG"}, {"GIF8", "GIF"},    {"BM", "BMP"},   {{"II*\0", 4}, "TIFF"},
      {{"MM\0*", 4}, "TIFF"},   {"\x8bJNG", "JNG"}, {"P5", "PGM"},   {"P6", "PPM"},
      {"%PDF", "PDF"},          {"<svg", "SVG"},    {"<?xml", "SVG"}};
  for (const auto& [start, name] : kFormats) {
    if (head.starts_with(start)) return name;
  }
  const auto holds = [&](std::size_t at, std::string_view part) {
    return head.size() > at && head.substr(at).starts_with(part);
  };
  if (holds(0, "RIFF") && holds(8, "WEBP")) return "WebP";
  if (holds(4, "ftyp")) return holds(8, "avif") ? "AVIF" : "HEIF";
  return "";
}

File open_png(const fs::path& path) {
  require_input_file(path, "a PNG file");
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) refuse_file(path, fmt::format("cannot be opened ({}); make it readable", std::strerror(errno)));

  char head[kSignatureBytes];
  const std::string_view start(head, std::fread(head, 1, sizeof head, file.get()));
  if (start.empty()) refuse_file(path, "the file is empty; give the path of a PNG file");
  if (!start.starts_with("\x89PNG")) {
    const std::string_view format = format_of(start);
    if (format.empty()) refuse_file(path, "this is not a PNG file; export the picture as PNG");
    refuse_file(path, fmt::format("this is a {} file, not a PNG; convert it, for example with ImageMagick: convert {} "
                                  "picture.png",
                                  format, in_quotes(path.string())));
  }
  std::rewind(file.get());
  return file;
}

}  // namespace

std::string to_string(const Picture& picture) {
  return fmt::format("{}x{}, {}{}, {} bits", picture.width, picture.height, picture.colours() == 3 ? "RGB" : "grey",
                     picture.colours() < picture.channels ? " and alpha" : "", picture.depth);
}

Picture read_png(const fs::path& path, const std::function<std::int64_t(const Picture&)>& most_samples) {
  const File file = open_png(path);
  Reader reader(file.get());
  run(read_header, reader, path);

  Picture picture{reader.width(), reader.height(), reader.channels(), reader.depth(), {}, {}};
  const std::int64_t most = most_samples(picture);
  if (picture.width > most / picture.channels / picture.height) {
    refuse_file(path,
                fmt::format("{}: this machine's memory allows {} samples (pixels times channels); make the picture "
                            "smaller",
                            to_string(picture), most));
  }
  run(expand, reader, path);
  picture.bytes.resize(static_cast<std::size_t>(picture.height * picture.width * picture.channels * picture.depth / 8));
  if (reader.row_bytes * static_cast<std::size_t>(picture.height) != picture.bytes.size())
    throw std::logic_error("libpng's rows are not the picture's");
  reader.bytes = picture.bytes.data();
  run(read_rows, reader, path);
  picture.chunks = chunks_of(reader);
  return picture;
}

void write_png(const fs::path& path, const Picture& picture) {
  Writer writer(picture);
  if (!completes(write_all, writer) || std::fflush(writer.stream.get()) != 0)
    throw UsageError(fmt::format("cannot write {}: {}; make the picture smaller", in_quotes(path.string()),
                                 writer.message[0] != '\0' ? writer.message : "not enough memory"));
  write_file(path, {writer.text, writer.size});
}

}  // namespace convladder
