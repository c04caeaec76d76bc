/// @file
/// Launches of the kernels in cores.cu. Pointers are global memory of the simulator.
#pragma once

namespace convladder {

constexpr int kBlocks = 13;

enum class BlocksDo {
  nothing_else,
  read_neighbour,   ///< what another block has written, without order
  write_neighbour,  ///< what another block writes too
  leave_bounds,     ///< one thread does
  share_words,      ///< each writes a byte of its own
  add,              ///< atomically, to one float
  add_late,         ///< the same, and only blocks from the eighth on
  sum_by_last,      ///< the last to come adds up what all have written
  wait_for_next,    ///< each waits for the one behind it
  wait_for_first,   ///< the last does
  allocate,         ///< the third does
  sum_of_pairs,     ///< of the last six blocks each second adds what the one before it has written
};
/// Blocks of 64 threads, each with numbers of its own and a sum over them.
/// @param input 64 * kBlocks + 32 floats  @param output 64 * (kBlocks + 1)  @param meeting kBlocks words, zeros
/// @param allocate what a thread calls that allocates
void launch_blocks(const float* input, float* output, unsigned* meeting, BlocksDo what, void (*allocate)());

}  // namespace convladder
