#include "common/stage/workspace.hpp"

#include "common/stage/device_buffer.hpp"
#include "common/stage/stage.hpp"

namespace convladder {

Workspace::Workspace(Stage& stage, const char* name) : name_(name), next_(stage.workspaces_) {
  stage.workspaces_ = this;
}

Workspace::~Workspace() { delete buffer_; }

void Workspace::allocate(std::int64_t count) { allocate<float>(count); }

void Workspace::allocate_bytes(std::int64_t bytes) {
  delete buffer_;
  buffer_ = nullptr;
  buffer_ = new DeviceBuffer(static_cast<std::size_t>(bytes), name_);
  buffer_->poison();
}

void* Workspace::memory() const { return buffer_ ? buffer_->data() : nullptr; }

float* Workspace::floats() const { return as<float>(); }

int* Workspace::ints() const { return as<int>(); }

std::int64_t Workspace::bytes() const { return buffer_ ? static_cast<std::int64_t>(buffer_->bytes()) : 0; }

bool Workspace::intact() const { return !buffer_ || buffer_->guards_intact(); }

}  // namespace convladder
