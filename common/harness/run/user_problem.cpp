#include "common/harness/run/user_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/harness/device/host.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/npy.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/tracks.hpp"
#include "common/harness/ladder/workloads.hpp"

namespace convladder {
namespace {

/// Four sizes from an array of 1, 2 or 4 dimensions.
std::array<std::int64_t, 4> four_sizes(const std::vector<std::int64_t>& shape, std::string_view name,
                                       std::string_view meaning) {
  switch (shape.size()) {
    case 1:
      return {1, 1, 1, shape[0]};
    case 2:
      return {1, 1, shape[0], shape[1]};
    case 4:
      return {shape[0], shape[1], shape[2], shape[3]};
    default:
      throw UsageError(fmt::format("--{} has {} dimensions; reshape it to 1 (a signal), 2 (an image) or 4 {}", name,
                                   shape.size(), meaning));
  }
}

/// Sizes come from the arrays: their keys may not appear in the shape.
void refuse_size_keys(std::string_view shape) {
  for (const std::string_view key : {"n", "c", "h", "w", "k", "r", "s"}) {
    const std::string item = fmt::format("{}=", key);
    if (!shape.starts_with(item) && shape.find("," + item) == std::string_view::npos) continue;
    throw UsageError(fmt::format(
        "--shape gives {}, which comes from --input and --filter; leave it out (padding, strides, dilations "
        "and groups may stay)",
        key));
  }
}

}  // namespace

void require_finite_filter(const std::vector<float>& filter) {
  const auto unusable = std::find_if(filter.begin(), filter.end(), [](float tap) { return !std::isfinite(tap); });
  if (unusable != filter.end())
    throw UsageError(
        fmt::format("--filter: value {} is {}; give finite numbers", unusable - filter.begin(), *unusable));
}

ConvProblem problem_of_arrays(const std::vector<std::int64_t>& input, const std::vector<std::int64_t>& filter,
                              const std::optional<std::string>& shape) {
  const auto [n, c, h, w] = four_sizes(input, "input", "(n, c, h, w)");
  const auto [k, group_c, r, s] = four_sizes(filter, "filter", "(k, c/groups, r, s)");
  ConvProblem problem;
  problem.n = n;
  problem.c = c;
  problem.h = h;
  problem.w = w;
  problem.k = k;
  problem.r = r;
  problem.s = s;
  problem = shape ? parse_shape(*shape, problem) : with_default_padding(problem);
  if (shape) refuse_size_keys(*shape);
  // By division: groups may be any number here.
  if (problem.groups >= 1 && (c % problem.groups != 0 || c / problem.groups != group_c)) {
    throw UsageError(
        fmt::format("the filter (k, c/groups, r, s) = ({}, {}, {}, {}) does not fit an input of c={} with groups={}; "
                    "its second size must be c/groups (--shape groups=... sets groups)",
                    k, group_c, r, s, c, problem.groups));
  }
  return problem;
}

UserProblem read_problem(const ProblemOptions& options, std::string_view track) {
  UserProblem user;
  user.filter = track_named(track).filter;
  if (options.input && options.filter) {
    NpyArray input = read_npy(*options.input), filter = read_npy(*options.filter);
    require_finite_filter(filter.values);
    user.problem = problem_of_arrays(input.shape, filter.shape, options.shape);
    if (user.problem.epilogue != Epilogue::none)
      throw UsageError("bias and residual have no files: an epilogue goes with --shape alone");
    user.tensors = HostTensors{std::move(input.values), std::move(filter.values)};
  } else if (options.shape) {
    user.problem = parse_shape(*options.shape);
  } else {
    const std::vector<NamedWorkload> workloads = workloads_of(track, backend());
    if (workloads.empty()) throw UsageError(fmt::format("the track {} has no workloads yet; give --shape", track));
    const NamedWorkload& workload = workloads.front();
    user.name = workload.name;
    user.problem = workload.problem;
  }
  if (options.padding) user.problem.padding = parse_padding(*options.padding);
  return user;
}

UserProblem read_problem(const ProblemOptions& options, const std::vector<const StageInfo*>& stages) {
  ProblemOptions of_stages = options;
  const auto step = std::ranges::find_if(stages, [](const StageInfo* stage) { return is_step(*stage); });
  if (step != stages.end() && !options.shape && !options.input) of_stages.shape = (*step)->shape;
  return read_problem(of_stages, stages.front()->track);
}

void require_valid(const ConvProblem& problem) {
  const std::int64_t host = host_memory_bytes(), device = device_info().memory_bytes;
  const char* const device_name = backend() == Backend::gpu ? "the GPU" : "the simulator on this machine";
  validate(problem, std::min(host, device), device < host ? device_name : "this machine");
}

void require_valid_on_host(const ConvProblem& problem) { validate(problem, host_memory_bytes()); }

Workload make_workload(UserProblem user, std::uint64_t seed) {
  if (!user.tensors) return make_workload(std::move(user.name), user.problem, InputKind::normal, user.filter, seed);
  Workload workload{std::move(user.name), user.problem, InputKind::normal, std::move(*user.tensors), {}};
  workload.reference = convolve_reference(workload.problem, workload.tensors);
  return workload;
}

}  // namespace convladder
