// The program's own threads. Kernels run on the thread that began the program, since its thread-local variables are
// their shared memory; and what the program's host code does is watched. So a thread that the program starts runs to
// its end at once, where it is started, and OpenMP has one thread. So a wait that has no time limit, and has to wait,
// would never end: it ends the program. tools/lab/sim.py redirects the names here.

#include <execinfo.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/simt/symbols.hpp"

namespace {

struct ThreadExit {
  void* result;
};
int depth = 0;  // of threads that are being run, each started by the one before
pthread_t last_thread = 0;

/// Of the threads that have not been joined.
std::map<pthread_t, void*>& results() {
  static auto& instance = *new std::map<pthread_t, void*>;  // outlives every destructor of the program
  return instance;
}

/// The identity that std::thread keeps, its only member.
pthread_t& identity(std::thread* thread) {
  static_assert(sizeof(std::thread) == sizeof(pthread_t), "libstdc++'s");
  return *reinterpret_cast<pthread_t*>(thread);
}

/// How many threads meet at each.
std::map<pthread_barrier_t*, unsigned>& barrier_counts() {
  static auto& instance = *new std::map<pthread_barrier_t*, unsigned>;
  return instance;
}

/// The innermost line on the stack that is in no header of the system.
simt::SourceLine line_of_program() {
  void* addresses[64];
  const int count = backtrace(addresses, 64);
  for (int i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(addresses[i]);
    if (address < simt::program().begin || address >= simt::program().end) continue;
    const simt::Pc pc = simt::relative_pc(addresses[i]);
    const simt::SourceLine line = simt::source_lines({pc}).at(pc);
    if (line.line != 0 && !line.file.starts_with("/usr/")) return line;
  }
  return {"?", 0};
}

/// Ends the program.
[[noreturn]] void refuse_wait() {
  std::fflush(stdout);
  const simt::SourceLine line = line_of_program();
  std::fprintf(stderr,
               "./lab sim: %s:%d: the host waits here for another of its threads, and would for ever: a thread runs to "
               "its end where it is started; start what others wait for first, see docs/sim.md\n",
               line.file.c_str(), line.line);
  _exit(2);
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): they replace the library's functions
extern "C" {
int simt_pthread_create(pthread_t* thread, const pthread_attr_t*, void* (*run)(void*), void* argument) {
  const pthread_t id = *thread = ++last_thread;
  void* result = nullptr;
  ++depth;
  try {
    result = run(argument);
  } catch (const ThreadExit& exit) {
    result = exit.result;
  }
  --depth;
  results()[id] = result;
  return 0;
}

int simt_pthread_join(pthread_t thread, void** result) {
  const auto found = results().find(thread);
  if (found == results().end()) return ESRCH;
  if (result) *result = found->second;
  results().erase(found);
  return 0;
}

int simt_pthread_detach(pthread_t thread) { return results().erase(thread) ? 0 : ESRCH; }

void simt_pthread_exit(void* result) {
  if (depth == 0) std::exit(0);
  throw ThreadExit{result};
}

// std::thread's members, with the object first and a unique_ptr by its address. A pointer to a member function has an
// even address; std::async uses one.
void simt__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* thread, std::unique_ptr<std::thread::_State>* state, void (*)()) {
  identity(thread) = ++last_thread;
  const std::unique_ptr<std::thread::_State> own = std::move(*state);
  ++depth;
  try {
    own->_M_run();
  } catch (const ThreadExit&) {
    // of pthread_exit()
  }
  --depth;
}
__attribute__((aligned(16))) void simt__ZNSt6thread4joinEv(std::thread* thread) {
  if (!thread->joinable()) throw std::system_error(EINVAL, std::generic_category());
  identity(thread) = 0;
}
__attribute__((aligned(16))) void simt__ZNSt6thread6detachEv(std::thread* thread) { simt__ZNSt6thread4joinEv(thread); }

int simt_pthread_mutex_lock(pthread_mutex_t* mutex) {
  const timespec past{};
  const int error = pthread_mutex_timedlock(mutex, &past);  // which knows recursive ones and those that check
  if (error == ETIMEDOUT) refuse_wait();
  return error;
}
int simt_pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*) { refuse_wait(); }
int simt_pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes, unsigned count) {
  barrier_counts()[barrier] = count;
  return pthread_barrier_init(barrier, attributes, count);
}
int simt_pthread_barrier_wait(pthread_barrier_t* barrier) {
  if (barrier_counts()[barrier] > 1) refuse_wait();
  return pthread_barrier_wait(barrier);
}
int simt_sem_wait(sem_t* semaphore) {
  if (sem_trywait(semaphore) == 0) return 0;
  if (errno == EAGAIN) refuse_wait();
  return -1;
}
__attribute__((aligned(16))) void simt__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    std::condition_variable*, std::unique_lock<std::mutex>*) {
  refuse_wait();
}

/// C++20's waits are calls of futex.
long simt_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long words[6];
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  const int operation = static_cast<int>(words[1]) & FUTEX_CMD_MASK;
  if (number == SYS_futex && (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) && words[3] == 0 &&
      *reinterpret_cast<const int*>(words[0]) == static_cast<int>(words[2]))
    refuse_wait();
  return syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
/// Of std::future, for a promise that nobody has kept.
bool simt__ZNSt28__atomic_futex_unsigned_base19_M_futex_wait_untilEPjjbNSt6chrono8durationIlSt5ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE(
    std::__atomic_futex_unsigned_base* futex, unsigned* word, unsigned value, bool has_limit,
    std::chrono::seconds seconds, std::chrono::nanoseconds rest) {
  if (!has_limit && *word == value) refuse_wait();
  return futex->_M_futex_wait_until(word, value, has_limit, seconds, rest);
}

int simt_omp_get_num_procs() { return 1; }
int simt_omp_get_max_threads() { return 1; }
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
