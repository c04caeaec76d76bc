// CUDA's runtime over the simulator: every call runs to its end at once, so streams are in order by themselves.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/cuda/host_memory.hpp"
#include "common/cuda/include/cuda_runtime.h"
#include "common/cuda/report.hpp"
#include "common/cuda/streams.hpp"
#include "common/simt/cores.hpp"
#include "common/simt/hopper.hpp"
#include "common/simt/machine.hpp"
#include "common/stage/gpus.hpp"

namespace simt_cuda {
namespace {

/// A block of memory that the program asked for.
struct Block {
  std::string name;
  Place place;
  std::size_t bytes;
  bool managed;  ///< the host may touch it: managed, or pinned
  bool live;
  bool is_static = false;  ///< a `__managed__` variable
  bool pinned = false;
  bool of_graph = false;  ///< which frees it, if anybody does
};

struct Runtime {
  std::map<std::uintptr_t, Block> blocks;  ///< by address
  std::set<std::string> names;             ///< the simulator keeps pointers to them, and knows kernels by these
  std::size_t used = 0;
  cudaError last = cudaSuccess, sticky = cudaSuccess;
  Place failed{"", 0};                          ///< the launch whose error nobody has read
  std::string failure;                          ///< of it, or empty
  std::map<std::string, std::size_t> opted_in;  ///< dynamic shared memory that kernels may have, by their names
  std::map<std::string, dim3> cluster_dims;     ///< their __cluster_dims__
  std::set<std::string> large_clusters;         ///< which may have clusters of more than 8 blocks
  const convladder::Gpu* gpu = convladder::find_gpu("H200");
};

Runtime& runtime() {
  static auto& instance = *new Runtime;  // outlives every destructor of the program
  return instance;
}

std::size_t memory_bytes() { return std::size_t{1} * static_cast<std::size_t>(runtime().gpu->memory_gib) << 30; }

/// The host's own heap, as far as the program's code has it: address and bytes.
std::map<std::uintptr_t, std::size_t>& host_heap() {
  static auto& instance = *new std::map<std::uintptr_t, std::size_t>;
  return instance;
}
std::atomic_flag host_heap_busy;  // the program may have threads

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// The block that the address lies in, or lay in, or null.
Block* block_at(std::uintptr_t address) {
  auto& blocks = runtime().blocks;
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return nullptr;
  --after;
  return address < after->first + std::max<std::size_t>(after->second.bytes, 1) ? &after->second : nullptr;
}

cudaError fail(cudaError error) { return runtime().last = error; }

/// What an API call returns: an error that stays, or its own.
cudaError result(cudaError error = cudaSuccess) {
  if (runtime().sticky != cudaSuccess) return runtime().sticky;
  return error == cudaSuccess ? error : fail(error);
}

std::string base_name(const std::string& name) { return name.substr(0, name.find('<')); }

/// Without its namespaces, too.
std::string short_name(const std::string& name) {
  const std::string base = base_name(name);
  return base.substr(base.rfind(':') + 1);
}

/// Whether the host's access races with work that it has not waited for; reports it.
void check_host_race(const Block& block, const void* address, std::size_t bytes, bool writes, const char* what,
                     simt::Pc pc) {
  if (!begin_host_access()) return;
  const simt::Met met = simt::find_unordered(address, bytes, writes);
  if (!met.work) return;
  report_host_fault("host_race",
                    std::string(what) + (writes ? " writes '" : " reads '") + block.name + "' while '" +
                        met.work->name + "' may run: cudaDeviceSynchronize first",
                    pc);
}

void host_touches(const void* address, bool writes, simt::Pc pc) {
  const Block* const block = block_at(address_of(address));
  if (block && block->live && block->managed) return check_host_race(*block, address, 1, writes, "the host", pc);
  report_host_fault("host_access",
                    std::string(writes ? "the host writes" : "the host reads") + " device memory, " +
                        simt::describe_global(address_of(address)),
                    pc);
  simt::watch_device_memory(nullptr);
  std::fflush(stdout);
  std::exit(4);  // a GPU's host program dies here
}

enum class Side { host, device, both };
Side side_of(const void* pointer) {
  if (!simt::is_device_address(address_of(pointer))) return Side::host;
  const Block* const block = block_at(address_of(pointer));
  return block && block->managed ? Side::both : Side::device;
}

/// Whether a pointer may stand there; reports it otherwise. @param role "destination" or "source"
bool check_side(const void* pointer, bool device, const char* role, const char* call, const Place& place) {
  const Side side = side_of(pointer);
  if (side == Side::both || (side == Side::device) == device) return true;
  const std::string where =
      side == Side::device ? "is device memory (" + simt::describe_global(address_of(pointer)) + ")" : "is host memory";
  report_host_fault(
      "wrong_pointer",
      std::string(call) + ": the " + role + " " + where + ", and must be " + (device ? "device memory" : "host memory"),
      place);
  return false;
}

/// Whether the host's memory holds all of it, as far as that is known; reports it otherwise.
bool check_host_range(const void* pointer, std::size_t bytes, const char* verb, const Place& place) {
  auto block = host_heap().upper_bound(address_of(pointer));
  if (block == host_heap().begin()) return true;
  --block;
  const std::size_t offset = address_of(pointer) - block->first;
  if (offset >= block->second || bytes <= block->second - offset) return true;
  report_host_fault("out_of_bounds",
                    std::string(verb) + " " + std::to_string(bytes) + " bytes of host memory, of which the host has " +
                        std::to_string(block->second - offset),
                    place);
  return false;
}

/// Whether the memory holds all of it; reports it otherwise.
bool check_range(const void* pointer, std::size_t bytes, const char* verb, const Place& place) {
  if (bytes == 0) return true;
  if (!simt::is_device_address(address_of(pointer))) return check_host_range(pointer, bytes, verb, place);
  const simt::Allocation* const allocation = simt::find_allocation(address_of(pointer));
  if (allocation && allocation->live && bytes <= allocation->end - address_of(pointer)) return true;
  const bool freed = allocation && !allocation->live;
  report_host_fault(freed ? "use_after_free" : "out_of_bounds",
                    std::string(verb) + " " + std::to_string(bytes) + " bytes, " +
                        simt::describe_global(allocation && !freed ? allocation->end : address_of(pointer)),
                    place);
  return false;
}

bool check_kind(const void* to, const void* from, cudaMemcpyKind kind, const char* call, const Place& place) {
  if (kind == cudaMemcpyDefault) return true;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return check_side(to, to_device, "destination", call, place) && check_side(from, from_device, "source", call, place);
}

/// The bytes' states go with them. Both ranges are whole.
void copy(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
  simt::Allocation* const target = simt::find_allocation(address_of(to));
  if (!target || bytes == 0) return;
  const simt::Allocation* const source = simt::find_allocation(address_of(from));
  std::uint8_t* const state = target->bytes + (address_of(to) - target->begin);
  if (source)
    std::memmove(state, source->bytes + (address_of(from) - source->begin), bytes);
  else
    std::memset(state, simt::kWritten, bytes);
}

void fill(void* to, int value, std::size_t bytes) {
  std::memset(to, value, bytes);
  if (simt::Allocation* const target = simt::find_allocation(address_of(to)))
    std::memset(target->bytes + (address_of(to) - target->begin), simt::kWritten, bytes);
}

bool in_constants(const void* symbol) {
  const simt::Program& program = simt::program();
  return address_of(symbol) >= program.constant_begin && address_of(symbol) < program.constant_end;
}

/// Ends the program where the simulator cannot go on.
[[noreturn]] void refuse(const std::string& text, const Place& place) {
  std::fflush(stdout);
  std::fprintf(stderr, "./lab sim: %s:%d: %s\n", place.file, place.line, text.c_str());
  _exit(2);
}

void at_exit() {
  const Runtime& state = runtime();
  for (const auto& [address, block] : state.blocks)
    if (block.live && !block.is_static && !block.of_graph)
      report_note("leak: '" + block.name + "' (" + std::to_string(block.bytes) + " bytes) was never freed",
                  block.place);
  if (!state.failure.empty())
    report_host_fault("unchecked_launch",
                      "the kernel did not run: " + state.failure + "; no cudaGetLastError() has read it", state.failed);
  write_report();
}

pid_t process = 0;

/// A program that a signal ends, abort() after an error among them: what was found until then is told all the same.
void at_signal(int) {
  if (getpid() != process) return;  // a copy of the process, which helps with a launch
  alarm(10);                        // whatever the program was at, it ends
  std::fflush(stdout);
  write_report();
}

void report_at_signals() {
  process = getpid();
  struct sigaction action {};
  action.sa_handler = at_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);  // then the signal does what it always does
  for (const int each : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(each, &action, nullptr);
}

[[noreturn]] void end_by_limit() {
  note_limit();
  std::fflush(stdout);
  write_report();
  _exit(1);
}

/// Ends the program after so many seconds: a running grid stops by itself, the host's own loops do not.
void limit(int seconds) {
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  simt::interrupt();
  while (simt::machine.running) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it reports what it has counted, and ends
  end_by_limit();
}

/// Before any other object of the program: what it registers for its end runs last.
__attribute__((constructor(101))) void start() {
  std::atexit(at_exit);
  report_at_signals();
  runtime();
  if (const char* const name = std::getenv("CONVLADDER_SIM_GPU")) {
    runtime().gpu = convladder::find_gpu(name);
    if (!runtime().gpu) {
      std::string names;
      for (const convladder::Gpu& gpu : convladder::gpus())
        names += (names.empty() ? "" : ", ") + std::string(gpu.name);
      std::fprintf(stderr, "./lab: sim: --gpu must be one of %s; got '%s'\n", names.c_str(), name);
      _exit(2);
    }
  }
  simt::adopt_device_variables();
  if (const char* const seconds = std::getenv("CONVLADDER_SIM_LIMIT")) std::thread(limit, std::atoi(seconds)).detach();
}

/// After the objects of the program, which stand before this library: their constructors may be what initialises a
/// __device__ variable.
__attribute__((constructor)) void watch_host() { simt::watch_device_memory(host_touches); }

/// The error that a GPU reports for a fault that ends the launch; cudaSuccess where the kernel goes on.
cudaError error_of(simt::FaultKind kind) {
  switch (kind) {
    case simt::FaultKind::out_of_bounds:
      return cudaErrorIllegalAddress;
    case simt::FaultKind::misaligned:
      return cudaErrorMisalignedAddress;
    default:
      return cudaErrorLaunchFailure;
  }
}

}  // namespace

cudaError allocate(void** pointer, std::size_t bytes, bool managed, const char* name, const char* file, int line) {
  Runtime& state = runtime();
  if (!pointer) return result(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (state.sticky != cudaSuccess) return state.sticky;
  if (bytes == 0) return cudaSuccess;
  if (bytes > memory_bytes() - state.used) return fail(cudaErrorMemoryAllocation);
  const std::string text = *name ? name : "memory of line " + std::to_string(line);
  try {
    *pointer = simt::allocate(bytes, state.names.insert(text).first->c_str());
  } catch (const std::bad_alloc&) {
    return fail(cudaErrorMemoryAllocation);
  }
  state.used += bytes;
  state.blocks[address_of(*pointer)] = {text, {file, line}, bytes, managed, true};
  if (managed) {
    const simt::Allocation* const allocation = simt::find_allocation(address_of(*pointer));
    std::memset(allocation->bytes, simt::kWritten, bytes);  // the host may write it unseen
  }
  return cudaSuccess;
}

cudaError allocate_for_graph(void** pointer, std::size_t bytes, const char* name, const char* file, int line) {
  const cudaError error = allocate(pointer, bytes, false, name, file, line);
  if (error == cudaSuccess && *pointer) runtime().blocks[address_of(*pointer)].of_graph = true;
  return error;
}

cudaError allocate_in(cudaStream_t stream, void** pointer, std::size_t bytes, const char* name, const char* file,
                      int line) {
  if (!is_capturing(stream)) return allocate(pointer, bytes, false, name, file, line);
  if (const cudaError error = allocate_for_graph(pointer, bytes, name, file, line)) return error;
  const auto work = [begin = *pointer](cudaStream_t) { begin_of_graph(begin); };
  add_step(stream, new StepOf<decltype(work)>(work), cudaGraphNodeTypeMemAlloc);
  return cudaSuccess;
}

namespace {
void set_live(Block& block, void* pointer, bool live) {
  if (block.live != live) runtime().used += live ? block.bytes : -block.bytes;
  block.live = live;
  simt::set_live(pointer, live);
}
}  // namespace

void begin_of_graph(void* pointer) { set_live(runtime().blocks[address_of(pointer)], pointer, true); }

bool end_of_graph(void* pointer) {
  const auto found = runtime().blocks.find(address_of(pointer));
  if (found == runtime().blocks.end() || !found->second.of_graph || !found->second.live) return false;
  set_live(found->second, pointer, false);
  return true;
}

namespace {
cudaError release(void* pointer, const Place& place) {
  Runtime& state = runtime();
  if (!pointer) return result();
  const auto found = state.blocks.find(address_of(pointer));
  if (found == state.blocks.end() || !found->second.live) {
    const bool freed = found != state.blocks.end();
    report_host_fault(freed ? "double_free" : "invalid_free",
                      freed ? "'" + found->second.name + "' was freed before"
                      : simt::is_device_address(address_of(pointer))
                          ? "not the beginning of an allocation: " + simt::describe_global(address_of(pointer))
                          : "the pointer is not from cudaMalloc",
                      place);
    return result(cudaErrorInvalidValue);
  }
  if (!in_kernel() && found->second.of_graph) wait_for_all();
  if (end_of_graph(pointer)) return result();
  found->second.live = false;
  state.used -= found->second.bytes;
  if (!in_kernel()) wait_for_all();  // host code of a class that a kernel copies may release its memory
  simt::release(pointer);
  return result();
}
}  // namespace

cudaError copy_to_symbol(void* symbol, std::size_t size, const void* source, std::size_t bytes, std::size_t offset,
                         const char* file, int line) {
  const Place place{file, line};
  if (!in_constants(symbol) && !simt::is_device_address(address_of(symbol))) {
    report_host_fault("wrong_pointer", "cudaMemcpyToSymbol: the symbol is no __constant__ or __device__ variable",
                      place);
    return result(cudaErrorInvalidSymbol);
  }
  if (offset > size || bytes > size - offset) {
    report_host_fault("out_of_bounds",
                      "cudaMemcpyToSymbol writes " + std::to_string(bytes) + " bytes at offset " +
                          std::to_string(offset) + " of a symbol of " + std::to_string(size),
                      place);
    return result(cudaErrorInvalidValue);
  }
  if (!check_range(source, bytes, "cudaMemcpyToSymbol reads", place)) return result(cudaErrorInvalidValue);
  wait_for(nullptr);
  copy(static_cast<char*>(symbol) + offset, source, bytes);
  return result();
}

cudaError copy_from_symbol(void* to, const void* symbol, std::size_t size, std::size_t bytes, std::size_t offset,
                           const char* file, int line) {
  if (offset > size || bytes > size - offset) {
    report_host_fault("out_of_bounds",
                      "cudaMemcpyFromSymbol reads " + std::to_string(bytes) + " bytes at offset " +
                          std::to_string(offset) + " of a symbol of " + std::to_string(size),
                      Place{file, line});
    return result(cudaErrorInvalidValue);
  }
  wait_for(nullptr);
  copy(to, static_cast<const char*>(symbol) + offset, bytes);
  return result();
}

cudaError allow_shared(const void* kernel, std::size_t bytes) {
  if (bytes > std::size_t{1024} * static_cast<unsigned>(runtime().gpu->shared_kib))
    return result(cudaErrorInvalidValue);
  runtime().opted_in[base_name(simt::kernel_name(kernel))] = bytes;
  return result();
}

namespace {
/// A launch that CUDA refuses.
cudaError refuse_launch(cudaError error, std::string why, const Place& place) {
  runtime().failed = place;
  runtime().failure = std::move(why);
  return fail(error);
}
}  // namespace

bool in_kernel() { return simt::machine.running; }
bool in_device_memory(const void* pointer) { return simt::is_device_address(address_of(pointer)); }
Unseen::Unseen() : was(simt::machine.watching) { simt::machine.watching = false; }
Unseen::~Unseen() { simt::machine.watching = was; }

namespace {
/// What the running kernel has launched.
struct Child {
  std::unique_ptr<Step> step;
  bool last;  ///< a tail launch
};
std::vector<Child> children;

/// They run in order once their parent has ended, and each is complete, with its own children, before the next begins:
/// one of the orders that CUDA allows.
void launch_children(cudaStream_t stream) {
  const std::vector<Child> mine = std::move(children);
  children.clear();
  for (const bool last : {false, true})
    for (const Child& child : mine)
      if (child.last == last) child.step->run(stream);
}
}  // namespace

void launch_later(cudaStream_t stream, Step* step) {
  simt::leave_to_others();
  simt::machine.has_traces = true;
  children.push_back({std::unique_ptr<Step>(step), stream == cudaStreamTailLaunch});
}

namespace {
/// Launches that programs repeat to measure their time. One that begins with what an equal one began and ended with
/// would leave all as it is, so it is counted again and not run.
struct Repeated {
  simt::Measurement measured;
  std::pair<std::uint32_t, std::uint32_t> blocks;
  int runs = 0;
  std::uint64_t state = 0;  ///< of the memory, before and after
  bool is_fixed = false;    ///< it has such a state
};
std::map<std::string, Repeated>& repeated() {
  static auto& instance = *new std::map<std::string, Repeated>;
  return instance;
}

/// What an equal launch has, too; empty where that is not known.
std::string key_of(const char* kernel, const Configuration& configuration, void (*call)(const void*),
                   const void* values, std::size_t bytes) {
  if (!values) return {};
  std::string key = kernel;
  const auto add = [&](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  add(configuration.grid);
  add(configuration.block);
  add(configuration.shared);
  add(configuration.cooperative);
  add(configuration.cluster);
  add(call);
  return key.append(static_cast<const char*>(values), bytes);
}

std::string text(dim3 d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

/// Where a kernel that is asked puts its clusters.
dim3* asked = nullptr;

/// What the kernel's __cluster_dims__ say; 0 where it has none. @param call the kernel's, or null where it has none
/// here
dim3 fixed_cluster(const std::string& kernel, void (*call)(const void*), const void* arguments) {
  const auto found = runtime().cluster_dims.find(short_name(kernel));
  dim3 size = found == runtime().cluster_dims.end() ? dim3(0, 0, 0) : found->second;
  if (found == runtime().cluster_dims.end() || size.x > 0 || !call) return size;
  asked = &size;
  call(arguments);
  asked = nullptr;
  return size;
}

/// The launch's clusters. Calls `refuse(error, why)` where CUDA would. @param fixed what its __cluster_dims__ say, or 0
template <class Refuse>
dim3 cluster_of(const Configuration& configuration, const std::string& kernel, dim3 fixed, Refuse refuse_it) {
  const Runtime& state = runtime();
  const bool has_fixed = fixed.x > 0;
  dim3 size = configuration.cluster;
  if (size.x == 0) size = has_fixed ? fixed : dim3();
  const dim3 grid = configuration.grid;
  const std::uint64_t blocks = std::uint64_t{size.x} * size.y * size.z;
  if (blocks == 1) return size;
  const bool large = state.large_clusters.count(short_name(kernel)) > 0;
  if (has_fixed && (size.x != fixed.x || size.y != fixed.y || size.z != fixed.z))
    refuse_it(cudaErrorInvalidClusterSize,
              "a cluster of " + text(size) + " blocks; its __cluster_dims__ are " + text(fixed));
  else if (state.gpu->compute_capability < 90)
    refuse_it(cudaErrorInvalidClusterSize, "clusters need a GPU of compute capability 9.0 or more");
  else if (blocks == 0 || blocks > (large ? 16 : 8))
    refuse_it(cudaErrorInvalidClusterSize,
              "a cluster of " + text(size) + " blocks; one has at most " +
                  (large ? "16" : "8, or 16 with cudaFuncAttributeNonPortableClusterSizeAllowed"));
  else if (grid.x % size.x != 0 || grid.y % size.y != 0 || grid.z % size.z != 0)
    refuse_it(cudaErrorInvalidClusterSize,
              "a grid of " + text(grid) + " blocks, no multiple of its clusters of " + text(size));
  return size;
}
}  // namespace

cudaError run(const char* kernel, const Configuration& configuration, void (*call)(const void*), const void* arguments,
              const void* values, std::size_t bytes) {
  Runtime& state = runtime();
  const Place place{configuration.file, configuration.line};
  if (state.sticky != cudaSuccess) return state.sticky;
  if (!is_stream(configuration.stream))
    return refuse_launch(cudaErrorInvalidResourceHandle, "its stream is none, or was destroyed", place);
  const std::string name = kernel;
  const auto opted = state.opted_in.find(short_name(name));
  const std::size_t most_shared = static_cast<std::size_t>(state.gpu->shared_kib) << 10;
  const std::size_t allowed = opted == state.opted_in.end() ? 48 << 10 : opted->second;
  if (configuration.shared > most_shared)
    return refuse_launch(cudaErrorInvalidValue,
                         std::to_string(configuration.shared) + " bytes of dynamic shared memory; a block may have " +
                             std::to_string(state.gpu->shared_kib) + " KB",
                         place);
  if (configuration.shared > allowed)
    return refuse_launch(
        cudaErrorInvalidValue,
        std::to_string(configuration.shared) +
            " bytes of dynamic shared memory; more than 48 KB must be asked for by cudaFuncSetAttribute",
        place);
  const dim3 grid = configuration.grid, block = configuration.block;
  cudaError refused = cudaSuccess;
  const dim3 fixed = fixed_cluster(name, call, arguments);
  const dim3 cluster = cluster_of(configuration, name, fixed, [&](cudaError error, std::string why) {
    refused = refuse_launch(error, std::move(why), place);
  });
  if (refused != cudaSuccess) return refused;
  if (configuration.cooperative && cluster.x * cluster.y * cluster.z > 1)
    refuse("a cooperative launch with clusters is not simulated", place);
  if (configuration.cooperative) {
    int together = 0;
    sim_occupancy(&together, static_cast<int>(block.x * block.y * block.z), configuration.shared);
    const std::uint64_t most = static_cast<std::uint64_t>(together) * static_cast<unsigned>(state.gpu->multiprocessors);
    if (std::uint64_t{grid.x} * grid.y * grid.z > most)
      return refuse_launch(cudaErrorCooperativeLaunchTooLarge,
                           "more blocks than the GPU runs at once, " + std::to_string(most), place);
  }
  const char* const kept = state.names.insert(name).first->c_str();
  simt::begin_measurement();
  simt::watch_device_memory(nullptr);
  begin_work(configuration.stream, {name, 0, 0, {}, {}, {}, 0});
  const std::string key = key_of(kernel, configuration, call, values, bytes);
  constexpr std::size_t kMostKnown = 1000;  // a program that launches in ever new ways repeats none of them soon
  if (repeated().size() >= kMostKnown) repeated().clear();
  Repeated* const known = key.empty() ? nullptr : &repeated()[key];
  // A checksum takes no longer than a small part of the launch: some 30 accesses in the time of a kilobyte.
  const bool compares = known && known->runs >= 1 && known->measured.faults.empty() &&
                        simt::machine.unordered.empty() &&
                        known->measured.thread_accesses / 4 > static_cast<std::int64_t>(simt::memory_bytes() >> 10);
  const std::uint64_t before = compares ? simt::memory_checksum() : 0;
  if (compares && known->is_fixed && known->state == before) {
    end_launch(configuration, known->blocks);
    simt::watch_device_memory(host_touches);
    add_launch(kernel, known->measured);
    return cudaSuccess;
  }
  simt::machine.has_traces = false;
  simt::run_grid(kept, grid, block, configuration.shared, call, arguments, configuration.cooperative, cluster);
  end_launch(configuration, simt::last_blocks());
  simt::watch_device_memory(host_touches);
  add_launch(kernel, simt::measurement());
  if (known) {
    const std::uint64_t after = compares ? simt::memory_checksum() : 0;
    *known = {simt::measurement(), simt::last_blocks(), known->runs + 1, after,
              compares && before == after && !simt::machine.has_traces};
  }
  if (simt::machine.interrupted) end_by_limit();
  if (!simt::machine.stopped) return launch_children(configuration.stream), cudaSuccess;
  children.clear();
  const auto& fault = simt::measurement().faults.back();
  if (fault.kind == simt::FaultKind::invalid_launch)
    return refuse_launch(fault.detail.starts_with("block") ? cudaErrorInvalidValue : cudaErrorInvalidConfiguration,
                         fault.detail, place);
  state.sticky = error_of(fault.kind);
  return cudaSuccess;  // which is asynchronous
}

const char* name_of_kernel(const void* kernel) {
  return runtime().names.insert(simt::kernel_name(kernel)).first->c_str();
}

namespace {
std::map<const void*, Launcher>& launchers() {
  static auto& instance = *new std::map<const void*, Launcher>;
  return instance;
}

const Launcher& launcher_of(const char* call, const void* kernel, const Configuration& configuration) {
  const auto found = launchers().find(kernel);
  if (found == launchers().end())
    refuse(std::string(call) + ": the kernel's parameters are not known here; name the kernel itself in the call",
           {configuration.file, configuration.line});
  return found->second;
}
}  // namespace

void know_kernel(const void* kernel, Launcher launcher) { launchers()[kernel] = launcher; }

cudaError launch_address(const char* call, const void* kernel, const Configuration& configuration, void** arguments) {
  return launcher_of(call, kernel, configuration).now(kernel, configuration, arguments);
}

Step* later(const char* what, const void* kernel, const Configuration& configuration, void** arguments) {
  return launcher_of(what, kernel, configuration).later(kernel, configuration, arguments);
}

cudaError launch_attributes(const cudaLaunchConfig_t& given, Configuration& configuration) {
  for (unsigned i = 0; i < given.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = given.attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) configuration.cooperative = attribute.val.cooperative != 0;
    if (attribute.id != cudaLaunchAttributeClusterDimension) continue;
    const auto& cluster = attribute.val.clusterDim;
    configuration.cluster = {cluster.x, cluster.y, cluster.z};
    if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0)
      return refuse_launch(cudaErrorInvalidClusterSize, "a cluster of " + text(configuration.cluster) + " blocks",
                           {configuration.file, configuration.line});
  }
  return cudaSuccess;
}

ClusterDims::ClusterDims(const char* kernel, dim3 size) { runtime().cluster_dims[kernel] = size; }

bool tells_cluster(dim3 size) {
  if (!asked) return false;
  *asked = size;
  return true;
}

cudaError allow_large_clusters(const void* kernel, bool allowed) {
  const std::string name = short_name(simt::kernel_name(kernel));
  if (allowed)
    runtime().large_clusters.insert(name);
  else
    runtime().large_clusters.erase(name);
  return result();
}

cudaError active_clusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* config) {
  *clusters = 0;
  Configuration configuration(config->gridDim, config->blockDim, config->dynamicSmemBytes);
  if (const cudaError error = launch_attributes(*config, configuration)) return error;
  cudaError refused = cudaSuccess;
  const std::string name = simt::kernel_name(kernel);
  const dim3 size = cluster_of(configuration, name, fixed_cluster(name, nullptr, nullptr),
                               [&](cudaError error, const std::string&) { refused = error; });
  if (refused != cudaSuccess) return result(refused);
  const dim3 block = config->blockDim;
  int together = 0;
  if (const cudaError error =
          sim_occupancy(&together, static_cast<int>(block.x * block.y * block.z), config->dynamicSmemBytes))
    return error;
  *clusters = together * runtime().gpu->multiprocessors / static_cast<int>(size.x * size.y * size.z);
  return result();
}

cudaError largest_cluster(int* blocks, const void* kernel, const cudaLaunchConfig_t*) {
  const bool large = runtime().large_clusters.count(short_name(simt::kernel_name(kernel))) > 0;
  *blocks = runtime().gpu->compute_capability < 90 ? 1 : large ? 16 : 8;
  return result();
}

cudaError function_attributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (!attributes || !kernel) return result(cudaErrorInvalidDeviceFunction);
  const auto opted = runtime().opted_in.find(base_name(simt::kernel_name(kernel)));
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->ptxVersion = attributes->binaryVersion = runtime().gpu->compute_capability;
  attributes->maxDynamicSharedSizeBytes =
      opted == runtime().opted_in.end() ? 48 << 10 : static_cast<int>(opted->second);
  attributes->preferredShmemCarveout = -1;
  return result();
}

Managed::Managed(void* address, size_t bytes, const char* name) {
  runtime().blocks[address_of(address)] = {name, {"", 0}, bytes, true, true, true};
}

}  // namespace simt_cuda

namespace {
constexpr std::size_t kTileValue = 16;  // bytes that a thread of a tile gives others
thread_local std::array<std::array<char, kTileValue>, 1024> tile_values;
}  // namespace

namespace simt_cuda {
void tile_barrier(unsigned tile, unsigned threads) { simt::tile_barrier(tile, threads); }
void tile_write(unsigned rank, const void* value, std::size_t bytes) {
  std::memcpy(tile_values[rank].data(), value, bytes);
}
void tile_read(unsigned rank, void* value, std::size_t bytes) { std::memcpy(value, tile_values[rank].data(), bytes); }
}  // namespace simt_cuda

using simt_cuda::result;
using simt_cuda::runtime;

long long clock64() {
  simt::leave_to_others();  // it counts what blocks before have done
  simt::machine.has_traces = true;
  return static_cast<long long>(simt::machine.measurement.thread_accesses);
}

cudaError cudaFree(void* pointer, const char* file, int line) { return simt_cuda::release(pointer, {file, line}); }
cudaError cudaFreeHost(void* pointer, const char* file, int line) { return simt_cuda::release(pointer, {file, line}); }

namespace simt_cuda {
namespace {

std::uintptr_t end_of(const void* begin, std::size_t bytes) { return address_of(begin) + bytes; }

/// What a copy or a fill touches, for those who come after it; reports what it races with.
/// @param pc of the call
void check_order(const char* call, cudaStream_t stream, const void* to, std::size_t to_bytes, const void* from,
                 std::size_t from_bytes, simt::Pc pc, const Place& place) {
  simt::Unordered work{call, 0, 0, {}, {}, {}, pc};
  const auto add = [&](const void* begin, std::size_t bytes, bool writes) {
    if (bytes > 0 && simt::is_device_address(address_of(begin)))
      work.ranges.push_back({address_of(begin), end_of(begin, bytes), writes});
  };
  add(to, to_bytes, true);
  add(from, from_bytes, false);
  const auto ranges = work.ranges;
  begin_work(stream, std::move(work));
  for (const auto& range : ranges) {
    const simt::Met met =
        simt::find_unordered(reinterpret_cast<const void*>(range.begin), range.end - range.begin, range.writes);
    if (!met.work) continue;
    const Block* const block = block_at(range.begin);
    report_host_fault("race",
                      std::string(call) + (range.writes ? " writes '" : " reads '") + (block ? block->name : "") +
                          "', which '" + met.work->name + (met.writes ? "' writes" : "' reads") +
                          " in another stream, and nothing orders the two: cudaStreamWaitEvent, or synchronise",
                      place);
    return;
  }
}

bool is_pageable(const void* pointer) { return !simt::is_device_address(address_of(pointer)); }

struct Copy2D {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch, width, height;
  cudaMemcpyKind kind;
};

cudaError copy_2d(const Copy2D& c, const char* call, cudaStream_t stream, bool waits, simt::Pc pc, const Place& place) {
  if (c.height > 1 && (c.width > c.to_pitch || c.width > c.from_pitch)) return result(cudaErrorInvalidPitchValue);
  if (!is_stream(stream)) return result(cudaErrorInvalidResourceHandle);
  if (!check_kind(c.to, c.from, c.kind, call, place)) return result(cudaErrorInvalidValue);
  if (c.width == 0 || c.height == 0) return result();
  const std::size_t to_bytes = c.to_pitch * (c.height - 1) + c.width;
  const std::size_t from_bytes = c.from_pitch * (c.height - 1) + c.width;
  if (!check_range(c.to, to_bytes, (std::string(call) + " writes").c_str(), place) ||
      !check_range(c.from, from_bytes, (std::string(call) + " reads").c_str(), place))
    return result(cudaErrorInvalidValue);
  if (runtime().sticky != cudaSuccess) return result();
  check_order(call, stream, c.to, to_bytes, c.from, from_bytes, pc, place);
  for (std::size_t row = 0; row < c.height; ++row)
    copy(static_cast<char*>(c.to) + row * c.to_pitch, static_cast<const char*>(c.from) + row * c.from_pitch, c.width);
  // A copy to pageable memory ends before the call does.
  if (waits || (is_pageable(c.to) && !in_graph())) wait_for(stream);
  return result();
}

cudaError fill_2d(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height, const char* call,
                  cudaStream_t stream, bool waits, simt::Pc pc, const Place& place) {
  if (height > 1 && width > pitch) return result(cudaErrorInvalidPitchValue);
  if (!is_stream(stream)) return result(cudaErrorInvalidResourceHandle);
  if (width == 0 || height == 0) return result();
  const std::size_t bytes = pitch * (height - 1) + width;
  if (!check_side(to, true, "destination", call, place) ||
      !check_range(to, bytes, (std::string(call) + " writes").c_str(), place))
    return result(cudaErrorInvalidValue);
  if (runtime().sticky != cudaSuccess) return result();
  check_order(call, stream, to, bytes, nullptr, 0, pc, place);
  for (std::size_t row = 0; row < height; ++row) fill(static_cast<char*>(to) + row * pitch, value, width);
  if (waits) wait_for(stream);
  return result();
}

template <class Work>
bool captured(cudaStream_t stream, cudaGraphNodeType type, const Work& work) {
  if (!is_capturing(stream)) return false;
  add_step(stream, new StepOf<Work>(work), type);
  return true;
}

cudaError copy_3d(const cudaMemcpy3DParms& c, const char* call, cudaStream_t stream, bool waits, simt::Pc pc,
                  const Place& place) {
  // With an array, widths and its positions are in elements.
  const cudaArray* const array = c.srcArray ? c.srcArray : c.dstArray;
  const size_t element = array ? simt_cuda::bytes_of_element(array->format) : 1;
  struct Side {
    char* begin;
    size_t pitch, rows;
  };
  const auto side = [&](const cudaArray* of, const cudaPitchedPtr& p, const cudaPos& at) -> Side {
    if (of) {
      const size_t rows = std::max<size_t>(1, of->height);
      return {static_cast<char*>(of->data) + (at.z * rows + at.y) * sim_pitch(of) + at.x * element, sim_pitch(of),
              rows};
    }
    return {static_cast<char*>(p.ptr) + (at.z * p.ysize + at.y) * p.pitch + at.x, p.pitch, p.ysize};
  };
  const Side to = side(c.dstArray, c.dstPtr, c.dstPos), from = side(c.srcArray, c.srcPtr, c.srcPos);
  for (size_t z = 0; z < c.extent.depth; ++z) {
    const cudaError error =
        copy_2d({to.begin + z * to.rows * to.pitch, to.pitch, from.begin + z * from.rows * from.pitch, from.pitch,
                 c.extent.width * element, c.extent.height, c.kind},
                call, stream, waits, pc, place);
    if (error != cudaSuccess) return error;
  }
  return result();
}

}  // namespace
}  // namespace simt_cuda

namespace simt_cuda {
namespace {
/// Libraries work at once, and a graph would have nothing of it.
void refuse_capture(const HostWork& work) {
  if (is_capturing(work.stream))
    refuse(std::string(work.name) + " in a stream that is captured is not simulated: call it outside of the graph",
           work.place);
}
}  // namespace

bool HostWork::reads(const void* begin, std::size_t bytes) const {
  refuse_capture(*this);
  if (runtime().sticky != cudaSuccess) return false;
  if (!check_side(begin, true, "operand", name, place) ||
      !check_range(begin, bytes, (std::string(name) + " reads").c_str(), place))
    return false;
  check_order(name, stream, nullptr, 0, begin, bytes, simt::relative_pc(caller), place);
  const simt::Allocation* const allocation = simt::find_allocation(address_of(begin));
  const std::uint8_t* const state = allocation ? allocation->bytes + (address_of(begin) - allocation->begin) : nullptr;
  for (std::size_t i = 0; state && i < bytes; ++i) {
    if (state[i] & simt::kWritten) continue;
    report_host_fault("uninitialized",
                      std::string(name) + " reads '" + allocation->name + "', which nothing has written at byte " +
                          std::to_string(address_of(begin) - allocation->begin + i),
                      place);
    break;
  }
  return true;
}

bool HostWork::writes(void* begin, std::size_t bytes) const {
  refuse_capture(*this);
  if (runtime().sticky != cudaSuccess) return false;
  if (!check_side(begin, true, "result", name, place) ||
      !check_range(begin, bytes, (std::string(name) + " writes").c_str(), place))
    return false;
  check_order(name, stream, begin, bytes, nullptr, 0, simt::relative_pc(caller), place);
  if (simt::Allocation* const allocation = simt::find_allocation(address_of(begin)))
    std::memset(allocation->bytes + (address_of(begin) - allocation->begin), simt::kWritten, bytes);
  return true;
}
}  // namespace simt_cuda

#define SIM_PC simt::relative_pc(__builtin_return_address(0))

cudaError cudaFreeAsync(void* pointer, cudaStream_t stream, const char* file, int line) {
  if (simt_cuda::captured(stream, cudaGraphNodeTypeMemFree,
                          [=](cudaStream_t s) { cudaFreeAsync(pointer, s, file, line); }))
    return cudaSuccess;
  // As a write, by which what another stream does with the memory must be ordered too.
  const simt_cuda::Block* const block = simt_cuda::block_at(simt_cuda::address_of(pointer));
  if (block && block->live)
    simt_cuda::check_order("cudaFreeAsync", stream, pointer, block->bytes, nullptr, 0, SIM_PC, {file, line});
  if (simt_cuda::end_of_graph(pointer)) return simt_cuda::result();
  return simt_cuda::release(pointer, {file, line});
}

cudaError cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, const char* file, int line) {
  return simt_cuda::copy_2d({to, bytes, from, bytes, bytes, 1, kind}, "cudaMemcpy", nullptr, true, SIM_PC,
                            {file, line});
}

cudaError cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                          const char* file, int line) {
  if (simt_cuda::captured(stream, cudaGraphNodeTypeMemcpy,
                          [=](cudaStream_t s) { cudaMemcpyAsync(to, from, bytes, kind, s, file, line); }))
    return cudaSuccess;
  return simt_cuda::copy_2d({to, bytes, from, bytes, bytes, 1, kind}, "cudaMemcpyAsync", stream, false, SIM_PC,
                            {file, line});
}

cudaError cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                       cudaMemcpyKind kind, const char* file, int line) {
  return simt_cuda::copy_2d({to, to_pitch, from, from_pitch, width, height, kind}, "cudaMemcpy2D", nullptr, true,
                            SIM_PC, {file, line});
}

cudaError cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                            cudaMemcpyKind kind, cudaStream_t stream, const char* file, int line) {
  if (simt_cuda::captured(stream, cudaGraphNodeTypeMemcpy, [=](cudaStream_t s) {
        cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, s, file, line);
      }))
    return cudaSuccess;
  return simt_cuda::copy_2d({to, to_pitch, from, from_pitch, width, height, kind}, "cudaMemcpy2DAsync", stream, false,
                            SIM_PC, {file, line});
}

cudaError cudaMemcpy3D(const cudaMemcpy3DParms* copy, const char* file, int line) {
  if (!copy) return result(cudaErrorInvalidValue);
  return simt_cuda::copy_3d(*copy, "cudaMemcpy3D", nullptr, true, SIM_PC, {file, line});
}

cudaError cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream, const char* file, int line) {
  if (!copy) return result(cudaErrorInvalidValue);
  if (simt_cuda::captured(stream, cudaGraphNodeTypeMemcpy,
                          [=, c = *copy](cudaStream_t s) { cudaMemcpy3DAsync(&c, s, file, line); }))
    return cudaSuccess;
  return simt_cuda::copy_3d(*copy, "cudaMemcpy3DAsync", stream, false, SIM_PC, {file, line});
}

cudaError cudaMemset(void* to, int value, size_t bytes, const char* file, int line) {
  return simt_cuda::fill_2d(to, bytes, value, bytes, 1, "cudaMemset", nullptr, true, SIM_PC, {file, line});
}

cudaError cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream, const char* file, int line) {
  if (simt_cuda::captured(stream, cudaGraphNodeTypeMemset,
                          [=](cudaStream_t s) { cudaMemsetAsync(to, value, bytes, s, file, line); }))
    return cudaSuccess;
  return simt_cuda::fill_2d(to, bytes, value, bytes, 1, "cudaMemsetAsync", stream, false, SIM_PC, {file, line});
}

cudaError simt_cuda::fill_pattern(const cudaMemsetParams& p, cudaStream_t stream, const char* file, int line) {
  const size_t width = p.width * p.elementSize, pitch = p.height > 1 ? p.pitch : width;
  if (const cudaError error = fill_2d(p.dst, pitch, static_cast<int>(p.value), width, p.height, "a memset node", stream,
                                      false, SIM_PC, {file, line}))
    return error;
  if (runtime().sticky == cudaSuccess)
    for (size_t i = 0; i < p.width * p.height; ++i)
      std::memcpy(static_cast<char*>(p.dst) + i / p.width * pitch + i % p.width * p.elementSize, &p.value,
                  p.elementSize);
  return result();
}

cudaError cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height, const char* file, int line) {
  return simt_cuda::fill_2d(to, pitch, value, width, height, "cudaMemset2D", nullptr, true, SIM_PC, {file, line});
}

cudaError cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const simt_cuda::Block* const block = simt_cuda::block_at(simt_cuda::address_of(pointer));
  *attributes = {};
  if (!block || !block->live) return result();
  attributes->type = !block->managed ? cudaMemoryTypeDevice
                     : block->pinned ? cudaMemoryTypeHost
                                     : cudaMemoryTypeManaged;
  attributes->devicePointer = const_cast<void*>(pointer);
  if (block->managed) attributes->hostPointer = const_cast<void*>(pointer);
  return result();
}

cudaError cudaMemGetInfo(size_t* free, size_t* total) {
  *total = simt_cuda::memory_bytes();
  *free = *total - runtime().used;
  return result();
}

cudaError cudaGetLastError() {
  runtime().failure.clear();
  const cudaError error = result(runtime().last);
  runtime().last = cudaSuccess;
  return error;
}

cudaError cudaPeekAtLastError() {
  runtime().failure.clear();
  return result(runtime().last);
}

const char* cudaGetErrorString(cudaError error) {
#define SIM_TEXT(name, number, text) \
  if (error == name) return text;
  SIM_ERRORS(SIM_TEXT)
  return "unknown error";
}

const char* cudaGetErrorName(cudaError error) {
#define SIM_NAME(name, number, text) \
  if (error == name) return #name;
  SIM_ERRORS(SIM_NAME)
  return "cudaErrorUnknown";
}

cudaError cudaDeviceSynchronize(const char* file, int line) {
  if (simt::machine.running)
    simt_cuda::refuse("cudaDeviceSynchronize in a kernel: since CUDA 12 a kernel cannot wait for those it launches",
                      {file, line});
  simt_cuda::wait_for_all();
  return result();
}
cudaError cudaDeviceReset(const char* file, int line) {
  for (auto& [address, block] : runtime().blocks)
    if (block.live && !block.is_static) simt_cuda::release(reinterpret_cast<void*>(address), {file, line});
  runtime().sticky = runtime().last = cudaSuccess;
  return cudaSuccess;
}
cudaError cudaGetDeviceCount(int* count) {
  *count = 1;
  return result();
}
cudaError cudaSetDevice(int device) { return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError cudaGetDevice(int* device) {
  *device = 0;
  return result();
}

cudaError cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return result(cudaErrorInvalidDevice);
  const convladder::Gpu& gpu = *runtime().gpu;
  cudaDeviceProp p{};
  const std::string name = std::string(gpu.full_name) + " (simulated by ConvLadder)";
  std::strcpy(p.name, name.c_str());
  p.totalGlobalMem = simt_cuda::memory_bytes();
  p.sharedMemPerBlock = 48 << 10;
  p.sharedMemPerBlockOptin = static_cast<std::size_t>(gpu.shared_kib) << 10;
  p.sharedMemPerMultiprocessor = static_cast<std::size_t>(gpu.shared_of_multiprocessor_kib) << 10;
  p.reservedSharedMemPerBlock = gpu.compute_capability >= 80 ? 1 << 10 : 0;
  p.totalConstMem = 64 << 10;
  p.memPitch = 0x7fffffff;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.clockRate = gpu.clock_mhz * 1000;
  p.memoryClockRate = gpu.memory_clock_mhz * 1000;
  p.memoryBusWidth = gpu.memory_bus_bits;
  p.major = gpu.compute_capability / 10;
  p.minor = gpu.compute_capability % 10;
  p.multiProcessorCount = gpu.multiprocessors;
  p.l2CacheSize = gpu.l2_kib << 10;
  p.persistingL2CacheMaxSize = gpu.compute_capability >= 80 ? p.l2CacheSize / 2 : 0;
  p.maxThreadsPerMultiProcessor = gpu.threads_of_multiprocessor;
  p.maxBlocksPerMultiProcessor = gpu.blocks_of_multiprocessor;
  p.concurrentKernels = p.asyncEngineCount = p.deviceOverlap = p.canMapHostMemory = p.ECCEnabled = 1;
  p.unifiedAddressing = p.managedMemory = p.concurrentManagedAccess = 1;
  p.cooperativeLaunch = p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.computePreemptionSupported = p.memoryPoolsSupported = 1;
  p.clusterLaunch = gpu.compute_capability >= 90;
  *properties = p;
  return result();
}

cudaError cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (const cudaError error = cudaGetDeviceProperties(&p, device)) return error;
#define SIM_ATTRIBUTE(name, number, field) \
  if (attribute == cudaDevAttr##name) {    \
    *value = static_cast<int>(p.field);    \
    return result();                       \
  }
  SIM_ATTRIBUTES(SIM_ATTRIBUTE)
#undef SIM_ATTRIBUTE
  return result(cudaErrorInvalidValue);
}

cudaError sim_occupancy(int* blocks, int block, size_t shared) {
  *blocks = 0;
  if (block < 1 || block > 1024) return result(cudaErrorInvalidValue);
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  const int warps = (block + 31) / 32;
  const size_t by_shared = p.sharedMemPerMultiprocessor / (shared + p.reservedSharedMemPerBlock + 1);
  *blocks = std::min(p.maxThreadsPerMultiProcessor / 32 / warps, p.maxBlocksPerMultiProcessor);
  if (shared > 0 && by_shared < static_cast<size_t>(*blocks)) *blocks = static_cast<int>(by_shared);
  return result();
}

cudaError sim_potential_block(int* grid, int* block, size_t shared, int limit) {
  *block = limit > 0 && limit < 1024 ? limit : 1024;
  const cudaError error = sim_occupancy(grid, *block, shared);
  *grid *= runtime().gpu->multiprocessors;
  return error;
}

cudaError cudaStreamSynchronize(cudaStream_t stream) {
  if (!simt_cuda::is_stream(stream)) return result(cudaErrorInvalidResourceHandle);
  simt_cuda::wait_for(stream);
  return result();
}
cudaError cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
cudaError cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  const cudaError error = cudaStreamSynchronize(stream);
  callback(stream, error, data);
  return error;
}
cudaError cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (simt_cuda::captured(stream, cudaGraphNodeTypeHost,
                          [=](cudaStream_t s) { cudaLaunchHostFunc(s, function, data); }))
    return cudaSuccess;
  const cudaError error = cudaStreamSynchronize(stream);
  if (error == cudaSuccess) function(data);
  return error;
}

// ---- What the C++ library's headers call in instrumented host code, and a failed assert ----------------------------

extern "C" {

// What the program's objects call instead of malloc, new and their like: kernels have a heap of their own, and of the
// host's the sizes are kept, so that copies past the end are found.
static void* keep_size(void* pointer, std::size_t bytes) {
  while (simt_cuda::host_heap_busy.test_and_set()) {
  }
  simt_cuda::host_heap()[simt_cuda::address_of(pointer)] = bytes;
  simt_cuda::host_heap_busy.clear();
  return pointer;
}
static void forget_size(void* pointer) {
  while (simt_cuda::host_heap_busy.test_and_set()) {
  }
  simt_cuda::host_heap().erase(simt_cuda::address_of(pointer));
  simt_cuda::host_heap_busy.clear();
}
static void* kernel_allocates(std::size_t bytes) {
  const simt::Unwatched unwatched;
  simt::machine.has_traces = true;
  return simt::allocate(std::max<std::size_t>(bytes, 1), "memory of malloc in a kernel");
}
/// Whether it was the kernels'.
static bool kernel_releases(void* pointer) {
  if (!simt::is_device_address(simt_cuda::address_of(pointer))) return false;
  const simt::Unwatched unwatched;
  simt::release(pointer);
  return true;
}
void* simt_malloc(std::size_t bytes) {
  if (simt::machine.watching) return kernel_allocates(bytes);
  return keep_size(std::malloc(bytes), bytes);
}
void simt_free(void* pointer) {
  if (kernel_releases(pointer)) return;
  forget_size(pointer);
  std::free(pointer);
}
void* simt__Znwm(std::size_t bytes) {
  if (simt::machine.watching) return kernel_allocates(bytes);
  return keep_size(::operator new(bytes), bytes);
}
void* simt__Znam(std::size_t bytes) { return simt__Znwm(bytes); }
void simt__ZdlPv(void* pointer) {
  if (kernel_releases(pointer)) return;
  forget_size(pointer);
  ::operator delete(pointer);
}
void simt__ZdlPvm(void* pointer, std::size_t) { simt__ZdlPv(pointer); }
void simt__ZdaPv(void* pointer) { simt__ZdlPv(pointer); }
void simt__ZdaPvm(void* pointer, std::size_t) { simt__ZdlPv(pointer); }

// What a kernel prints is a trace of it. The lanes of a warp print one after another, as on a GPU.
static void begin_print(const void* place) {
  if (!simt::machine.running) return;
  simt::machine.has_traces = true;
  simt::come_together(place);
}
int simt_printf(const char* format, ...) {
  begin_print(__builtin_return_address(0));
  std::va_list arguments;
  va_start(arguments, format);
  const int count = std::vprintf(format, arguments);
  va_end(arguments);
  return count;
}
int simt___printf_chk(int, const char* format, ...) {
  begin_print(__builtin_return_address(0));
  std::va_list arguments;
  va_start(arguments, format);
  const int count = std::vprintf(format, arguments);
  va_end(arguments);
  return count;
}
int simt_puts(const char* text) {
  begin_print(__builtin_return_address(0));
  return std::puts(text);
}
int simt_putchar(int character) {
  begin_print(__builtin_return_address(0));
  return std::putchar(character);
}

/// Before and after all `__device__` variables: an index past one meets another guard, and no other variable.
__attribute__((used, section("simt_device"))) simt::Guard simt_guard_of_devices;

void __assert_fail(const char* expression, const char* file, unsigned line, const char* function) {
  if (simt::machine.running) {
    simt::machine.watching = false;
    simt::report(simt::FaultKind::crash, simt::relative_pc(__builtin_return_address(0)),
                 std::string("the assertion '") + expression + "' failed")
        .line = static_cast<int>(line);
    simt::stop();
  }
  std::fflush(stdout);
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
  std::abort();
}

#define SIM_ATOMIC(bits, T)                                                                                         \
  T __tsan_atomic##bits##_load(const volatile T* a, int) { return __atomic_load_n(a, __ATOMIC_SEQ_CST); }           \
  void __tsan_atomic##bits##_store(volatile T* a, T v, int) { __atomic_store_n(a, v, __ATOMIC_SEQ_CST); }           \
  T __tsan_atomic##bits##_exchange(volatile T* a, T v, int) { return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_add(volatile T* a, T v, int) { return __atomic_fetch_add(a, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_sub(volatile T* a, T v, int) { return __atomic_fetch_sub(a, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_and(volatile T* a, T v, int) { return __atomic_fetch_and(a, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_or(volatile T* a, T v, int) { return __atomic_fetch_or(a, v, __ATOMIC_SEQ_CST); }   \
  T __tsan_atomic##bits##_fetch_xor(volatile T* a, T v, int) { return __atomic_fetch_xor(a, v, __ATOMIC_SEQ_CST); } \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* c, T v, int, int) {                           \
    return __atomic_compare_exchange_n(a, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                         \
  }                                                                                                                 \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* c, T v, int, int) {                             \
    return __atomic_compare_exchange_n(a, c, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                          \
  }
SIM_ATOMIC(8, std::uint8_t)
SIM_ATOMIC(16, std::uint16_t)
SIM_ATOMIC(32, std::uint32_t)
SIM_ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"
