#include <cstdint>
#include <cstdio>
#include <type_traits>

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

struct CUstream_st;
struct __half;

namespace convladder {

struct bfloat16;

using Stream = CUstream_st*;

struct DeviceLimits {
  int compute_capability = 0;  // 10 * major + minor
  std::int64_t shared_bytes_per_block = 0;
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
};
DeviceLimits device_limits();

// Accepted, or refused with the rule in a sentence.
class Verdict {
 public:
  static Verdict accept() { return {}; }
  // Each {} of the rule stands for a value.
  template <class... Values>
  static Verdict refuse(const char* rule, Values... values) {
    Verdict verdict;
    (verdict.add(rule, values), ...);
    verdict.add_until(rule, '\0');
    return verdict;
  }
  bool accepted() const { return length_ == 0; }
  const char* reason() const { return reason_; }

 private:
  void add_until(const char*& rule, char end) {
    for (; *rule && *rule != end; ++rule)
      if (length_ + 1 < static_cast<int>(sizeof reason_)) reason_[length_++] = *rule;
  }
  template <class T>
  void add(const char*& rule, T value) {
    add_until(rule, '{');
    while (*rule && *rule++ != '}') {
    }
    char text[120] = "";
    if constexpr (std::is_integral_v<T>)
      std::snprintf(text, sizeof text, "%lld", static_cast<long long>(value));
    else if constexpr (std::is_floating_point_v<T>)
      std::snprintf(text, sizeof text, "%.3g", static_cast<double>(value));
    else
      std::snprintf(text, sizeof text, "%s", value);
    const char* whole = text;
    add_until(whole, '\0');
  }

  char reason_[240] = {};
  int length_ = 0;
};

// Tensors in device memory; the pointers of other element types are null.
struct Tensors {
  const float* input;                       // (n, c, h, w); in NHWC (n, h, w, c)
  const float* filter;                      // (k, c/groups, r, s), for every stage
  float* output;                            // (n, k, p, q); in NHWC (n, p, q, k)
  const __half* half_input = nullptr;       // (n, h, w, c)
  __half* half_output = nullptr;            // (n, p, q, k)
  const bfloat16* bf16_input = nullptr;     // (n, h, w, c)
  bfloat16* bf16_output = nullptr;          // (n, p, q, k)
  const std::int8_t* byte_input = nullptr;  // (n, h, w, c), from -127 to 127: so many times input_step
  std::int8_t* byte_output = nullptr;       // (n, p, q, k), likewise of output_step
  float input_step = 1, output_step = 1, residual_step = 1;
  const float* bias = nullptr;            // of an epilogue, which the program has not
  const __half* half_residual = nullptr;  // likewise
  const std::int8_t* byte_residual = nullptr;
};

// check() accepts a problem, prepare() does once what can be done once, launch() starts kernels and nothing else.
class Stage {
 public:
  Stage() = default;
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const = 0;
  virtual bool has_epilogue() const { return false; }
  virtual Verdict check_filter(const ConvProblem&, const float*) const { return Verdict::accept(); }
  virtual void prepare(const ConvProblem&, const Tensors&, Stream) {}
  virtual void calibrate(const ConvProblem&, const Tensors&, Stream) {}
  virtual void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) = 0;
  virtual bool launch_without_transform(const ConvProblem&, const Tensors&, Stream) { return false; }

 protected:
  void state_memory(std::int64_t) {}
};

}  // namespace convladder

#define CONVLADDER_STAGE(Type) \
  ::convladder::Stage* make_stage() { return new Type; }
#define CONVLADDER_STAGE_IN_BF16(Type)  // left out here
