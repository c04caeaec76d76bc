// device.hpp over the simulator. There is no time here: timing.hpp's functions are only ever called on a GPU.

#include <sys/sysinfo.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <utility>

#include "common/harness/device/barriers.hpp"
#include "common/harness/device/block_trace.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/device/timing.hpp"
#include "common/kernel/compiled_kernel.hpp"
#include "common/simt/devices.hpp"
#include "common/simt/runtime.hpp"
#include "common/stage/communicator.hpp"
#include "common/stage/gpus.hpp"

namespace convladder {
namespace {

/// Shadow memory takes 24 bytes for each byte of a tensor, its state one, the tensor itself one; the rest is room.
constexpr std::int64_t kBytesPerByte = 32;

/// What stand_for() has chosen. As it comes there are two multiprocessors, so that kernels whose blocks stay until all
/// is done have few.
const Gpu* chosen = nullptr;

std::string text_of(const unsigned (&index)[3]) {
  return "(" + std::to_string(index[0]) + "," + std::to_string(index[1]) + "," + std::to_string(index[2]) + ")";
}

/// "thread (3,0,0)", or "warp 2" where all of it took part.
std::string who(const simt::ThreadId& id) {
  return id.whole_warp ? "warp " + std::to_string(id.warp) : "thread " + text_of(id.thread);
}

std::vector<Fault> faults_of(const simt::Measurement& measurement) {
  std::vector<Fault> faults;
  for (const simt::FaultRecord& record : measurement.faults) {
    const simt::SourceLine line = simt::line_of(record), other = simt::other_line_of(record);
    Fault fault;
    fault.kind = simt::to_string(record.kind);
    fault.kernel = simt::kernel_name(record.kernel);
    fault.file = line.file;
    fault.line = line.line;
    fault.block = text_of(record.thread.block);
    fault.thread = text_of(record.thread.thread);
    fault.other = record.detail;
    fault.warp = static_cast<int>(record.thread.warp);
    fault.whole_warp = record.thread.whole_warp;
    fault.access = record.access;
    if (!other.file.empty()) {
      const simt::ThreadId& id = record.other_thread;
      fault.other = other.file + ":" + std::to_string(other.line) + ", block " + text_of(id.block) + " " + who(id);
      fault.second = {
          other.file,    other.line,         text_of(id.block), text_of(id.thread), static_cast<int>(id.warp),
          id.whole_warp, record.other_access};
    }
    fault.count = record.count;
    faults.push_back(std::move(fault));
  }
  return faults;
}

std::vector<LineCounters> lines_of(const simt::Measurement& measurement) {
  std::vector<simt::Pc> pcs;
  for (const auto& [pc, counters] : measurement.by_pc) pcs.push_back(pc);
  const auto lines = simt::source_lines(pcs);
  std::map<std::pair<std::string, int>, Counters> by_line;
  for (const auto& [pc, counters] : measurement.by_pc) {
    Counters& sum = by_line[{lines.at(pc).file, lines.at(pc).line}];
    for (const CounterField& field : kCounterFields) sum.*field.member += counters.*field.member;
  }
  std::vector<LineCounters> result;
  for (const auto& [line, counters] : by_line) result.push_back({line.first, line.second, counters});
  return result;
}

}  // namespace

Backend backend() { return Backend::sim; }

DeviceInfo device_info() {
  struct sysinfo host {};
  sysinfo(&host);
  DeviceInfo info;
  info.name = "SIMT simulator";
  info.compute_capability = 90;
  info.multiprocessors = 1;
  info.memory_bytes = static_cast<std::int64_t>(host.totalram) * host.mem_unit / kBytesPerByte;
  info.free_memory_bytes = static_cast<std::int64_t>(host.freeram) * host.mem_unit / kBytesPerByte;
  info.shared_bytes_per_block = 227 * 1024;
  if (chosen) {
    info.name = std::string(chosen->full_name) + " (simulated)";
    info.compute_capability = chosen->compute_capability;
    info.multiprocessors = chosen->multiprocessors;
    info.shared_bytes_per_block = std::int64_t{chosen->shared_kib} << 10;
    info.l2_bytes = std::int64_t{chosen->l2_kib} << 10;
  }
  return info;
}

DeviceLimits device_limits() {
  if (!chosen) return {90, 227 * 1024, 2, 60 << 20};
  return {chosen->compute_capability, std::int64_t{chosen->shared_kib} << 10, chosen->multiprocessors,
          std::int64_t{chosen->l2_kib} << 10};
}

void stand_for(const Gpu* gpu) {
  chosen = gpu;
  simt::set_target(gpu ? simt::Target{gpu->full_name.data(), gpu->compute_capability,
                                      std::size_t{1024} * static_cast<unsigned>(gpu->shared_kib)}
                       : simt::Target{});
}

int most_local_ranks() { return 8; }
LocalRanks* make_local_ranks(int count) { return new simt::Devices(count); }

DeviceBuffer::DeviceBuffer(std::size_t bytes, const char* name) : bytes_(bytes), name_(name) {
  try {
    data_ = simt::allocate(bytes, name);
  } catch (const std::bad_alloc&) {
    throw MachineError(
        "not enough memory: '" + std::string(name) + "' needs " + std::to_string(bytes >> 20) +
        " MiB and about 25 times as much for what the simulator remembers of it; choose a smaller shape");
  }
}

DeviceBuffer::~DeviceBuffer() {
  if (data_) simt::release(data_);
}

void DeviceBuffer::upload(const void* source) { simt::upload(data_, source, bytes_); }
void DeviceBuffer::download(void* destination) const { simt::download(destination, data_, bytes_); }
void DeviceBuffer::poison(std::uint32_t word) { simt::poison(data_, bytes_, word); }

DeviceBuffer DeviceBuffer::copy() const {
  DeviceBuffer result(bytes_, name_);
  result.upload(data_);  // the simulator's memory is the host's
  return result;
}

bool DeviceBuffer::guards_intact() const { return true; }

Observation observe(const std::function<void(Stream)>& launch, bool want_lines) {
  simt::begin_measurement();
  launch(nullptr);
  const simt::Measurement& measurement = simt::measurement();
  Observation observation;
  observation.counters = measurement.counters;
  observation.faults = faults_of(measurement);
  if (want_lines) observation.lines = lines_of(measurement);
  return observation;
}

std::vector<Barrier> barriers_of(const std::function<void()>& work) {
  simt::BarrierLog log;
  struct Logging {
    explicit Logging(simt::BarrierLog* log) { simt::log_barriers(log); }
    ~Logging() { simt::log_barriers(nullptr); }
  };
  {
    const Logging logging(&log);
    work();
  }
  std::vector<simt::Pc> pcs;
  for (const auto& [met, count] : log) pcs.push_back(met.first.pc);
  const auto lines = simt::source_lines(pcs);
  std::map<std::pair<std::string, int>, Barrier> barriers;
  for (const auto& [met, count] : log) {
    const auto& [call, kernel] = met;
    const std::string& file = lines.at(call.pc).file;
    Barrier& barrier = barriers[{file, call.line}];
    barrier.file = file;
    barrier.line = call.line;
    barrier.passed += count;
    const std::string name = simt::kernel_name(kernel);
    if (std::find(barrier.kernels.begin(), barrier.kernels.end(), name) == barrier.kernels.end())
      barrier.kernels.push_back(name);
    if (const std::pair id{call.pc, call.line}; barrier.calls.empty() || barrier.calls.back() != id)
      barrier.calls.push_back(id);  // the log is sorted by them
  }
  std::vector<Barrier> result;
  for (auto& [place, barrier] : barriers) {
    std::sort(barrier.kernels.begin(), barrier.kernels.end());  // the log sorts them by address
    result.push_back(std::move(barrier));
  }
  return result;
}

void without_barrier(const Barrier& barrier, const std::function<void()>& work) {
  struct Skipping {
    explicit Skipping(std::vector<simt::BarrierCall> calls) { simt::skip_barriers(std::move(calls)); }
    ~Skipping() { simt::skip_barriers({}); }
  };
  std::vector<simt::BarrierCall> calls;
  for (const auto& [pc, line] : barrier.calls) calls.push_back({pc, line});
  const Skipping skipping(std::move(calls));
  work();
}

std::vector<BlockTrace> traces_of(std::array<unsigned, 3> index, std::size_t limit, const std::function<void()>& work) {
  simt::BlockRecording recording;
  std::copy(index.begin(), index.end(), recording.block);
  recording.limit = limit;
  struct Recording {
    explicit Recording(simt::BlockRecording* recording) { simt::record_block(recording); }
    ~Recording() { simt::record_block(nullptr); }
  };
  {
    const Recording on(&recording);
    work();
  }
  constexpr const char* kNames[] = {"load",  "store",  "atomic", "bulk_load", "bulk_store",
                                    "wgmma", "arrive", "wait",   "complete",  "barrier"};  // by Deed
  std::vector<simt::Pc> pcs;
  for (const auto& launch : recording.launches)
    for (const simt::BlockEvent& event : launch.events) pcs.push_back(event.pc);
  const auto lines = simt::source_lines(pcs);
  std::vector<BlockTrace> traces;
  for (auto& launch : recording.launches) {
    BlockTrace& trace = traces.emplace_back();
    trace.kernel = simt::kernel_name(launch.kernel);
    std::copy_n(launch.grid, 3, trace.grid.begin());
    std::copy_n(launch.block, 3, trace.block.begin());
    trace.left_out = launch.left_out;
    for (simt::BlockEvent& event : launch.events) {
      const simt::SourceLine& line = lines.at(event.pc);
      trace.events.push_back({kNames[static_cast<unsigned>(event.kind)], event.warp, event.lanes, line.file,
                              event.line ? event.line : line.line, event.space, std::move(event.object), event.origin,
                              event.bytes, event.cost, std::move(event.at)});
    }
  }
  return traces;
}

std::vector<TensorLoads> loads_of(const std::function<void()>& work) {
  simt::LoadLog log;
  struct Logging {
    explicit Logging(simt::LoadLog* log) { simt::log_loads(log); }
    ~Logging() { simt::log_loads(nullptr); }
  };
  {
    const Logging logging(&log);
    work();
  }
  std::vector<TensorLoads> result;
  for (simt::SectorLoads& each : log)
    result.push_back({simt::kernel_name(each.kernel), std::move(each.object), each.bytes, std::move(each.loads)});
  return result;
}

void wait_for(Stream) {}

OnOwnGpu::OnOwnGpu() = default;
OnOwnGpu::~OnOwnGpu() = default;

StreamOrder::~StreamOrder() = default;
void StreamOrder::enter(Stream) {}
void StreamOrder::leave(Stream) {}

double run_and_wait(const std::function<void(Stream)>& work) {
  const auto start = std::chrono::steady_clock::now();
  const Observation observation = observe(work, false);
  if (!observation.faults.empty()) {
    const Fault& fault = observation.faults.front();
    throw DeviceError(fault.kind + " at " + fault.file + ":" + std::to_string(fault.line) + " in " + fault.kernel +
                      ": " + fault.other);
  }
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

namespace {
[[noreturn]] void no_time() { throw std::logic_error("the simulator has no time"); }
}  // namespace

struct GraphTimer::Graph {};
GraphTimer::GraphTimer(const std::vector<std::function<void(Stream)>>&, int) { no_time(); }
GraphTimer::~GraphTimer() = default;
GraphTimer::GraphTimer(GraphTimer&&) noexcept = default;
double GraphTimer::sample() { no_time(); }
std::optional<GpuConditions> GraphTimer::conditions() const { no_time(); }
double time_by_events(const std::function<void(Stream)>&, int) { no_time(); }
int repetitions_for(const std::function<void(Stream)>&, double) { no_time(); }
Ceilings measure_ceilings() { no_time(); }

// --- Nothing is compiled here: a stage runs the kernel that was compiled with the program ---

struct CompiledKernel::Loaded {};

CompiledKernel::~CompiledKernel() { delete loaded_; }

void CompiledKernel::compile(const char*, const char*) {}

void CompiledKernel::upload_constant(const char*, const float*, std::size_t, Stream) const {
  throw std::logic_error("no kernel was compiled");
}

void CompiledKernel::start(dim3, dim3, std::size_t, Stream, void**) const {
  throw std::logic_error("no kernel was compiled");
}

const char* compiling_unavailable() { return "the simulator compiles nothing"; }

}  // namespace convladder
