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

std::string without_spaces(std::string_view text) {
  std::string result(text);
  result.erase(std::remove(result.begin(), result.end(), ' '), result.end());
  return result;
}

}  // namespace

std::vector<NamedWorkload> workloads_of(std::string_view track, Backend backend) {
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
