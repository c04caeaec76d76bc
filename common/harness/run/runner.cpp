#include "common/harness/run/runner.hpp"

#include <utility>

#include "common/harness/run/device_run.hpp"
#include "common/harness/run/host_run.hpp"
#include "common/harness/run/python_run.hpp"
#include "common/harness/run/refusal.hpp"

namespace convladder {
namespace {

RunResult blank(const StageInfo& stage, const ConvProblem& problem) {
  RunResult result;
  result.stage = &stage;
  result.problem = problem;
  result.backend = runs_on_host(stage) ? "cpu" : backend() == Backend::gpu ? "gpu" : "sim";
  result.device = device_of(stage).name;
  return result;
}

}  // namespace

RunResult run_stage(const StageInfo& stage, const Workload& workload, const RunOptions& options) {
  RunResult result = blank(stage, workload.problem);
  result.workload_name = workload.name;
  try {
    if (!stage.program.empty()) {
      run_in_python(python_rows_program(), workload, options, result);
    } else if (runs_on_host(stage)) {
      run_on_host(workload, options, result);
    } else {
      run_on_device(workload, options, result);
    }
  } catch (const DeviceError& error) {
    result.status = Status::error;
    result.reason = error.what();
  }
  return result;
}

RunResult refused(const StageInfo& stage, const ConvProblem& problem, std::string rule) {
  RunResult result = blank(stage, problem);
  result.status = Status::refused;
  result.reason = std::move(rule);
  return result;
}

}  // namespace convladder
