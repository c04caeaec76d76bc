#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <new>

#include "common/simt/cores.hpp"
#include "common/simt/machine.hpp"

namespace simt {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kGap = 1 << 20;  // unmapped, around every allocation: a row or two too far still meets nothing

/// Addresses for all allocations of the program's life. None is used twice, so a use after release is always found.
struct Arena {
  std::uintptr_t begin = 0, next = 0, end = 0;
  std::deque<Allocation> allocations;  ///< by address, since addresses only grow; references stay valid

  Arena() {
    for (std::size_t size = std::size_t{1} << 42; size >= std::size_t{1} << 34; size /= 4) {
      void* address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (address == MAP_FAILED) continue;
      begin = next = reinterpret_cast<std::uintptr_t>(address);
      end = next + size;
      return;
    }
    throw std::bad_alloc();
  }
};

Arena& arena() {
  static Arena instance;
  return instance;
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void* map_zeroed(std::size_t bytes) {
  void* address =
      mmap(nullptr, whole_pages(bytes + 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  return address;
}

Allocation& allocation_at(void* address) {
  Allocation* allocation = find_allocation(reinterpret_cast<std::uintptr_t>(address));
  // A zero-sized allocation covers no address; it is found by its begin.
  if (!allocation)
    for (Allocation& candidate : arena().allocations)
      if (candidate.begin == reinterpret_cast<std::uintptr_t>(address)) return candidate;
  return *allocation;
}

std::size_t words(const Allocation& allocation) { return (allocation.end - allocation.begin + 3) / 4; }

/// The last allocation that begins at or before `address`, or null.
Allocation* at_or_before(std::uintptr_t address) {
  auto& allocations = arena().allocations;
  auto after = std::upper_bound(allocations.begin(), allocations.end(), address,
                                [](std::uintptr_t a, const Allocation& allocation) { return a < allocation.begin; });
  return after == allocations.begin() ? nullptr : &*std::prev(after);
}

}  // namespace

void* allocate(std::size_t bytes, const char* name) {
  change_allocations();
  Arena& memory = arena();
  const std::size_t room = kGap + whole_pages(bytes);
  if (bytes > memory.end - memory.next || room + kGap > memory.end - memory.next) throw std::bad_alloc();
  void* address = reinterpret_cast<void*>(memory.next + kGap);
  if (bytes > 0 && mprotect(address, whole_pages(bytes), PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  memory.next += room;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  Allocation allocation{begin, begin + bytes, name, true, nullptr, nullptr, nullptr};
  allocation.bytes = static_cast<std::uint8_t*>(map_zeroed(bytes));
  allocation.cells = static_cast<Cell*>(map_zeroed(words(allocation) * sizeof(Cell)));
  memory.allocations.push_back(allocation);
  return address;
}

void adopt_device_variables() {
  const std::vector<Variable>& devices = program().devices;
  for (auto variable = devices.rbegin(); variable != devices.rend();
       ++variable) {  // to the front: lowest address first
    Allocation allocation{variable->begin, variable->end, variable->name.c_str(), true, nullptr, nullptr, nullptr};
    allocation.bytes = static_cast<std::uint8_t*>(map_zeroed(allocation.end - allocation.begin));
    std::memset(allocation.bytes, kWritten, allocation.end - allocation.begin);
    allocation.cells = static_cast<Cell*>(map_zeroed(words(allocation) * sizeof(Cell)));
    arena().allocations.push_front(allocation);
  }
}

namespace {
/// Four sums at a time, which depend on the places of the words.
std::uint64_t checksum(const void* begin, std::size_t bytes, std::uint64_t sum) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15u;
  const auto* from = static_cast<const unsigned char*>(begin);
  std::uint64_t sums[4] = {sum, sum + 1, sum + 2, sum + 3};
  for (; bytes >= 32; bytes -= 32, from += 32) {
    for (int i = 0; i < 4; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + 8 * i, sizeof word);
      sums[i] = (sums[i] ^ word) * kFactor;
      sums[i] ^= sums[i] >> 32;
    }
  }
  for (; bytes > 0; --bytes) sums[0] = (sums[0] ^ *from++) * kFactor;
  for (const std::uint64_t part : sums) sum = (sum ^ part) * kFactor, sum ^= sum >> 29;
  return sum;
}
}  // namespace

std::uint64_t memory_checksum() {
  std::uint64_t sum = checksum(reinterpret_cast<const void*>(program().constant_begin),
                               program().constant_end - program().constant_begin, 1);
  for (const Allocation& allocation : arena().allocations) {
    if (!allocation.live) continue;
    sum = checksum(reinterpret_cast<const void*>(allocation.begin), allocation.end - allocation.begin,
                   sum ^ allocation.begin);
  }
  return sum;
}

std::size_t memory_bytes() {
  std::size_t bytes = program().constant_end - program().constant_begin;
  for (const Allocation& allocation : arena().allocations)
    if (allocation.live) bytes += allocation.end - allocation.begin;
  return bytes;
}

void release(void* address) {
  change_allocations();
  Allocation& allocation = allocation_at(address);
  const std::size_t bytes = allocation.end - allocation.begin;
  allocation.live = false;
  munmap(allocation.bytes, whole_pages(bytes + 1));
  munmap(allocation.cells, whole_pages(words(allocation) * sizeof(Cell) + 1));
  if (bytes > 0 && mprotect(address, whole_pages(bytes), PROT_NONE) == 0)
    madvise(address, whole_pages(bytes), MADV_DONTNEED);  // the addresses stay taken, the memory goes back
}

void set_live(void* address, bool live) {
  change_allocations();
  Allocation& allocation = allocation_at(address);
  allocation.live = live;
  if (!live) return;
  std::memset(allocation.bytes, 0, allocation.end - allocation.begin);
  std::memset(address, 0xcd,
              allocation.end - allocation.begin);  // a launch that writes it changes something, so it runs
}

void upload(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  Allocation& allocation = allocation_at(device);
  std::memcpy(device, host, bytes);
  std::memset(allocation.bytes + (reinterpret_cast<std::uintptr_t>(device) - allocation.begin), kWritten, bytes);
}

void download(void* host, const void* device, std::size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

void download_written(void* host, const void* device, std::size_t bytes, std::uint32_t word) {
  if (bytes == 0) return;
  download(host, device, bytes);
  const Allocation& allocation = allocation_at(const_cast<void*>(device));
  const std::uint8_t* state = allocation.bytes + (reinterpret_cast<std::uintptr_t>(device) - allocation.begin);
  const char* const poisoned = reinterpret_cast<const char*>(&word);
  for (std::size_t i = 0; i < bytes; ++i)
    if (!(state[i] & kWritten)) static_cast<char*>(host)[i] = poisoned[i % sizeof word];
}

void poison(void* device, std::size_t bytes, std::uint32_t word) {
  if (bytes == 0) return;
  for (std::size_t i = 0; i < bytes; i += sizeof word)
    std::memcpy(static_cast<char*>(device) + i, &word, std::min(sizeof word, bytes - i));
  Allocation& allocation = allocation_at(device);
  std::memset(allocation.bytes + (reinterpret_cast<std::uintptr_t>(device) - allocation.begin), 0, bytes);
}

void copy_to_constant(void* symbol, const void* source, std::size_t bytes) {
  if (machine.stopped || bytes == 0) return;
  const auto from = reinterpret_cast<std::uintptr_t>(source), to = reinterpret_cast<std::uintptr_t>(symbol);
  const Allocation* allocation = find_allocation(from);
  const Variable* variable = find_variable(program().constants, to);
  std::string error;
  if (!variable || bytes > variable->end - to)
    error = std::to_string(bytes) + " bytes for constant memory" +
            (variable ? " '" + variable->name + "' (" + std::to_string(variable->end - to) + " bytes)" : "");
  else if (!allocation || !allocation->live || from + bytes > allocation->end)
    error = "upload to constant memory reads " + describe_global(allocation ? allocation->end : from);
  if (error.empty()) {
    std::memcpy(symbol, source, bytes);
    return;
  }
  machine.measurement.faults.push_back({FaultKind::out_of_bounds, nullptr, 0, {}, std::move(error), 0, {}});
  machine.stopped = true;
}

Allocation* find_allocation(std::uintptr_t address) {
  static std::array<Allocation*, 64> known{};  // by address: of two allocations, no two bytes are as close as kGap
  Allocation*& last = known[address / kGap % known.size()];
  if (last && address >= last->begin && address < last->end) return last;
  Allocation* found = at_or_before(address);
  if (!found || address >= found->end) return nullptr;
  return last = found;
}

std::string past_end(std::uintptr_t bytes) {
  return bytes == 0 ? "just past the end of" : std::to_string(bytes) + " bytes past the end of";
}

bool is_device_address(std::uintptr_t address) {
  return (address >= arena().begin && address < arena().end) ||
         (address >= program().device_begin && address < program().device_end);
}

std::string describe_global(std::uintptr_t address) {
  const auto text = [](const Allocation& allocation) {
    return "'" + std::string(allocation.name) + "' (" + std::to_string(allocation.end - allocation.begin) + " bytes)";
  };
  const Allocation* before = at_or_before(address);
  if (before && address < before->end) return "in " + text(*before) + (before->live ? "" : ", which was released");
  const Allocation* nearest = nullptr;
  std::uintptr_t least = arena().end;
  for (const Allocation& allocation : arena().allocations) {
    const std::uintptr_t distance = address < allocation.begin ? allocation.begin - address : address - allocation.end;
    if (!allocation.live || distance >= least) continue;
    nearest = &allocation;
    least = distance;
  }
  if (!nearest || !is_device_address(address)) return "an address that is not device memory";
  return (address < nearest->begin ? std::to_string(least) + " bytes before " : past_end(least) + " ") + text(*nearest);
}

void for_each_allocation(const std::function<void(Allocation&)>& visit) {
  for (Allocation& allocation : arena().allocations) visit(allocation);
}

void forget_loads() {
  for (Allocation& allocation : arena().allocations) {
    if (!allocation.live) continue;
    std::uint8_t* const bytes = allocation.bytes;
    for (std::size_t i = 0, size = allocation.end - allocation.begin; i < size; ++i) bytes[i] &= kWritten;
  }
}

}  // namespace simt
