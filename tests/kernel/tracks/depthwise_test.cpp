// What the depthwise stages share: which problems they accept, and how often the input is read, against plain counting.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/harness/files/problem_io.hpp"
//
#include "common/kernel/tracks/depthwise.hpp"  // last: it stands for CUDA, memcpy included

namespace convladder {
namespace {

std::int64_t pick(std::int64_t least, std::int64_t most) {
  return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(least, most + 1));
}

/// An axis of every kind on which some output exists.
Axis random_axis() {
  Axis axis{pick(1, 12), 0, pick(1, 7), pick(0, 9), static_cast<Padding>(pick(0, 2)), pick(1, 4), pick(1, 4)};
  if (axis.padding == Padding::reflect) axis.pad = std::min(axis.pad, axis.size - 1);
  const std::int64_t padded = axis.size + 2 * axis.pad;
  axis.taps = std::min(axis.taps, (padded - 1) / axis.dilation + 1);
  axis.out_size = (padded - (axis.taps - 1) * axis.dilation - 1) / axis.stride + 1;
  return axis;
}

/// Whether a position reads the input.
bool reads(const Axis& axis, std::int64_t position) {
  return axis.padding != Padding::zero || (position >= 0 && position < axis.size);
}

/// Where output i reads with tap t.
std::int64_t position(const Axis& axis, std::int64_t i, std::int64_t t) {
  return i * axis.stride - axis.pad + t * axis.dilation;
}

Verdict check(std::string_view shape) { return check_depthwise(parse_shape(shape)); }

bool refuses(const Verdict& verdict, std::string_view rule) {
  return std::string_view(verdict.reason()).find(rule) != std::string_view::npos;
}

TEST_CASE("reads of a range: each position counted") {
  CHECK(rc::check([] {
    const Axis axis = random_axis();
    const std::int64_t first = pick(-20, 30), count = pick(1, 20);
    std::int64_t expected = 0;
    for (std::int64_t i = first; i < first + count; ++i) expected += reads(axis, i);
    RC_ASSERT(reads_of_range(axis, first, count) == expected);
  }));
}

TEST_CASE("reads by output: each output and each tap counted") {
  CHECK(rc::check([] {
    const Axis axis = random_axis();
    RC_CLASSIFY(axis.stride > 1, "strided");
    RC_CLASSIFY(axis.dilation > 1, "dilated");
    std::int64_t expected = 0;
    for (std::int64_t i = 0; i < axis.out_size; ++i)
      for (std::int64_t t = 0; t < axis.taps; ++t) expected += reads(axis, position(axis, i, t));
    RC_ASSERT(reads_by_output(axis) == expected);
  }));
}

TEST_CASE("reads by tile: every position from a tile's first to its last counted") {
  CHECK(rc::check([] {
    const Axis axis = random_axis();
    const std::int64_t outputs = pick(1, 9);
    std::int64_t expected = 0;
    for (std::int64_t start = 0; start < axis.out_size; start += outputs) {
      const std::int64_t last = std::min(start + outputs, axis.out_size) - 1;
      for (std::int64_t at = position(axis, start, 0); at <= position(axis, last, axis.taps - 1); ++at)
        expected += reads(axis, at);
    }
    RC_ASSERT(reads_by_tile(axis, outputs) == expected);
  }));
}

TEST_CASE("reads of an axis by hand: 5 elements, 3 taps, stride 2, padding 1") {
  Axis axis{5, 3, 3, 1, Padding::zero, 2, 1};
  CHECK(reads_by_output(axis) == 2 + 3 + 2);
  CHECK(reads_by_tile(axis, 2) == 4 + 2);  // positions -1 to 3, and 3 to 5
  axis.padding = Padding::replicate;
  CHECK(reads_by_output(axis) == 9);
  axis = {5, 5, 3, 2, Padding::zero, 1, 2};  // dilated: positions i - 2, i and i + 2
  CHECK(reads_by_output(axis) == 2 + 2 + 3 + 2 + 2);
  CHECK(reads_by_tile(axis, 5) == 5);
}

TEST_CASE("reads of depthwise planes: seven loops") {
  CHECK(rc::check([] {
    const Axis rows = random_axis(), columns = [&] {
      Axis axis = random_axis();
      while (axis.padding != rows.padding) axis = random_axis();
      return axis;
    }();
    ConvProblem problem;
    problem.n = pick(1, 3);
    problem.c = problem.k = problem.groups = pick(1, 4);
    problem.h = rows.size, problem.w = columns.size;
    problem.r = rows.taps, problem.s = columns.taps;
    problem.pad_h = rows.pad, problem.pad_w = columns.pad;
    problem.stride_h = rows.stride, problem.stride_w = columns.stride;
    problem.dilation_h = rows.dilation, problem.dilation_w = columns.dilation;
    problem.padding = rows.padding;
    std::int64_t expected = 0;
    for (std::int64_t plane = 0; plane < problem.n * problem.c; ++plane)
      for (std::int64_t p = 0; p < problem.p(); ++p)
        for (std::int64_t q = 0; q < problem.q(); ++q)
          for (std::int64_t r = 0; r < problem.r; ++r)
            for (std::int64_t s = 0; s < problem.s; ++s)
              expected += reads(rows, position(rows, p, r)) && reads(columns, position(columns, q, s));
    RC_ASSERT(reads_by_output(depthwise_of(problem)) == expected);
  }));
}

TEST_CASE("depthwise_of: every size in its place") {
  ConvProblem problem = parse_shape(
      "n=2,c=3,k=3,groups=3,h=40,w=50,r=5,s=7,pad_h=9,pad_w=10,stride_h=11,stride_w=12,dilation_h=2,dilation_w=4");
  problem.padding = Padding::reflect;
  const Depthwise d = depthwise_of(problem);
  CHECK(d.batch == 2);
  CHECK(d.channels == 3);
  CHECK(d.height == 40);
  CHECK(d.width == 50);
  CHECK(d.out_height == problem.p());
  CHECK(d.out_width == problem.q());
  CHECK(d.rows == 5);
  CHECK(d.columns == 7);
  CHECK(d.pad_y == 9);
  CHECK(d.pad_x == 10);
  CHECK(d.stride_y == 11);
  CHECK(d.stride_x == 12);
  CHECK(d.dilation_y == 2);
  CHECK(d.dilation_x == 4);
  CHECK(d.padding == Padding::reflect);
  CHECK(planes(d) == 6);
  CHECK(input_plane(d) == 2000);
  CHECK(output_plane(d) == problem.p() * problem.q());
  CHECK(filter_plane(d) == 35);
}

TEST_CASE("planes of more than 2^31 elements have sizes of 64 bits") {
  const Depthwise d = depthwise_of(parse_shape("h=65536,w=65536,r=65535,s=65535"));
  CHECK(input_plane(d) == std::int64_t{1} << 32);
  CHECK(output_plane(d) == std::int64_t{1} << 32);
  CHECK(filter_plane(d) == std::int64_t{65535} * 65535);
}

TEST_CASE("blocks for a count: rounded up, without overflow") {
  CHECK(blocks_for(1, 16) == 1);
  CHECK(blocks_for(16, 16) == 1);
  CHECK(blocks_for(17, 16) == 2);
  CHECK(blocks_for(2147483647, 16) == 134217728);
}

TEST_CASE("depthwise stages accept any odd filter, stride, dilation and padding") {
  CHECK(check("c=1").accepted());
  CHECK(check("c=144,k=144,groups=144,h=56,w=56,r=3,s=3,stride_h=2,stride_w=2").accepted());
  CHECK(check("n=3,c=5,k=5,groups=5,h=6,w=7,r=31,s=1,pad_w=40,stride_w=9,dilation_h=2,pad_h=70").accepted());
}

TEST_CASE("depthwise stages refuse other groups, with all three numbers") {
  for (const auto* shape : {"c=4,k=4,groups=2", "c=4,k=8,groups=4", "c=4,k=4", "c=1,k=2"}) {
    CAPTURE(shape);
    CHECK(refuses(check(shape), "groups = c = k; got groups="));
  }
  CHECK(refuses(check("c=4,k=8,groups=2"), "got groups=2, c=4, k=8"));
}

TEST_CASE("depthwise stages refuse even filters") {
  CHECK(refuses(check("r=2,s=3"), "odd filters; got r=2, s=3"));
  CHECK(refuses(check("r=3,s=4"), "odd filters; got r=3, s=4"));
}

TEST_CASE("depthwise stages refuse what 32 bits do not hold, at the border") {
  const auto with = [](std::int64_t ConvProblem::*member, std::int64_t value) {
    ConvProblem problem;
    problem.*member = value;
    return check_depthwise(problem);
  };
  for (const auto member : {&ConvProblem::h, &ConvProblem::w, &ConvProblem::stride_h, &ConvProblem::stride_w,
                            &ConvProblem::dilation_h, &ConvProblem::dilation_w}) {
    CHECK(with(member, kMaxDepthwisePosition).accepted());
    CHECK(refuses(with(member, kMaxDepthwisePosition + 1), "32 bits"));
  }
  for (const auto member : {&ConvProblem::pad_h, &ConvProblem::pad_w}) {
    CHECK(with(member, (kMaxDepthwisePosition - 1) / 2).accepted());
    CHECK(refuses(with(member, (kMaxDepthwisePosition + 1) / 2), "32 bits"));
  }
}

TEST_CASE("depthwise stages refuse more planes than a grid has blocks in x") {
  CHECK(check("n=2147483647").accepted());
  CHECK(refuses(check("n=2147483648"), "at most 2147483647 planes; got n=2147483648, c=1"));
  CHECK(check("n=65536,c=32767,k=32767,groups=32767").accepted());
  CHECK_FALSE(check("n=65536,c=32768,k=32768,groups=32768").accepted());
  CHECK_FALSE(check("c=2147483648,k=2147483648,groups=2147483648").accepted());
}

TEST_CASE("a filter has at most 2^31 - 1 taps") {
  CHECK(refuses(check("h=46345,w=46345,r=46345,s=46345"), "r s at most 2147483647; got r=46345, s=46345"));
  CHECK(check("h=46339,w=46339,r=46339,s=46339").accepted());
}

TEST_CASE("tiles of a plane are counted with 32 bits") {
  CHECK(check("h=700000,w=700000").accepted());
  CHECK(refuses(check("h=800000,w=800000"), "tiles of 16x16 outputs"));
}

TEST_CASE("what a grid's y does not hold goes on in z") {
  const auto covers = [](std::int64_t y) {
    const dim3 grid = grid_in_y(7, y);
    CHECK(grid.x == 7);
    CHECK(grid.y <= 65535);
    CHECK(grid.z <= 65535);
    CHECK(std::int64_t{grid.y} * grid.z >= y);
    CHECK(std::int64_t{grid.y} * grid.z - y < grid.z);
  };
  for (const std::int64_t y : {1, 2, 65535, 65536, 65537, 131070, 131071, 2147418111}) covers(y);
  CHECK(grid_in_y(1, 65535).z == 1);
}

TEST_CASE("depthwise stages refuse more blocks than a grid has in y, and name them") {
  const ConvProblem problem = parse_shape("h=8,w=8,r=3,s=3");
  CHECK(check_depthwise(problem, 65535, "rows").accepted());
  CHECK(std::string(check_depthwise(problem, 65536, "rows").reason()) ==
        "a grid has at most 65535 blocks in y, here rows; got 65536");
  CHECK(refuses(check_depthwise(parse_shape("r=2"), 65536, "rows"), "odd filters"));
}

}  // namespace
}  // namespace convladder
