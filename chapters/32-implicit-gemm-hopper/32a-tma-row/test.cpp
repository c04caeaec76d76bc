#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

constexpr const char* kShapes[] = {
    "c=8,k=8,h=1,w=1",                               // a pixel, a tap
    "n=2,c=8,k=16,h=5,w=33,r=3,s=3",                 // a pixel more than a block has
    "c=8,k=40,h=3,w=31,r=1,s=3",                     // more filters than the warps take at once
    "c=8,k=8,h=2,w=70,r=7,s=7",                      // rows of pixels that are all outside
    "n=3,c=8,k=8,h=6,w=64,r=2,s=4,pad_h=0,pad_w=0",  // even, "valid"
    "c=8,k=8,h=2,w=5,r=3,s=3,pad_h=5,pad_w=40",      // blocks that see none of the image
};

}  // namespace

TEST_CASE("32a tma-row: every image is right (sm_90)") {
  for (const char* settings : {"copy=tma", "copy=threads"}) {
    std::vector<SuiteCase> suite;
    for (const char* shape : kShapes) suite.push_back({parse_shape(shape), InputKind::normal});
    for (const InputKind kind :
         {InputKind::integers, InputKind::impulse, InputKind::large, InputKind::nan, InputKind::infinity})
      suite.push_back({parse_shape(kShapes[1]), kind});
    check_suite("32a", suite, settings);
  }
}

TEST_CASE("32a tma-row: counters are what the lesson predicts, with TMA and with threads (simulator)") {
  for (const char* settings : {"copy=tma", "copy=threads"})
    check_prediction("32a", {kShapes[1], kShapes[2], kShapes[4], kShapes[5]}, FilterForm::dense, settings);
}

TEST_CASE("32a tma-row: refuses by rule") {
  check_refusal("32a", "c=16,k=8,h=8,w=8", "must have 8 channels, 16 bytes; got c=16");
  check_refusal("32a", "c=8,k=4,h=8,w=8", "k must be a multiple of 8; got k=4");
  check_refusal("32a", "c=8,k=8,h=8,w=8,r=9,s=3", "up to 7 x 7; got r=9, s=3");
  check_refusal("32a", "c=8,k=48,h=8,w=8,r=7,s=7", "holds 16384 taps; got k=48, r=7, s=7");
  check_refusal("32a", "c=8,k=8,h=8,w=8,r=3,s=3,stride_w=2", "strides and dilations must be 1");
  check_refusal("32a", "c=8,k=8,groups=2,h=8,w=8", "want groups = 1; got groups=2");
}
