/// @file
/// A lab's exercise as its runner sees it: a stage of its own, whose host code is watched. Three implementations:
/// exercise_sim.cpp, exercise_gpu.cpp, and exercise_host.cpp for the labs of stages that run on the host.
#pragma once
#include "common/harness/device/device.hpp"
#include "common/stage/stage.hpp"

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

/// Whether accesses are counted: in the simulator, and on the host.
bool counts_accesses();

/// On the host: how many threads there are, and how many of them have stored outputs. Elsewhere 0 and 0.
struct Threads {
  int all = 0, stored = 0;
};
/// Of the last run_watched().
Threads threads_seen();
/// Whether a thread that stores its first output waits a moment for the others to do so: then all that find work are
/// seen, however the system schedules them.
void await_threads(bool wait);

/// The bytes of the output, where in the simulator and on the host what no observed store has written is poisoned
/// still.
void download_output(const DeviceBuffer& output, void* destination);

}  // namespace convladder
