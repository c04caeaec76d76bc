/// @file
/// Rows of `bench` beside the stages of a track: the same stages with their knobs at other values.
#pragma once
#include <vector>

#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// Of the stages that are in the program. Of the winograd track, for each knob of a stage, a row for every value but
/// the default one, the other knobs as by default: "winograd m=4", "winograd m=6", ... Of the hopper track the tiles of
/// stage 35, whose errors differ: "winograd-fp32 bound=1e-4,tile=4x4", ... They are checked and timed as the stages
/// are. Their number is 0, their element type the stage's.
const std::vector<StageInfo>& settings_rows();

/// The stage of this number, and after it the settings_rows() of it: what is measured for a ratio over its fastest
/// configuration. Nothing where the stage is not in the program, as for the number 0.
std::vector<const StageInfo*> configurations_of(int number);

/// The same of the stage that a stage follows; of one in bf16, what of them is in bf16, too.
std::vector<const StageInfo*> previous_configurations(const StageInfo& stage);

}  // namespace convladder
