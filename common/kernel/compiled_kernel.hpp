/// @file
/// A kernel that is compiled when the program runs, by NVRTC, for the GPU present: so that the numbers of a problem, or
/// of a configuration, are constants to the compiler. The simulator compiles nothing.
#pragma once
#include <cstddef>

#include "common/kernel/kernel.hpp"

namespace convladder {

/// One kernel, shared by all that ask for the same source. A source may include every .cuh of the chapters and the
/// headers of common/kernel, by the paths that the project uses, and CUDA's own. Constant memory is shared, too, as
/// that of a kernel file is: the last upload holds.
class CompiledKernel {
 public:
  /// Empty.
  CompiledKernel() = default;
  ~CompiledKernel();
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;

  /// Compiles it, unless the same source is there already, and loads it. Leaves it empty where nothing can be compiled:
  /// in the simulator, and on a GPU without NVRTC, which is noted once on stderr.
  /// @param name of the kernel, as an expression: "convladder::multiply<16>"  @throws DeviceError with the compiler's
  /// words
  void compile(const char* source, const char* name);
  /// Whether there is one.
  bool compiled() const { return loaded_ != nullptr; }

  /// Copies `count` floats from device memory into a `__constant__` array of the source, which is extern "C".
  void upload_constant(const char* symbol, const float* source, std::size_t count, Stream stream) const;

  /// A launch, as launch() makes it.
  struct Launch {
    const CompiledKernel& kernel;
    dim3 grid, block;
    std::size_t shared_bytes;
    Stream stream;

    /// The arguments' types must be the parameters': nothing converts them.
    template <class... Arguments>
    void operator()(Arguments... arguments) const {
      void* addresses[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
      kernel.start(grid, block, shared_bytes, stream, addresses);
    }
  };
  /// `kernel.launch(grid, block, shared_bytes, stream)(arguments...)`
  Launch launch(dim3 grid, dim3 block, std::size_t shared_bytes, Stream stream) const {
    return {*this, grid, block, shared_bytes, stream};
  }

 private:
  struct Loaded;
  void start(dim3 grid, dim3 block, std::size_t shared_bytes, Stream stream, void** arguments) const;
  Loaded* loaded_ = nullptr;  // not a smart pointer: kernel files include no standard containers
};

/// Why compile() leaves kernels empty here; "" where it does not.
const char* compiling_unavailable();

}  // namespace convladder
