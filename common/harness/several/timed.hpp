/// @file
/// Times of work that all ranks do together.
#pragma once
#include <functional>
#include <vector>

#include "common/harness/several/ranks.hpp"
#include "common/stage/stage.hpp"

namespace convladder {

/// Work that is put on a stream.
using Work = std::function<void(Stream)>;

/// Microseconds of one launch on the slowest rank: the median over samples that all ranks begin together, each a
/// replay of one CUDA graph, in which kernels have the priorities of their streams. A median of twice the least sample
/// or more was disturbed: as many samples are taken again, and if that does not mend it, a note tells. After 8 s of
/// samples no more than three are taken.
/// @param copies the launch, on as many copies of its tensors, by turns
/// @param after what to do after each sample, if anything
double time_on_all(const std::vector<Work>& copies, int samples, Ranks& ranks, const std::function<void()>& after = {});

/// Fills memory with NaN, of floats and of halves.
void fill_with_nan(void* to, std::int64_t bytes, Stream stream);

/// How many copies of buffers exceed L2, 16 at most; as many on each rank. @param bytes of this rank's buffers
std::size_t copies_past_l2(std::int64_t bytes, Ranks& ranks);

/// Microseconds of an exchange both ways between neighbours of a ring, alone.
double time_exchange(std::int64_t bytes, Ranks& ranks, int samples);

}  // namespace convladder
