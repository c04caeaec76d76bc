/// @file
/// Device memory that a stage takes in prepare(), for what it keeps between its kernels.
#pragma once
#include <cstdint>

namespace convladder {

class DeviceBuffer;
class Stage;

/// Elements in device memory, freed with the stage.
class Workspace {
 public:
  /// Empty. The stage counts it among its memory, and must outlive it: be a member of the stage.
  /// @param name for fault messages; must outlive the workspace
  Workspace(Stage& stage, const char* name);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Takes memory for `count` floats, and gives back what it had. Their contents are undefined: reading them before
  /// they are written is a fault in the simulator, and reads NaN on a GPU.
  /// @throws MachineError if the memory is not there
  void allocate(std::int64_t count);
  /// The same for elements of another type: allocate<half>(count).
  template <class T>
  void allocate(std::int64_t count) {
    allocate_bytes(count * static_cast<std::int64_t>(sizeof(T)));
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
  friend Stage;

  void allocate_bytes(std::int64_t bytes);
  void* memory() const;

  const char* name_;
  DeviceBuffer* buffer_ = nullptr;  // not a smart pointer: kernel files include no standard containers
  const Workspace* next_;           // of the stage's
};

}  // namespace convladder
