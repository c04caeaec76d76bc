/// @file
/// What a stage is to the harness. Kernel files include this header, so it holds plain types only: no templates or
/// inline functions of the standard library reach the instrumented simulator build through it.
#pragma once
#include <cstdint>
#include <type_traits>

#include "common/stage/counters.hpp"
#include "common/stage/error_model.hpp"
#include "common/stage/problem.hpp"

struct CUstream_st;
struct __half;

namespace convladder {

struct bfloat16;

/// A CUDA stream; always null in the simulator, which runs every launch to its end.
using Stream = CUstream_st*;

/// What a stage may ask of the device when it decides whether it can run a problem.
struct DeviceLimits {
  int compute_capability = 0;           ///< 10 * major + minor; the simulator says 90
  std::int64_t shared_bytes_per_block;  ///< the most dynamic shared memory that one block may opt in to
  int multiprocessors = 0;
  std::int64_t l2_bytes = 0;
};

/// Those of the device that kernels run on; of the simulator's, two multiprocessors and the L2 cache of an NVIDIA H200.
/// @throws MachineError where there is no usable GPU (GPU programs only)
DeviceLimits device_limits();

/// Accepted, or refused with the rule in a sentence.
class Verdict {
 public:
  /// What a rule mentions: an integer of any width, a real number or a text.
  class Value {
   public:
    /// An integer.
    template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
    [[gnu::always_inline]] Value(T value) : kind_(Kind::integer), integer_(value) {}
    /// A real number.
    [[gnu::always_inline]] Value(double value) : kind_(Kind::real), real_(value) {}
    /// A text.
    [[gnu::always_inline]] Value(const char* value) : kind_(Kind::text), text_(value) {}

   private:
    friend Verdict;
    enum class Kind { integer, real, text } kind_;
    union {
      std::int64_t integer_;
      double real_;
      const char* text_;
    };
  };

  /// The stage computes the problem.
  static Verdict accept();
  /// @param rule what it must meet and what it does, with {} for each value, as in {fmt} ("must be odd; got s={}")
  /// @throws std::logic_error if there are more or fewer values
  template <class... Values>
  [[gnu::always_inline]] static Verdict refuse(const char* rule, Values... values) {
    const Value all[] = {values..., 0};
    return refusal(rule, all, sizeof...(Values));
  }

  bool accepted() const { return reason_[0] == '\0'; }  ///< whether no rule refuses it
  const char* reason() const { return reason_; }        ///< the rule, "" if accepted

 private:
  static Verdict refusal(const char* rule, const Value* values, int count);

  char reason_[240] = {};
};

/// Tensors in device memory, with the element type and in the layout that the stage's stage.json states under
/// "tensors": floats in NCHW or NHWC, halves, bf16 or bytes in NHWC. The pointers of the other kinds are null.
struct Tensors {
  const float* input;   ///< (n, c, h, w); in NHWC (n, h, w, c)
  const float* filter;  ///< (k, c/groups, r, s), floats for every stage: prepare() makes of them what its kernels want
  float* output;        ///< (n, k, p, q); in NHWC (n, p, q, k)
  const __half* half_input = nullptr;       ///< (n, h, w, c)
  __half* half_output = nullptr;            ///< (n, p, q, k)
  const bfloat16* bf16_input = nullptr;     ///< (n, h, w, c)
  bfloat16* bf16_output = nullptr;          ///< (n, p, q, k)
  const std::int8_t* byte_input = nullptr;  ///< (n, h, w, c), from -127 to 127: so many times input_step
  std::int8_t* byte_output = nullptr;       ///< (n, p, q, k), likewise of output_step
  float input_step = 1, output_step = 1;    ///< the largest magnitude of the input, of the exact output, is 127 of them
  const float* bias = nullptr;              ///< (k), where the problem has one; floats for every stage
  const __half* half_residual = nullptr;    ///< as the output, where the problem has one
  const std::int8_t* byte_residual = nullptr;  ///< likewise, so many times residual_step
  float residual_step = 1;
};

/// What the lesson claims: counters that the simulator must measure exactly, -1 where it claims nothing.
struct Prediction : Counters {
  Prediction() {
    for (const CounterField& field : kCounterFields) this->*field.member = -1;
  }
};

class Workspace;

/// One stage of the ladder, made anew for each problem and each set of tensors.
class Stage {
 public:
  Stage();
  virtual ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// Whether this stage computes the problem, or the rule that refuses it. Called before anything else. The harness
  /// has validated the problem: sizes are positive, nothing overflows, reflect padding is smaller than the input.
  virtual Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const = 0;

  /// Whether this stage computes problems with an epilogue. Unless overridden, it does not, and check() sees none.
  virtual bool has_epilogue() const;

  /// Whether this stage computes with this filter, or the rule that refuses it. Called after check().
  /// @param filter (k, c/groups, r, s), on the host
  virtual Verdict check_filter(const ConvProblem& problem, const float* filter) const;

  /// What an inference engine does once: filter transform, constant upload, workspace. Timed apart.
  virtual void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream);

  /// The part of prepare() that chooses scales by the input, for a launch() on another input. Launches kernels and
  /// nothing else. Unless overridden, nothing: what is prepared fits every input.
  virtual void calibrate(const ConvProblem& problem, const Tensors& tensors, Stream stream);

  /// The timed part. May be captured in a CUDA graph: it launches kernels and nothing else.
  virtual void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) = 0;

  /// The part of launch() that remains once the input has been rearranged, on what the last launch() left in the
  /// workspace; the harness times it beside launch(). Captured in a CUDA graph as launch() is.
  /// @return false, with nothing done, where launch() has no such parts
  virtual bool launch_without_transform(const ConvProblem& problem, const Tensors& tensors, Stream stream);

  /// What one launch reads, writes and computes, by the lesson's own formula. Exercises claim nothing.
  virtual Prediction predict(const ConvProblem& problem) const;

  /// What its errors come from. Called after prepare(). Unless overridden, a direct sum: reduction_length() + 1
  /// roundings.
  /// @param filter (k, c/groups, r, s), on the host; one that check_filter() accepted
  virtual ErrorModel error_model(const ConvProblem& problem, const float* filter) const;

  /// Of a row that stands on a library: its name and version, "cuBLAS 13.1.0"; "" of a stage.
  virtual const char* library() const;

  /// Memory that prepare() took besides the three tensors: its workspaces, and what it stated.
  std::int64_t workspace_bytes() const;
  /// Whether nothing has written just outside a workspace. Always so in the simulator.
  bool workspace_intact() const;

 protected:
  /// For prepare(): states memory that it took otherwise than by a Workspace.
  void state_memory(std::int64_t bytes);

 private:
  friend Workspace;
  const Workspace* workspaces_ = nullptr;  ///< a list, the newest first
  std::int64_t stated_bytes_ = 0;
};

}  // namespace convladder

/// Ends a kernel file: makes `Type` the stage of its chapter. The build names the factory after the folder.
#define CONVLADDER_STAGE(Type) \
  ::convladder::Stage* CONVLADDER_STAGE_FACTORY() { return new Type; }

/// @cond
#define CONVLADDER_JOIN_NAMES(a, b) a##b
#define CONVLADDER_JOIN(a, b) CONVLADDER_JOIN_NAMES(a, b)
/// @endcond
/// Follows it where "also" of stage.json has "bf16": `Type` is the same stage, whose tensors are of bf16.
#define CONVLADDER_STAGE_IN_BF16(Type) \
  ::convladder::Stage* CONVLADDER_JOIN(CONVLADDER_STAGE_FACTORY, _bf16)() { return new Type; }
