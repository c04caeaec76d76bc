/// @file
/// The simulator as the host sees it: memory, measurement, faults. Kernels see simt.hpp.
///
/// One block after another runs on the calling thread, its threads as fibers; so every number is the same on any
/// machine, and a program must use the simulator from one thread only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/counters.hpp"

namespace simt {

using convladder::Counters;

/// Global memory: zero or more bytes, 256-byte aligned, with unmapped memory around. Reads before the first write are
/// faults, until upload() or a kernel has written them.
/// @param name for messages; must outlive the allocation
/// @throws std::bad_alloc
void* allocate(std::size_t bytes, const char* name);
void release(void* address);

/// Copies from the host into global memory and marks it written.
void upload(void* device, const void* host, std::size_t bytes);
void download(void* host, const void* device, std::size_t bytes);
/// Fills with `word` and marks it unwritten again.
void poison(void* device, std::size_t bytes, std::uint32_t word);

/// Program counter in the running program, relative to where it was loaded; 0 for none.
using Pc = std::uint32_t;

struct ThreadId {
  unsigned block[3] = {}, thread[3] = {};
};

enum class FaultKind {
  out_of_bounds,
  uninitialized,
  race,
  misaligned,
  missing_barrier,       ///< some threads ended, others wait at a barrier
  divergent_barrier,     ///< threads of one block wait at barriers of different lines
  divergent_collective,  ///< a lane that a warp collective names never arrives at it
  invalid_launch,
  stack_overflow,
  crash,  ///< a machine trap in unobserved code (integer division by zero)
  endless_loop,
  shared_limit,  ///< more than 48 KB of static shared memory
};
const char* to_string(FaultKind kind);

/// A fault, the first time it was met at its place, and how often it was met there.
struct FaultRecord {
  FaultKind kind;
  const void* kernel;
  Pc pc = 0;
  ThreadId thread;
  std::string detail;     ///< "4 bytes past the end of 'input' (4096 bytes)"
  Pc other_pc = 0;        ///< race: the earlier access; divergent barrier: the other one
  ThreadId other_thread;  ///< who made it, or waits there
  std::int64_t count = 1;
  int line = 0, other_line = 0;  ///< of barriers and collectives, which know their own; else 0
};

/// Starts a measurement: forgets all counts and faults.
void begin_measurement();

struct Measurement {
  Counters counters;
  std::map<Pc, Counters> by_pc;
  std::vector<FaultRecord> faults;   ///< in the order met
  std::int64_t thread_accesses = 0;  ///< observed accesses of single threads, stack apart
};
/// What the launches since begin_measurement() did.
const Measurement& measurement();

struct SourceLine {
  std::string file;  ///< relative to the project where it lies in it
  int line = 0;
};
/// Where in the source each program counter lies: the innermost inlined frame outside the simulator's own headers.
/// One call of addr2line for all; where that is missing, "?" and 0.
std::map<Pc, SourceLine> source_lines(const std::vector<Pc>& pcs);

/// Where the fault is: its program counter's line, or the line that a barrier gave.
SourceLine line_of(const FaultRecord& fault);
/// The same of its other access; file "" where there is none.
SourceLine other_line_of(const FaultRecord& fault);

/// The kernel's name without its namespaces and parameters.
std::string kernel_name(const void* kernel);

}  // namespace simt
