/// @file
/// The functions of mbarriers that cuda::barrier is built of, over the simulator's.
#pragma once
#include "common/cuda/include/cuda/barrier"

/// @cond
using __mbarrier_t = std::uint64_t;
using __mbarrier_token_t = std::uint64_t;
__forceinline__ constexpr unsigned __mbarrier_maximum_count() { return (1u << 20) - 1; }
__forceinline__ void __mbarrier_init(__mbarrier_t* barrier, unsigned count) { simt::mbarrier_init(barrier, count); }
__forceinline__ void __mbarrier_inval(__mbarrier_t*) {}
__forceinline__ __mbarrier_token_t __mbarrier_arrive(__mbarrier_t* barrier) { return simt_ptx::arrive(barrier, 1); }
__forceinline__ __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t* barrier) {
  const __mbarrier_token_t token = simt::mbarrier_parity(barrier);
  simt::mbarrier_arrive_drop(barrier, 1);
  return token;
}
// They wait until the phase is over.
__forceinline__ bool __mbarrier_test_wait(__mbarrier_t* barrier, __mbarrier_token_t token) {
  simt::mbarrier_wait(barrier, static_cast<unsigned>(token));
  return true;
}
__forceinline__ bool __mbarrier_test_wait_parity(__mbarrier_t* barrier, bool parity) {
  simt::mbarrier_wait(barrier, parity);
  return true;
}
__forceinline__ bool __mbarrier_try_wait(__mbarrier_t* barrier, __mbarrier_token_t token, unsigned = 0) {
  return __mbarrier_test_wait(barrier, token);
}
__forceinline__ bool __mbarrier_try_wait_parity(__mbarrier_t* barrier, bool parity, unsigned = 0) {
  return __mbarrier_test_wait_parity(barrier, parity);
}
/// @endcond
