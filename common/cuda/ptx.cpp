#include "common/cuda/ptx.hpp"

#include <chrono>
#include <string>

#include "common/simt/machine.hpp"

namespace simt {

void refuse_registers(int line) {
  fail(FaultKind::invalid_operand, relative_pc(__builtin_return_address(0)),
       "line " + std::to_string(line) + ": the registers of a wgmma must be the elements of one array, in order");
}

}  // namespace simt

namespace simt_ptx {

unsigned long long clock() {
  simt::machine.has_traces = true;
  return static_cast<unsigned long long>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void fence_in_kernel(simt::Scope scope) {
  if (simt::machine.watching) simt::fence(scope);
}

}  // namespace simt_ptx
