/// @file
/// The problem that a command line describes: by a shape, by .npy files, or by nothing (the track's first workload).
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/run/run_result.hpp"

namespace convladder {

/// What `run` and `compare` share.
struct ProblemOptions {
  std::optional<std::string> shape, padding;
  std::uint64_t seed = 1;
  std::optional<std::filesystem::path> input, filter;  ///< both or none
};

/// A problem, and its tensors where they came from files.
struct UserProblem {
  std::string name;  ///< of the workload, where it is a named one
  ConvProblem problem;
  std::optional<HostTensors> tensors;
  FilterForm filter = FilterForm::dense;  ///< of the random filter, where no file gave one
};

/// Reads the options; without shape and files the first workload of `track`. Not yet validated.
/// @throws UsageError
UserProblem read_problem(const ProblemOptions& options, std::string_view track);
/// The same for some stages, of the first one's track; where steps are among them, without shape and files the shape of
/// the first step.
UserProblem read_problem(const ProblemOptions& options, const std::vector<const StageInfo*>& stages);

/// Checks the problem against the memory of host and device. @throws UsageError, RefusedError
void require_valid(const ConvProblem& problem);
/// Checks it against the memory of the host alone, for stages that run there. @throws UsageError, RefusedError
void require_valid_on_host(const ConvProblem& problem);

/// The tensors, by the seed where no files gave them, and the reference.
Workload make_workload(UserProblem user, std::uint64_t seed);

/// Checks a user's filter. @throws UsageError for one with a NaN or an infinity
void require_finite_filter(const std::vector<float>& filter);

/// The problem of arrays with these shapes: 1-D is w or s, 2-D (h, w) or (r, s), 4-D (n, c, h, w) or (k, c/groups, r,
/// s).
/// @param shape adds padding, strides, dilations and groups; its other keys are errors
/// @throws UsageError for other ranks, and where filter, input and groups do not fit together
ConvProblem problem_of_arrays(const std::vector<std::int64_t>& input, const std::vector<std::int64_t>& filter,
                              const std::optional<std::string>& shape);

}  // namespace convladder
