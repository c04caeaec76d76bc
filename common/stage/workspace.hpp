/// @file
/// Device memory that a stage takes in prepare(), for what it keeps between its kernels.
#pragma once
#include <cstdint>

namespace convladder {

class DeviceBuffer;

/// Elements in device memory, freed with the stage.
class Workspace {
 public:
  /// Empty.
  Workspace() = default;
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Takes memory for `count` floats, in place of what it had. Their contents are undefined: reading them before they
  /// are written is a fault in the simulator, and reads NaN on a GPU.
  /// @param name for fault messages; must outlive the workspace  @throws MachineError if the memory is not there
  void allocate(std::int64_t count, const char* name);
  /// The same for elements of another type: allocate<half>(count, "tiles").
  template <class T>
  void allocate(std::int64_t count, const char* name) {
    allocate_bytes(count * static_cast<std::int64_t>(sizeof(T)), name);
  }

  float* floats() const;  ///< the first; null if empty
  int* ints() const;      ///< the same memory, for 32-bit integers
  /// The same memory, for elements of any type.
  template <class T>
  T* as() const {
    return static_cast<T*>(memory());
  }
  std::int64_t bytes() const;  ///< of all
  bool intact() const;         ///< whether nothing has written just outside; always true in the simulator
 private:
  void allocate_bytes(std::int64_t bytes, const char* name);
  void* memory() const;

  DeviceBuffer* buffer_ = nullptr;  // not a smart pointer: kernel files include no standard containers
};

}  // namespace convladder
