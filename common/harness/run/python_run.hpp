/// @file
/// Runs a row that lives in Python: PyTorch or Triton, in a process of its own, with tensors of its own.
#pragma once
#include "common/harness/run/python_program.hpp"
#include "common/harness/run/run_result.hpp"

namespace convladder {

/// Runs the row, into `result`: checked, timed and checked again, by the rules that hold for stages. On a GPU the
/// program captures and replays the CUDA graphs, and this one says with how many copies and how often. Guard bands
/// there are none.
/// @throws DeviceError if the program fails
void run_in_python(PythonProgram& program, const Workload& workload, const RunOptions& options, RunResult& result);

}  // namespace convladder
