#include "common/harness/files/npy.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "common/harness/files/errors.hpp"
#include "tests/folder.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// A file of the given format version, header text and data.
std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string file = std::string("\x93NUMPY") + version + '\0';
  for (int byte = 0; byte < (version == 1 ? 2 : 4); ++byte)
    file += static_cast<char>(header.size() >> (8 * byte) & 0xff);
  return file + header + data;
}

std::string npy(const std::string& header, const std::vector<float>& values, char version = 1) {
  return npy(header, bytes_of(values), version);
}

NpyArray read(const std::string& file) {
  const Folder folder;
  std::ofstream(folder / "x.npy", std::ios::binary) << file;
  return read_npy(folder / "x.npy");
}

/// The message without the path before it, or "accepted".
std::string read_error(const std::string& file) {
  try {
    read(file);
  } catch (const UsageError& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    const std::size_t name = message.find("x.npy': ");
    REQUIRE(name != std::string::npos);
    return message.substr(name + std::strlen("x.npy': "));
  }
  return "accepted";
}

const std::string kHeader = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
const std::vector<float> kSix{1, 2, 3, 4, 5, 6};

TEST_CASE("read_npy reads the three versions of the format") {
  for (const char version : {1, 2, 3}) {
    const NpyArray array = read(npy(kHeader + std::string(20, ' ') + "\n", kSix, version));
    CHECK(array.shape == std::vector<std::int64_t>{2, 3});
    CHECK(array.values == kSix);
  }
}

TEST_CASE("read_npy reads the header as Python would") {
  for (const char* header : {
           "{'shape':(2,3),'fortran_order':False,'descr':'<f4'}",
           " { \"descr\" : \"<f4\" , \"shape\" : ( 2 , 3 , ) , \"fortran_order\" : False , } \n",
           "{'fortran_order': False, 'descr': '<f4', 'shape': (2L, 3L)}",
       }) {
    CAPTURE(header);
    const NpyArray array = read(npy(header, kSix));
    CHECK(array.shape == std::vector<std::int64_t>{2, 3});
    CHECK(array.values == kSix);
  }
  CHECK(read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", kSix)).shape ==
        std::vector<std::int64_t>{6});
  CHECK(read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1, 3), }", kSix)).shape ==
        std::vector<std::int64_t>{1, 2, 1, 3});
}

TEST_CASE("read_npy turns Fortran order into C order") {
  CHECK(read(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", kSix)).values ==
        std::vector<float>{1, 3, 5, 2, 4, 6});
  CHECK(read(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }", kSix)).values == kSix);
  // x[i][j][k] = 100 i + 10 j + k, the first index fastest.
  std::vector<float> fortran, c;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) fortran.push_back(static_cast<float>(100 * i + 10 * j + k));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) c.push_back(static_cast<float>(100 * i + 10 * j + k));
  CHECK(read(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 4), }", fortran)).values == c);
}

TEST_CASE("read_npy refuses what is no file") {
  const Folder folder;
  CHECK_THROWS_WITH_AS(
      read_npy(folder / "none.npy"),
      ("'" + (folder / "none.npy").string() + "': there is no such file; give the path of a .npy file").c_str(),
      UsageError);
  CHECK_THROWS_AS(read_npy(folder.path()), UsageError);
  CHECK_THROWS_AS(read_npy("/dev/null"), UsageError);
  CHECK_THROWS_WITH_AS(read_npy(""), "'': the path is empty; give the path of a .npy file", UsageError);
}

TEST_CASE("read_npy refuses what is no .npy file") {
  for (const std::string& file :
       {std::string(), std::string("\x93NUM"), std::string("hello, this is text"), "PK\3\4" + std::string(100, 'x')}) {
    CHECK(read_error(file) == "this is not a .npy file; write it with numpy.save");
  }
  CHECK(read_error(npy(kHeader, kSix, 4)) == "the .npy format 4.0 is not known; write 1.0, 2.0 or 3.0");
  CHECK(read_error(npy(kHeader, kSix, 0)) == "the .npy format 0.0 is not known; write 1.0, 2.0 or 3.0");
}

TEST_CASE("read_npy refuses every truncation and every surplus") {
  for (const char version : {1, 2}) {
    const std::string whole = npy(kHeader, kSix, version);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      CHECK(read_error(whole.substr(0, length)) != "accepted");
    }
    CHECK(read_error(whole) == "accepted");
  }
  CHECK(read_error(npy(kHeader, kSix).substr(0, 9)) == "the .npy header is truncated; write the file again");
  CHECK(read_error(npy(kHeader, bytes_of(kSix).substr(1))) ==
        "the file is truncated: shape (2, 3) takes 24 bytes of data and there are 23; write it again");
  CHECK(read_error(npy(kHeader, bytes_of(kSix) + "x")) ==
        "the file is too long: shape (2, 3) takes 24 bytes of data and there are 25; write it again");
}

TEST_CASE("read_npy names other element types and the remedy") {
  const auto error = [](const std::string& descr) {
    return read_error(npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': (2, 3), }", kSix));
  };
  CHECK(error("'<f8'") == "the element type is float64 ('<f8'), not float32; convert with x.astype(numpy.float32)");
  CHECK(error("'>f4'") ==
        "the element type is big-endian float32 ('>f4'), not float32; convert with x.astype(numpy.float32)");
  CHECK(error("'<f2'").find("float16") != std::string::npos);
  CHECK(error("'<i4'").find("int32") != std::string::npos);
  CHECK(error("'|u1'").find("uint8") != std::string::npos);
  CHECK(error("'<c8'").find("complex64") != std::string::npos);
  CHECK(error("'|b1'").find("bool") != std::string::npos);
  CHECK(error("'|O'").find("'|O'") != std::string::npos);
  CHECK(error("'<M8[ns]'").find("'<M8[ns]'") != std::string::npos);
  CHECK(error("'=f8'").find("is float64 ('=f8')") != std::string::npos);
  CHECK(error("'<f16'").find("is float128 ('<f16')") != std::string::npos);
  for (const std::string descr : {"'<f999999999'", "'<f17'", "'<f0'", "'<f-4'", "'<f4x'", "'<f99999999999'"})
    CHECK(error(descr) == "the element type is " + descr + ", not float32; convert with x.astype(numpy.float32)");
  CHECK(error("'=f4'") == "accepted");
  CHECK(error("'|f4'") != "accepted");
  CHECK(error("''") != "accepted");
  CHECK(error("[('a', '<f4'), ('b', '<f4')]") ==
        "structured elements are not supported; save one field with x['name'].astype(numpy.float32)");
}

TEST_CASE("read_npy refuses malformed headers") {
  for (const std::string header : {
           "",
           "\n",
           "{",
           "{}",
           "{,}",
           "[]",
           "{'descr': '<f4'}",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'shape': (2, 3)}",
           "{'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': '<f4\", 'fortran_order': False, 'shape': (2, 3)}",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
           "{'descr': '<f4', 'fortran_order': 'False', 'shape': (2, 3)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, , 3)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0, 3)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (0x2, 3)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, None)}",
           "{'descr': '<f4\\n', 'fortran_order': False, 'shape': (2, 3)}",
       }) {
    CAPTURE(header);
    CHECK(read_error(npy(header, kSix)) == "the .npy header is malformed; write the file with numpy.save");
  }
  CHECK(read_error(npy(kHeader + std::string(70000, ' '), kSix, 2)).find("malformed") != std::string::npos);
  CHECK(read_error(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12) + kHeader).find("malformed") != std::string::npos);
}

TEST_CASE("read_npy refuses hostile shapes before it allocates") {
  const auto error = [](const std::string& shape, const std::vector<float>& values = kSix) {
    return read_error(npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", values));
  };
  CHECK(error("()", {1}) == "a 0-d array is no tensor; save x.reshape(1)");
  CHECK(error("(0,)", {}) == "the shape (0,) has no elements; give a tensor with some");
  CHECK(error("(4611686018427387904, 0)", {}).find("no elements") != std::string::npos);
  CHECK(error("(-2, -3)").find("negative size") != std::string::npos);
  CHECK(error("(-6,)").find("negative size") != std::string::npos);
  CHECK(error("(99999999999999999999,)").find("does not fit in 64 bits") != std::string::npos);
  // 2^64 elements, 2^64 bytes, and no overflow but no machine either.
  CHECK(error("(4294967296, 4294967296)", {}).find("more elements than") != std::string::npos);
  CHECK(error("(4611686018427387904,)", {}).find("more elements than") != std::string::npos);
  CHECK(error("(1152921504606846976,)").find("more elements than") != std::string::npos);
  CHECK(error("(2, 4)").find("truncated") != std::string::npos);
  std::string deep = "(";
  for (int i = 0; i < 1000; ++i) deep += "1, ";
  CHECK(error(deep + ")", {1}).find("malformed") != std::string::npos);
}

TEST_CASE("read_npy takes or refuses any bytes, never more") {
  CHECK(rc::check([] {
    std::string file = npy(kHeader + "\n", kSix);
    const int changes = *rc::gen::inRange(1, 4);
    for (int i = 0; i < changes; ++i) {
      file[*rc::gen::inRange<std::size_t>(0, file.size())] = *rc::gen::arbitrary<char>();
    }
    const Folder folder;
    std::ofstream(folder / "x.npy", std::ios::binary) << file;
    try {
      RC_ASSERT(read_npy(folder / "x.npy").values.size() == 6);
    } catch (const UsageError&) {
    }
  }));
}

TEST_CASE("write_npy writes version 1.0 with aligned data") {
  const Folder folder;
  write_npy(folder / "y.npy", {{2, 3}, kSix});
  std::ifstream stream(folder / "y.npy", std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  CHECK(file == npy(header + std::string(128 - 10 - header.size() - 1, ' ') + "\n", kSix));
  CHECK(folder.entries() == 1);
}

TEST_CASE("read_npy reads back what write_npy writes, bit for bit") {
  const Folder folder;
  CHECK(rc::check([&] {
    NpyArray array;
    std::int64_t elements = 1;
    const int rank = *rc::gen::inRange(1, 6);
    for (int d = 0; d < rank; ++d) {
      array.shape.push_back(*rc::gen::inRange<std::int64_t>(1, 5));
      elements *= array.shape.back();
    }
    for (std::int64_t i = 0; i < elements; ++i) array.values.push_back(static_cast<float>(i) / 3);
    array.values[0] = *rc::gen::element(std::numeric_limits<float>::quiet_NaN(), -0.0f, 1e-45f);
    write_npy(folder / "y.npy", array);
    const NpyArray back = read_npy(folder / "y.npy");
    RC_ASSERT(back.shape == array.shape);
    RC_ASSERT(bytes_of(back.values) == bytes_of(array.values));
    RC_ASSERT(folder.entries() == 1);
  }));
}

TEST_CASE("write_npy leaves nothing behind where it fails") {
  const Folder folder;
  const NpyArray array{{2, 3}, kSix};
  CHECK_THROWS_AS(write_npy(folder / "none" / "y.npy", array), UsageError);
  CHECK(folder.entries() == 0);

  fs::create_directory(folder / "taken.npy");
  CHECK_THROWS_AS(write_npy(folder / "taken.npy", array), UsageError);
  CHECK(folder.entries() == 1);
  CHECK_THROWS_WITH_AS(write_npy("", array), "cannot write '': the path is empty; choose another path", UsageError);

  // A pipe, like a device, must stay what it is.
  REQUIRE(mkfifo((folder / "pipe.npy").c_str(), 0600) == 0);
  CHECK_THROWS_AS(write_npy(folder / "pipe.npy", array), UsageError);
  CHECK(fs::is_fifo(folder / "pipe.npy"));
  CHECK_THROWS_AS(write_npy(folder / "y.npy", {{2, 4}, kSix}), std::logic_error);
  CHECK(folder.entries() == 2);
}

TEST_CASE("write_npy writes through links to files and leaves every other link alone") {
  const Folder folder;
  const NpyArray array{{2, 3}, kSix};
  fs::create_directory(folder / "inner");
  const fs::path file = folder / "inner" / "y.npy";
  std::ofstream(file) << "old";
  fs::create_symlink("inner/y.npy", folder / "link.npy");
  fs::create_symlink("link.npy", folder / "second.npy");
  write_npy(folder / "second.npy", array);
  CHECK(fs::is_symlink(folder / "link.npy"));
  CHECK(fs::is_symlink(folder / "second.npy"));
  CHECK_FALSE(fs::is_symlink(file));
  CHECK(read_npy(file).values == kSix);

  fs::create_symlink("nothing.npy", folder / "dangling.npy");
  CHECK_THROWS_AS(write_npy(folder / "dangling.npy", array), UsageError);
  CHECK(fs::is_symlink(folder / "dangling.npy"));
  CHECK_FALSE(fs::exists(folder / "nothing.npy"));

  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("pipe", folder / "piped.npy");
  CHECK_THROWS_AS(write_npy(folder / "piped.npy", array), UsageError);
  CHECK(fs::is_symlink(folder / "piped.npy"));

  fs::create_symlink("/proc/self/fd", folder / "fd");
  CHECK_THROWS_AS(write_npy(folder / "fd" / "y.npy", array), UsageError);
  CHECK(folder.entries() == 7);
  CHECK(std::distance(fs::directory_iterator(folder / "inner"), fs::directory_iterator()) == 1);
}

TEST_CASE("what a name in /proc leads to is not replaced") {
  const Folder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  std::ofstream("y.npy") << "mine";
  CHECK_THROWS_AS(write_npy("/proc/self/cwd/y.npy", {{2, 3}, kSix}), UsageError);
  CHECK(fs::file_size("y.npy") == 4);
  fs::current_path(before);
}

TEST_CASE("write_npy keeps the old file where there is no room for the new one") {
  const Folder folder;
  write_npy(folder / "y.npy", {{2, 3}, kSix});

  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit small{4096, limit.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    write_npy(folder / "y.npy", {{100000}, std::vector<float>(100000)});
  } catch (const UsageError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);

  CHECK(message == "cannot write '" + (folder / "y.npy").string() + "': File too large; choose another path");
  CHECK(folder.entries() == 1);
  CHECK(read_npy(folder / "y.npy").values == kSix);
}

}  // namespace
}  // namespace convladder
