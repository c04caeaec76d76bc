#include "common/harness/device/host.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace convladder {
namespace {

int threads() {
#ifdef _OPENMP
  return std::min(omp_get_max_threads(), omp_get_thread_limit());
#else
  return 1;
#endif
}

/// "AMD EPYC 9654 96-Core Processor", or the architecture where the system tells no model.
std::string processor() {
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname names{};
  uname(&names);
  return names.machine;
}

}  // namespace

std::int64_t host_memory_bytes() { return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE); }

DeviceInfo host_info() {
  static const std::string model = processor();
  DeviceInfo info;
  info.name = fmt::format("{}, {} thread{}", model, threads(), threads() == 1 ? "" : "s");
  info.memory_bytes = info.free_memory_bytes = host_memory_bytes();
  return info;
}

}  // namespace convladder
