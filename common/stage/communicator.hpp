/// @file
/// What several devices tell each other, as a stage's host code sees it: a few of NCCL's functions, by NCCL's rules.
/// Two implementations: over NCCL, one process a GPU, and over the simulator, all devices in one process.
#pragma once
#include <cstdint>

#include "common/stage/stage.hpp"

namespace convladder {

/// One rank's end of a communicator. Calls put work on a stream and return at once. A rank's groups take their turn in
/// the order of the calls. Between two ranks, what is sent first is received first; both sides must name the same
/// number of bytes. A send is over when its bytes are free to be overwritten, a receive when they have come.
class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;   ///< this one, from 0 on
  virtual int ranks() const = 0;  ///< of all

  /// What is called from here to group_end() proceeds together: no call waits for another one. Without a group, each
  /// call is a group of its own, and the next waits for it.
  virtual void group_start() = 0;
  virtual void group_end() = 0;  ///< puts the group on its stream

  /// Sends `bytes` bytes to rank `to`, which must call receive(); `to` may be the rank itself.
  /// @param stream the same for a whole group
  virtual void send(const void* from, std::int64_t bytes, int to, Stream stream) = 0;
  /// Receives `bytes` bytes from rank `from`, likewise.
  virtual void receive(void* to, std::int64_t bytes, int from, Stream stream) = 0;

  /// A second stream of this rank's device, of higher priority: where blocks of both wait for a multiprocessor, those
  /// of this one come first.
  virtual Stream side_stream() = 0;
  /// What is put on `later` from now on waits for all that is on `earlier` now: an event.
  virtual void follow(Stream later, Stream earlier) = 0;
};

/// Devices that this process drives alone, each a rank.
class LocalRanks {
 public:
  LocalRanks() = default;
  virtual ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  virtual Communicator& communicator(int rank) = 0;  ///< its end
  virtual Stream stream(int rank) = 0;               ///< its first stream
  /// Memory of the rank's device, which no other device may touch; freed with the ranks.
  /// @param name for fault messages; must outlive it
  virtual void* allocate(int rank, std::int64_t bytes, const char* name) = 0;
  /// Copies between any devices. Where the source is poisoned, so is the copy.
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void fill(void* to, int byte, std::int64_t bytes) = 0;  ///< writes `byte` everywhere
  /// Kernels of all devices may touch this memory from now on.
  virtual void open_to_all(void* memory) = 0;
  /// Puts a copy on the rank's first stream, or with `from` null what poison() does.
  virtual void copy_in_order(int rank, void* to, const void* from, std::int64_t bytes) = 0;
  virtual void poison(void* to, std::int64_t bytes) = 0;  ///< reading it before it is written is a fault from now on

  /// Host code of the rank follows, to be captured in a CUDA graph of its first stream.
  virtual void begin_capture(int rank) = 0;
  virtual void end_capture(int rank) = 0;  ///< its end
  virtual void run() = 0;                  ///< launches all graphs together, and waits for them
  /// Before run(): runs what waits for no message, as if all of these came late.
  virtual void run_until_messages() = 0;
};

/// How many devices one process may drive alone: 8 in the simulator, and 1 on a GPU, where each has its own process.
int most_local_ranks();
/// Makes them, of devices 0 to `count` - 1. @param count at most most_local_ranks(), and more than one
LocalRanks* make_local_ranks(int count);

}  // namespace convladder
