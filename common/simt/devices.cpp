#include "common/simt/devices.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include "common/simt/machine.hpp"
#include "common/simt/symbols.hpp"
#include "common/stage/device_buffer.hpp"

namespace simt {

struct Devices::Started {
  unsigned stream;
  std::uint64_t number;
  Unordered work;
};

// A call of send() or receive().
struct Devices::Call {
  bool sends;
  void* memory;
  std::int64_t bytes;
  int peer;
  Pc pc;
  bool done = false;
  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(memory); }
  std::uintptr_t end() const { return begin() + static_cast<std::uintptr_t>(bytes); }
};

// What stands on a stream.
struct Devices::Work {
  enum class Kind { launch, group, record, wait, copy } kind;
  // A launch:
  DeferredLaunch launch{};
  std::unique_ptr<std::byte[]> storage = nullptr;
  void* arguments = nullptr;
  // A group:
  std::vector<Call> calls = {};
  std::uint64_t turn = 0;  ///< of the rank's groups
  bool begun = false;
  Clock start = {};  ///< what was over when it began
  // An event's number:
  std::size_t event = 0;
  // A copy:
  void* to = nullptr;
  const void* from = nullptr;  ///< null: to is poisoned
  std::int64_t bytes = 0;
};

struct Devices::Queue {
  Devices* devices;
  int rank;
  unsigned number;
  std::deque<Work> work = {};
  Clock clock = {};
  bool captured = false;
  bool joined = true;  ///< the first stream waits for all that is on this one
  Pc last = 0;         ///< of the last exchange on it, or of a load of a signal that is missing
};

namespace {

/// The name that faults of a communicator have in place of a kernel's.
__attribute__((noinline)) void exchange() { asm volatile(""); }

/// @param kernel null: none is at fault
void add_fault(FaultKind kind, Pc pc, std::string detail, const void* kernel = nullptr) {
  machine.measurement.faults.push_back(
      {kind, kernel ? kernel : reinterpret_cast<const void*>(&exchange), pc, {}, std::move(detail), 0, {}});
  machine.stopped = true;
}

std::string place(Pc pc) {
  const SourceLine line = source_lines({pc}).at(pc);
  return line.file + ":" + std::to_string(line.line);
}

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

}  // namespace

// A device: its two streams, and its end of the communicator.
class Devices::Rank final : public convladder::Communicator {
 public:
  Rank(Devices& devices, int rank)
      : queues{{&devices, rank, 2 * static_cast<unsigned>(rank)},
               {&devices, rank, 2 * static_cast<unsigned>(rank) + 1}},
        devices_(devices),
        rank_(rank) {}

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(devices_.ranks_.size()); }
  void group_start() override { ++depth_; }
  void group_end() override {
    if (depth_ > 0) --depth_;
    if (depth_ == 0) close_group();
  }
  void send(const void* from, std::int64_t bytes, int to, convladder::Stream stream) override {
    add({true, const_cast<void*>(from), bytes, to, relative_pc(__builtin_return_address(0))}, stream);
  }
  void receive(void* to, std::int64_t bytes, int from, convladder::Stream stream) override {
    add({false, to, bytes, from, relative_pc(__builtin_return_address(0))}, stream);
  }
  convladder::Stream side_stream() override { return handle(queues[1]); }
  void follow(convladder::Stream later, convladder::Stream earlier) override {
    Queue &from = queue_of(earlier), &to = queue_of(later);
    to.captured |= from.captured;
    if (&to == &queues[0]) from.joined = true;
    devices_.events_.emplace_back();
    Work record{Work::Kind::record}, wait{Work::Kind::wait};
    record.event = wait.event = devices_.events_.size() - 1;
    from.work.push_back(std::move(record));
    to.work.push_back(std::move(wait));
  }

  static convladder::Stream handle(Queue& queue) { return reinterpret_cast<convladder::Stream>(&queue); }
  static Queue& queue_of(convladder::Stream stream) { return *reinterpret_cast<Queue*>(stream); }

  /// What it is doing and cannot end, or null.
  Call* unanswered() {
    for (Queue& queue : queues) {
      if (queue.work.empty() || !queue.work.front().begun) continue;
      for (Call& call : queue.work.front().calls)
        if (!call.done) return &call;
    }
    return nullptr;
  }
  /// The group that has begun, or null.
  Work* group() {
    for (Queue& queue : queues)
      if (!queue.work.empty() && queue.work.front().begun) return &queue.work.front();
    return nullptr;
  }

  /// Forgets what was left.
  void restart() {
    calls_.clear();
    depth_ = 0;
    groups_ = groups_over = 0;
  }

  Queue queues[2];
  bool capturing = false;
  std::uint64_t groups_over = 0;

 private:
  void add(Call call, convladder::Stream stream) {
    if (!stream || queue_of(stream).rank != rank_ || (!calls_.empty() && stream != stream_)) {
      add_fault(FaultKind::not_captured, call.pc,
                name_of(rank_) + (stream && queue_of(stream).rank == rank_
                                      ? " puts the calls of one group on two streams"
                                      : " puts an exchange on a stream that is none of its own"));
      return;
    }
    if (call.peer < 0 || call.peer >= ranks()) {
      add_fault(FaultKind::deadlock, call.pc, "there is no " + name_of(call.peer) + " of " + std::to_string(ranks()));
      return;
    }
    stream_ = stream;
    calls_.push_back(call);
    if (depth_ == 0) close_group();
  }
  void close_group() {
    if (calls_.empty()) return;
    Work work{Work::Kind::group};
    work.calls = std::exchange(calls_, {});
    work.turn = groups_++;
    devices_.put(queue_of(stream_), std::move(work));
  }

  Devices& devices_;
  int rank_, depth_ = 0;
  std::vector<Call> calls_;  ///< of the open group
  convladder::Stream stream_ = nullptr;
  std::uint64_t groups_ = 0;
};

Devices::Devices(int count) {
  for (int rank = 0; rank < count; ++rank) ranks_.push_back(std::make_unique<Rank>(*this, rank));
}

Devices::~Devices() {
  for (void* memory : memory_) release(memory);
}

convladder::Communicator& Devices::communicator(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

convladder::Stream Devices::stream(int rank) { return Rank::handle(ranks_[static_cast<std::size_t>(rank)]->queues[0]); }

void* Devices::allocate(int rank, std::int64_t bytes, const char* name) {
  void* const memory = simt::allocate(static_cast<std::size_t>(bytes), name);
  memory_.push_back(memory);
  if (Allocation* const allocation = find_allocation(reinterpret_cast<std::uintptr_t>(memory)))
    allocation->device = rank + 1;
  return memory;
}

void Devices::copy(void* to, const void* from, std::int64_t bytes) {
  if (bytes <= 0) return;
  const auto target = reinterpret_cast<std::uintptr_t>(to), source = reinterpret_cast<std::uintptr_t>(from);
  const Allocation *const into = find_allocation(target), *const out_of = find_allocation(source);
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
  for (std::int64_t i = 0; i < bytes; ++i) {
    std::uint8_t& state = into->bytes[target - into->begin + static_cast<std::uintptr_t>(i)];
    state = static_cast<std::uint8_t>(
        (state & ~kWritten) | (out_of->bytes[source - out_of->begin + static_cast<std::uintptr_t>(i)] & kWritten));
  }
}

void Devices::fill(void* to, int byte, std::int64_t bytes) {
  const std::vector<std::byte> values(static_cast<std::size_t>(bytes), static_cast<std::byte>(byte));
  upload(to, values.data(), values.size());
}

void Devices::poison(void* to, std::int64_t bytes) {
  simt::poison(to, static_cast<std::size_t>(bytes), convladder::kPoison);
}

void Devices::open_to_all(void* memory) {
  if (Allocation* const allocation = find_allocation(reinterpret_cast<std::uintptr_t>(memory))) allocation->device = 0;
}

void Devices::copy_in_order(int rank, void* to, const void* from, std::int64_t bytes) {
  Work work{Work::Kind::copy};
  work.to = to;
  work.from = from;
  work.bytes = bytes;
  put(ranks_[static_cast<std::size_t>(rank)]->queues[0], std::move(work));
}

void Devices::begin_capture(int rank) {
  Rank& of = *ranks_[static_cast<std::size_t>(rank)];
  of.capturing = true;
  of.queues[0].captured = true;
  of.queues[1].captured = false;
}

void Devices::end_capture(int rank) {
  Rank& of = *ranks_[static_cast<std::size_t>(rank)];
  of.capturing = false;
  const Queue& side = of.queues[1];
  if (side.captured && !side.joined)
    add_fault(FaultKind::not_captured, side.last,
              name_of(rank) + ": the first stream never waits for what is on the second one, so the graph has no end");
}

void Devices::put(Queue& queue, Work work) {
  const Rank& rank = *ranks_[static_cast<std::size_t>(queue.rank)];
  if (work.kind == Work::Kind::group) queue.last = work.calls.front().pc;
  if (rank.capturing && !queue.captured) {
    const std::string what =
        work.kind == Work::Kind::launch ? "'" + kernel_name(work.launch.kernel) + "'" : "an exchange";
    add_fault(FaultKind::not_captured, work.kind == Work::Kind::group ? queue.last : 0,
              name_of(queue.rank) + " puts " + what +
                  " on a stream that follows nothing in the graph: the graph would run without it");
  }
  queue.joined = false;
  queue.work.push_back(std::move(work));
}

std::vector<Unordered> Devices::unordered_with(const Clock& clock) const {
  std::vector<Unordered> work;
  for (const Started& started : started_)
    if (clock[started.stream] < started.number) work.push_back(started.work);
  return work;
}

/// Looks for what races with a group that begins now, and lets others race with it.
void Devices::begin_group(Queue& queue, Work& work) {
  work.begun = true;
  work.start = queue.clock;
  set_unordered(unordered_with(queue.clock));
  Unordered added{"an exchange", 0, 0, {}, {}, {}, work.calls.front().pc};
  for (const Call& call : work.calls) {
    const Allocation* const allocation = find_allocation(call.begin());
    const std::string does = name_of(queue.rank) + (call.sends ? " sends " : " receives ");
    if (call.bytes <= 0 || !allocation || !allocation->live || call.end() > allocation->end)
      return add_fault(FaultKind::out_of_bounds, call.pc,
                       does + std::to_string(call.bytes) + " bytes, " +
                           describe_global(allocation && allocation->live ? allocation->end : call.begin()));
    if (allocation->device != 0 && allocation->device != queue.rank + 1)
      return add_fault(FaultKind::out_of_bounds, call.pc,
                       does + "'" + allocation->name + "' of device " + std::to_string(allocation->device - 1));
    if (const Met met = find_unordered(call.memory, static_cast<std::size_t>(call.bytes), !call.sends); met.work)
      add_fault(FaultKind::race, call.pc,
                does + std::to_string(call.bytes) + " bytes of '" + allocation->name + "', which '" + met.work->name +
                    "' in another stream " + (met.writes ? "writes" : "may still read") + " at " + place(met.pc) +
                    "; nothing orders the two");
    for (const Call& other : work.calls)
      if (&other < &call && other.begin() < call.end() && call.begin() < other.end() && !(call.sends && other.sends))
        add_fault(FaultKind::race, call.pc,
                  does + "what the same group " + (other.sends ? "sends" : "receives") + " at " + place(other.pc));
    added.ranges.push_back({call.begin(), call.end(), !call.sends});
  }
  queue.clock.tick(queue.number);
  note_start(queue, std::move(added));
}

/// Lets others race with the piece of work that has just begun on the stream.
void Devices::note_start(Queue& queue, Unordered work) {
  work.stream = queue.number;
  work.number = queue.clock[queue.number];
  started_.push_back({work.stream, work.number, std::move(work)});
}

/// The copy, and what races with it.
void Devices::run_copy(Queue& queue, const Work& work) {
  set_unordered(unordered_with(queue.clock));
  const Allocation* const allocation = find_allocation(reinterpret_cast<std::uintptr_t>(work.to));
  if (const Met met = find_unordered(work.to, static_cast<std::size_t>(work.bytes), true); met.work)
    add_fault(FaultKind::race, met.pc,
              name_of(queue.rank) + (work.from ? " fills '" : " overwrites '") + allocation->name +
                  (work.from ? "' before its first kernel" : "' after its last kernel") +
                  ", and nothing orders that and '" + met.work->name + "' of another device");
  work.from ? copy(work.to, work.from, work.bytes) : poison(work.to, work.bytes);
  Unordered added{"what comes before and after the kernels", 0, 0, {}, {}, {}, 0};
  added.ranges.push_back({reinterpret_cast<std::uintptr_t>(work.to),
                          reinterpret_cast<std::uintptr_t>(work.to) + static_cast<std::uintptr_t>(work.bytes), true});
  queue.clock.tick(queue.number);
  note_start(queue, std::move(added));
}

/// Moves the bytes of a pair of calls. @return false where that is a fault
bool Devices::transfer(Rank& from, Rank& to, Call& send, Call& receive) {
  if (send.bytes != receive.bytes) {
    add_fault(FaultKind::size_mismatch, receive.pc,
              name_of(to.rank()) + " receives " + std::to_string(receive.bytes) + " bytes from " +
                  name_of(from.rank()) + ", which sends " + std::to_string(send.bytes) + " at " + place(send.pc));
    return false;
  }
  const Allocation* const source = find_allocation(send.begin());
  const std::uint8_t* const state = source->bytes + (send.begin() - source->begin);
  if (!std::all_of(state, state + send.bytes, [](std::uint8_t byte) { return byte & kWritten; }))
    add_fault(FaultKind::uninitialized, send.pc,
              name_of(from.rank()) + " sends bytes of '" + source->name + "' that nothing has written");
  copy(receive.memory, send.memory, send.bytes);
  send.done = receive.done = true;
  return true;
}

bool Devices::advance_group(Queue& queue, Work& work) {
  Rank& own = *ranks_[static_cast<std::size_t>(queue.rank)];
  if (own.groups_over != work.turn) return false;
  bool moved = false;
  if (!work.begun) {
    begin_group(queue, work);
    moved = true;
  }
  for (Call& call : work.calls) {
    if (call.done || machine.stopped || holding_) continue;
    Rank& peer = *ranks_[static_cast<std::size_t>(call.peer)];
    Work* const its = peer.group();
    if (!its) continue;
    const auto answer = std::find_if(its->calls.begin(), its->calls.end(), [&](const Call& other) {
      return !other.done && other.sends != call.sends && other.peer == queue.rank;
    });
    if (answer == its->calls.end()) continue;
    Call &send = call.sends ? call : *answer, &receive = call.sends ? *answer : call;
    if (!transfer(call.sends ? own : peer, call.sends ? peer : own, send, receive)) return false;
    // What comes tells that all before its sending is over.
    if (!call.sends) queue.clock.join(its->start);
    for (Queue& other : peer.queues)
      if (call.sends && &peer != &own && !other.work.empty() && &other.work.front() == its)
        other.clock.join(work.start);
    moved = true;
  }
  if (!std::all_of(work.calls.begin(), work.calls.end(), [](const Call& call) { return call.done; })) return moved;
  ++own.groups_over;
  queue.work.pop_front();
  return true;
}

/// @return whether anything happened
bool Devices::advance(Queue& queue) {
  if (queue.work.empty()) return false;
  Work& work = queue.work.front();
  switch (work.kind) {
    case Work::Kind::group:
      return advance_group(queue, work);
    case Work::Kind::record:
      events_[work.event] = std::make_unique<Clock>(queue.clock);
      break;
    case Work::Kind::wait:
      if (!events_[work.event]) return false;
      queue.clock.join(*events_[work.event]);
      break;
    case Work::Kind::launch: {
      const DeferredLaunch& launch = work.launch;
      const Clock before = queue.clock;
      const Measurement measured = machine.measurement;
      const auto requests = requests_so_far();
      set_unordered(unordered_with(queue.clock));
      machine.over = queue.clock;
      machine.learned = {};
      machine.stream = queue.number;
      machine.number = queue.clock.tick(queue.number);
      machine.device = queue.rank + 1;
      run_grid(launch.kernel, launch.grid, launch.block, launch.shared_bytes, launch.call, work.arguments, false,
               launch.cluster);
      machine.device = 0;
      if (machine.missing_signal != 0) {  // it begins anew when others have told more
        machine.stopped = false;
        machine.measurement = measured;
        set_requests(requests);
        queue.clock = before;
        queue.last = std::exchange(machine.missing_signal, 0);
        return false;
      }
      queue.clock.join(machine.learned);
      Unordered added{kernel_name(launch.kernel), 0, 0, {}, {}, {}, 0};
      std::tie(added.first, added.last) = last_blocks();
      const unsigned sizes[] = {launch.grid.x,  launch.grid.y,  launch.grid.z,
                                launch.block.x, launch.block.y, launch.block.z};
      std::copy(sizes, sizes + 3, added.grid);
      std::copy(sizes + 3, sizes + 6, added.block);
      note_start(queue, std::move(added));
      break;
    }
    case Work::Kind::copy:
      run_copy(queue, work);
      break;
  }
  queue.work.pop_front();
  return true;
}

void Devices::report_deadlock() {
  for (const auto& rank : ranks_)
    for (const Queue& queue : rank->queues)
      if (!queue.work.empty() && queue.work.front().kind == Work::Kind::launch)
        return add_fault(FaultKind::deadlock, queue.last,
                         name_of(rank->rank()) + ": '" + kernel_name(queue.work.front().launch.kernel) +
                             "' waits for a signal that nothing stores any more",
                         queue.work.front().launch.kernel);
  for (const auto& rank : ranks_) {
    const Call* const call = rank->unanswered();
    if (!call) continue;
    std::string text = name_of(rank->rank()) + (call->sends ? " sends " : " receives ") + std::to_string(call->bytes) +
                       " bytes" + (call->sends ? " to " : " from ") + name_of(call->peer) + ", which ";
    const Call* const other = ranks_[static_cast<std::size_t>(call->peer)]->unanswered();
    if (other)
      text += std::string("waits until its own ") + (other->sends ? "send to " : "receive from ") +
              name_of(other->peer) + " at " + place(other->pc) + " is answered";
    else
      text += call->sends ? "receives no more" : "sends no more";
    return add_fault(FaultKind::deadlock, call->pc, std::move(text));
  }
}

void Devices::drop_all() {
  for (const auto& rank : ranks_) {
    for (Queue& queue : rank->queues) {
      queue.work.clear();
      queue.clock = {};
      queue.joined = true;
    }
  }
  started_.clear();
  events_.clear();
  machine.over = {};
  machine.signals.clear();
  set_unordered({});
}

void Devices::run_while_moving() {
  bool moved = true;
  while (moved && !machine.stopped) {
    moved = false;
    for (const auto& rank : ranks_)
      for (Queue& queue : rank->queues)
        while (!machine.stopped && advance(queue)) moved = true;
  }
}

void Devices::run_until_messages() {
  holding_ = true;
  run_while_moving();
  holding_ = false;
}

void Devices::run() {
  run_while_moving();
  if (!machine.stopped) report_deadlock();
  for (const auto& rank : ranks_) rank->restart();
  drop_all();
}

void defer(convladder::Stream stream, const DeferredLaunch& launch, const void* arguments, std::size_t bytes) {
  constexpr std::size_t kAlignment = 128;
  Devices::Queue& queue = Devices::Rank::queue_of(stream);
  Devices::Work work{Devices::Work::Kind::launch};
  work.launch = launch;
  work.storage = std::make_unique<std::byte[]>(bytes + kAlignment);
  work.arguments = work.storage.get();
  std::size_t room = bytes + kAlignment;
  std::align(kAlignment, bytes, work.arguments, room);
  std::memcpy(work.arguments, arguments, bytes);
  queue.devices->put(queue, std::move(work));
}

}  // namespace simt
