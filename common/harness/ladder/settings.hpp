/// @file
/// Knobs of tunable stages, set by text: "m=4,tbm=32".
#pragma once
#include <string_view>
#include <vector>

#include "common/harness/ladder/registry.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {

/// Checks settings for stages that are to run with them. A stage takes those whose knobs it has.
/// @throws UsageError, with the choices, if they are no settings, if none of the stages has a knob of that name, if a
/// stage that has it has no such value of it, or if a knob is set twice
void require_settings(std::string_view settings, const std::vector<const StageInfo*>& stages);

/// Sets the knobs that `settings` names; those that the configuration does not have, and values that a knob does not
/// have, are passed over. @return whether any was set
bool apply_settings(std::string_view settings, Configuration& configuration);

}  // namespace convladder
