#include "common/harness/commands/fusion_space.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"

using namespace convladder;

namespace {

using Tbm = std::vector<std::int64_t>;

FusionLayer layer(const char* shape, int m, int element_bytes) { return {parse_shape(shape), m, element_bytes}; }

constexpr const char* kSourceLayer = "c=64,h=224,w=224,k=64,r=3,s=3";

const FusionPoint& point(const std::vector<FusionPoint>& space, std::int64_t tbm, std::int64_t tbn, std::int64_t tbk) {
  const auto found = std::find_if(space.begin(), space.end(), [&](const FusionPoint& each) {
    return each.tbm == tbm && each.tbn == tbn && each.tbk == tbk;
  });
  REQUIRE(found != space.end());
  return *found;
}

bool breaks(const FusionPoint& point, FusionRule rule) {
  return std::find(point.broken.begin(), point.broken.end(), rule) != point.broken.end();
}

}  // namespace

TEST_CASE("fusion space: figures of one tile") {
  const FusionLayer source = layer(kSourceLayer, 4, 2);
  CHECK(source.tiles == 3136);
  CHECK(source.pair_bytes() == 72);
  const FusionPoint p = point(fusion_space(source, known_gpu("RTX 2080 Ti")), 16, 16, 16);
  CHECK(p.blocks == 196 * 4);
  CHECK(p.shared_input_bytes == 72 * 16 * 16);
  CHECK(p.shared_both_bytes == 72 * (16 * 16 + 16 * 64));
  CHECK(p.l2_slice_bytes == 72 * 16 * 16 * 68);
  CHECK(p.l2_channel_bytes == 72 * (16 * 64 * 68 + 64 * 64));
  CHECK(p.accumulators == 48);
}

TEST_CASE("fusion space: what remains on the GPU of Tong et al.") {
  const auto space = fusion_space(layer(kSourceLayer, 4, 2), known_gpu("RTX 2080 Ti"));
  CHECK(remaining_tbm(space, Fusion::shmem, true) == Tbm{8, 16, 24, 32, 40, 48, 56});
  CHECK(remaining_tbm(space, Fusion::shmem, false).empty());
  CHECK(remaining_tbm(space, Fusion::llc, true).size() == 32);
  CHECK(remaining_tbm(space, Fusion::llc, false) == Tbm{8, 16});
  CHECK(!breaks(point(space, 16, 16, 48), FusionRule::shared_input));
  CHECK(breaks(point(space, 16, 16, 64), FusionRule::shared_input));
  CHECK(!breaks(point(space, 32, 32, 16), FusionRule::shared_input));
  CHECK(breaks(point(space, 32, 32, 32), FusionRule::shared_input));
}

TEST_CASE("fusion space: each limit holds to the last unit") {
  const FusionLayer source = layer(kSourceLayer, 4, 2);
  const FusionPoint p = point(fusion_space(source, known_gpu("H200")), 32, 32, 16);
  struct Limit {
    FusionRule rule;
    std::int64_t FusionGpu::*resource;
    std::int64_t enough;
  };
  FusionGpu roomy{"", 1 << 30, std::int64_t{1} << 40, 1, 0};
  for (const Limit& limit : {Limit{FusionRule::shared_input, &FusionGpu::shared_bytes, p.shared_input_bytes},
                             {FusionRule::shared_both, &FusionGpu::shared_bytes, p.shared_both_bytes},
                             {FusionRule::l2_slices, &FusionGpu::l2_bytes, 72 * 32 * 16},
                             {FusionRule::l2_channels, &FusionGpu::l2_bytes, 72 * (32 * 64 + 64 * 64)}}) {
    CAPTURE(key_of(limit.rule));
    FusionGpu gpu = roomy;
    gpu.*limit.resource = limit.enough;
    CHECK(!breaks(point(fusion_space(source, gpu), 32, 32, 16), limit.rule));
    gpu.*limit.resource = limit.enough - 1;
    CHECK(breaks(point(fusion_space(source, gpu), 32, 32, 16), limit.rule));
  }
  roomy.multiprocessors = p.blocks;
  CHECK(!breaks(point(fusion_space(source, roomy), 32, 32, 16), FusionRule::few_blocks));
  roomy.multiprocessors = p.blocks + 1;
  CHECK(breaks(point(fusion_space(source, roomy), 32, 32, 16), FusionRule::few_blocks));
  // 6 products of 32 x 32 sums are 192 a thread; of 32 x 48, 288.
  CHECK(!breaks(p, FusionRule::accumulators));
  CHECK(breaks(point(fusion_space(source, roomy), 32, 48, 16), FusionRule::accumulators));
}

TEST_CASE("fusion space: only tiles with a WMMA fragment, and none longer than the padded layer") {
  const auto space = fusion_space(layer("c=20,h=9,w=11,k=5,r=3,s=3", 4, 2), known_gpu("A100"));
  REQUIRE(!space.empty());
  for (const FusionPoint& p : space) {
    const bool fragment =
        (p.tbm % 16 == 0 && p.tbn % 16 == 0) || p.tbm % 32 == 0 || (p.tbm % 8 == 0 && p.tbn % 32 == 0);
    CHECK(fragment);
    CHECK(p.tbm <= 32);
    CHECK(p.tbn <= 32);
    CHECK(p.tbk <= 32);
  }
  CHECK(point(space, 8, 32, 16).blocks == 2);  // 9 tiles, 5 filters
  CHECK(point(space, 32, 8, 32).blocks == 1);
}

TEST_CASE("fusion space: the rules of Tong et al. for the layer") {
  CHECK(layer(kSourceLayer, 4, 2).meets_wmma_rules());
  CHECK(!layer("c=72,h=224,w=224,k=64,r=3,s=3", 4, 2).meets_wmma_rules());  // C
  CHECK(!layer("c=64,h=36,w=36,k=64,r=3,s=3", 4, 2).meets_wmma_rules());    // 81 tiles
  CHECK(!layer("c=64,h=32,w=32,k=68,r=3,s=3", 4, 2).meets_wmma_rules());    // K
  CHECK(!layer("c=64,h=16,w=8,k=8,r=3,s=3", 4, 2).meets_wmma_rules());      // 8 x 8
}

TEST_CASE("fusion space: GPUs by name") {
  CHECK(known_gpu("rtx2080ti").multiprocessors == 68);
  CHECK(known_gpu("NVIDIA GeForce RTX 2080 Ti").l2_bytes == 5767168);
  CHECK(known_gpu("h200").shared_bytes == 227 * 1024);
  CHECK_THROWS_AS(known_gpu("RTX 2080"), UsageError);
}
