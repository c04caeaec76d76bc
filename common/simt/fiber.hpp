/// @file
/// Switching between the threads of a block: Boost.Context, or ucontext where that library is missing (its switch makes
/// a system call, so barriers and shuffles cost more; every number stays the same).
#pragma once
#include <cstddef>

#if defined(CONVLADDER_BOOST_CONTEXT)
#include <boost/context/detail/fcontext.hpp>
#else
#include <ucontext.h>
#endif

namespace simt {

/// Where a fiber, or the scheduler, goes on.
struct Context {
#if defined(CONVLADDER_BOOST_CONTEXT)
  boost::context::detail::fcontext_t at;
#else
  ucontext_t at;
#endif
};

/// What every fiber runs; it never returns. In scheduler.cpp.
void run_fiber();

#if defined(CONVLADDER_BOOST_CONTEXT)

/// Notes where the side that has just jumped here goes on.
inline void arrive(boost::context::detail::transfer_t from) { static_cast<Context*>(from.data)->at = from.fctx; }

inline void enter_fiber(boost::context::detail::transfer_t from) {
  arrive(from);
  run_fiber();
}

/// @param stack_top one past the stack's highest byte
inline void make_fiber(Context& fiber, void* stack_top, std::size_t stack_bytes) {
  fiber.at = boost::context::detail::make_fcontext(stack_top, stack_bytes, enter_fiber);
}

/// Goes on at `to`; returns when something switches back to `from`.
inline void switch_context(Context& from, const Context& to) {
  arrive(boost::context::detail::jump_fcontext(to.at, &from));
}

#else

inline void make_fiber(Context& fiber, void* stack_top, std::size_t stack_bytes) {
  getcontext(&fiber.at);
  fiber.at.uc_stack.ss_sp = static_cast<char*>(stack_top) - stack_bytes;
  fiber.at.uc_stack.ss_size = stack_bytes;
  fiber.at.uc_link = nullptr;
  makecontext(&fiber.at, run_fiber, 0);
}

inline void switch_context(Context& from, const Context& to) { swapcontext(&from.at, &to.at); }

#endif

}  // namespace simt
