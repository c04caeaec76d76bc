/// @file
/// The simulator as the host sees it: memory, measurement, faults. Kernels see simt.hpp.
///
/// One block after another runs on the calling thread, its threads as fibers. Where a launch takes long, other cores
/// run blocks in copies of the process, see cores.hpp; every number is the same on any machine. A program must use the
/// simulator from one thread only.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/stage/counters.hpp"

namespace simt {

using convladder::Counters;

/// Global memory: zero or more bytes, 256-byte aligned, with unmapped memory around. Reads before the first write are
/// faults, until upload() or a kernel has written them.
/// @param name for messages; must outlive the allocation
/// @throws std::bad_alloc
void* allocate(std::size_t bytes, const char* name);
/// Frees what allocate() gave.
void release(void* address);
/// Takes memory away, or brings it back with nothing written in it: a graph's, which keeps its address.
void set_live(void* address, bool live);

/// Copies from the host into global memory and marks it written.
void upload(void* device, const void* host, std::size_t bytes);
/// Copies from global memory to the host.
void download(void* host, const void* device, std::size_t bytes);
/// The same, but each byte that no observed store and no upload() has written comes as it was poisoned.
void download_written(void* host, const void* device, std::size_t bytes, std::uint32_t word);
/// Fills with `word` and marks it unwritten again.
void poison(void* device, std::size_t bytes, std::uint32_t word);

/// Program counter in the running program, relative to where it was loaded; 0 for none.
using Pc = std::uint32_t;

/// Which thread of the grid.
struct ThreadId {
  unsigned block[3] = {}, thread[3] = {};
  unsigned warp = 0;        ///< of the block
  bool whole_warp = false;  ///< a matrix function's access: of all lanes of the warp
};

/// What a kernel did wrong; docs/simulator.md tells more of each.
enum class FaultKind {
  out_of_bounds,         ///< an access outside every object
  uninitialized,         ///< a read of what nothing has written
  race,                  ///< two accesses that nothing orders, one of them a plain write
  missing_wait,          ///< an access to what an asynchronous copy has yet to write, or a wgmma to read
  misaligned,            ///< an address that is no multiple of the access's size
  missing_barrier,       ///< some threads ended, others wait at a barrier
  divergent_barrier,     ///< threads of one block wait at barriers of different lines
  divergent_collective,  ///< a lane that a warp collective names never arrives at it
  invalid_launch,        ///< a grid, block or amount of shared memory that CUDA refuses
  stack_overflow,        ///< a thread needs more stack than it has
  crash,                 ///< a machine trap in unobserved code (integer division by zero)
  endless_loop,          ///< more steps than set_step_limit() allows
  shared_limit,          ///< more than 48 KB of static shared memory
  stuck_barrier,         ///< threads wait at an mbarrier or a named barrier that nothing completes any more
  invalid_barrier,       ///< an mbarrier or a named barrier used in a way that is not defined
  invalid_operand,       ///< a tensor map, matrix descriptor or size that an asynchronous instruction refuses
  missing_proxy_fence,   ///< an asynchronous access to what was written without a proxy fence after
  missing_wgmma_fence,   ///< a wgmma whose registers were touched since the last wgmma_fence()
  wgmma_in_flight,       ///< an access to the accumulators of a wgmma that was not waited for
  absent_block,          ///< an access to shared memory of a block of the cluster that may not have begun, or has ended
  missing_instruction,   ///< an instruction that the GPU of set_target() does not have
  deadlock,              ///< several devices: a send or a receive that no rank answers
  size_mismatch,         ///< several devices: a receive of more or fewer bytes than are sent
  not_captured,          ///< several devices: work that would be missing in a CUDA graph
};
/// Its name in JSON and messages.
const char* to_string(FaultKind kind);

/// A fault, the first time it was met at its place, and how often it was met there. Of two threads, the first time that
/// they were of two blocks, or of two warps, if that was so.
struct FaultRecord {
  FaultKind kind;
  const void* kernel;
  Pc pc = 0;
  ThreadId thread;
  std::string detail;     ///< "4 bytes past the end of 'input' (4096 bytes)"
  Pc other_pc = 0;        ///< race: the earlier access; missing wait: the copy; divergent barrier: the other one
  ThreadId other_thread;  ///< who made it, or waits there
  std::int64_t count = 1;
  int line = 0, other_line = 0;                 ///< of barriers and collectives, which know their own; else 0
  const char *access = "", *other_access = "";  ///< "reads", "writes" or "updates" (an atomic), where that is known
  bool rewrites = false;  ///< two writes, of which the second may leave what is there as it is; then nothing is wrong
  bool changes = false;   ///< and here it did not
};

/// Starts a measurement: forgets all counts and faults.
void begin_measurement();

/// A checksum of all that kernels can read: device memory and constants.
std::uint64_t memory_checksum();
/// How much that is.
std::size_t memory_bytes();

/// Counts and faults of launches.
struct Measurement {
  Counters counters;
  std::map<Pc, Counters> by_pc;
  std::vector<FaultRecord> faults;   ///< in the order met
  std::int64_t thread_accesses = 0;  ///< observed accesses of single threads, stack apart
};
/// What the launches since begin_measurement() did.
const Measurement& measurement();

/// What the host code of a kernel file may touch while it is watched. Device memory it may not, which on a GPU it
/// cannot reach. It writes its own stack and one object, and reads these, what it was given, and the program.
struct HostRules {
  /// A piece of the host's memory.
  struct Range {
    const void* begin;
    std::size_t bytes;
  };
  const void* stack;  ///< frames above this one are not its own
  Range object;
  Range given[2];  ///< to be read only
  /// Called before the forbidden access. @param what "reads device memory: 'input'"  @param pc where; must not return
  void (*violated)(const char* what, Pc pc);
};
/// Watches host code from now on; null ends it.
/// @param rules must stay alive
void watch_host(const HostRules* rules);

/// Host code is about to touch device memory. @param pc where
using HostTouches = void (*)(const void* address, bool writes, Pc pc);
/// Calls `touches` from now on before each such access of host code that has the hooks; null ends it.
void watch_device_memory(HostTouches touches);

/// Work that the host has started and that nothing orders before what follows: a launch, or a copy.
struct Unordered {
  /// Memory that a copy touches.
  struct Range {
    std::uintptr_t begin, end;
    bool writes;
  };
  std::string name;                   ///< of the kernel, or of the call
  std::uint32_t first = 0, last = 0;  ///< of a launch: serial numbers of its blocks
  unsigned grid[3] = {}, block[3] = {};
  std::vector<Range> ranges;  ///< of a copy
  Pc pc = 0;                  ///< of a copy: where it was started
  unsigned stream = 0;        ///< of several devices: where it is,
  std::uint64_t number = 0;   ///< and which piece of the work there; 0 where no device can tell another one
};
/// What the launches that follow can race with.
void set_unordered(std::vector<Unordered> work);
/// Serial numbers of the blocks of the last launch: the first, and the last.
std::pair<std::uint32_t, std::uint32_t> last_blocks();
/// Two accesses that nothing orders.
struct Met {
  const Unordered* work;  ///< of set_unordered()
  Pc pc;                  ///< where it touches the memory
  bool writes;            ///< it does
};
/// Whether the unordered work has touched this memory so that an access to it races. @return work null where not
Met find_unordered(const void* address, std::size_t bytes, bool writes);

/// Makes the program's `__device__` variables device memory, written by the host. Before the first allocation.
void adopt_device_variables();

/// Ends the running launch, and those that follow, without a fault. A signal handler may call it.
void interrupt();

/// A call of __syncthreads in the running program. The line tells calls apart that the compiler has merged.
struct BarrierCall {
  Pc pc = 0;
  int line = 0;
  /// Whether they are the same call.
  bool operator==(const BarrierCall&) const = default;
  /// An order, for maps.
  bool operator<(const BarrierCall& other) const { return pc != other.pc ? pc < other.pc : line < other.line; }
};
/// How often blocks of each kernel passed a barrier.
using BarrierLog = std::map<std::pair<BarrierCall, const void*>, std::int64_t>;
/// Adds to `log` from now on; null ends it. @param log must stay alive
void log_barriers(BarrierLog* log);
/// Takes barriers away: from now on these calls, and no others, do nothing.
void skip_barriers(std::vector<BarrierCall> calls);

/// What a block did.
enum class Deed : std::uint8_t {
  load,        ///< a request of a warp
  store,       ///< likewise
  atomic,      ///< likewise
  bulk_load,   ///< a bulk copy to shared memory is started
  bulk_store,  ///< a bulk copy from there
  wgmma,       ///< a warp's part of one
  arrive,      ///< at an mbarrier
  wait,        ///< there
  complete,    ///< a phase of an mbarrier ends
  barrier,     ///< of the block
};

/// One thing that a block did, in the order of the run.
struct BlockEvent {
  Deed kind = Deed::load;
  unsigned warp = 0;             ///< that did it; the last to come for a barrier or an mbarrier's phase that completes
  std::uint32_t lanes = 0;       ///< of it, that took part
  unsigned bytes = 0;            ///< of a request, in each lane; of a bulk copy, in all; of a wgmma its columns
  std::int64_t cost = 0;         ///< of a global request its sectors, of a shared one its extra passes over the banks
  const char* space = "";        ///< "global", "shared" or "constant"
  std::string object;            ///< what is accessed there, by name; of an mbarrier, where it lies
  unsigned origin = 0;           ///< where in a line of 128 bytes the object begins; 0 for an array of the program's
  std::vector<std::int64_t> at;  ///< the first byte in the object: of each lane that took part, or of the copy
  Pc pc = 0;
  int line = 0;  ///< of a barrier, which knows its own; else 0
};
/// What one block of a launch did.
struct BlockRecord {
  const void* kernel;
  unsigned grid[3], block[3];
  std::vector<BlockEvent> events;
  std::int64_t left_out = 0;  ///< events past the limit
};
/// What one block of each launch did.
struct BlockRecording {
  unsigned block[3] = {};             ///< which
  std::size_t limit = 0;              ///< events of a launch
  std::vector<BlockRecord> launches;  ///< since begin_measurement(), those whose grid has the block
};
/// Records into `recording` from now on; null ends it. @param recording must stay alive
void record_block(BlockRecording* recording);

/// How often one kernel loaded each sector, 32 bytes, of one object in global memory.
struct SectorLoads {
  const void* kernel;
  std::string object;
  std::uintptr_t begin;
  std::size_t bytes;
  std::vector<std::uint32_t> loads;  ///< of each sector: the requests that fetch it, of warps and of bulk copies
};
/// In the order in which they were first loaded, since begin_measurement().
using LoadLog = std::vector<SectorLoads>;
/// Counts into `log` from now on; null ends it. @param log must stay alive
void log_loads(LoadLog* log);

/// After how many steps (accesses and branches) of a warp in one block the simulator calls a loop endless: at first
/// 2^28.
void set_step_limit(std::uint64_t steps);

/// The GPU that the simulator stands for.
struct Target {
  const char* name = "NVIDIA H200";
  int compute_capability = 90;           ///< 10 * major + minor: which instructions it has
  std::size_t shared_bytes = 227 << 10;  ///< the most shared memory that one block may have; 227 KB at most
};
/// Holds for the launches that follow. At first an H200. @param gpu its name must live on
void set_target(const Target& gpu);

/// On how many cores the blocks of a launch run; 0, as at first: those that the process may use, or as many as
/// CONVLADDER_SIM_CORES says. Results, counts and faults do not depend on it.
/// @param at_once even where the launch is short
void set_cores(unsigned cores, bool at_once = false);

/// Bytes of all `__constant__` arrays of the program. A GPU holds 64 KB for each kernel file.
std::size_t constant_bytes();

/// A place in the source.
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
