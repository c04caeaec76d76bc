// exercise.hpp and device.hpp for the labs of stages that run on the host. The exercise is compiled with the hooks of
// -fsanitize=thread, as kernels are for the simulator, and runs on real threads. The hooks count its accesses to the
// tensors and to workspaces, and find those outside their bounds, those of what nothing has written, outputs that two
// threads store, and stores to a variable of the first thread or of all. They find no other races. What is not counted
// must be too small for a tensor: the compiler limits the frames of functions, grade.py rejects global variables, and
// operator new counts here.

#include <malloc.h>
#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>

#include "common/harness/device/device.hpp"
#include "common/labs/exercise.hpp"
#include "common/simt/symbols.hpp"

namespace convladder {
namespace {

using simt::Pc;
using Address = std::uintptr_t;

constexpr std::size_t kGuardBytes = 64 << 10;  // around each tensor and workspace: nothing else lies there
constexpr Address kNullBytes = 4096;           // no object lies below
constexpr std::size_t kObjectBytes = 4096;     // of the exercise, and of whatever else it makes with new
constexpr auto kPatience = std::chrono::milliseconds(500);

// ---- Memory --------------------------------------------------------------------------------------------------------

/// A tensor or workspace, and what its words have met.
struct Memory {
  Address begin, end;
  const char* name;
  std::unique_ptr<std::atomic<std::uint8_t>[]> written;  ///< a word each: by the harness or the exercise
  std::unique_ptr<std::atomic<std::uint8_t>[]> writer;   ///< the thread's number and 1, in this run; 0: none
};

/// Few, and none is made or freed while threads run.
std::map<Address, Memory>& memories() {
  static std::map<Address, Memory> all;
  return all;
}

/// The memory that the address lies in or near, or null.
Memory* near(Address address) {
  auto after = memories().upper_bound(address + kGuardBytes);
  if (after == memories().begin()) return nullptr;
  Memory& memory = std::prev(after)->second;
  return address < memory.end + kGuardBytes ? &memory : nullptr;
}

void mark(Memory& memory, std::uint8_t written) {
  for (std::size_t i = 0; i < (memory.end - memory.begin + 3) / 4; ++i) memory.written[i] = written;
}

// ---- What one run has done -----------------------------------------------------------------------------------------

/// One thread's part; the thread keeps it for good.
struct Part {
  int number;
  Address stack_begin, stack_end;
  Counters counters;
  std::unordered_map<Pc, Counters> by_pc;
  bool stored = false;  ///< an output
};

struct Run {
  std::atomic<bool> watching = false;
  bool by_line = false, awaiting = false;
  const Part* first = nullptr;  ///< the thread that begins, number 0
  Address output = 0, object_begin = 0, object_end = 0;
  std::atomic<int> stored = 0;
  EndAtFault end = nullptr;
  std::mutex mutex;  ///< of the two below
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<std::pair<Pc, Fault>> faults;  ///< one for each kind and place; their lines are looked up in the end
} run;

std::atomic<std::size_t> made_bytes = 0;  // by operator new in the exercise, for this case

Part& part() {
  static thread_local Part* const mine = [] {
    auto part = std::make_unique<Part>();
    pthread_attr_t attributes;
    void* stack = nullptr;
    std::size_t bytes = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &bytes);
    pthread_attr_destroy(&attributes);
    part->stack_begin = reinterpret_cast<Address>(stack);
    part->stack_end = part->stack_begin + bytes;
    const std::lock_guard lock(run.mutex);
    part->number = static_cast<int>(run.parts.size());
    run.parts.push_back(std::move(part));
    return run.parts.back().get();
  }();
  return *mine;
}

void set_line(Fault& fault, Pc pc) {
  const simt::SourceLine line = simt::source_lines({pc}).at(pc);
  fault.file = line.file;
  fault.line = line.line;
}

/// The run goes on.
void note(Pc pc, const char* kind, std::string text) {
  const std::lock_guard lock(run.mutex);
  for (auto& [place, fault] : run.faults) {
    if (place != pc || fault.kind != kind) continue;
    ++fault.count;
    return;
  }
  Fault fault;
  fault.kind = kind;
  fault.other = std::move(text);
  run.faults.emplace_back(pc, std::move(fault));
}

/// The access would go wrong, so it is the last one.
[[noreturn]] void stop(Pc pc, const char* kind, std::string text) {
  run.mutex.lock();  // for good: the first thread here has the word, and others that are about to go wrong wait
  Fault fault;
  fault.kind = kind;
  fault.other = std::move(text);
  set_line(fault, pc);
  run.end(fault);
  std::abort();  // not reached
}

// ---- Accesses ------------------------------------------------------------------------------------------------------

void first_output(Part& mine) {
  mine.stored = true;
  ++run.stored;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (run.awaiting && run.stored < omp_get_max_threads() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void count(Counters& counters, bool load, std::size_t bytes) {
  ++(load ? counters.global_load_requests : counters.global_store_requests);
  (load ? counters.global_load_bytes : counters.global_store_bytes) += static_cast<std::int64_t>(bytes);
}

void access_memory(Memory& memory, Part& mine, Address address, std::size_t bytes, bool load, Pc pc) {
  if (address < memory.begin || address + bytes > memory.end) {
    const bool before = address < memory.begin;
    const Address distance = before ? memory.begin - address : address - std::min(address, memory.end);
    stop(pc, "out_of_bounds",
         std::string(load ? "reads " : "writes ") + (distance == 0 ? "just" : std::to_string(distance) + " bytes") +
             (before ? " before '" : " past the end of '") + memory.name + "' (" +
             std::to_string(memory.end - memory.begin) + " bytes)");
  }
  count(mine.counters, load, bytes);
  if (run.by_line) count(mine.by_pc[pc], load, bytes);
  const bool is_output = memory.begin == run.output;
  if (is_output && !load && !mine.stored) first_output(mine);
  for (Address word = (address - memory.begin) / 4; word <= (address + bytes - 1 - memory.begin) / 4; ++word) {
    if (load) {
      if (!memory.written[word].load(std::memory_order_relaxed))
        note(pc, "uninitialized", std::string("reads '") + memory.name + "', which nothing has written");
      continue;
    }
    memory.written[word].store(1, std::memory_order_relaxed);
    const auto me = static_cast<std::uint8_t>(mine.number % 255 + 1);
    const std::uint8_t before = memory.writer[word].exchange(me, std::memory_order_relaxed);
    if (is_output && before != 0 && before != me)
      note(pc, "stored_twice", "an output is stored once, by one thread; here a second thread stores it");
  }
}

bool in(Address address, Address begin, Address end) { return address >= begin && address < end; }

void access(const void* pointer, std::size_t bytes, bool load, void* return_address) {
  if (!run.watching.load(std::memory_order_relaxed) || bytes == 0) return;
  const auto address = reinterpret_cast<Address>(pointer);
  Part& mine = part();
  if (in(address, mine.stack_begin, mine.stack_end)) return;
  const Pc pc = simt::relative_pc(return_address);
  if (Memory* memory = near(address)) return access_memory(*memory, mine, address, bytes, load, pc);
  if (address < kNullBytes) stop(pc, "null_pointer", "a pointer that was not set");
  if (load || mine.number == 0) return;
  if (in(address, run.first->stack_begin, run.first->stack_end) || in(address, run.object_begin, run.object_end) ||
      in(address, simt::program().begin, simt::program().end))
    note(pc, "shared_variable", "a parallel loop's threads write outputs, workspaces and variables of their own alone");
}

void begin(Stage& exercise, const Tensors& tensors, EndAtFault end) {
  run.first = &part();
  run.end = end;
  run.output = reinterpret_cast<Address>(tensors.output);
  run.object_begin = reinterpret_cast<Address>(&exercise);
  run.object_end = run.object_begin + malloc_usable_size(&exercise);
  run.stored = 0;
  run.faults.clear();
  for (const auto& mine : run.parts) {
    mine->counters = {};
    mine->by_pc.clear();
    mine->stored = false;
  }
  for (auto& [address, memory] : memories())
    for (std::size_t i = 0; i < (memory.end - memory.begin + 3) / 4; ++i) memory.writer[i] = 0;
  simt::program();  // read it before threads ask
  run.watching = true;
}

}  // namespace

// ---- exercise.hpp --------------------------------------------------------------------------------------------------

Verdict check_watched(const Stage& exercise, const ConvProblem& problem, const DeviceLimits& limits, EndAtFault) {
  return exercise.check(problem, limits);
}

void run_watched(Stage& exercise, const ConvProblem& problem, const Tensors& tensors, Stream stream, EndAtFault end) {
  begin(exercise, tensors, end);
  exercise.prepare(problem, tensors, stream);
  exercise.launch(problem, tensors, stream);
  run.watching = false;
  made_bytes = 0;
}

bool counts_accesses() { return true; }

Threads threads_seen() { return {omp_get_max_threads(), run.stored}; }

void await_threads(bool wait) { run.awaiting = wait; }

void download_output(const DeviceBuffer& output, void* destination) {
  const Memory& memory = memories().at(reinterpret_cast<Address>(output.data()));
  output.download(destination);
  for (std::size_t word = 0; word < output.bytes() / 4; ++word)
    if (!memory.written[word]) std::memcpy(static_cast<float*>(destination) + word, &kPoison, 4);
}

// ---- device.hpp ----------------------------------------------------------------------------------------------------

Backend backend() { return Backend::sim; }

DeviceLimits device_limits() { return {0, 0}; }

DeviceBuffer::DeviceBuffer(std::size_t bytes, const char* name) : bytes_(bytes), name_(name) {
  const std::size_t whole = (bytes + 63) / 64 * 64, words = (bytes + 3) / 4;
  auto* const memory = static_cast<char*>(std::aligned_alloc(64, whole + 2 * kGuardBytes));
  if (!memory)
    throw MachineError("not enough memory: '" + std::string(name) + "' needs " + std::to_string(bytes >> 20) + " MiB");
  data_ = memory + kGuardBytes;
  const auto address = reinterpret_cast<Address>(data_);
  memories()[address] = {address, address + bytes, name, std::make_unique<std::atomic<std::uint8_t>[]>(words),
                         std::make_unique<std::atomic<std::uint8_t>[]>(words)};
}

DeviceBuffer::~DeviceBuffer() {
  if (!data_) return;
  memories().erase(reinterpret_cast<Address>(data_));
  std::free(static_cast<char*>(data_) - kGuardBytes);
}

DeviceBuffer DeviceBuffer::copy() const {
  DeviceBuffer result(bytes_, name_);
  result.upload(data_);
  return result;
}

void DeviceBuffer::upload(const void* source) {
  std::memcpy(data_, source, bytes_);
  mark(memories().at(reinterpret_cast<Address>(data_)), 1);
}

void DeviceBuffer::download(void* destination) const { std::memcpy(destination, data_, bytes_); }

void DeviceBuffer::poison(std::uint32_t word) {
  std::fill_n(static_cast<std::uint32_t*>(data_), bytes_ / 4, word);
  mark(memories().at(reinterpret_cast<Address>(data_)), 0);
}

bool DeviceBuffer::guards_intact() const { return true; }  // every access is checked instead

Observation observe(const std::function<void(Stream)>& launch, bool want_lines) {
  run.by_line = want_lines;
  launch(nullptr);
  Observation seen;
  std::unordered_map<Pc, Counters> by_pc;
  const auto add = [](Counters& sum, const Counters& more) {
    for (const CounterField& field : kCounterFields) sum.*field.member += more.*field.member;
  };
  for (const auto& mine : run.parts) {
    add(seen.counters, mine->counters);
    for (const auto& [pc, counters] : mine->by_pc) add(by_pc[pc], counters);
  }
  std::vector<Pc> pcs;
  for (const auto& [pc, counters] : by_pc) pcs.push_back(pc);
  std::map<std::pair<std::string, int>, Counters> by_line;
  const auto lines = simt::source_lines(pcs);
  for (const auto& [pc, counters] : by_pc) add(by_line[{lines.at(pc).file, lines.at(pc).line}], counters);
  for (const auto& [line, counters] : by_line) seen.lines.push_back({line.first, line.second, counters});
  for (auto& [pc, fault] : run.faults) {
    set_line(fault, pc);
    seen.faults.push_back(std::move(fault));
  }
  return seen;
}

}  // namespace convladder

// ---- The compiler's hooks ------------------------------------------------------------------------------------------

#define HERE __builtin_return_address(0)

extern "C" {

// What an exercise calls instead of the library's own (objcopy renames them there): the library's carry no hooks.
void* simt_memmove(void* to, const void* from, std::size_t bytes) {
  convladder::access(from, bytes, true, HERE);
  convladder::access(to, bytes, false, HERE);
  return std::memmove(to, from, bytes);
}
void* simt_memcpy(void* to, const void* from, std::size_t bytes) {
  convladder::access(from, bytes, true, HERE);
  convladder::access(to, bytes, false, HERE);
  return std::memmove(to, from, bytes);
}
void* simt_memset(void* to, int value, std::size_t bytes) {
  convladder::access(to, bytes, false, HERE);
  return std::memset(to, value, bytes);
}
void* simt_new(std::size_t bytes) {
  convladder::made_bytes += bytes;
  if (convladder::made_bytes <= convladder::kObjectBytes) return ::operator new(bytes);
  convladder::made_bytes = 0;
  throw std::runtime_error("the exercise and what it makes with new have more than " +
                           std::to_string(convladder::kObjectBytes) +
                           " bytes: allocate a Workspace, whose accesses are counted");
}

#define LOAD_HOOK(name, bytes) \
  void __tsan_##name(void* address) { convladder::access(address, bytes, true, HERE); }
#define STORE_HOOK(name, bytes) \
  void __tsan_##name(void* address) { convladder::access(address, bytes, false, HERE); }
#define HOOKS(bytes)                               \
  LOAD_HOOK(read##bytes, bytes)                    \
  STORE_HOOK(write##bytes, bytes)                  \
  LOAD_HOOK(unaligned_read##bytes, bytes)          \
  STORE_HOOK(unaligned_write##bytes, bytes)        \
  LOAD_HOOK(volatile_read##bytes, bytes)           \
  STORE_HOOK(volatile_write##bytes, bytes)         \
  LOAD_HOOK(unaligned_volatile_read##bytes, bytes) \
  STORE_HOOK(unaligned_volatile_write##bytes, bytes)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(void* address, std::size_t bytes) { convladder::access(address, bytes, true, HERE); }
void __tsan_write_range(void* address, std::size_t bytes) { convladder::access(address, bytes, false, HERE); }

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

}  // extern "C"
