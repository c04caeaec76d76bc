/// @file
/// Host code of ranks, right and wrong, for the tests of several devices; the kernels are in devices.cu.
#pragma once
#include "common/stage/communicator.hpp"

/// How a rank's host code is wrong.
enum class Slip {
  none,
  no_group,        ///< each rank sends, and only then receives
  no_wait,         ///< the kernel that needs the halo does not wait for the second stream
  overwrites,      ///< the next exchange does not wait for the kernel that reads the halo
  sends_too_soon,  ///< the exchange does not wait for the kernel that writes what is sent
  out_of_graph,    ///< the second stream follows nothing that is captured
  no_end,          ///< the first stream never waits for the second one
  fewer_bytes,     ///< rank 1 receives too few
  nobody_sends,    ///< rank 1 sends nothing
  swapped,         ///< rank 0 sends its last number first: both have the same size, and nothing tells them apart
  uninitialised,   ///< sends sums that nothing has written yet
  overlaps,        ///< sends the halo in the group that receives it
  past_the_end,    ///< receives behind its memory
  peers_memory,    ///< a kernel reads the neighbour's memory
};

/// A rank's line of numbers: a halo of one, `count` own, a halo of one.
struct Line {
  float *numbers, *sums;
  int count;
};

/// Two rounds, each an exchange on the second stream while the inner sums are made, then those at both ends, and all
/// own numbers become sums. Lines are a ring.
/// @param neighbour the line of the next rank
void smooth(const Line& own, const Line& neighbour, convladder::Communicator& all, convladder::Stream stream,
            Slip slip);
