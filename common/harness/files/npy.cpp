#include "common/harness/files/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/harness/device/host.hpp"
#include "common/harness/files/input_file.hpp"
#include "common/harness/files/output_file.hpp"

static_assert(std::endian::native == std::endian::little, "tensors are copied to and from '<f4' as they are");

namespace convladder {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
/// Of the header's text; NumPy itself stops at 10000.
constexpr std::uint64_t kLongestHeader = 1 << 16;
/// As in NumPy.
constexpr std::size_t kMostDimensions = 64;
/// Bytes of the largest element type that has a name here.
constexpr int kWidestElement = 16;

/// What NumPy calls an element type: "float64" for "<f8", "big-endian float32" for ">f4".
std::string type_name(std::string_view descr) {
  std::string name = "'" + std::string(descr) + "'";
  if (descr.size() < 3) return name;
  int bytes = 0;
  const char* const end = descr.data() + descr.size();
  const auto [rest, error] = std::from_chars(descr.data() + 2, end, bytes);
  if (error != std::errc() || rest != end || bytes < 1 || bytes > kWidestElement) return name;
  const bool big_endian = descr[0] == '>';
  const auto describe = [&](const char* kind) {
    return fmt::format("{}{}{} ({})", big_endian ? "big-endian " : "", kind, 8 * bytes, name);
  };
  switch (descr[1]) {
    case 'f':
      return describe("float");
    case 'i':
      return describe("int");
    case 'u':
      return describe("uint");
    case 'c':
      return describe("complex");
    case 'b':
      return "bool (" + name + ")";
    default:
      return name;
  }
}

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Reads the header's text: a Python dict with the keys descr, fortran_order and shape in any order.
class HeaderParser {
 public:
  HeaderParser(const std::filesystem::path& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<std::int64_t>> shape;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !descr) {
        descr = element_type();
      } else if (key == "fortran_order" && !fortran_order) {
        fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        malformed();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size() || !descr || !fortran_order || !shape) malformed();
    return {*descr, *fortran_order, *shape};
  }

 private:
  [[noreturn]] void malformed() const {
    refuse_file(path_, "the .npy header is malformed; write the file with numpy.save");
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char token) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != token) return false;
    ++at_;
    return true;
  }
  void expect(char token) {
    if (!accept(token)) malformed();
  }
  bool accept_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::string string() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) malformed();
    std::string value(text_.substr(at_, end - at_));
    for (const char c : value) {
      if (c < 0x20 || c > 0x7e || c == '\\') malformed();
    }
    at_ = end + 1;
    return value;
  }

  std::string element_type() {
    if (accept('['))
      refuse_file(path_, "structured elements are not supported; save one field with x['name'].astype(numpy.float32)");
    return string();
  }

  bool boolean() {
    skip_space();
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    malformed();
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t value = 0;
      const auto [rest, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error == std::errc::result_out_of_range)
        refuse_file(path_, "the shape does not fit in 64 bits; this is no usable array");
      if (error != std::errc()) malformed();
      at_ = static_cast<std::size_t>(rest - text_.data());
      accept_word("L");  // Python 2 wrote its long integers so
      values.push_back(value);
      if (values.size() > kMostDimensions) malformed();
      if (!accept(',')) {
        if (values.size() == 1) malformed();  // (3) is a number, (3,) a tuple
        expect(')');
        break;
      }
    }
    return values;
  }

  const std::filesystem::path& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

/// Bytes of the data of a usable shape.
std::uint64_t data_bytes(const std::filesystem::path& path, const std::vector<std::int64_t>& shape) {
  if (shape.empty()) refuse_file(path, "a 0-d array is no tensor; save x.reshape(1)");
  std::int64_t bytes = sizeof(float);
  for (const std::int64_t size : shape) {
    if (size < 0)
      refuse_file(path, fmt::format("the shape {} has a negative size; this is no usable array", shape_text(shape)));
    if (size == 0)
      refuse_file(path, fmt::format("the shape {} has no elements; give a tensor with some", shape_text(shape)));
  }
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > host_memory_bytes()) {
      refuse_file(path,
                  fmt::format("the shape {} has more elements than this machine's memory holds; use a smaller tensor",
                              shape_text(shape)));
    }
  }
  return static_cast<std::uint64_t>(bytes);
}

/// Little-endian unsigned integer.
std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// First index fastest to last index fastest.
std::vector<float> from_fortran_order(const std::vector<float>& values, const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> strides(shape.size(), 1);  // of the C order
  for (std::size_t d = shape.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * static_cast<std::size_t>(shape[d]);

  std::vector<float> result(values.size());
  std::vector<std::int64_t> index(shape.size(), 0);
  std::size_t target = 0;
  for (const float value : values) {
    result[target] = value;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      target += strides[d];
      if (++index[d] < shape[d]) break;
      target -= strides[d] * static_cast<std::size_t>(shape[d]);
      index[d] = 0;
    }
  }
  return result;
}

}  // namespace

NpyArray read_npy(const std::filesystem::path& path) {
  require_input_file(path, "a .npy file");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse_file(path, fmt::format("cannot be opened ({}); make it readable", std::strerror(errno)));
  std::error_code error;
  const std::uint64_t file_bytes = std::filesystem::file_size(path, error);

  const auto read = [&](std::uint64_t bytes) {
    std::string text(bytes, '\0');
    file.read(text.data(), static_cast<std::streamsize>(bytes));
    if (!file) refuse_file(path, "the .npy header is truncated; write the file again");
    return text;
  };
  if (file_bytes < kMagic.size() || read(kMagic.size()) != kMagic) {
    refuse_file(path, "this is not a .npy file; write it with numpy.save");
  }
  const std::string version = read(2);
  if (version[0] < 1 || version[0] > 3 || version[1] != 0) {
    refuse_file(path, fmt::format("the .npy format {}.{} is not known; write 1.0, 2.0 or 3.0",
                                  static_cast<unsigned char>(version[0]), static_cast<unsigned char>(version[1])));
  }
  const std::size_t length_bytes = version[0] == 1 ? 2 : 4;
  const std::uint64_t header_bytes = little_endian(read(length_bytes));
  if (header_bytes > kLongestHeader) refuse_file(path, "the .npy header is malformed; write the file with numpy.save");
  const Header header = HeaderParser(path, read(header_bytes)).parse();
  if (header.descr != "<f4" && header.descr != "=f4") {
    refuse_file(path, fmt::format("the element type is {}, not float32; convert with x.astype(numpy.float32)",
                                  type_name(header.descr)));
  }

  const std::uint64_t bytes = data_bytes(path, header.shape);
  const std::uint64_t present = file_bytes - (kMagic.size() + 2 + length_bytes + header_bytes);
  if (present != bytes) {
    refuse_file(path,
                fmt::format("the file is {}: shape {} takes {} bytes of data and there are {}; write it again",
                            present < bytes ? "truncated" : "too long", shape_text(header.shape), bytes, present));
  }
  std::vector<float> values(bytes / sizeof(float));
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(bytes));
  if (!file) refuse_file(path, "reading failed; write the file again");
  if (header.fortran_order) values = from_fortran_order(values, header.shape);
  return {header.shape, std::move(values)};
}

void write_npy(const std::filesystem::path& path, const NpyArray& array) {
  std::uint64_t elements = 1;
  for (const std::int64_t size : array.shape) elements *= static_cast<std::uint64_t>(size);
  if (elements != array.values.size()) throw std::logic_error("an array's values do not fill its shape");

  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", shape_text(array.shape));
  const std::size_t prefix = kMagic.size() + 4;
  header.resize((prefix + header.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');  // the data starts at a multiple of 64
  header += '\n';

  std::string bytes{kMagic};
  bytes += {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(array.values.data()), array.values.size() * sizeof(float));
  write_file(path, bytes);
}

}  // namespace convladder
