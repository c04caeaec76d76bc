#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/kernel/tracks/several.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("42 halo-overlap: every image is right") { check_suite("42", image_suite(FilterForm::dense)); }

TEST_CASE("42 halo-overlap: has the bits of one device, for any number of them (simulator)") {
  // Bands that differ by a row; bands thinner than the halo, so that rows come from further off; fewer rows than ranks;
  // even filters, much padding and none; a batch.
  check_bits_of_one_device("42", {"h=66,w=128,r=3,s=3", "h=67,w=37,r=5,s=5", "h=13,w=40,r=11,s=3", "h=3,w=9,r=3,s=3",
                                  "h=40,w=33,r=31,s=5", "n=3,h=17,w=20,r=4,s=6", "h=12,w=11,r=3,s=3,pad_h=9,pad_w=2",
                                  "h=21,w=24,r=7,s=7,pad_h=0,pad_w=0", "h=1,w=8,r=5,s=3", "h=5,w=8,r=1,s=1,pad_h=4"});
  // Bands with an interior, of both kernels; tiles that end with it, and do not.
  check_bits_of_one_device("42", {"n=2,h=290,w=24,r=3,s=3", "n=2,h=420,w=12,r=11,s=5", "h=300,w=9,r=4,s=2",
                                  "h=192,w=8,r=1,s=1", "h=400,w=16,r=5,s=5,pad_h=0"});
}

TEST_CASE("42 halo-overlap: counters are what the lesson predicts (simulator)") {
  check_prediction("42", {"h=61,w=500,r=3,s=3", "h=64,w=257,r=5,s=5", "n=2,h=33,w=45,r=4,s=3",
                          "h=30,w=40,r=7,s=9,pad_h=0,pad_w=0", "n=2,h=290,w=24,r=3,s=3", "h=300,w=20,r=5,s=6"});
  check_prediction("42", {"h=70,w=45,r=11,s=11", "h=7,w=45,r=3,s=3"}, FilterForm::dense, "devices=8");
}

namespace {

/// The end of the last of two ranks. Counts how often a stream follows another one.
class LastOfTwo final : public Communicator {
 public:
  int follows = 0;
  int rank() const override { return 1; }
  int ranks() const override { return 2; }
  void group_start() override {}
  void group_end() override {}
  void send(const void*, std::int64_t, int, Stream) override {}
  void receive(void*, std::int64_t, int, Stream) override {}
  Stream side_stream() override { return nullptr; }
  void follow(Stream, Stream) override { ++follows; }
};

}  // namespace

TEST_CASE("42 halo-overlap: without interior nothing is forked, since no kernel would part one join from the next") {
  const ConvProblem one_row = parse_shape("h=1,w=8,r=3,s=3");
  const std::unique_ptr<Stage> made(find_stage("42").make());
  auto& stage = dynamic_cast<SeveralStage&>(*made);
  LastOfTwo all;
  stage.launch_rank(one_row, stage.part(one_row, 1, 2), all, nullptr);
  CHECK(all.follows == 0);
}

TEST_CASE("42 halo-overlap: refuses by rule") {
  check_refusal("42", "h=8,w=8,c=3,r=3,s=3", "one channel");
  check_refusal("42", "h=80,w=80,r=3,s=66", "at most 65x65");
}
