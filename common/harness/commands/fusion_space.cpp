#include "common/harness/commands/fusion_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/stage/gpus.hpp"

namespace convladder {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kWarp = 32, kMostRegisters = 255;

std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }
std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// The three shapes of WMMA: 16x16, 32x8 and 8x32.
bool has_fragment(std::int64_t tbm, std::int64_t tbn) {
  return (tbm % 16 == 0 && tbn % 16 == 0) || (tbm % 32 == 0 && tbn % 8 == 0) || (tbm % 8 == 0 && tbn % 32 == 0);
}

}  // namespace

DeviceLimits FusionGpu::limits() const {
  return {compute_capability, shared_bytes, static_cast<int>(multiprocessors), l2_bytes};
}

ConvProblem parse_fusion_layer(std::string_view shape) {
  const ConvProblem problem = parse_shape(shape, {.r = 3, .s = 3});
  validate(problem, std::int64_t{1} << 40, "the largest machine");
  if (problem.r == 3 && problem.s == 3 && problem.stride_h == 1 && problem.stride_w == 1 && problem.dilation_h == 1 &&
      problem.dilation_w == 1 && problem.groups == 1)
    return problem;
  throw UsageError("--shape: partial fusion is for 3x3 filters with strides, dilations and groups of 1; got " +
                   in_quotes(to_string(problem)));
}

std::span<const FusionGpu> known_gpus() {
  static const std::vector<FusionGpu> known = [] {
    std::vector<FusionGpu> list;
    for (const Gpu& gpu : gpus())
      list.push_back({std::string(gpu.name), gpu.shared_kib * kKiB, gpu.l2_kib * kKiB, gpu.multiprocessors,
                      gpu.compute_capability});
    return list;
  }();
  return known;
}

const FusionGpu& known_gpu(std::string_view name) {
  const Gpu& gpu = gpu_named(name, "; describe any other by --smem, --l2 and --sms");
  return known_gpus()[static_cast<std::size_t>(&gpu - gpus().data())];
}

FusionLayer::FusionLayer(const ConvProblem& problem, int m, int element_bytes_)
    : side(m + 2),
      element_bytes(element_bytes_),
      tiles(problem.n * divide_up(problem.p(), m) * divide_up(problem.q(), m)),
      c(problem.c),
      k(problem.k) {}

bool FusionLayer::meets_wmma_rules() const {
  return c % 16 == 0 && tiles % 8 == 0 && k % 8 == 0 && tiles * k % 256 == 0;
}

const char* key_of(FusionRule rule) {
  switch (rule) {
    case FusionRule::shared_input:
      return "shared_input";
    case FusionRule::few_blocks:
      return "few_blocks";
    case FusionRule::l2_slices:
      return "l2_slices";
    case FusionRule::shared_both:
      return "shared_both";
    case FusionRule::accumulators:
      return "accumulators";
    case FusionRule::l2_channels:
      return "l2_channels";
  }
  return "?";
}

const char* words_of(FusionRule rule) {
  switch (rule) {
    case FusionRule::shared_input:
      return "shared memory";
    case FusionRule::few_blocks:
      return "few blocks";
    case FusionRule::l2_slices:
      return "L2";
    case FusionRule::shared_both:
      return "filter slice";
    case FusionRule::accumulators:
      return "accumulators";
    case FusionRule::l2_channels:
      return "all channels";
  }
  return "?";
}

bool is_of_source(FusionRule rule) {
  return rule == FusionRule::shared_input || rule == FusionRule::few_blocks || rule == FusionRule::l2_slices;
}

bool concerns(FusionRule rule, Fusion fusion) {
  if (rule == FusionRule::accumulators) return true;
  return (rule == FusionRule::l2_slices || rule == FusionRule::l2_channels) == (fusion == Fusion::llc);
}

bool FusionPoint::remains(Fusion fusion, bool source_only) const {
  return std::none_of(broken.begin(), broken.end(),
                      [&](FusionRule rule) { return concerns(rule, fusion) && (is_of_source(rule) || !source_only); });
}

FusionPoint fusion_point(const FusionLayer& layer, const FusionGpu& gpu, std::int64_t tbm, std::int64_t tbn,
                         std::int64_t tbk) {
  const std::int64_t pair = layer.pair_bytes();
  FusionPoint point{tbm, tbn, tbk, 0, 0, 0, 0, 0, 0, {}};
  point.blocks = divide_up(layer.tiles, tbm) * divide_up(layer.k, tbn);
  const std::int64_t running = std::min(point.blocks, gpu.multiprocessors);
  point.shared_input_bytes = pair * tbm * tbk;
  point.shared_both_bytes = point.shared_input_bytes + pair * tbn * layer.c;
  point.l2_slice_bytes = pair * tbm * tbk * running;
  point.l2_channel_bytes = pair * tbm * layer.c * running + pair * layer.c * layer.k;
  point.accumulators = layer.side * tbm * tbn / kWarp;  // a warp has one column: `side` products
  const auto rule_out = [&](FusionRule rule, bool broken) {
    if (broken) point.broken.push_back(rule);
  };
  rule_out(FusionRule::shared_input, point.shared_input_bytes > gpu.shared_bytes);
  rule_out(FusionRule::few_blocks, point.blocks < gpu.multiprocessors);
  rule_out(FusionRule::l2_slices, point.l2_slice_bytes > gpu.l2_bytes);
  rule_out(FusionRule::shared_both, point.shared_both_bytes > gpu.shared_bytes);
  rule_out(FusionRule::accumulators, point.accumulators > kMostRegisters);
  rule_out(FusionRule::l2_channels, point.l2_channel_bytes > gpu.l2_bytes);
  return point;
}

std::vector<FusionPoint> fusion_space(const FusionLayer& layer, const FusionGpu& gpu) {
  const std::int64_t most_tbm = std::min(kMostTbm, round_up(layer.tiles, 32));
  const std::int64_t most_tbn = std::min(kMostTbnAndTbk, round_up(layer.k, 32));
  const std::int64_t most_tbk = std::min(kMostTbnAndTbk, round_up(layer.c, 16));
  std::vector<FusionPoint> space;
  for (std::int64_t tbm = 8; tbm <= most_tbm; tbm += 8) {
    for (std::int64_t tbn = 8; tbn <= most_tbn; tbn += 8) {
      if (!has_fragment(tbm, tbn)) continue;
      for (std::int64_t tbk = 16; tbk <= most_tbk; tbk += 16) space.push_back(fusion_point(layer, gpu, tbm, tbn, tbk));
    }
  }
  return space;
}

std::vector<std::int64_t> remaining_tbm(const std::vector<FusionPoint>& space, Fusion fusion, bool source_only) {
  std::vector<std::int64_t> result;
  for (const FusionPoint& point : space) {
    if (point.remains(fusion, source_only) && (result.empty() || result.back() != point.tbm))
      result.push_back(point.tbm);
  }
  return result;
}

}  // namespace convladder
