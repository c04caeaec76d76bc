/// @file
/// Blocks of one launch on several cores. What a launch does, to memory and in all that is counted, is the same on any
/// number of them.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace simt {

struct Helper;

/// The blocks of a launch that other processes run. A helper is a copy of this process, which runs the last blocks of
/// the launch on its copy of memory while this one runs the first. Then the two are compared word by word. Where a word
/// was written by one of them and touched by the other, or where the helper met a fault or a block that waits for
/// others, it counts for nothing, and its blocks run here. So each block has met what it would have met in order.
class Helpers {
 public:
  /// Runs one block. @return whether it came to its end
  using Run = bool (*)(std::uint64_t block);
  /// @param blocks of the launch
  Helpers(std::uint64_t blocks, Run run);
  Helpers(const Helpers&) = delete;
  ~Helpers();

  /// The next block that is to run here, from `block` on: what helpers have done is added and left out.
  std::uint64_t next(std::uint64_t block);
  /// Starts helpers where the launch takes long. @param block that is to run next, or has begun: what it has done
  /// counts as done here since helpers were started
  void consider(std::uint64_t block, bool begun);
  /// From now on all blocks run here.
  void dismiss();

 private:
  void start(std::uint64_t block, unsigned count);

  std::uint64_t blocks_;
  Run run_;
  bool may_start_;
  std::int64_t began_ = 0;  ///< the launch, in nanoseconds
  std::vector<std::unique_ptr<Helper>> helpers_;
};

/// Blocks that helpers have run so far.
std::uint64_t helped_blocks();

/// In a helper: ends it, so that its blocks run where they otherwise would. Elsewhere nothing.
void leave_to_others();
/// The same before memory is allocated or released. Elsewhere: ends the helpers of the running launch, since what they
/// hand over goes by the allocations that there were.
void change_allocations();

}  // namespace simt
