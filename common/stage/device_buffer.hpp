/// @file
/// Memory of the device under a program. Two implementations, as of device.hpp: over the simulator and over CUDA.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

namespace convladder {

/// The bit pattern of poisoned floats: a quiet NaN with a payload. Each half of it is a NaN of fp16, too.
inline constexpr std::uint32_t kPoison = 0x7fed7fed;
/// The bit pattern of poisoned halves.
inline constexpr std::uint16_t kHalfPoison = kPoison & 0xffff;

/// Device memory with an owner. On a GPU, guard bands surround it; in the simulator every access is checked instead.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// @param bytes may be 0; contents are undefined
  /// @param name for fault messages ("input"); must outlive the buffer
  /// @throws MachineError if the memory is not there
  DeviceBuffer(std::size_t bytes, const char* name);
  ~DeviceBuffer();
  /// Takes the memory over; `other` is left empty.
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), name_(other.name_) {}
  /// The same; its own goes to `other`, which frees it.
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(name_, other.name_);
    return *this;
  }

  void* data() const { return data_; }                          ///< device address; null if empty
  std::size_t bytes() const { return bytes_; }                  ///< without the guard bands
  float* floats() const { return static_cast<float*>(data_); }  ///< data() as floats

  void upload(const void* source);         ///< bytes() bytes from the host
  void download(void* destination) const;  ///< bytes() bytes to the host
  DeviceBuffer copy() const;               ///< another one, with the same contents
  /// Fills with the word (kPoison is a quiet NaN that no arithmetic makes) and rewrites the guard bands; in the
  /// simulator, reads of it before a write are faults.
  void poison(std::uint32_t word = kPoison);
  /// Whether nothing has written the guard bands since poison(). Always true in the simulator.
  bool guards_intact() const;

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  const char* name_ = "";
};

}  // namespace convladder
