#include <cstdint>

namespace convladder {

// Device memory of a stage, from prepare() on.
class Workspace {
 public:
  Workspace(Stage&, const char* name) : name_(name) {}
  ~Workspace() { cudaFree(memory_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void allocate(std::int64_t count) { allocate<float>(count); }
  template <class T>
  void allocate(std::int64_t count) {
    check_cuda(cudaFree(memory_), name_);
    bytes_ = count * static_cast<std::int64_t>(sizeof(T));
    check_cuda(cudaMalloc(&memory_, static_cast<std::size_t>(bytes_)), name_);
    check_cuda(cudaMemset(memory_, 0xff, static_cast<std::size_t>(bytes_)), name_);  // NaN
  }
  float* floats() const { return as<float>(); }
  int* ints() const { return as<int>(); }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory_);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  const char* name_;
  void* memory_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace convladder
