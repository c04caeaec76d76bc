/// @file
/// What the matrix functions of a warp share (wmma.cpp, mma.cpp, wgmma.cpp). They are collectives: their last part runs
/// once, for all 32 lanes.
#pragma once
#include <array>

#include "common/simt/machine.hpp"

namespace simt {

/// Goes on as this lane of the warp that runs.
void become(unsigned lane);

/// Fails unless all lanes are here.
void check_convergence(unsigned mask, Pc pc);

/// An access of the whole warp, as the kernel made it.
struct WarpAccess {
  Kind kind;  ///< load or store
  Pc pc;
  std::uintptr_t depth;  ///< of the stack, in bytes
};

/// Leaves one request in the lanes' traces. @param addresses of each lane, 0 where it takes no part
void leave_request(const WarpAccess& access, Space space, unsigned bytes,
                   const std::array<std::uintptr_t, kWarp>& addresses);

/// The depth of the running thread's stack. @param frame of the function that the kernel called
inline std::uintptr_t depth_of(const void* frame) {
  return machine.thread->stack_top - reinterpret_cast<std::uintptr_t>(frame);
}

}  // namespace simt
