/// @file
/// Rows of `bench` beside the stages of the winograd track: the same stages with their knobs at other values.
#pragma once
#include <vector>

#include "common/registry.hpp"

namespace convladder {

/// For each stage of the track that is in the program, and each of its knobs, a row for every value but the default
/// one, the other knobs as by default: "winograd m=4", "winograd m=6", ... They are checked and timed as the stages
/// are. Their number is 0, their element type the stage's.
const std::vector<StageInfo>& winograd_rows();

}  // namespace convladder
