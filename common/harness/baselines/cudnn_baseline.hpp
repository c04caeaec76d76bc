/// @file
/// cuDNN on the same problem, data and device: its Winograd algorithms, and the best of everything it offers.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/baselines/cudnn_module.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/check/reference.hpp"
#include "common/stage/problem.hpp"
#include "common/stage/stage.hpp"

namespace convladder {

/// How the name of a trial of two passes begins.
inline constexpr const char* kTwoPasses = "two passes";

/// The status of a plan that was timed and, since it is clearly slower than another of its family, not checked.
inline constexpr const char* kCudnnSlower = "slower than another of its family, and not checked";

/// A family of cuDNN's algorithms: those that are neither Winograd nor FFT, implicit or explicit matrix products and
/// DIRECT.
inline constexpr std::string_view kGemmFamily = "GEMM";
inline constexpr std::string_view kFftFamily = "FFT";            ///< the family of FFT and FFT_TILING
inline constexpr std::string_view kWinogradFamily = "WINOGRAD";  ///< that of WINOGRAD and WINOGRAD_NONFUSED

/// The family of an algorithm, by its name: the module names plans of the graph API after cuDNN's notes on their
/// engines. Empty for two passes.
inline std::string_view family_of(std::string_view algorithm) {
  if (algorithm.starts_with(kTwoPasses)) return "";
  for (const std::string_view family : {kWinogradFamily, kFftFamily})
    if (algorithm.starts_with(family)) return family;
  return kGemmFamily;
}

/// What proposed a plan of the graph API.
enum class CudnnOrigin {
  heuristics,  ///< cuDNN's own
  winners,     ///< the committed file of winners (cudnn_winners.hpp)
  search,      ///< a search of this machine, now or earlier (cudnn_search.hpp)
};
/// Its name in JSON.
const char* to_string(CudnnOrigin origin);

/// One algorithm or plan that was tried.
struct CudnnTrial {
  /// "IMPLICIT_PRECOMP_GEMM", ..., or "plan 3 (eng12{k2=1})" of the graph API; or "two passes: GEMM + plan 2 (eng0{})"
  std::string algorithm;
  std::string layout;  ///< "NCHW" or "NHWC"; of two passes "NCHW + NHWC" where they differ
  /// "ok"; "ok, timed without a CUDA graph"; kCudnnSlower; cuDNN's own word ("CUDNN_STATUS_NOT_SUPPORTED"); or what is
  /// wrong ("wrong result (rel. L2 error 0.3)")
  std::string status;
  std::optional<double> time_us;  ///< hot, median of the groups
  std::int64_t workspace_bytes = 0;
  Precision precision = Precision::fp32;  ///< of the input and the filter
  std::optional<double> rel_l2_err = {};  ///< of its result, where it gave one
  /// What measure_cudnn_again() finds: hot once more, and with buffers that L2 does not hold.
  std::optional<double> time_again_us = {}, time_cold_us = {};
  /// Of a plan: its engine and knobs, and what proposed it.
  std::optional<CudnnConfiguration> configuration = {};
  std::optional<CudnnOrigin> origin = {};
  Precision output = Precision::fp32;  ///< of the output's elements; fp32 of int8: the sums as they are

  /// Whether it may count: its result was right, and it was timed. One that is slower than another has a time, too.
  bool ok() const { return time_us && status.starts_with("ok"); }

  /// Its family.
  std::string_view family() const { return family_of(algorithm); }
};

/// What became of a plan in a search.
enum class CudnnOutcome {
  right,    ///< its result was right, and it was among the fastest so far
  slower,   ///< it ran, and was clearly slower than the best so far; such results are not checked
  refused,  ///< cuDNN made no plan of it
  memory,   ///< its workspace is beyond a quarter of the free memory
  failed,   ///< its launch failed
  wrong,    ///< its result was wrong, or it wrote outside its buffers
  lost,     ///< an earlier run ended while it ran: it is not tried again
};
/// In the order of the summary.
inline constexpr CudnnOutcome kCudnnOutcomes[] = {CudnnOutcome::right,  CudnnOutcome::slower, CudnnOutcome::refused,
                                                  CudnnOutcome::memory, CudnnOutcome::failed, CudnnOutcome::wrong,
                                                  CudnnOutcome::lost};
/// Its name in JSON and in the journal.
const char* to_string(CudnnOutcome outcome);

/// What a search did. The figures are sums where it searched more than one problem: a signal is searched along w and h.
struct CudnnSearchSummary {
  int engines = 0;                                     ///< that take the problem and count for its type
  int not_strict = 0;                                  ///< that take it and do not count: strict fp32 leaves them out
  double combinations = 0;                             ///< of those engines' knobs
  bool complete = true;                                ///< whether all of them were tried
  std::map<CudnnOutcome, std::int64_t> outcomes = {};  ///< of every plan that was tried, now and in earlier runs
  std::int64_t from_journal = 0;                       ///< how many of them in earlier runs
  double searched_s = 0;                               ///< now and in earlier runs
  double compile_s = 0, run_s = 0;                     ///< of this run: making plans, running them

  /// The plans that were tried.
  std::int64_t tried() const;
  /// Adds the figures of another.
  void add(const CudnnSearchSummary& other);
};
/// A line, without its end.
std::string to_string(const CudnnSearchSummary& summary);

/// What an int8 of each tensor stands for one step of.
struct CudnnSteps {
  double input = 1, filter = 1, output = 1;
};

/// Everything that cuDNN was tried with on one problem and element type.
struct CudnnBaseline {
  std::string version;      ///< "9.19.0"; empty if cuDNN is not there
  std::string unavailable;  ///< why nothing was tried: no cuDNN, or a problem that it does not express; else empty
  std::vector<CudnnTrial> trials;
  /// What a stage of this type is compared with: the trials of it. Among those for int8 are also cuDNN's Winograd
  /// algorithms for fp16, since it has none for int8.
  Precision precision = Precision::fp32;
  /// What best() ran, where there is one; until measure_cudnn_again(), since it holds memory of cuDNN's.
  std::shared_ptr<const CudnnCandidate> best_candidate = {};
  CudnnSteps steps = {};                          ///< of int8: what it ran with
  std::optional<CudnnSearchSummary> search = {};  ///< where one was asked for

  /// The fastest of the trials of this precision that are ok, or null. Two passes do not count: only some filters allow
  /// them.
  const CudnnTrial* best() const {
    return fastest([this](const CudnnTrial& trial) { return trial.precision == precision && !trial.family().empty(); });
  }
  /// The same within a family, of any precision.
  const CudnnTrial* best_of(std::string_view family) const {
    return fastest([family](const CudnnTrial& trial) { return trial.family() == family; });
  }
  /// The 1 x s convolution with the r x 1 convolution after it, for a filter of rank one; or null.
  const CudnnTrial* best_two_pass() const { return best_of(""); }

 private:
  template <class Counts>
  const CudnnTrial* fastest(const Counts& counts) const {
    const CudnnTrial* result = nullptr;
    for (const CudnnTrial& trial : trials) {
      if (!trial.ok() || !counts(trial)) continue;
      if (!result || *trial.time_us < *result->time_us) result = &trial;
    }
    return result;
  }
};

/// The relative L2 error up to which a trial of strict fp32 counts. Rounding in FFT and Winograd stays below it; TF32,
/// at about 3e-4, does not.
inline constexpr double kCudnnErrorLimit = 1e-4;
/// The same in fp16, where the input, the filter and the output are each rounded to 11 bits, which makes about 4e-4
/// together. What it leaves beside that is for sums in fp16. It is the limit of the project's own stages of fp16.
inline constexpr double kCudnnHalfErrorLimit = 4e-3;
/// The same for Winograd in fp16: cuDNN's transforms round more often and amplify it. A filter
/// that is shifted by a tap makes an error near 1.
inline constexpr double kCudnnHalfWinogradErrorLimit = 1e-2;
/// The same in bf16: rounded to 8 bits, which makes about 3e-3, with sums in fp32.
inline constexpr double kCudnnBf16ErrorLimit = 1e-2;
/// The same for Winograd in bf16: 8 times that of fp16.
inline constexpr double kCudnnBf16WinogradErrorLimit = 8e-2;
/// The same in int8, with one scale for the input, one for the filter and one for the output: each is rounded to a
/// multiple of 1/127 of its largest value, about 4% of its root mean square, which makes 1e-2 to 2e-2 together.
inline constexpr double kCudnnInt8ErrorLimit = 5e-2;

/// Why an algorithm is not run on a problem where no search was asked for; null for nearly all. FFT_TILING on an image
/// of one channel takes far longer than all others where the filter is large, and a launch cannot be stopped: on 3840 x
/// 2160 pixels an NVIDIA H200 (cuDNN 9.19) took 0.23 s for 11 x 11 taps and 28 s for 31 x 31, others less than 0.03 s.
const char* too_slow_to_try(std::string_view algorithm, const ConvProblem& problem);

/// Tries every forward algorithm of cudnnConvolutionForward, every plan that the graph API proposes, the plans that won
/// on this problem before (cudnn_winners.hpp), and the best that a search on this machine found. Checks each result
/// against the reference, within the limit for its type, before it may count. The module that holds the cuDNN
/// calls is loaded at run time, so a program runs without cuDNN. Padding other than zero is `unavailable`. Timing is
/// short: an algorithm more than 20 times slower than the best so far is timed once, unless it is a Winograd algorithm,
/// and one that takes 1.25 times as long as the best of its family so far in one group of launches; if it is a plan of
/// the graph API, its result is not checked.
/// - fp32: both layouts, strict (no TF32). A problem of one channel whose filter is a column times a row (to a relative
///   1e-6 of the largest tap) is also tried as two convolutions: the fastest of each are joined, checked and timed as
///   one trial.
/// - fp16: both layouts, with sums in fp32, and where cudnnConvolutionForward offers it in fp16.
/// - bf16: both layouts, with sums in fp32.
/// - int8: NHWC, with outputs of int8 and of float. The input, the filter and the reference's output are quantised by
///   their largest magnitude over the whole tensor. After them the Winograd trials of fp16.
///
/// An epilogue makes more operations of the graph, which cuDNN runs as one plan or refuses, and takes
/// cudnnConvolutionBiasActivationForward, whose bias is fp16 where the tensors are. In int8 all outputs are then int8,
/// requantised in the graph by a vector of scales for the filters; they are equal, as the filter has one step.
/// @param search_seconds search the engines and their knobs so long first, if earlier searches were not as long
/// @param in_halves for int8, where there is one: the baseline of fp16 on the same problem, whose Winograd trials serve
/// @throws DeviceError if cuDNN loses the GPU context
CudnnBaseline measure_cudnn(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference,
                            Precision precision, std::optional<double> search_seconds = {},
                            const CudnnBaseline* in_halves = nullptr);

/// Adds the Winograd trials of another baseline.
void add_winograd_trials(const CudnnBaseline& from, CudnnBaseline& to);

/// Times the best of a baseline once more, as after the stages that it is compared with; and cold, as they are timed,
/// with copies of its buffers that together exceed L2. What the memory does not hold, no graph can capture, or a launch
/// takes more than a second for stays without a time. The second call for a baseline does nothing.
/// @throws DeviceError if cuDNN loses the GPU context
void measure_cudnn_again(const ConvProblem& problem, const HostTensors& tensors, CudnnBaseline& baseline);

}  // namespace convladder
