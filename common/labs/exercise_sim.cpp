// exercise.hpp over the simulator.

#include <malloc.h>

#include "common/labs/exercise.hpp"
#include "common/simt/runtime.hpp"

namespace convladder {
namespace {

/// A warp of an exercise makes some thousand steps; a loop without end is to be found within seconds.
constexpr std::uint64_t kStepLimit = std::uint64_t{1} << 25;

constexpr std::size_t kConstantBytes = 64 << 10;  ///< nvcc refuses more

EndAtFault end_at_fault;

void report_violation(const char* what, simt::Pc pc) {
  simt::watch_host(nullptr);
  const simt::SourceLine line = simt::source_lines({pc}).at(pc);
  Fault fault;
  fault.kind = "host_access";
  fault.file = line.file;
  fault.line = line.line;
  fault.other = std::string("host code ") + what;
  end_at_fault(fault);
}

struct Watch {
  simt::HostRules rules;

  /// @param stack the frame of the function that calls the exercise  @param first, second what it is called with
  Watch(const Stage& exercise, const void* stack, simt::HostRules::Range first, simt::HostRules::Range second,
        EndAtFault end)
      : rules{
            stack, {&exercise, malloc_usable_size(const_cast<Stage*>(&exercise))}, {first, second}, report_violation} {
    end_at_fault = end;
    simt::set_step_limit(kStepLimit);
    simt::watch_host(&rules);
  }
  ~Watch() { simt::watch_host(nullptr); }
};

}  // namespace

Verdict check_watched(const Stage& exercise, const ConvProblem& problem, const DeviceLimits& limits, EndAtFault end) {
  const Watch watch(exercise, __builtin_frame_address(0), {&problem, sizeof problem}, {&limits, sizeof limits}, end);
  return exercise.check(problem, limits);
}

void run_watched(Stage& exercise, const ConvProblem& problem, const Tensors& tensors, Stream stream, EndAtFault end) {
  if (const std::size_t bytes = simt::constant_bytes(); bytes > kConstantBytes) {
    Fault fault;
    fault.kind = "constant_limit";
    fault.other = std::to_string(bytes) + " bytes of __constant__ arrays; all of a file together may have 65536";
    end(fault);
  }
  const Watch watch(exercise, __builtin_frame_address(0), {&problem, sizeof problem}, {&tensors, sizeof tensors}, end);
  exercise.prepare(problem, tensors, stream);
  exercise.launch(problem, tensors, stream);
}

bool counts_accesses() { return true; }

Threads threads_seen() { return {}; }

void await_threads(bool) {}

void download_output(const DeviceBuffer& output, void* destination) {
  simt::download_written(destination, output.data(), output.bytes(), kPoison);
}

}  // namespace convladder
