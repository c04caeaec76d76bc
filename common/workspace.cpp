#include "common/workspace.hpp"

#include "common/device.hpp"

namespace convladder {

Workspace::~Workspace() { delete buffer_; }

void Workspace::allocate(std::int64_t count, const char* name) {
  delete buffer_;
  buffer_ = nullptr;
  buffer_ = new DeviceBuffer(static_cast<std::size_t>(count) * sizeof(float), name);
  buffer_->poison();
}

float* Workspace::floats() const { return buffer_ ? buffer_->floats() : nullptr; }

int* Workspace::ints() const { return reinterpret_cast<int*>(floats()); }

std::int64_t Workspace::bytes() const { return buffer_ ? static_cast<std::int64_t>(buffer_->bytes()) : 0; }

bool Workspace::intact() const { return !buffer_ || buffer_->guards_intact(); }

}  // namespace convladder
