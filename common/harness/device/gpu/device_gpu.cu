/// @file
/// device.hpp and the launch functions of kernel.hpp over the CUDA runtime.
#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "common/harness/device/barriers.hpp"
#include "common/harness/device/block_trace.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/device/gpu/device_gpu.hpp"
#include "common/harness/device/nvml.hpp"
#include "common/kernel/kernel.hpp"
#include "common/stage/communicator.hpp"

namespace convladder {
namespace {

/// Bytes of each guard band; a multiple of cudaMalloc's alignment, so that data() keeps it.
constexpr std::size_t kGuardBytes = 4096;
/// Every byte of a guard band. As floats the band is NaN, so a kernel that reads it spoils its result; arithmetic makes
/// other NaNs, so a kernel that writes it changes it.
constexpr int kGuardByte = 0xFF;

__global__ void fill_words(std::uint32_t* words, std::size_t count, std::uint32_t value) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) words[i] = value;
}

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// "convladder::(anonymous namespace)::tiled<5>(float const*, int)" to "tiled<5>".
std::string bare_name(std::string name) {
  for (std::string_view prefix : {std::string_view("(anonymous namespace)::"), std::string_view("convladder::")}) {
    for (std::size_t at; (at = name.find(prefix)) != std::string::npos;) name.erase(at, prefix.size());
  }
  std::size_t begin = 0;
  int depth = 0;  // of template arguments
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth > 0) continue;
    if (name[i] == '(') return name.substr(begin, i - begin);
    if (name[i] == ' ' || name[i] == ':') begin = i + 1;
  }
  return name.substr(begin);
}

std::string kernel_name(const void* kernel) {
  const char* mangled = nullptr;
  if (cudaFuncGetName(&mangled, kernel) != cudaSuccess) {
    cudaGetLastError();
    return "unnamed kernel";
  }
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return bare_name(text ? text.get() : mangled);
}

/// After these, every CUDA call of the process fails.
bool loses_context(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

[[noreturn]] void throw_device_error(cudaError_t status, const std::string& what) {
  cudaGetLastError();  // so that the next call does not report it again
  std::string message = what + ": " + cudaGetErrorString(status);
  if (loses_context(status)) message += "; the GPU context is lost, so nothing more can run in this process";
  throw DeviceError(message);
}

/// A kernel that a launch used, and how.
struct NotedKernel {
  const void* kernel;
  int threads;
  std::size_t shared_bytes;
  bool operator==(const NotedKernel& other) const {
    return kernel == other.kernel && threads == other.threads && shared_bytes == other.shared_bytes;
  }
};

/// The first GPU that CUDA shows, and the stream on it.
struct Context {
  cudaStream_t stream = nullptr;
  bool observing = false;
  std::vector<NotedKernel> noted;  // while observing, each once

  Context() {
    int count = 0;
    refuse_without_gpu(cudaGetDeviceCount(&count));
    cudaFuncAttributes attributes{};
    refuse_without_code(cudaFuncGetAttributes(&attributes, fill_words));
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  }
  ~Context() { cudaStreamDestroy(stream); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  static void refuse_without_gpu(cudaError_t status) {
    if (status == cudaSuccess) return;
    cudaGetLastError();
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    const std::string instead = ", or use the simulator (--backend sim)";
    if (driver == 0) throw MachineError("no usable GPU: no NVIDIA driver is loaded; install one" + instead);
    if (status == cudaErrorInsufficientDriver) {
      throw MachineError("no usable GPU: the NVIDIA driver supports CUDA " + version_text(driver) +
                         ", this program needs " + version_text(runtime) + "; update the driver" + instead);
    }
    if (status == cudaErrorNoDevice) {
      throw MachineError("no usable GPU: the driver shows none; check nvidia-smi and CUDA_VISIBLE_DEVICES" + instead);
    }
    throw MachineError(std::string("no usable GPU: ") + cudaGetErrorString(status) + "; check nvidia-smi" + instead);
  }

  static void refuse_without_code(cudaError_t status) {
    if (status == cudaSuccess) return;
    cudaGetLastError();
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) properties = {};
    throw MachineError(std::string("no usable GPU: this program cannot run on ") + properties.name + " (sm_" +
                       std::to_string(10 * properties.major + properties.minor) + "): " + cudaGetErrorString(status) +
                       "; rebuild it on this machine, or use the simulator (--backend sim)");
  }
};

Context& context() {
  static Context instance;
  return instance;
}

int device_attribute(cudaDeviceAttr attribute) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, attribute, 0), "reading the GPU's attributes");
  return value;
}

/// What the driver alone tells of the first GPU.
const Nvml& management() {
  static const Nvml nvml = [] {
    char bus_id[32] = {};
    if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, 0) != cudaSuccess) cudaGetLastError();
    return Nvml("libnvidia-ml.so.1", bus_id);
  }();
  return nvml;
}

KernelInfo describe(const NotedKernel& noted) {
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, noted.kernel), "reading a kernel's attributes");
  int blocks = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, noted.kernel, noted.threads, noted.shared_bytes),
             "computing a kernel's occupancy");
  const int warps = (noted.threads + 31) / 32;
  KernelInfo info;
  info.name = kernel_name(noted.kernel);
  info.registers = attributes.numRegs;
  info.spill_bytes = static_cast<std::int64_t>(attributes.localSizeBytes);
  info.shared_bytes = static_cast<std::int64_t>(attributes.sharedSizeBytes + noted.shared_bytes);
  info.occupancy = 32.0 * warps * blocks / device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  return info;
}

unsigned char* guarded_begin(void* data) { return static_cast<unsigned char*>(data) - kGuardBytes; }

void write_guards(void* data, std::size_t bytes) {
  unsigned char* const begin = guarded_begin(data);
  const cudaStream_t stream = context().stream;
  check_cuda(cudaMemsetAsync(begin, kGuardByte, kGuardBytes, stream), "writing a guard band");
  check_cuda(cudaMemsetAsync(begin + kGuardBytes + bytes, kGuardByte, kGuardBytes, stream), "writing a guard band");
  wait_for_stream("writing guard bands");
}

}  // namespace

Stream device_stream() { return context().stream; }

void wait_for_stream(const char* what) {
  const cudaError_t status = cudaStreamSynchronize(context().stream);
  if (status != cudaSuccess) throw_device_error(status, what);
}

void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw_device_error(status, std::string(what) + " failed");
}

void finish_launch(const void* kernel, dim3 block, std::size_t shared_bytes) {
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) throw_device_error(status, "kernel " + kernel_name(kernel) + " did not start");
  Context& here = context();
  if (!here.observing) return;
  const NotedKernel noted{kernel, static_cast<int>(block.x * block.y * block.z), shared_bytes};
  if (std::find(here.noted.begin(), here.noted.end(), noted) == here.noted.end()) here.noted.push_back(noted);
}

void allow_shared_bytes(const void* kernel, std::size_t shared_bytes) {
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  if (status == cudaSuccess) return;
  throw_device_error(status, "kernel " + kernel_name(kernel) + " asks for " + std::to_string(shared_bytes) +
                                 " bytes of dynamic shared memory a block, and this GPU allows " +
                                 std::to_string(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)));
}

Backend backend() { return Backend::gpu; }

namespace {
/// What does not change. Read once, so that it can still be told when a kernel has lost the context.
DeviceInfo constant_facts() {
  context();
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "reading the GPU's properties");
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "reading the GPU's free memory");
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver), "reading the driver's version");

  DeviceInfo info;
  info.name = properties.name;
  info.compute_capability = 10 * properties.major + properties.minor;
  info.multiprocessors = properties.multiProcessorCount;
  info.memory_bytes = static_cast<std::int64_t>(total);
  info.free_memory_bytes = static_cast<std::int64_t>(free);
  info.shared_bytes_per_block = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  info.l2_bytes = properties.l2CacheSize;
  info.driver = version_text(driver);
  info.toolkit = version_text(CUDART_VERSION);
  return info;
}

const DeviceInfo& constants() {
  static const DeviceInfo info = constant_facts();
  return info;
}
}  // namespace

DeviceInfo device_info() {
  DeviceInfo info = constants();
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) info.free_memory_bytes = static_cast<std::int64_t>(free);
  info.sm_clock_mhz = management().sm_clock_mhz();
  info.memory_clock_mhz = management().memory_clock_mhz();
  return info;
}

std::optional<GpuMoment> gpu_now() { return management().now(); }

int most_local_ranks() { return 1; }
LocalRanks* make_local_ranks(int) { throw MachineError("several GPUs have a process each: see docs/several.md"); }

DeviceLimits device_limits() {
  const DeviceInfo& facts = constants();
  return {facts.compute_capability, facts.shared_bytes_per_block, facts.multiprocessors, facts.l2_bytes};
}

void stand_for(const Gpu*) { throw std::logic_error("a GPU stands for itself"); }

// --- DeviceBuffer: guard band | bytes() bytes | guard band ---

DeviceBuffer::DeviceBuffer(std::size_t bytes, const char* name) : bytes_(bytes), name_(name) {
  context();
  void* begin = nullptr;
  const cudaError_t status = cudaMalloc(&begin, bytes + 2 * kGuardBytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "reading the GPU's free memory");
    throw MachineError("not enough GPU memory: " + std::string(name) + " needs " + mebibytes(bytes + (1 << 20) - 1) +
                       ", " + mebibytes(free) + " are free; use a smaller problem");
  }
  if (status != cudaSuccess) throw_device_error(status, "allocating " + std::string(name) + " failed");
  data_ = static_cast<unsigned char*>(begin) + kGuardBytes;
  try {
    write_guards(data_, bytes_);
  } catch (...) {
    cudaFree(begin);
    throw;
  }
}

DeviceBuffer::~DeviceBuffer() {
  if (data_) cudaFree(guarded_begin(data_));
}

void DeviceBuffer::upload(const void* source) {
  if (bytes_ == 0) return;
  const std::string what = "upload of " + std::string(name_);
  check_cuda(cudaMemcpyAsync(data_, source, bytes_, cudaMemcpyHostToDevice, context().stream), what.c_str());
  wait_for_stream(what.c_str());
}

void DeviceBuffer::download(void* destination) const {
  if (bytes_ == 0) return;
  const std::string what = "download of " + std::string(name_);
  check_cuda(cudaMemcpyAsync(destination, data_, bytes_, cudaMemcpyDeviceToHost, context().stream), what.c_str());
  wait_for_stream(what.c_str());
}

DeviceBuffer DeviceBuffer::copy() const {
  DeviceBuffer result(bytes_, name_);
  if (bytes_ == 0) return result;
  const std::string what = "copy of " + std::string(name_);
  check_cuda(cudaMemcpyAsync(result.data_, data_, bytes_, cudaMemcpyDeviceToDevice, context().stream), what.c_str());
  wait_for_stream(what.c_str());
  return result;
}

void DeviceBuffer::poison(std::uint32_t word) {
  if (!data_) return;
  const std::size_t words = (bytes_ + 3) / 4;  // the last word may reach into the guard band, which is written after
  if (words > 0) {
    const auto blocks = static_cast<unsigned>(std::min<std::size_t>((words + 255) / 256, 4096));
    launch(fill_words, dim3(blocks), dim3(256), 0, context().stream)(static_cast<std::uint32_t*>(data_), words, word);
  }
  write_guards(data_, bytes_);
}

bool DeviceBuffer::guards_intact() const {
  if (!data_) return true;
  const cudaStream_t stream = context().stream;
  unsigned char* const begin = guarded_begin(data_);
  for (const unsigned char* band : {begin, begin + kGuardBytes + bytes_}) {
    std::array<unsigned char, kGuardBytes> host;
    check_cuda(cudaMemcpyAsync(host.data(), band, kGuardBytes, cudaMemcpyDeviceToHost, stream), "reading a guard band");
    wait_for_stream("reading a guard band");
    if (!std::all_of(host.begin(), host.end(), [](unsigned char byte) { return byte == kGuardByte; })) return false;
  }
  return true;
}

// --- Running work ---

Observation observe(const std::function<void(Stream)>& launch, bool /*want_lines*/) {
  Context& here = context();
  struct Observing {  // ends with the scope, however that ends
    Context& context;
    explicit Observing(Context& the_context) : context(the_context) {
      context.noted.clear();
      context.observing = true;
    }
    ~Observing() { context.observing = false; }
  } observing(here);

  launch(here.stream);
  std::string what = "running";
  for (const NotedKernel& noted : here.noted) {
    what += (&noted == &here.noted.front() ? " " : ", ") + kernel_name(noted.kernel);
  }
  wait_for_stream(what.c_str());

  Observation observation;
  for (const NotedKernel& noted : here.noted) observation.kernels.push_back(describe(noted));
  return observation;
}

namespace {
bool is_captured(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status), "asking whether a stream is captured");
  return status != cudaStreamCaptureStatusNone;
}
}  // namespace

void wait_for(Stream stream) { check_cuda(cudaStreamSynchronize(stream), "waiting for a stream"); }

OnOwnGpu::OnOwnGpu() {
  if (cudaGetDevice(&callers_) != cudaSuccess) callers_ = 0;  // what follows tells why
  if (callers_ != 0) check_cuda(cudaSetDevice(0), "choosing the first GPU");
}

OnOwnGpu::~OnOwnGpu() {
  if (callers_ != 0) cudaSetDevice(callers_);
}

StreamOrder::~StreamOrder() {
  if (event_) cudaEventDestroy(static_cast<cudaEvent_t>(event_));
}

void StreamOrder::enter(Stream stream) {
  if (!event_ || stream == last_ || is_captured(stream)) return;
  check_cuda(cudaStreamWaitEvent(stream, static_cast<cudaEvent_t>(event_)), "waiting for another stream");
}

void StreamOrder::leave(Stream stream) {
  if (is_captured(stream)) return;
  if (!event_) {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
    event_ = event;
  }
  check_cuda(cudaEventRecord(static_cast<cudaEvent_t>(event_), stream), "recording an event");
  last_ = stream;
}

std::vector<Barrier> barriers_of(const std::function<void()>&) {
  throw std::logic_error("only the simulator sees barriers");
}

void without_barrier(const Barrier&, const std::function<void()>&) {
  throw std::logic_error("only the simulator takes barriers away");
}

std::vector<BlockTrace> traces_of(std::array<unsigned, 3>, std::size_t, const std::function<void()>&) {
  throw std::logic_error("only the simulator sees what a block does");
}

std::vector<TensorLoads> loads_of(const std::function<void()>&) {
  throw std::logic_error("only the simulator counts the loads of each sector");
}

double run_and_wait(const std::function<void(Stream)>& work) {
  const Stream stream = device_stream();
  wait_for_stream("earlier work");
  const auto start = std::chrono::steady_clock::now();
  work(stream);
  wait_for_stream("running");
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace convladder
