#include "common/workloads.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/problem_io.hpp"

namespace convladder {
namespace {

ConvProblem signal(std::int64_t length, std::int64_t radius) {
  ConvProblem problem;
  problem.w = length;
  problem.s = 2 * radius + 1;
  problem.pad_w = radius;
  return problem;
}

/// Shorter than a warp, than a tile, and just past one: where overhead is all there is.
void add_short_signals(std::vector<NamedWorkload>& workloads) {
  for (const int length : {1, 7, 255, 257}) workloads.push_back({fmt::format("w={} r=5", length), signal(length, 5)});
}

std::vector<NamedWorkload> signals_on_gpu() {
  constexpr std::int64_t kLength = std::int64_t{1} << 24;
  std::vector<NamedWorkload> result;
  for (const int radius : {5, 1, 31, 127, 512})
    result.push_back({fmt::format("w=2^24 r={}", radius), signal(kLength, radius)});
  result.push_back({"w=2^24+259 r=5", signal(kLength + 259, 5)});
  add_short_signals(result);
  return result;
}

std::vector<NamedWorkload> signals_in_simulator() {
  constexpr std::int64_t kLength = 65536;
  std::vector<NamedWorkload> result;
  for (const int radius : {5, 1, 31}) result.push_back({fmt::format("w=65536 r={}", radius), signal(kLength, radius)});
  result.push_back({"w=65536+259 r=5", signal(kLength + 259, 5)});
  add_short_signals(result);
  // The naive stage reads a sample and a tap for each product.
  for (NamedWorkload& workload : result) workload.simulated_accesses = 2 * workload.problem.s * workload.problem.w;
  return result;
}

ConvProblem image(std::int64_t width, std::int64_t height, std::int64_t side) {
  ConvProblem problem;
  problem.h = height;
  problem.w = width;
  problem.r = problem.s = side;
  problem.pad_h = problem.pad_w = (side - 1) / 2;
  return problem;
}

NamedWorkload named_image(std::string_view name, std::int64_t width, std::int64_t height, std::int64_t side) {
  return {fmt::format("{} {}x{}", name, side, side), image(width, height, side), filter_form("images")};
}

/// One pixel, primes, and less than a tile.
void add_small_images(std::vector<NamedWorkload>& workloads) {
  for (const auto& [width, height] : {std::pair{1, 1}, {7, 5}, {61, 31}, {257, 127}})
    workloads.push_back(named_image(fmt::format("{}x{}", width, height), width, height, 5));
}

std::vector<NamedWorkload> images_on_gpu() {
  std::vector<NamedWorkload> result;
  for (const int side : {3, 11, 31, 5, 7, 9, 15, 21, 41, 51, 65})
    result.push_back(named_image("3840x2160", 3840, 2160, side));
  result.push_back(named_image("3847x2161", 3847, 2161, 5));
  add_small_images(result);
  return result;
}

std::vector<NamedWorkload> images_in_simulator() {
  std::vector<NamedWorkload> result;
  for (const int side : {3, 11, 31}) {
    const int size = side > 11 ? 128 : 256;
    result.push_back(named_image(fmt::format("{}x{}", size, size), size, size, side));
  }
  result.push_back(named_image("256x256", 256, 256, 5));
  result.push_back(named_image("263x257", 263, 257, 5));
  add_small_images(result);
  // The naive stage reads a pixel and a tap for each product.
  for (NamedWorkload& workload : result) workload.simulated_accesses = workload.problem.flops();
  return result;
}

ConvProblem depthwise(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t side,
                      std::int64_t stride) {
  ConvProblem problem = image(w, h, side);
  problem.n = n;
  problem.c = problem.k = problem.groups = c;
  problem.stride_h = problem.stride_w = stride;
  return problem;
}

/// @param network where the layer is from  @param stride named where it is not 1
NamedWorkload named_depthwise(std::string_view network, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                              std::int64_t side, std::int64_t stride = 1) {
  std::string name = fmt::format("{} ({},{},{},{}) {}x{}", network, n, c, h, w, side, side);
  if (stride != 1) name += fmt::format(" stride {}", stride);
  return {name, depthwise(n, c, h, w, side, stride)};
}

std::vector<NamedWorkload> depthwise_on_gpu() {
  return {named_depthwise("small", 3, 4, 16, 32, 7),           named_depthwise("ConvNeXt", 32, 96, 56, 56, 7),
          named_depthwise("MobileNet", 32, 144, 56, 56, 3),    named_depthwise("MobileNet", 32, 144, 56, 56, 3, 2),
          named_depthwise("EfficientNet", 32, 240, 28, 28, 5), named_depthwise("ConvNeXt", 32, 384, 14, 14, 7),
          named_depthwise("ConvNeXt", 32, 768, 7, 7, 7),       named_depthwise("primes", 3, 5, 61, 67, 5)};
}

std::vector<NamedWorkload> depthwise_in_simulator() {
  std::vector<NamedWorkload> result{
      named_depthwise("small", 3, 4, 16, 32, 7),         named_depthwise("ConvNeXt", 1, 6, 56, 56, 7),
      named_depthwise("MobileNet", 1, 18, 56, 56, 3),    named_depthwise("MobileNet", 1, 18, 56, 56, 3, 2),
      named_depthwise("EfficientNet", 1, 15, 28, 28, 5), named_depthwise("ConvNeXt", 1, 24, 14, 14, 7),
      named_depthwise("ConvNeXt", 1, 48, 7, 7, 7),       named_depthwise("primes", 3, 5, 61, 67, 5)};
  // The naive stage reads a pixel and a tap for each product.
  for (NamedWorkload& workload : result) workload.simulated_accesses = workload.problem.flops();
  return result;
}

std::string without_spaces(std::string_view text) {
  std::string result(text);
  result.erase(std::remove(result.begin(), result.end(), ' '), result.end());
  return result;
}

}  // namespace

FilterForm filter_form(std::string_view track) { return track == "images" ? FilterForm::rank_one : FilterForm::dense; }

std::vector<NamedWorkload> workloads_of(std::string_view track, Backend backend) {
  if (track == "images") return backend == Backend::gpu ? images_on_gpu() : images_in_simulator();
  if (track == "depthwise") return backend == Backend::gpu ? depthwise_on_gpu() : depthwise_in_simulator();
  if (track == "signals") return backend == Backend::gpu ? signals_on_gpu() : signals_in_simulator();
  return {};
}

std::vector<NamedWorkload> bench_workloads(std::string_view track, Backend backend) {
  std::vector<NamedWorkload> result = workloads_of(track, backend);
  if (result.size() > kBenchWorkloads) result.erase(result.begin() + kBenchWorkloads, result.end());
  return result;
}

std::vector<NamedWorkload> select_workloads(std::string_view track, Backend backend, std::string_view name) {
  std::vector<NamedWorkload> result = workloads_of(track, backend);
  if (name == "all") return result;
  std::erase_if(result, [&](const NamedWorkload& w) { return without_spaces(w.name) != without_spaces(name); });
  return result;
}

}  // namespace convladder
