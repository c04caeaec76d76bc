#include "common/harness/files/problem_io.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <limits>
#include <string>
#include <utility>

#include "common/harness/device/host.hpp"
#include "common/harness/files/errors.hpp"
#include "common/stage/stage.hpp"

namespace convladder {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// The message of the UsageError that parse_shape throws, or "accepted".
std::string parse_error(std::string_view text) {
  try {
    parse_shape(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

/// "usage: message", "refused: message" or "accepted".
std::string verdict(const ConvProblem& problem, std::int64_t memory_bytes = 64 * kGiB) {
  try {
    validate(problem, memory_bytes);
  } catch (const UsageError& error) {
    return std::string("usage: ") + error.what();
  } catch (const RefusedError& error) {
    return std::string("refused: ") + error.what();
  }
  return "accepted";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

bool same(const ConvProblem& a, const ConvProblem& b) {
  return a.n == b.n && a.c == b.c && a.h == b.h && a.w == b.w && a.k == b.k && a.r == b.r && a.s == b.s &&
         a.pad_h == b.pad_h && a.pad_w == b.pad_w && a.stride_h == b.stride_h && a.stride_w == b.stride_w &&
         a.dilation_h == b.dilation_h && a.dilation_w == b.dilation_w && a.groups == b.groups &&
         a.padding == b.padding && a.epilogue == b.epilogue;
}

TEST_CASE("parse_shape fills every key and the defaults") {
  const ConvProblem all = parse_shape(
      "n=2,c=4,h=5,w=6,k=8,r=3,s=7,pad_h=9,pad_w=10,stride_h=11,stride_w=12,dilation_h=13,dilation_w=14,groups=2");
  CHECK(same(all, {2, 4, 5, 6, 8, 3, 7, 9, 10, 11, 12, 13, 14, 2, Padding::zero}));

  const ConvProblem defaults = parse_shape("w=4096,s=5,r=4");
  CHECK(same(defaults, {1, 1, 1, 4096, 1, 4, 5, 1, 2, 1, 1, 1, 1, 1, Padding::zero}));
  CHECK(parse_shape("s=5,pad_w=0").pad_w == 0);
}

TEST_CASE("parse_shape leaves signs to validate") {
  CHECK(parse_shape("w=-3,r=0,s=-9223372036854775808").pad_w == 0);
  CHECK(parse_shape("w=-3").w == -3);
  CHECK(parse_shape("w=9223372036854775807").w == kMost);
}

TEST_CASE("parse_shape refuses malformed text in one line that names the item") {
  for (const char* text :
       {"",      "w",    "=3",   "=",    ",",    ",w=3",  "w=3,",   "w=3,,s=3", "w=3;s=5", "w=",   "w=3=4",
        "w=1e3", "w= 3", "w=3 ", " w=3", "w=+3", "w=3.0", "w=0x10", "w=three",  "w=--3",   "w=3\n"}) {
    CAPTURE(text);
    const std::string message = parse_error(text);
    CHECK(message != "accepted");
    CHECK_FALSE(contains(message, "\n"));
  }
  CHECK(parse_error("c=2,w=1e3") == "shape item 'w=1e3' has no integer value; write it as in w=4096");
  CHECK(contains(parse_error("w=3,,s=3"), "has the item '', which is not key=value"));
  CHECK(contains(parse_error("w=9223372036854775808"), "'w=9223372036854775808' does not fit in 64 bits"));
  CHECK(contains(parse_error("w=99999999999999999999999999x"), "no integer"));
  CHECK(parse_error("w=3,s=3,w=3") == "shape key w is given twice; give it once");
}

TEST_CASE("parse_shape names the known keys and the nearest one") {
  CHECK(
      parse_error("strid_w=2") ==
      "unknown shape key 'strid_w', did you mean stride_w?; the keys are n, c, h, w, k, r, s, pad_h, pad_w, stride_h, "
      "stride_w, dilation_h, dilation_w, groups, epilogue");
  CHECK(contains(parse_error("W=2"), "did you mean w?"));
  CHECK(contains(parse_error("group=2"), "did you mean groups?"));
  CHECK_FALSE(contains(parse_error("x=2"), "did you mean"));
  CHECK_FALSE(contains(parse_error("padding=1"), "did you mean"));
}

TEST_CASE("parse_shape reads an epilogue by its name") {
  CHECK(parse_shape("w=2").epilogue == Epilogue::none);
  for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_residual_relu}) {
    ConvProblem problem = parse_shape("c=4,h=5,w=6,k=8,r=3,s=3");
    problem.epilogue = epilogue;
    CHECK(same(parse_shape(to_string(problem)), problem));
    CHECK(parse_shape(std::string("epilogue=") + to_string(epilogue) + ",w=2").epilogue == epilogue);
  }
  CHECK(to_string(parse_shape("w=2,epilogue=bias")) == "n=1,c=1,h=1,w=2,k=1,r=1,s=1,epilogue=bias");
  CHECK(parse_error("epilogue=relu") == "unknown epilogue 'relu'; use none, bias, bias_relu, bias_residual_relu");
  CHECK(parse_error("epilogue=bias,epilogue=bias") == "shape key epilogue is given twice; give it once");
}

TEST_CASE("parse_padding") {
  for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
    CHECK(parse_padding(to_string(padding)) == padding);
  }
  CHECK_THROWS_WITH_AS(parse_padding("same"), "unknown padding 'same'; use zero, replicate or reflect", UsageError);
  CHECK_THROWS_AS(parse_padding(""), UsageError);
  CHECK_THROWS_AS(parse_padding("Zero"), UsageError);
}

TEST_CASE("to_string writes the sizes and what differs from the defaults") {
  ConvProblem problem;
  problem.w = 4096;
  problem.s = 5;
  problem.pad_w = 2;
  CHECK(to_string(problem) == "n=1,c=1,h=1,w=4096,k=1,r=1,s=5");
  problem.pad_w = 0;
  problem.stride_w = 2;
  CHECK(to_string(problem) == "n=1,c=1,h=1,w=4096,k=1,r=1,s=5,pad_w=0,stride_w=2");
}

TEST_CASE("parse_shape reads back what to_string writes") {
  CHECK(rc::check([] {
    ConvProblem problem;
    for (const auto member :
         {&ConvProblem::n, &ConvProblem::c, &ConvProblem::h, &ConvProblem::w, &ConvProblem::k, &ConvProblem::r,
          &ConvProblem::s, &ConvProblem::pad_h, &ConvProblem::pad_w, &ConvProblem::stride_h, &ConvProblem::stride_w,
          &ConvProblem::dilation_h, &ConvProblem::dilation_w, &ConvProblem::groups}) {
      problem.*member = *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 4), rc::gen::arbitrary<std::int64_t>());
    }
    RC_ASSERT(same(parse_shape(to_string(problem)), problem));
  }));
}

TEST_CASE("validate accepts usable problems") {
  CHECK(verdict({}) == "accepted");
  CHECK(verdict(parse_shape("n=32,c=64,h=56,w=56,k=64,r=3,s=3")) == "accepted");
  CHECK(verdict(parse_shape("w=1,s=1025")) == "accepted");
  CHECK(verdict(parse_shape("c=6,h=4,w=4,k=9,groups=3")) == "accepted");
}

TEST_CASE("validate refuses sizes below 1 and pads below 0") {
  for (const char* key :
       {"n", "c", "h", "w", "k", "r", "s", "stride_h", "stride_w", "dilation_h", "dilation_w", "groups"}) {
    for (const char* value : {"0", "-1", "-9223372036854775808"}) {
      const std::string text = std::string(key) + "=" + value;
      CHECK(verdict(parse_shape(text)) == std::string("usage: ") + key + " must be at least 1; got " + text);
    }
  }
  CHECK(verdict(parse_shape("pad_h=-1")) == "usage: pad_h must be at least 0; got pad_h=-1");
  CHECK(verdict(parse_shape("pad_w=-9223372036854775808")).starts_with("usage: pad_w must be at least 0"));
}

TEST_CASE("validate refuses every overflow before it uses the number") {
  const std::string most = std::to_string(kMost);
  const std::pair<std::string, std::string> cases[] = {
      {"n=" + most + ",c=2", "the input's size n*c*h*w"},
      {"h=4294967296,w=4294967296", "the input's size n*c*h*w"},  // 2^64 would wrap to 0
      {"w=" + most, "the input in bytes"},
      {"k=" + most + ",r=3,s=3", "the filter's size k*(c/groups)*r*s"},
      {"k=" + most, "the filter in bytes"},
      {"pad_w=" + most, "w + 2*pad_w"},
      {"pad_h=4611686018427387904", "h + 2*pad_h"},
      {"s=3,dilation_w=" + most, "the filter's extent along w (dilation_w)"},
      {"w=10,s=2,dilation_w=" + most, "the filter's extent along w (dilation_w)"},
      {"r=" + most + ",dilation_h=3", "the filter's extent along h (dilation_h)"},
      {"k=4294967296,n=4294967296", "the output's size n*k*p*q"},
      {"pad_w=1000000000,pad_h=1000000000,k=1", "the output in bytes"},  // its reference included
      {"w=2147483648,s=1073741824,pad_w=0,k=4", "the number of operations"},
      {"w=2000000000000000000,s=2000000000000000000,pad_w=0", "the memory for the tensors"},
  };
  for (const auto& sample : cases) {
    CAPTURE(sample.first);
    CHECK(verdict(parse_shape(sample.first), kMost) ==
          "usage: " + sample.second + " overflows 64 bits; make the problem smaller");
  }
}

TEST_CASE("validate never lets a problem through whose numbers are wrong") {
  CHECK(rc::check([] {
    const auto size = rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, 5), rc::gen::inRange<std::int64_t>(1, kMost));
    ConvProblem x;
    for (const auto member : {&ConvProblem::n, &ConvProblem::c, &ConvProblem::h, &ConvProblem::w, &ConvProblem::k,
                              &ConvProblem::r, &ConvProblem::s, &ConvProblem::pad_h, &ConvProblem::pad_w,
                              &ConvProblem::stride_w, &ConvProblem::dilation_w}) {
      x.*member = *rc::gen::weightedOneOf<std::int64_t>({{9, rc::gen::inRange<std::int64_t>(1, 5)}, {1, size}});
    }
    if (verdict(x) != "accepted") return;
    const long double outputs = static_cast<long double>(x.n) * x.k * x.p() * x.q();
    RC_ASSERT(x.p() >= 1);
    RC_ASSERT(x.q() >= 1);
    RC_ASSERT(outputs * 20 < 64.0L * kGiB);
    RC_ASSERT(static_cast<long double>(x.output_size()) == outputs);
    RC_ASSERT(static_cast<long double>(x.flops()) == 2 * outputs * x.c * x.r * x.s);
  }));
}

TEST_CASE("validate refuses groups that do not divide") {
  CHECK(verdict(parse_shape("c=4,k=6,groups=3")) == "usage: groups must divide c and k; got groups=3, c=4, k=6");
  CHECK(verdict(parse_shape("c=6,k=4,groups=3")) == "usage: groups must divide c and k; got groups=3, c=6, k=4");
  CHECK(verdict(parse_shape("c=2,k=2,groups=4")).starts_with("usage: groups must divide"));
}

TEST_CASE("validate refuses an empty output") {
  CHECK(verdict(parse_shape("w=3,s=5,pad_w=0")) ==
        "usage: the output is empty: along w the filter covers 5 positions and the padded input has 3; raise w or "
        "pad_w");
  // (h + 2 pad - r) / stride + 1 would say 1 here: C++ division rounds towards zero.
  CHECK(contains(verdict(parse_shape("h=1,r=2,pad_h=0,stride_h=2")), "the output is empty: along h"));
  CHECK(contains(verdict(parse_shape("w=4,s=3,pad_w=0,dilation_w=2")), "covers 5 positions"));
  CHECK(verdict(parse_shape("w=5,s=3,pad_w=0,dilation_w=2,stride_w=7")) == "accepted");
}

TEST_CASE("validate refuses what memory does not hold and says how much that is") {
  const ConvProblem problem = parse_shape("w=1048576");  // 4 MiB in, 4 MiB out, 16 MiB reference, 4 bytes of filter
  const std::int64_t needed = 24 * (1 << 20) + 4;
  CHECK(verdict(problem, needed) == "accepted");
  CHECK(verdict(problem, needed - 1) ==
        "usage: not enough memory: the tensors and their reference need 25 MiB and this machine has room for 24 MiB; "
        "make "
        "the problem smaller");
  CHECK_THROWS_WITH_AS(validate(problem, 0, "the GPU"),
                       "not enough memory: the tensors and their reference need 25 MiB and the GPU has room for 0 MiB; "
                       "make the problem smaller",
                       UsageError);
  CHECK(host_memory_bytes() > (1 << 20));
}

TEST_CASE("validate refuses reflection past the input by rule") {
  ConvProblem problem = parse_shape("w=3,pad_w=5");
  problem.padding = Padding::reflect;
  CHECK(verdict(problem) == "refused: reflect padding needs pad_w < w; got pad_w=5, w=3");
  problem.pad_w = 3;
  CHECK(verdict(problem).starts_with("refused: "));
  problem.pad_w = 2;
  CHECK(verdict(problem) == "accepted");
  problem.pad_h = 1;
  CHECK(verdict(problem) == "refused: reflect padding needs pad_h < h; got pad_h=1, h=1");
  problem.padding = Padding::replicate;
  CHECK(verdict(problem) == "accepted");
}

TEST_CASE("validate reports the first of several errors in its order") {
  ConvProblem problem = parse_shape("w=3,pad_w=5,c=3,k=2,groups=2");
  problem.padding = Padding::reflect;
  CHECK(contains(verdict(problem, 0), "groups must divide"));
  problem.groups = 1;
  CHECK(contains(verdict(problem, 0), "not enough memory"));
  problem.n = 0;
  CHECK(contains(verdict(problem, 0), "n must be at least 1"));
}

}  // namespace
}  // namespace convladder
