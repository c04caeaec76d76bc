#include "common/simt/cores.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <system_error>
#include <type_traits>
#include <utility>

#include "common/simt/machine.hpp"

namespace simt {
namespace {

constexpr std::int64_t kMillisecond = 1000000;
constexpr std::int64_t kBegin = 10 * kMillisecond;  ///< a launch has run for so long before it is judged
constexpr std::int64_t kShare =
    20 * kMillisecond;  ///< least work of a helper, some ten times what it costs to have one

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

/// Kernels whose blocks depend on each other: no helper is tried again.
std::set<const void*>& dependent_kernels() {
  static std::set<const void*> kernels;
  return kernels;
}

bool helping = false;
Helpers* running = nullptr;  ///< of the running launch

struct Settings {
  unsigned cores = 0;  ///< 0: those of the machine
  bool at_once = false;
} settings;

std::uint64_t helped = 0;

// ---- What a helper hands over --------------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(int file) : file_(file) { buffer_.reserve(kBuffer); }
  ~Writer() { flush(); }
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (buffer_.size() + sizeof value > kBuffer) flush();
    const auto* const bytes = reinterpret_cast<const char*>(&value);
    buffer_.insert(buffer_.end(), bytes, bytes + sizeof value);
  }

 private:
  static constexpr std::size_t kBuffer = 1 << 20;
  void flush() {
    for (std::size_t done = 0; done < buffer_.size();) {
      const ssize_t written = write(file_, buffer_.data() + done, buffer_.size() - done);
      if (written <= 0) _exit(1);
      done += static_cast<std::size_t>(written);
    }
    buffer_.clear();
  }
  int file_;
  std::vector<char> buffer_;
};

class Reader {
 public:
  explicit Reader(const char* at) : at_(at) {}
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

 private:
  const char* at_;
};

/// A file without a name, in memory.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("convladder-helper", MFD_CLOEXEC)) {}
  MemoryFile(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (bytes_) munmap(bytes_, size_);
    if (file_ >= 0) close(file_);
  }
  int get() const { return file_; }
  std::size_t size() {
    if (size_ == 0) size_ = static_cast<std::size_t>(std::max<off_t>(lseek(file_, 0, SEEK_END), 0));
    return size_;
  }
  /// All that was written, or null.
  const char* bytes() {
    if (!bytes_ && size() > 0) {
      void* const address = mmap(nullptr, size_, PROT_READ, MAP_SHARED | MAP_POPULATE, file_, 0);
      if (address != MAP_FAILED) bytes_ = address;
    }
    return static_cast<const char*>(bytes_);
  }

 private:
  int file_;
  void* bytes_ = nullptr;
  std::size_t size_ = 0;
};

/// The accesses of a word, and which bit of what is handed over stands for each.
constexpr Access Cell::*kAccesses[] = {&Cell::write,       &Cell::atomic,          &Cell::read,
                                       &Cell::second_read, &Cell::other_warp_read, &Cell::earlier_block_read};
constexpr unsigned kWriteBit = 1, kAtomicBit = 2, kReadBit = 4;

struct WordHeader {
  std::uint64_t word;      ///< of its allocation
  std::uint8_t accesses;   ///< those that are the helper's own
  std::uint8_t states[4];  ///< of its bytes
};
constexpr std::uint64_t kEnd = UINT64_MAX;

/// Bytes of a word that belong to the allocation.
unsigned bytes_in(const Allocation& allocation, std::size_t word) {
  return static_cast<unsigned>(std::min<std::uintptr_t>(4, allocation.end - allocation.begin - 4 * word));
}

/// The words that blocks from `first_serial` on have touched, and what they hold now.
void write_words(Writer& out, const Allocation& allocation, std::uint32_t first_serial) {
  const std::size_t words = (allocation.end - allocation.begin + 3) / 4, per_chunk = kTouchedTogether / 4;
  for (std::size_t chunk = 0; chunk * per_chunk < words; ++chunk) {
    if (!allocation.touched[chunk]) continue;
    for (std::size_t word = chunk * per_chunk; word < std::min(words, (chunk + 1) * per_chunk); ++word) {
      const Cell& cell = allocation.cells[word];
      WordHeader header{word, 0, {}};
      for (unsigned i = 0; i < std::size(kAccesses); ++i)
        if ((cell.*kAccesses[i]).block >= first_serial) header.accesses |= static_cast<std::uint8_t>(1 << i);
      if (header.accesses == 0) continue;
      const unsigned bytes = bytes_in(allocation, word);
      std::memcpy(header.states, allocation.bytes + 4 * word, bytes);
      out.put(header);
      if (header.accesses & (kWriteBit | kAtomicBit)) {
        std::uint32_t value = 0;
        std::memcpy(&value, reinterpret_cast<const void*>(allocation.begin + 4 * word), bytes);
        out.put(value);
      }
      for (unsigned i = 0; i < std::size(kAccesses); ++i)
        if (header.accesses >> i & 1) out.put(cell.*kAccesses[i]);
    }
  }
  out.put(WordHeader{kEnd, 0, {}});
}

/// A word as a helper hands it over.
struct HandedWord {
  WordHeader header;
  std::uint32_t value = 0;
  Cell cell;

  explicit HandedWord(Reader& in) : header(in.get<WordHeader>()) {
    if (header.accesses & (kWriteBit | kAtomicBit)) value = in.get<std::uint32_t>();
    for (unsigned i = 0; i < std::size(kAccesses); ++i)
      if (header.accesses >> i & 1) cell.*kAccesses[i] = in.get<Access>();
  }
  bool is_end() const { return header.word == kEnd; }

  /// Whether its order matters with what blocks from `since` on have done to the word here.
  bool depends_on(const Cell& here, std::uint32_t since) const {
    const bool written_here = here.write.block >= since || here.atomic.block >= since;
    const bool written = header.accesses & (kWriteBit | kAtomicBit);
    return written_here || (written && here.read.block >= since);
  }

  /// Leaves what would stand here if the blocks had run in order.
  void add_to(const Allocation& allocation) const {
    Cell& here = allocation.cells[header.word];
    if (header.accesses & kWriteBit) here.write = cell.write;
    if (header.accesses & kAtomicBit) here.atomic = cell.atomic;
    if (header.accesses & kReadBit) {
      here.earlier_block_read = cell.earlier_block_read.block != 0 ? cell.earlier_block_read : here.read;
      here.read = cell.read;
      here.second_read = cell.second_read;
      here.other_warp_read = cell.other_warp_read;
    }
    const unsigned bytes = bytes_in(allocation, header.word);
    if (header.accesses & (kWriteBit | kAtomicBit))
      std::memcpy(reinterpret_cast<void*>(allocation.begin + 4 * header.word), &value, bytes);
    std::uint8_t* const states = allocation.bytes + 4 * header.word;
    for (unsigned i = 0; i < bytes; ++i) {
      if (header.states[i] & ~states[i] & kLoaded) ++machine.measurement.counters.global_load_unique_bytes;
      states[i] |= header.states[i];
    }
  }
};

// ---- A helper ------------------------------------------------------------------------------------------------------

/// What its process counts from nothing, before its first block.
struct Fresh {
  std::int64_t accesses = machine.measurement.thread_accesses, barriers = machine.measurement.counters.barriers;
  BarrierLog log;

  Fresh() {
    forget_requests();
    if (machine.barrier_log) machine.barrier_log = &log;
    machine.has_traces = false;
    machine.guesses.clear();
    for_each_allocation([](Allocation& allocation) {
      const std::size_t chunks = (allocation.end - allocation.begin + kTouchedTogether - 1) / kTouchedTogether;
      void* const address =
          mmap(nullptr, chunks + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (address == MAP_FAILED) _exit(1);
      allocation.touched = static_cast<std::uint8_t*>(address);
    });
  }

  void write(Writer& out, std::uint32_t first_serial) const {
    out.put(static_cast<std::uint64_t>(machine.shared_touched.size()));
    for (const Variable* variable : machine.shared_touched) out.put(variable->begin);
    for_each_allocation([&](Allocation& allocation) {
      if (allocation.live) write_words(out, allocation, first_serial);
    });
    out.put(machine.has_traces);
    out.put(machine.measurement.thread_accesses - accesses);
    out.put(machine.measurement.counters.barriers - barriers);
    Measurement of_requests;
    collect_requests(of_requests);
    out.put(static_cast<std::uint64_t>(of_requests.by_pc.size()));
    for (const auto& [pc, counters] : of_requests.by_pc) {
      out.put(pc);
      out.put(counters);
    }
    out.put(static_cast<std::uint64_t>(machine.guesses.size()));
    for (const Pc pc : machine.guesses) out.put(pc);
    out.put(static_cast<std::uint64_t>(log.size()));
    for (const auto& [call, count] : log) {
      out.put(call.first);
      out.put(call.second);
      out.put(count);
    }
  }
};

}  // namespace

struct Helper {
  std::uint64_t first, end, since;  ///< its blocks, and the one before which it was started
  MemoryFile result, output, errors;
  int process = -1, done = -1;  ///< a pipe that says so

  ~Helper() {
    if (done >= 0) close(done);
    if (process <= 0) return;
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }

  /// Whether its process has been started.
  bool start(Helpers::Run run) {
    int ends[2];
    if (result.get() < 0 || output.get() < 0 || errors.get() < 0 || pipe2(ends, O_CLOEXEC) != 0) return false;
    process = fork();
    if (process == 0) help(run, ends[1]);
    close(ends[1]);
    done = ends[0];
    return process > 0;
  }

  [[noreturn]] void help(Helpers::Run run, int pipe) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    helping = true;
    dup2(output.get(), STDOUT_FILENO);
    dup2(errors.get(), STDERR_FILENO);
    try {
      const Fresh fresh;
      for (std::uint64_t block = first; block < end; ++block)
        if (!run(block)) _exit(1);
      std::fflush(stdout);
      std::fflush(stderr);
      Writer out(result.get());
      fresh.write(out, machine.first_block_serial + static_cast<std::uint32_t>(first));
    } catch (...) {
      _exit(1);  // nothing of the program behind this call may run here
    }
    if (::write(pipe, "!", 1) != 1) _exit(1);
    _exit(0);
  }

  /// Waits for its end. Whether it has handed over what it did; not where the launch was interrupted meanwhile.
  bool wait() const {
    for (;;) {
      pollfd waiting{done, POLLIN, 0};
      constexpr int kMilliseconds = 20;
      if (poll(&waiting, 1, kMilliseconds) > 0) {
        char end;
        return read(done, &end, 1) == 1;
      }
      if (machine.interrupted) {
        machine.stopped = true;
        return false;
      }
    }
  }

  /// Whether its blocks do not depend on those that have run here since it was started.
  bool is_independent(Reader in) const {
    for (auto count = in.get<std::uint64_t>(); count > 0; --count) {
      const auto begin = in.get<std::uintptr_t>();
      const auto is_it = [begin](const Variable* variable) { return variable->begin == begin; };
      if (std::none_of(machine.shared_touched.begin(), machine.shared_touched.end(), is_it)) return false;
    }
    const std::uint32_t serial = machine.first_block_serial + static_cast<std::uint32_t>(since);
    bool independent = true;
    for_each_allocation([&](Allocation& allocation) {
      if (!allocation.live) return;
      for (HandedWord word(in); !word.is_end(); word = HandedWord(in))
        independent &= !word.depends_on(allocation.cells[word.header.word], serial);
    });
    return independent;
  }

  void add(Reader in) {
    for (auto count = in.get<std::uint64_t>(); count > 0; --count) in.get<std::uintptr_t>();
    for_each_allocation([&](Allocation& allocation) {
      if (!allocation.live) return;
      for (HandedWord word(in); !word.is_end(); word = HandedWord(in)) word.add_to(allocation);
    });
    machine.has_traces |= in.get<bool>();
    machine.measurement.thread_accesses += in.get<std::int64_t>();
    machine.measurement.counters.barriers += in.get<std::int64_t>();
    for (auto count = in.get<std::uint64_t>(); count > 0; --count) {
      Counters& at = counters_at(in.get<Pc>());
      const auto counters = in.get<Counters>();
      for (const auto& field : convladder::kCounterFields) at.*field.member += counters.*field.member;
    }
    for (auto count = in.get<std::uint64_t>(); count > 0; --count) machine.guesses.insert(in.get<Pc>());
    for (auto count = in.get<std::uint64_t>(); count > 0; --count) {
      const auto call = in.get<BarrierCall>();
      const auto kernel = in.get<const void*>();
      (*machine.barrier_log)[{call, kernel}] += in.get<std::int64_t>();
    }
    if (output.size() > 0) std::fwrite(output.bytes(), 1, output.size(), stdout);
    if (errors.size() > 0) std::fwrite(errors.bytes(), 1, errors.size(), stderr);
  }
};

// ---- A launch ------------------------------------------------------------------------------------------------------

namespace {

/// As CONVLADDER_SIM_CORES says; 0 where it is not set, or is no such number, which is told once.
unsigned cores_of_environment() {
  constexpr unsigned kMost = 1024;
  const char* const text = std::getenv("CONVLADDER_SIM_CORES");
  if (!text || *text == '\0') return 0;
  unsigned number = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  if (error == std::errc() && rest == end && number >= 1 && number <= kMost) return number;
  static bool told = false;
  if (!std::exchange(told, true))
    std::fprintf(stderr, "note: CONVLADDER_SIM_CORES must be a number from 1 to %u; got '%s': all cores are used\n",
                 kMost, text);
  return 0;
}

unsigned cores() {
  if (settings.cores > 0) return settings.cores;
  if (const unsigned number = cores_of_environment()) return number;
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

}  // namespace

void set_cores(unsigned cores, bool at_once) { settings = {cores, at_once}; }

std::uint64_t helped_blocks() { return helped; }

void leave_to_others() {
  if (helping) _exit(1);
}

void change_allocations() {
  leave_to_others();
  if (running) running->dismiss();
}

Helpers::Helpers(std::uint64_t blocks, Run run)
    : blocks_(blocks),
      run_(run),
      may_start_(blocks >= 2 && cores() > 1 && !machine.recording && !machine.load_log &&
                 (settings.at_once || dependent_kernels().count(machine.kernel) == 0)),
      began_(may_start_ ? now() : 0) {
  running = this;
}

Helpers::~Helpers() { running = nullptr; }

void Helpers::dismiss() {
  may_start_ = false;
  helpers_.clear();
}

void Helpers::consider(std::uint64_t block, bool begun) {
  if (!may_start_ || machine.blocks_meet || block + 1 >= blocks_ || (block == 0 && !begun)) return;
  const std::int64_t taken = now() - began_;
  const double run = static_cast<double>(block) + (begun ? 0.5 : 0);
  const double left = static_cast<double>(taken) / run * static_cast<double>(blocks_ - block);
  const double shares = settings.at_once ? 1024 : taken < kBegin ? 0 : left / kShare;
  const double most = static_cast<double>(std::min<std::uint64_t>(cores(), blocks_ - block));
  if (const auto count = static_cast<unsigned>(std::min(shares, most)); count > 1) start(block, count - 1);
}

std::uint64_t Helpers::next(std::uint64_t block) {
  consider(block, false);
  while (!helpers_.empty() && helpers_.front()->first == block && !machine.stopped) {
    Helper& helper = *helpers_.front();
    const char* const result = helper.wait() ? helper.result.bytes() : nullptr;
    if (!result || !helper.is_independent(Reader(result))) {
      dependent_kernels().insert(machine.kernel);
      dismiss();
      break;
    }
    helper.add(Reader(result));
    block = helper.end;
    helped += helper.end - helper.first;
    helpers_.erase(helpers_.begin());
  }
  return block;
}

void Helpers::start(std::uint64_t block, unsigned count) {
  may_start_ = false;
  std::fflush(stdout);
  std::fflush(stderr);
  const std::uint64_t left = blocks_ - block;
  for (unsigned i = 1; i <= count; ++i) {
    auto helper = std::make_unique<Helper>();
    helper->first = block + left * i / (count + 1);
    helper->end = block + left * (i + 1) / (count + 1);
    helper->since = block;
    if (!helper->start(run_)) return dismiss();
    helpers_.push_back(std::move(helper));
  }
}

}  // namespace simt
