/// @file
/// A lab's exercise as its runner sees it: a stage of its own, whose host code is watched.
#pragma once
#include "common/device.hpp"
#include "common/stage.hpp"

/// Made by CONVLADDER_STAGE at the end of the exercise's file.
convladder::Stage* make_exercise();

namespace convladder {

/// Called when host code of the exercise does what a GPU's host code could not do, or what no exercise needs to.
using EndAtFault = void (*)(const Fault&);

/// Stage::check(). In the simulator `end` is called, and must not return, before the exercise's host code touches
/// device memory, writes anything but its local variables and its members, or reads what it was not given.
Verdict check_watched(const Stage& exercise, const ConvProblem& problem, const DeviceLimits& limits, EndAtFault end);
/// Stage::prepare() and then Stage::launch(), likewise.
void run_watched(Stage& exercise, const ConvProblem& problem, const Tensors& tensors, Stream stream, EndAtFault end);

/// The output, where in the simulator what no observed store has written is poisoned still.
void download_output(const DeviceBuffer& output, float* destination);

}  // namespace convladder
