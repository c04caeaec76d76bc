/// @file
/// The device under a program: memory, facts, measurement. Two implementations, one linked into each program:
/// device_sim.cpp over the simulator and device_gpu.cu over CUDA.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/stage/counters.hpp"
#include "common/stage/device_buffer.hpp"
#include "common/stage/stage.hpp"

namespace convladder {

struct Gpu;  // of common/stage/gpus.hpp, which is no C++17

/// Where kernels run.
enum class Backend {
  sim,  ///< in the simulator
  gpu,  ///< on a GPU, through CUDA
};

/// The backend this program was linked with.
Backend backend();

/// Facts of the device. Clocks are read at each call; zero where the device does not tell them.
struct DeviceInfo {
  std::string name;            ///< "NVIDIA H200", or "SIMT simulator"
  int compute_capability = 0;  ///< 10 * major + minor
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0, free_memory_bytes = 0;
  std::int64_t shared_bytes_per_block = 0;  ///< opt-in maximum
  std::int64_t l2_bytes = 0;
  std::string driver;   ///< "13.0", empty for the simulator
  std::string toolkit;  ///< "13.0": the CUDA Toolkit that built the program; empty for the simulator
  double sm_clock_mhz = 0, memory_clock_mhz = 0;
};

/// @throws MachineError where there is no usable GPU (GPU programs only)
DeviceInfo device_info();

/// Has the simulator stand for a GPU from now on: its limits, its instructions, its number of multiprocessors. A kernel
/// that uses what the GPU lacks is at fault. For programs over the simulator alone.
/// @param gpu null: as it comes, with the limits and instructions of an H200 and two multiprocessors
void stand_for(const Gpu* gpu);

/// The machine cannot do what was asked: no GPU, too little memory. Exit status 2.
struct MachineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A kernel or a CUDA call failed while running. Exit status 1.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Who touched memory where, in a fault of two accesses.
struct FaultAccess {
  std::string file;
  int line = 0;
  std::string block, thread;  ///< "(1,0,0)"
  int warp = 0;               ///< of the block
  bool whole_warp = false;    ///< all lanes of the warp, by a matrix function; `thread` is the first
  std::string access;         ///< "reads", "writes" or "updates" (an atomic), or "" where that is not known
};

/// One fault found by the simulator, or a failed launch on a GPU.
struct Fault {
  std::string kind;    ///< "out_of_bounds", "race", "uninitialized", "misaligned", "missing_barrier", ...
  std::string kernel;  ///< its name, without parameters
  std::string file;    ///< path as the compiler was given it
  int line = 0;
  std::string block, thread;          ///< "(1,0,0)"
  std::string other;                  ///< the second access of a race ("tiled_1d.cu:40, thread (3,0,0)"), or a detail
  std::int64_t count = 1;             ///< how often it happened at this place
  int warp = 0;                       ///< of the block
  bool whole_warp = false;            ///< all lanes of the warp, by a matrix function; `thread` is the first
  std::string access;                 ///< "reads", "writes" or "updates" (an atomic), or "" where that is not known
  std::optional<FaultAccess> second;  ///< what `other` tells of, in parts
};

/// Counters of one source line (`--lines`).
struct LineCounters {
  std::string file;
  int line = 0;
  Counters counters;
};

/// Registers, memory and occupancy of a kernel that a launch used. GPU only.
struct KernelInfo {
  std::string name;
  int registers = 0;
  std::int64_t spill_bytes = 0, shared_bytes = 0;
  double occupancy = 0;  ///< resident warps over the most a multiprocessor holds
};

/// What one run of `launch` did, as far as this backend can tell.
struct Observation {
  Counters counters;                ///< simulator only
  std::vector<LineCounters> lines;  ///< simulator only, where asked for
  std::vector<Fault> faults;
  std::vector<KernelInfo> kernels;  ///< GPU only
};

/// Runs `launch` once, waits for it, and observes it.
/// @param want_lines also attribute counters to source lines (costs a call of addr2line)
/// @throws DeviceError on a GPU if it failed
Observation observe(const std::function<void(Stream)>& launch, bool want_lines);

/// Runs `work` (a stage's prepare()) on the device's stream, waits for it, and returns its time in microseconds.
/// Faults in it throw DeviceError.
double run_and_wait(const std::function<void(Stream)>& work);

/// Waits for all work on a stream, whose faults throw DeviceError.
void wait_for(Stream stream);

/// While it lives, what this thread asks of CUDA is asked of the first GPU, which the program runs on, whichever the
/// caller has made the current one. In the simulator, nothing.
class OnOwnGpu {
 public:
  OnOwnGpu();
  ~OnOwnGpu();  // NOLINT(performance-trivially-destructible): the simulator has nothing to do there
  OnOwnGpu(const OnOwnGpu&) = delete;
  OnOwnGpu& operator=(const OnOwnGpu&) = delete;

 private:
  int callers_ = 0;
};

/// Keeps pieces of work that share memory in order, whatever streams they are put on. In the simulator, where each ends
/// before the next, there is nothing to keep.
class StreamOrder {
 public:
  StreamOrder() = default;
  ~StreamOrder();  // NOLINT(performance-trivially-destructible): on a GPU it destroys an event
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

  void enter(Stream stream);  ///< before work: the stream waits for the last work, if that was put on another one
  void leave(Stream stream);  ///< after it. A stream that is captured in a graph is left alone

 private:
  void* event_ = nullptr;  ///< after the last work
  Stream last_ = nullptr;  ///< where that is
};

/// Times in microseconds of one launch, over groups of launches. Without groups every figure is 0.
struct TimeSeries {
  std::vector<double> groups;
  double median() const;  ///< of the groups
  double min() const;     ///< the fastest group
  double spread() const;  ///< interquartile range over the median
};

}  // namespace convladder
