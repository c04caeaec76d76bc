/// @file
/// How much of the work on each stream is known to be over.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simt {

/// A vector clock: of each stream, by its number, how many pieces of its work are over.
class Clock {
 public:
  /// Of a stream.
  std::uint64_t operator[](unsigned stream) const { return stream < over_.size() ? over_[stream] : 0; }
  /// Whether nothing is over.
  bool empty() const { return over_.empty(); }
  /// What either knows.
  void join(const Clock& other) {
    if (over_.size() < other.over_.size()) over_.resize(other.over_.size());
    for (std::size_t i = 0; i < other.over_.size(); ++i) over_[i] = std::max(over_[i], other.over_[i]);
  }
  /// One piece of work more. @return its number
  std::uint64_t tick(unsigned stream) {
    if (over_.size() <= stream) over_.resize(stream + 1);
    return ++over_[stream];
  }

 private:
  std::vector<std::uint64_t> over_;
};

}  // namespace simt
