/// @file
/// Several devices in one process, and a communicator between them by NCCL's rules. Host code puts work on streams; all
/// of it runs in run(), one piece after another, always in the same order. Clocks tell which pieces a real machine
/// could have run in another order: where two of them touch the same memory, that is a race. A kernel that waits for a
/// signal which another piece has yet to store is given up, and begins anew later: before it waits it must not have
/// changed what it reads.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/simt/clock.hpp"
#include "common/simt/runtime.hpp"
#include "common/stage/communicator.hpp"

namespace simt {

/// The devices. Only one object of this type may exist that has work to do.
class Devices final : public convladder::LocalRanks {
 public:
  explicit Devices(int count);  ///< so many
  ~Devices() override;

  convladder::Communicator& communicator(int rank) override;
  convladder::Stream stream(int rank) override;
  void* allocate(int rank, std::int64_t bytes, const char* name) override;
  void copy(void* to, const void* from, std::int64_t bytes) override;
  void fill(void* to, int byte, std::int64_t bytes) override;
  void poison(void* to, std::int64_t bytes) override;
  void open_to_all(void* memory) override;
  void copy_in_order(int rank, void* to, const void* from, std::int64_t bytes) override;
  void begin_capture(int rank) override;
  void end_capture(int rank) override;
  void run() override;
  void run_until_messages() override;

 private:
  friend void defer(convladder::Stream, const struct DeferredLaunch&, const void*, std::size_t);
  struct Call;
  struct Work;
  struct Queue;
  class Rank;
  struct Started;

  void put(Queue& queue, Work work);
  bool advance(Queue& queue);
  bool advance_group(Queue& queue, Work& work);
  void run_copy(Queue& queue, const Work& work);
  void note_start(Queue& queue, Unordered work);
  void begin_group(Queue& queue, Work& work);
  bool transfer(Rank& from, Rank& to, Call& send, Call& receive);
  std::vector<Unordered> unordered_with(const Clock& clock) const;
  void run_while_moving();
  void report_deadlock();
  void drop_all();

  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<void*> memory_;
  std::vector<Started> started_;
  std::vector<std::unique_ptr<Clock>> events_;  ///< null until recorded
  bool holding_ = false;                        ///< messages back
};

}  // namespace simt
