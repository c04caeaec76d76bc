// The program's own threads. Kernels run on the thread that began the program, since its thread-local variables are
// their shared memory; and what the program's host code does is watched. So a thread that the program starts runs to
// its end at once, where it is started, and OpenMP has one thread. tools/lab/sim.py redirects the names here.

#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

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

int simt_omp_get_num_procs() { return 1; }
int simt_omp_get_max_threads() { return 1; }
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
