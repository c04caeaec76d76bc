/// @file
/// The main function of every test program. One that needs a GPU exits with 77 where there is none, which CTest counts
/// as skipped; and it skips, and counts as skipped, the cases whose name ends in "(simulator)".
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#if defined(CONVLADDER_TEST_NEEDS_GPU)
#include <dlfcn.h>

#include <cstdio>

namespace {

/// Whether the driver is there and sees a GPU. Asked without the CUDA runtime.
bool has_gpu() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return false;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int count = 0;
  return init != nullptr && count_devices != nullptr && init(0) == 0 && count_devices(&count) == 0 && count > 0;
}

}  // namespace
#endif

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
#if defined(CONVLADDER_TEST_NEEDS_GPU)
  if (!has_gpu()) {
    std::puts("skipped: no GPU");
    return 77;
  }
  context.addFilter("test-case-exclude", "*(simulator)");
#endif
  return context.run();
}
