#include "common/simt/warp.hpp"

namespace simt {

void become(unsigned lane) {
  machine.thread_number = machine.thread_number / kWarp * kWarp + lane;
  machine.thread = &machine.threads[machine.thread_number];
  machine.trace = &traces[lane];
}

void check_convergence(unsigned mask, Pc pc) {
  if (mask == ~0u) return;
  become(static_cast<unsigned>(__builtin_ctz(mask)));
  fail(FaultKind::divergent_collective, pc, "a matrix function needs all 32 lanes of the warp; some have ended");
}

void leave_request(const WarpAccess& access, Space space, unsigned bytes,
                   const std::array<std::uintptr_t, kWarp>& addresses) {
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    become(lane);
    const std::uintptr_t address = addresses[lane];
    record(address, bytes, access.pc, machine.thread->stack_top - access.depth, address ? access.kind : Kind::step,
           space);
    machine.measurement.thread_accesses += address != 0;
  }
}

}  // namespace simt
