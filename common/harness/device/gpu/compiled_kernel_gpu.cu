/// @file
/// compiled_kernel.hpp over NVRTC, which makes the machine code, and the CUDA driver, which loads it. What comes out is
/// a kernel like any other to the CUDA runtime.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <iterator>
#include <memory>
#include <string>

#include "common/harness/device/device.hpp"
#include "common/harness/device/gpu/nvrtc_module.hpp"
#include "common/harness/device/module.hpp"
#include "common/kernel/compiled_kernel.hpp"

namespace convladder {
namespace {

const Module& module() {
  static const Module loaded = load_module({kNvrtcModuleFile, kNvrtcModuleFunction, "NVRTC", "libnvrtc.so",
                                            "install it with the CUDA Toolkit, or by pip install nvidia-cuda-nvrtc"});
  return loaded;
}

NvrtcResult compile_source(const char* source, const char* kernel) {
  NvrtcResult result;
  reinterpret_cast<NvrtcModuleFunction*>(module().function)(source, kernel, device_limits().compute_capability, result);
  return result;
}

/// A function of the driver, which a GPU program has loaded by now.
template <class Signature>
Signature* driver_function(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const function = driver ? dlsym(driver, name) : nullptr;
  if (!function)
    throw DeviceError(std::string("the NVIDIA driver has no ") + name + ": it is older than CUDA 12; update it");
  return reinterpret_cast<Signature*>(function);
}

void check_driver(CUresult status, const char* what) {
  if (status == CUDA_SUCCESS) return;
  const char* text = nullptr;
  driver_function<decltype(cuGetErrorString)>("cuGetErrorString")(status, &text);
  throw DeviceError(std::string(what) + " failed: " + (text ? text : "unknown error"));
}

}  // namespace

/// A library of one kernel in the GPU's memory, shared by its users.
struct CompiledKernel::Loaded {
  std::string source, name;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  int users = 0;

  Loaded() = default;
  Loaded(const char* text, const char* its_name) : Loaded() {  // so that a failure below runs the destructor
    source = text;
    name = its_name;
    const NvrtcResult result = compile_source(text, its_name);
    if (!result.log.empty()) throw DeviceError("NVRTC cannot compile " + name + ": " + result.log);
    check_driver(driver_function<decltype(cuLibraryLoadData)>("cuLibraryLoadData")(
                     &library, result.cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                 "loading a compiled kernel");
    check_driver(
        driver_function<decltype(cuLibraryGetKernel)>("cuLibraryGetKernel")(&kernel, library, result.symbol.c_str()),
        "finding a compiled kernel");
  }
  ~Loaded() {
    if (library) driver_function<decltype(cuLibraryUnload)>("cuLibraryUnload")(library);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  /// The kernel as the runtime takes it.
  const void* function() const { return reinterpret_cast<const void*>(kernel); }

  /// The latest ones that were compiled: the copies of a stage share one, and so do the workloads of a bench, where the
  /// source does not depend on them.
  static std::deque<Loaded*>& latest() {
    static std::deque<Loaded*> kept;
    return kept;
  }
  static Loaded* acquire(const char* text, const char* name) {
    constexpr std::size_t kMost = 16;
    std::deque<Loaded*>& kept = latest();
    const auto same = [&](const Loaded* loaded) { return loaded->source == text && loaded->name == name; };
    auto found = std::find_if(kept.begin(), kept.end(), same);
    if (found == kept.end()) {
      std::unique_ptr<Loaded> fresh = std::make_unique<Loaded>(text, name);
      if (kept.size() == kMost) {
        release(kept.front());
        kept.pop_front();
      }
      fresh->users = 1;  // this function
      kept.push_back(fresh.release());
      found = std::prev(kept.end());
    }
    ++(*found)->users;
    return *found;
  }
  static void release(Loaded* loaded) {
    if (--loaded->users == 0) delete loaded;
  }
};

CompiledKernel::~CompiledKernel() {
  if (loaded_) Loaded::release(loaded_);
}

const char* compiling_unavailable() {
  static const std::string reason = [] {
    if (!module().unavailable.empty()) return module().unavailable;
    const DeviceInfo device = device_info();
    if (!compile_source("", nullptr).unsupported) return std::string();
    return "NVRTC does not know " + device.name + " (sm_" + std::to_string(device.compute_capability) +
           "); install a CUDA Toolkit that does, and build again";
  }();
  return reason.c_str();
}

void CompiledKernel::compile(const char* source, const char* name) {
  if (*compiling_unavailable()) {
    static const bool noted =
        std::fprintf(stderr, "note: %s; kernels run with their numbers as variables, much slower\n",
                     compiling_unavailable()) > 0;
    static_cast<void>(noted);
    return;
  }
  Loaded* const fresh = Loaded::acquire(source, name);
  if (loaded_) Loaded::release(loaded_);
  loaded_ = fresh;
}

void CompiledKernel::upload_constant(const char* symbol, const float* source, std::size_t count, Stream stream) const {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  check_driver(
      driver_function<decltype(cuLibraryGetGlobal)>("cuLibraryGetGlobal")(&address, &bytes, loaded_->library, symbol),
      "finding constant memory");
  if (bytes < count * sizeof(float)) throw DeviceError(std::string(symbol) + " is too small for what is copied to it");
  check_cuda(cudaMemcpyAsync(reinterpret_cast<void*>(address), source, count * sizeof(float), cudaMemcpyDeviceToDevice,
                             stream),
             "upload to constant memory");
}

void CompiledKernel::start(dim3 grid, dim3 block, std::size_t shared_bytes, Stream stream, void** arguments) const {
  if (shared_bytes > 48 * 1024) allow_shared_bytes(loaded_->function(), shared_bytes);
  check_cuda(cudaLaunchKernel(loaded_->function(), grid, block, arguments, shared_bytes, stream), "starting a kernel");
  finish_launch(loaded_->function(), block, shared_bytes);
}

}  // namespace convladder
