#include "common/harness/device/programs.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "common/harness/device/print_stderr.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = "-gpu";

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

/// The program of this pair for a backend, whether or not it exists; empty for a GPU program without the suffix, since
/// nothing then tells its partner's name.
fs::path program_for(Backend wanted) {
  const fs::path self = this_program();
  if (wanted == backend()) return self;
  std::string name = self.filename().string();
  if (wanted == Backend::gpu) return self.parent_path() / (name + std::string(kSuffix));
  if (!name.ends_with(kSuffix)) return {};
  name.resize(name.size() - kSuffix.size());
  return self.parent_path() / name;
}

bool runnable(const fs::path& program) { return access(program.c_str(), X_OK) == 0; }

[[noreturn]] void become(const fs::path& program, char** arguments) {
  std::fflush(nullptr);
  const std::string file = program.string();
  execv(file.c_str(), arguments);
  throw MachineError(fmt::format("cannot start {}: {}", file, std::strerror(errno)));
}

bool prefers_gpu() {
  if (!no_gpu_reason().empty()) return false;
  if (runnable(program_for(Backend::gpu))) return true;
  print_stderr("note: there is a GPU, but this build has no GPU side: running in the simulator\n");
  return false;
}

}  // namespace

BackendChoice parse_backend(std::string_view text) {
  if (text == "gpu") return BackendChoice::gpu;
  if (text == "sim") return BackendChoice::sim;
  return BackendChoice::automatic;
}

std::string no_gpu_reason() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed: it does not expect that
  if (!driver) return "no NVIDIA driver is installed";
  using Call = int(unsigned);
  using CountCall = int(int*);
  const auto initialise = reinterpret_cast<Call*>(dlsym(driver, "cuInit"));
  const auto count_devices = reinterpret_cast<CountCall*>(dlsym(driver, "cuDeviceGetCount"));
  if (!initialise || !count_devices) return "libcuda.so.1 is no CUDA driver";
  constexpr int kNoDevice = 100;
  const std::string none = "the NVIDIA driver shows none; check nvidia-smi and CUDA_VISIBLE_DEVICES";
  if (const int status = initialise(0); status == kNoDevice) {
    return none;
  } else if (status != 0) {
    return fmt::format("the NVIDIA driver does not start (CUDA error {}); check nvidia-smi", status);
  }
  int count = 0;
  if (count_devices(&count) != 0 || count == 0) return none;
  return "";
}

std::optional<GpuFacts> first_gpu() {
  if (!no_gpu_reason().empty()) return std::nullopt;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto device_of = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto name_of = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  const auto attribute_of = reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  if (!device_of || !name_of || !attribute_of) return std::nullopt;
  constexpr int kMultiprocessors = 16, kL2Bytes = 38, kSharedBytesPerBlockOptin = 97;  // of CUdevice_attribute
  int device = 0;
  char name[256] = {};
  GpuFacts facts;
  if (device_of(&device, 0) != 0 || name_of(name, sizeof name, device) != 0 ||
      attribute_of(&facts.multiprocessors, kMultiprocessors, device) != 0 ||
      attribute_of(&facts.l2_bytes, kL2Bytes, device) != 0 ||
      attribute_of(&facts.shared_bytes_per_block, kSharedBytesPerBlockOptin, device) != 0)
    return std::nullopt;
  facts.name = name;
  return facts;
}

fs::path gpu_program() {
  const fs::path program = program_for(Backend::gpu);
  if (runnable(program)) return program;
  throw MachineError(
      "this build has no GPU side: run ./lab build, with nvcc installed (./lab doctor tells, and can install it)");
}

void continue_on(BackendChoice choice, char** arguments) {
  const bool gpu = choice == BackendChoice::gpu || (choice == BackendChoice::automatic && prefers_gpu());
  if (gpu) {
    if (const std::string reason = no_gpu_reason(); !reason.empty()) {
      throw MachineError(fmt::format("no usable NVIDIA GPU: {}; use --backend sim", reason));
    }
    const fs::path program = gpu_program();
    if (backend() != Backend::gpu) become(program, arguments);
  } else if (backend() != Backend::sim) {
    const fs::path program = program_for(Backend::sim);
    if (!runnable(program)) throw MachineError("this build has no simulator side; run ./lab build");
    become(program, arguments);
  }
}

}  // namespace convladder
