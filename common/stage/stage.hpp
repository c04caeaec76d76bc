/// @file
/// What a stage is to the harness. Kernel files include this header, so it holds plain types only: no templates or
/// inline functions of the standard library reach the instrumented simulator build through it.
#pragma once
#include <cstdint>

#include "common/stage/counters.hpp"
#include "common/stage/problem.hpp"

struct CUstream_st;
struct __half;

namespace convladder {

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
  /// The stage computes the problem.
  static Verdict accept();
  /// @param format printf-style: the rule, and what it met ("the filter must be odd; got s=4")
  [[gnu::format(printf, 1, 2)]] static Verdict refuse(const char* format, ...);

  bool accepted() const { return reason_[0] == '\0'; }  ///< whether no rule refuses it
  const char* reason() const { return reason_; }        ///< the rule, "" if accepted

 private:
  char reason_[240] = {};
};

/// Tensors in device memory. A stage of fp32 reads and writes floats in the layout that it declares, NCHW but for stage
/// 35; one of fp16 halves in NHWC. One of int8 in the track winograd, too, since only transformed tiles are of 8 bits
/// there; others of int8 read and write bytes in NHWC. The pointers of the other kinds are null.
struct Tensors {
  const float* input;   ///< (n, c, h, w); in NHWC (n, h, w, c)
  const float* filter;  ///< (k, c/groups, r, s), floats for every stage: prepare() makes of them what its kernels want
  float* output;        ///< (n, k, p, q); in NHWC (n, p, q, k)
  const __half* half_input = nullptr;       ///< (n, h, w, c)
  __half* half_output = nullptr;            ///< (n, p, q, k)
  const std::int8_t* byte_input = nullptr;  ///< (n, h, w, c), from -127 to 127: so many times input_step
  std::int8_t* byte_output = nullptr;       ///< (n, p, q, k), likewise of output_step
  float input_step = 1, output_step = 1;    ///< the largest magnitude of the input, of the exact output, is 127 of them
};

/// What a number is kept in.
enum class Precision {
  fp32,  ///< IEEE binary32
  fp16,  ///< IEEE binary16
  int8,  ///< 8-bit integers with scales
};

/// How a Winograd stage computes, as far as its errors depend on it (winograd_error.hpp).
struct WinogradForm {
  int m = 0;                           ///< outputs along a side of a tile; 0: no Winograd
  bool fractions = false;              ///< F(4 x 4) with the points 3/4 and 3/2 in place of 1 and 2
  Precision stored = Precision::fp32;  ///< the transformed input and filter
  bool half_products = false;          ///< sums over the channels are rounded to fp16 before the output transform
  bool along_height = false;  ///< F(m, 3) down the columns alone; products are added up over the filter's columns, too
  int m_across = 0;           ///< columns of a tile's outputs where they are not m, which then are its rows
};

/// What the lesson claims: counters that the simulator must measure exactly, -1 where it claims nothing.
struct Prediction : Counters {
  Prediction() {
    for (const CounterField& field : kCounterFields) this->*field.member = -1;
  }
};

/// One stage of the ladder, made anew for each problem and each set of tensors.
class Stage {
 public:
  virtual ~Stage();

  /// Whether this stage computes the problem, or the rule that refuses it. Called before anything else. The harness
  /// has validated the problem: sizes are positive, nothing overflows, reflect padding is smaller than the input.
  virtual Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const = 0;

  /// Whether this stage computes with this filter, or the rule that refuses it. Called after check().
  /// @param filter (k, c/groups, r, s), on the host
  virtual Verdict check_filter(const ConvProblem& problem, const float* filter) const;

  /// What an inference engine does once: filter transform, constant upload, workspace. Timed apart.
  virtual void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream);

  /// The timed part. May be captured in a CUDA graph: it launches kernels and nothing else.
  virtual void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) = 0;

  /// The part of launch() that remains once the input has been rearranged, on what the last launch() left in the
  /// workspace; the harness times it beside launch(). Captured in a CUDA graph as launch() is.
  /// @return false, with nothing done, where launch() has no such parts
  virtual bool launch_without_transform(const ConvProblem& problem, const Tensors& tensors, Stream stream);

  /// What one launch reads, writes and computes, by the lesson's own formula. Exercises claim nothing.
  virtual Prediction predict(const ConvProblem& problem) const;

  /// Device memory that prepare() took besides the three tensors.
  virtual std::int64_t workspace_bytes() const;

  /// By how much a tap that the stage really applies may differ from the one given, beyond a few roundings: 0 unless
  /// prepare() makes another filter of it. Called for a filter that check_filter() accepted.
  /// @param filter (k, c/groups, r, s), on the host
  virtual double filter_error(const ConvProblem& problem, const float* filter) const;

  /// Whether nothing has written just outside the memory of workspace_bytes(). Always so in the simulator.
  virtual bool workspace_intact() const;

  /// Roundings along the longest chain of operations that ends in one output: the bound within which a result is right
  /// follows from it (checker.hpp). Unless overridden, those of a direct sum: reduction_length() + 1.
  virtual std::int64_t roundings(const ConvProblem& problem) const;

  /// Its form of Winograd's algorithm, from which the bounds of its results follow in place of those of a direct sum.
  /// Called after prepare().
  virtual WinogradForm winograd(const ConvProblem& problem) const;

  /// Whether errors spread evenly over all outputs, as those of an FFT do: then what bounds each of them is not its own
  /// sum of magnitudes, but the root mean square of all outputs.
  virtual bool errors_spread() const;
};

}  // namespace convladder

/// Ends a kernel file: makes `Type` the stage of its chapter. The build names the factory after the folder.
#define CONVLADDER_STAGE(Type) \
  ::convladder::Stage* CONVLADDER_STAGE_FACTORY() { return new Type; }
