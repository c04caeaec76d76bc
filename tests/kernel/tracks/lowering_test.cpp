// What the stages of matrix multiplication share: which problems they accept, how the problem looks to a kernel, and
// how large the rearranged inputs and the tiles are, against plain counting.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "common/harness/files/problem_io.hpp"
//
#include "common/kernel/divisor.hpp"  // last: they stand for CUDA, memcpy included
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

constexpr std::int64_t kMaxIndex = 2147418111;  // 2^31 - 1, less room for 65,536

std::string reason_for(std::string_view shape) { return check_lowering(parse_shape(shape)).reason(); }

/// Accepted with `key` at `most`, refused by `rule` with one more.
void check_edge(std::string_view shape, std::string_view key, std::int64_t most, std::string_view rule) {
  const auto with = [&](std::int64_t value) {
    return std::string(shape) + (shape.empty() ? "" : ",") + std::string(key) + "=" + std::to_string(value);
  };
  CAPTURE(with(most));
  CHECK(reason_for(with(most)) == "");
  const std::string reason = reason_for(with(most + 1));
  CHECK_MESSAGE(reason.find(rule) != std::string::npos, reason);
}

/// The product of all, however large: the rules once more, with no thought of overflow.
__extension__ using Wide = __int128;
bool fits(std::initializer_list<std::int64_t> factors) {
  Wide product = 1;
  for (const std::int64_t factor : factors) product = std::min<Wide>(product * factor, kMaxIndex + Wide{1});
  return product <= kMaxIndex;
}
bool fits_every_rule(const ConvProblem& x) {
  const std::int64_t p = x.p(), q = x.q();
  const bool positions = fits({x.h + 2 * x.pad_h}) && fits({x.w + 2 * x.pad_w}) && fits({x.stride_h}) &&
                         fits({x.stride_w}) && fits({x.dilation_h}) && fits({x.dilation_w});
  const bool taps = fits({(x.k + 127) / 128 * 128, x.c * x.r * x.s + 16});
  const bool tensors = fits({x.n, p, q}) && fits({x.n, x.c}) && fits({x.n, x.k}) && fits({x.k, p, q});
  return positions && taps && tensors && fits({x.c, x.r, x.s, p, q}) && fits({4, x.c, p, x.r, x.w + 2 * x.pad_w});
}

bool is_valid(const ConvProblem& problem) {
  try {
    validate(problem, std::numeric_limits<std::int64_t>::max());
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// 1 more often than not; else near a power of two.
std::int64_t random_size(int most_bits) {
  if (*rc::gen::resize(100, rc::gen::inRange(0, 3)) > 0) return 1;
  const int bits = *rc::gen::resize(100, rc::gen::inRange(0, most_bits + 1));
  const int off = *rc::gen::resize(100, rc::gen::inRange(-3, 4));
  return std::max<std::int64_t>((std::int64_t{1} << bits) + off, 1);
}

TEST_CASE("lowering: any filter, stride, dilation and padding with groups = 1") {
  CHECK(reason_for("c=1") == "");
  CHECK(reason_for("n=128,c=3,h=227,w=227,k=96,r=11,s=11,stride_h=4,stride_w=4,pad_h=0,pad_w=0") == "");
  CHECK(reason_for("n=3,c=5,k=7,h=6,w=7,r=4,s=2,pad_w=40,stride_w=9,dilation_h=2,pad_h=70") == "");
  CHECK(reason_for("n=128,c=64,k=64,h=224,w=224,r=7,s=7,stride_h=2,stride_w=2,pad_h=0,pad_w=0") == "");
  CHECK(reason_for("c=4,k=4,groups=4,r=3,s=3") == "the stages of matrix multiplication want groups = 1; got groups=4");
}

TEST_CASE("lowering: each rule at its edge") {
  const std::string_view positions = "index with 32 bits";
  check_edge("h=1,w=1,r=1,s=1", "stride_h", kMaxIndex, positions);
  check_edge("h=1,w=1,r=1,s=1", "stride_w", kMaxIndex, positions);
  check_edge("h=1,w=1,r=1,s=1", "dilation_h", kMaxIndex, positions);
  check_edge("h=1,w=1,r=1,s=1", "dilation_w", kMaxIndex, positions);
  check_edge("stride_h=2147418111,w=1", "h", kMaxIndex, positions);
  check_edge("stride_h=2147418111,h=1", "pad_h", kMaxIndex / 2, positions);
  check_edge("n=128", "c", 16776687, "taps in all");  // 128 (c + 16)
  check_edge("", "k", 986864 * 128, "taps in all");   // 17 k, of whole 128
  check_edge("", "n", kMaxIndex, "positions n p q");
  check_edge("n=129", "c", 16646652, "planes, n c and n k");
  check_edge("n=18", "k", 119301006, "planes, n c and n k");
  check_edge("k=5", "h", 429483622, "outputs k p q");
  check_edge("s=8,pad_w=0", "w", 268427263 + 7, "one image's rearrangement");  // c r s p q
  check_edge("", "w", 536854527, "one image's rearrangement");                 // 4 c p r (w + 2 pad_w)
  check_edge("pad_w=1", "w", 536854525, "one image's rearrangement");
}

TEST_CASE("lowering: what is refused is named to its last number") {
  const auto ends = [](const std::string& reason, std::string_view end) {
    CHECK_MESSAGE(reason.ends_with(end), reason);
  };
  ends(reason_for("h=224,w=224,r=7,s=7,dilation_w=4611686018427387005"),
       "dilation_w at most 2147418111; got 4611686018427387005");
  ends(reason_for("k=1000000007,c=1000000008"), "1000000007 x 1000000008 x 1 x 1");
  ends(reason_for("n=1000000007,h=1000000008"), "1000000007 x 1000000008 x 1");
  ends(reason_for("n=1000000007,c=10000008,k=3"), "n=1000000007, c=10000008, k=3");
  ends(reason_for("k=1000007,h=1000000008"), "k=1000007, p=1000000008, q=1");
  ends(reason_for("c=1000007,h=1000000008,w=2,s=3,r=1"), "w + 2 pad_w=4");
}

TEST_CASE("lowering: accepts exactly what every rule's product admits") {
  int accepted = 0, refused = 0;
  CHECK(rc::check([&] {
    ConvProblem x;
    x.n = random_size(31), x.c = random_size(25), x.k = random_size(28);
    x.r = random_size(12), x.s = random_size(12);
    x.h = random_size(31), x.w = random_size(31);
    x.pad_h = random_size(31) - 1, x.pad_w = random_size(31) - 1;
    x.stride_h = random_size(32), x.stride_w = random_size(32);
    x.dilation_h = random_size(16), x.dilation_w = random_size(16);
    RC_PRE(is_valid(x));
    const bool fit = fits_every_rule(x);
    (fit ? accepted : refused)++;
    RC_ASSERT(check_lowering(x).accepted() == fit);
  }));
  CHECK(accepted > 5);
  CHECK(refused > 5);
}

TEST_CASE("lowering_of: every size in its place") {
  ConvProblem problem =
      parse_shape("n=2,c=3,k=6,h=40,w=50,r=5,s=7,pad_h=9,pad_w=10,stride_h=11,stride_w=12,dilation_h=2,dilation_w=4");
  problem.padding = Padding::reflect;
  const Lowering l = lowering_of(problem);
  CHECK(l.batch == 2);
  CHECK(l.channels == 3);
  CHECK(l.height == 40);
  CHECK(l.width == 50);
  CHECK(l.filters == 6);
  CHECK(l.out_height == 5);  // (40 + 18 - 8 - 1) / 11 + 1
  CHECK(l.out_width == 4);   // (50 + 20 - 24 - 1) / 12 + 1
  CHECK(l.rows == 5);
  CHECK(l.columns == 7);
  CHECK(l.pad_y == 9);
  CHECK(l.pad_x == 10);
  CHECK(l.stride_y == 11);
  CHECK(l.stride_x == 12);
  CHECK(l.dilation_y == 2);
  CHECK(l.dilation_x == 4);
  CHECK(l.padding == Padding::reflect);
  CHECK(input_plane(l) == 2000);
  CHECK(output_plane(l) == 20);
  CHECK(window(l) == 35);
  CHECK(depth(l) == 105);
  CHECK(padded_width(l) == 70);
  CHECK(im2win_row(l) == 350);
  CHECK(im2win_plane(l) == 1750);

  const Axis rows = vertical(l), columns = horizontal(l);
  CHECK(std::array{rows.size, rows.out_size, rows.taps, rows.pad, rows.stride, rows.dilation} ==
        std::array<std::int64_t, 6>{40, 5, 5, 9, 11, 2});
  CHECK(std::array{columns.size, columns.out_size, columns.taps, columns.pad, columns.stride, columns.dilation} ==
        std::array<std::int64_t, 6>{50, 4, 7, 10, 12, 4});
  CHECK(rows.padding == Padding::reflect);
  CHECK(columns.padding == Padding::reflect);
}

TEST_CASE("lowering_of: the largest sizes that are accepted") {
  const Lowering high = lowering_of(parse_shape("h=2147418111,stride_h=2147418111"));
  CHECK(high.height == kMaxIndex);
  CHECK(high.stride_y == kMaxIndex);
  CHECK(high.out_height == 1);
  CHECK(input_plane(high) == kMaxIndex);
  CHECK(input_plane(lowering_of(parse_shape("h=65536,w=65536,stride_h=65536,stride_w=65536"))) == std::int64_t{1}
                                                                                                      << 32);
  CHECK(lowering_of(parse_shape("n=2147418111")).batch == kMaxIndex);
  CHECK(depth(lowering_of(parse_shape("c=16776687"))) == 16776687);
  CHECK(im2win_plane(lowering_of(parse_shape("w=536854527"))) == 536854527);
}

TEST_CASE("im2col and im2win: their sizes by hand") {
  const ConvProblem first = parse_shape("n=128,c=3,h=227,w=227,k=96,r=11,s=11,stride_h=4,stride_w=4,pad_h=0,pad_w=0");
  CHECK(im2col_size(first) == 128ll * 3 * 11 * 11 * 55 * 55);
  CHECK(im2win_size(first) == 128ll * 3 * 55 * 11 * 227);
  const ConvProblem padded = parse_shape("n=2,c=3,h=40,w=50,r=5,s=7,pad_h=9,pad_w=10,stride_h=11,stride_w=12");
  CHECK(im2col_size(padded) == 2ll * 3 * 5 * 7 * 5 * 6);
  CHECK(im2win_size(padded) == 2ll * 3 * 5 * 5 * 70);
  CHECK(im2col_size(parse_shape("n=65536,c=65536,h=3,w=3,r=3,s=3")) == std::int64_t{81} << 32);
  CHECK(im2win_size(parse_shape("n=65536,c=65536,h=3,w=3,r=3,s=3")) == std::int64_t{45} << 32);
}

/// n / d and n % d as the kernels compute them, for n on both sides of `quotient` times `divisor`.
void check_division(int divisor, std::int64_t quotient) {
  const Divisor d = divisor_of(divisor);
  for (const std::int64_t off : {-1, 0, 1}) {
    const std::int64_t n = quotient * divisor + off;
    if (n < 0 || n > std::numeric_limits<int>::max()) continue;
    const auto dividend = static_cast<unsigned>(n);
    if (dividend / d == n / divisor && dividend % d == n % divisor) continue;
    FAIL_CHECK(n, " / ", divisor, " is ", dividend / d, " rest ", dividend % d);
  }
}

TEST_CASE("division by a multiplication: around multiples of small divisors and large ones") {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const auto check = [&](std::int64_t divisor) {
    if (divisor < 1 || divisor > kMost) return;
    const std::int64_t last = kMost / divisor;  // the last quotient: there an error of the multiplier is largest
    for (std::int64_t quotient = 0; quotient < 70; ++quotient) {
      check_division(static_cast<int>(divisor), quotient);
      check_division(static_cast<int>(divisor), last - quotient);
      check_division(static_cast<int>(divisor), last / 70 * quotient);
    }
    check_division(static_cast<int>(divisor), last + 1);
  };
  for (std::int64_t divisor = 1; divisor <= 2000; ++divisor) check(divisor);
  for (int bits = 11; bits <= 31; ++bits)
    for (std::int64_t off = -3; off <= 3; ++off) check((std::int64_t{1} << bits) + off);
}

TEST_CASE("a tile's filters: the fewest empty rows, and of two that leave as few the larger tile") {
  for (int filters = 1; filters <= 400; ++filters) {
    int best = 0, fewest = std::numeric_limits<int>::max();
    for (const int tile : {64, 96, 128}) {
      const int computed = (filters + tile - 1) / tile * tile;
      if (computed <= fewest) {
        best = tile;
        fewest = computed;
      }
    }
    CAPTURE(filters);
    CHECK(tile_filters(filters) == best);
  }
  CHECK(tile_filters(64) == 64);
  CHECK(tile_filters(65) == 96);
  CHECK(tile_filters(97) == 128);
  CHECK(tile_filters(192) == 96);
  CHECK(tile_filters(256) == 128);
  CHECK(tile_filters(126318592) == 128);  // the most that any problem has
}

}  // namespace
}  // namespace convladder
