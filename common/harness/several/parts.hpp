/// @file
/// What the parts of a launch of 41 to 43 cost: the same launch with one of them left out or moved.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/several/ranks.hpp"
#include "common/stage/device_buffer.hpp"

namespace convladder {

/// How a launch is changed. Its outputs may be wrong then: only its times count.
enum class Change {
  none,            ///< as the stage launches it
  no_exchange,     ///< nothing is sent or received
  one_stream,      ///< what the second stream has is put on the first, before the interior
  interior_later,  ///< the interior begins after a memset of four bytes
  own_rows,        ///< 43 reads rows of the same size in its own memory instead of other ranks'
};

/// Those that a stage's launch has a meaning for.
std::vector<Change> changes_of(const std::string& stage);
/// "no exchange"; "" for none.
std::string words_of(Change change);

/// Microseconds since a launch began, until what it has put on a stream is over; of the slowest rank.
struct Ends {
  std::optional<double> exchange, second, first;  ///< none where the launch has no such part
};

/// A rank's end of a communicator, for launches that are changed.
class Probe final : public Communicator {
 public:
  /// @param ranks of which it is the end @param change made to launches @param events whether launches that are
  /// captured record when their parts are over
  Probe(Ranks& ranks, Change change, bool events);
  ~Probe() override;

  int rank() const override { return ranks_.rank(); }
  int ranks() const override { return ranks_.ranks(); }
  void group_start() override;
  void group_end() override;
  void send(const void* from, std::int64_t bytes, int to, Stream stream) override;
  void receive(void* to, std::int64_t bytes, int from, Stream stream) override;
  Stream side_stream() override;
  void follow(Stream later, Stream earlier) override;

  /// Of the last launch of a replay that is over. All ranks call it together.
  Ends ends();

 private:
  enum Event { kBegin, kExchange, kSecond, kFirst, kEvents };
  void record(Event event, Stream stream);
  std::optional<double> until(Event event);

  Ranks& ranks_;
  Change change_;
  bool with_events_;
  Stream group_ = nullptr;  ///< of the group's calls
  DeviceBuffer four_bytes_;
  std::array<cudaEvent_t, kEvents> events_{};
  std::array<bool, kEvents> recorded_{};
};

}  // namespace convladder
