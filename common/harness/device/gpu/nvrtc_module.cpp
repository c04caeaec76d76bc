/// @file
/// The module `convladder_nvrtc`: every call of NVRTC. Programs load it at run time, so they run without NVRTC.
#include "common/harness/device/gpu/nvrtc_module.hpp"

#include <nvrtc.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "common/harness/device/gpu/embedded_files.hpp"

namespace convladder {
namespace {

/// NVRTC has no headers of the C++ library. This is as much of <cstdint> as kernels need.
constexpr const char* kCstdint = R"(#pragma once
namespace std {
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
}
)";

/// A program of NVRTC with an owner.
struct Program {
  nvrtcProgram handle = nullptr;
  ~Program() {
    if (handle) nvrtcDestroyProgram(&handle);
  }
};

std::string log_of(nvrtcProgram program) {
  std::size_t size = 0;
  if (nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size < 2) return "NVRTC says no more";
  std::string log(size, '\0');
  nvrtcGetProgramLog(program, log.data());
  log.resize(size - 1);  // its terminating zero
  return log;
}

bool knows(int capability) {
  int count = 0;
  if (nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS) return false;
  std::vector<int> known(static_cast<std::size_t>(count));
  return nvrtcGetSupportedArchs(known.data()) == NVRTC_SUCCESS &&
         std::find(known.begin(), known.end(), capability) != known.end();
}

/// @return "" or what failed
std::string compile(const char* source, const char* kernel, int capability, NvrtcResult& result) {
  std::vector<const char*> texts{kCstdint}, names{"cstdint"};
  for (const EmbeddedFile& file : embedded_files()) {
    texts.push_back(file.text);
    names.push_back(file.path);
  }
  Program program;
  if (const nvrtcResult status = nvrtcCreateProgram(&program.handle, source, "compiled_at_run_time.cu",
                                                    static_cast<int>(texts.size()), texts.data(), names.data());
      status != NVRTC_SUCCESS)
    return nvrtcGetErrorString(status);
  if (const nvrtcResult status = nvrtcAddNameExpression(program.handle, kernel); status != NVRTC_SUCCESS)
    return nvrtcGetErrorString(status);
  const std::string architecture = "--gpu-architecture=sm_" + std::to_string(capability);
  // Unmarked functions in the headers are the host's; nothing calls them.
  const char* const options[] = {architecture.c_str(),
                                 "-std=c++17",
                                 "-default-device",
                                 "-lineinfo",
                                 "-I" CONVLADDER_CUDA_INCLUDE,
                                 "-I" CONVLADDER_CUDA_INCLUDE "/cccl"};
  if (nvrtcCompileProgram(program.handle, static_cast<int>(std::size(options)), options) != NVRTC_SUCCESS)
    return log_of(program.handle);
  const char* symbol = nullptr;
  if (const nvrtcResult status = nvrtcGetLoweredName(program.handle, kernel, &symbol); status != NVRTC_SUCCESS)
    return nvrtcGetErrorString(status);
  result.symbol = symbol;
  std::size_t size = 0;
  if (nvrtcGetCUBINSize(program.handle, &size) != NVRTC_SUCCESS || size == 0) return "NVRTC made no machine code";
  result.cubin.resize(size);
  nvrtcGetCUBIN(program.handle, result.cubin.data());
  return "";
}

}  // namespace
}  // namespace convladder

extern "C" void convladder_nvrtc_compile(const char* source, const char* kernel, int capability,
                                         convladder::NvrtcResult& result) {
  result.unsupported = !convladder::knows(capability);
  if (result.unsupported)
    result.log = "NVRTC does not know this GPU";
  else if (kernel)
    result.log = convladder::compile(source, kernel, capability, result);
}
