/// @file
/// What the commands that filter a user's file share: image and sound.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// @throws UsageError, with the nearest of `names`, if `name` is none of them
void require_filter_name(std::string_view name, const std::vector<std::string_view>& names);

/// @param whose filters the option is for, for the message  @throws UsageError if it was given
void refuse_option(bool given, std::string_view option, std::string_view name, std::string_view whose);

/// What a track says of itself: &Track::pictures or &Track::sounds.
using TrackFlag = bool Track::*;

/// The stage that was named, or null if none was. @throws UsageError if it is not of a track with the flag
const StageInfo* chosen_stage(const std::optional<std::string>& name, TrackFlag flag, std::string_view command);

/// The stage that was named, or the last one that takes problem and filters: each of `filters` is (r, s).
/// @throws UsageError, RefusedError, MachineError
const StageInfo& stage_for(const std::optional<std::string>& name, TrackFlag flag, std::string_view command,
                           const ConvProblem& problem, const std::vector<std::vector<float>>& filters);

/// The rule by which the stage refuses the problem or one of the filters, or "".
std::string filters_refusal(const StageInfo& stage, const ConvProblem& problem,
                            const std::vector<std::vector<float>>& filters);

/// In the simulator: says how long it may take, where that is long.
/// @param runs of the stage on the problem
void warn_of_the_wait(const StageInfo& stage, const ConvProblem& problem, std::size_t runs);

}  // namespace convladder
