/// @file
/// The main function of every test program. One that needs a GPU exits with 77 where there is none, which CTest counts
/// as skipped; and it skips, and counts as skipped, the cases whose name ends in "(simulator)", and on a GPU of another
/// compute capability than 9.0 those whose name ends in "(sm_90)".
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#if defined(CONVLADDER_TEST_NEEDS_GPU)
#include <dlfcn.h>

#include <cstdio>

namespace {

/// The compute capability of the first GPU that the driver sees, 10 times major plus minor; 0 where there is no driver
/// or no GPU. Asked without the CUDA runtime.
int compute_capability() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 0;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  const auto attribute = reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
  int count = 0, major = 0, minor = 0;
  const bool found = init != nullptr && count_devices != nullptr && attribute != nullptr && init(0) == 0 &&
                     count_devices(&count) == 0 && count > 0 && attribute(&major, kMajor, 0) == 0 &&
                     attribute(&minor, kMinor, 0) == 0;
  return found ? 10 * major + minor : 0;
}

}  // namespace
#endif

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
#if defined(CONVLADDER_TEST_NEEDS_GPU)
  const int capability = compute_capability();
  if (capability == 0) {
    std::puts("skipped: no GPU");
    return 77;
  }
  context.addFilter("test-case-exclude", "*(simulator)");
  if (capability != 90) context.addFilter("test-case-exclude", "*(sm_90)");
#endif
  return context.run();
}
