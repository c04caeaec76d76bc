/// @file
/// Which of what the module `convladder_cudnn` offers is tried. No header of CUDA or cuDNN is needed here.
#include "common/harness/baselines/cudnn_baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

#include "common/harness/baselines/cudnn_bench.hpp"
#include "common/harness/baselines/cudnn_journal.hpp"
#include "common/harness/baselines/cudnn_planners.hpp"
#include "common/harness/baselines/cudnn_search.hpp"
#include "common/harness/baselines/cudnn_winners.hpp"
#include "common/harness/check/quantise.hpp"
#include "common/harness/device/module.hpp"
#include "common/harness/device/timing.hpp"
#include "common/harness/files/problem_io.hpp"

namespace convladder {
namespace {

const Module& module() {
  static const Module loaded = load_module({kCudnnModuleFile, kCudnnModuleFunction, "cuDNN", "libcudnn.so.9",
                                            "pip install nvidia-cudnn-cu13, or cuDNN's package for your CUDA"});
  return loaded;
}

void find_candidates(const ConvProblem& problem, const CudnnTypes& types, CudnnCandidates& found) {
  reinterpret_cast<CudnnModuleFunction*>(module().function)(problem, types, found);
}

/// A signal along h instead of w.
ConvProblem turned(ConvProblem problem) {
  std::swap(problem.h, problem.w);
  std::swap(problem.r, problem.s);
  std::swap(problem.pad_h, problem.pad_w);
  std::swap(problem.stride_h, problem.stride_w);
  std::swap(problem.dilation_h, problem.dilation_w);
  return problem;
}

/// The fastest of the candidates that were tried.
struct Fastest {
  double time_us = kNothingYet;
  CudnnCandidate candidate;  ///< without `run` as long as none was right
};

const char* layout_name(const CudnnCandidate& candidate) { return candidate.nhwc ? "NHWC" : "NCHW"; }

CudnnTrial trial_of(const CudnnCandidate& candidate, std::string algorithm, std::string layout, Precision precision) {
  return {std::move(algorithm),      std::move(layout), candidate.status, std::nullopt,
          candidate.workspace_bytes, precision,         std::nullopt};
}

/// What to try.
struct Attempt {
  std::string_view note = "";  ///< follows each algorithm's name
  Precision precision = Precision::fp32;
  bool winograd_only = false;
  bool proposed_only = false;                 ///< no winners, and nothing from a search
  std::optional<double> search_seconds = {};  ///< of a search beforehand
};

/// Tries everything on one problem, in both layouts.
class Trials {
 public:
  /// @param fastest of all trials so far
  Trials(const ConvProblem& problem, const Attempt& attempt, const HostTensors& tensors, const Reference& reference,
         Fastest& fastest, CudnnBaseline& baseline)
      : problem_(problem),
        attempt_(attempt),
        tensors_(tensors),
        reference_(reference),
        fastest_(fastest),
        baseline_(baseline) {
    if (attempt.precision == Precision::int8)
      steps_ = {int8_step(tensors.input), int8_step(tensors.filter), int8_step(reference.output)};
    if (attempt.precision == baseline.precision) baseline.steps = steps_;
    const double residual_step = attempt.precision == Precision::int8 ? int8_step(tensors.residual) : 1;
    find_candidates(problem,
                    {attempt.precision, static_cast<float>(steps_.input * steps_.filter / steps_.output),
                     static_cast<float>(residual_step / steps_.output)},
                    found_);
    baseline.version = found_.version;
    if (!found_.error.empty())
      baseline.unavailable = fmt::format("cuDNN {} does not start: {}", found_.version, found_.error);
    make_plans();
  }

  /// Adds a trial for every candidate.
  void run() {
    for (const bool nhwc : {false, true}) {
      for (const CudnnCandidate& candidate : found_.candidates)
        if (candidate.nhwc == nhwc) add(candidate, CudnnOrigin::heuristics);
      if (!attempt_.proposed_only) add_winners(nhwc);
      benches_[!nhwc].reset();
    }
    if (attempt_.proposed_only || !found_.error.empty()) return;
    CudnnJournal journal(cudnn_journal_path(found_.version, problem_, attempt_.precision));
    if (attempt_.search_seconds) search(journal);
    for (const CudnnCandidate& candidate : best_in(journal, tried_, found_.graphs)) add(candidate, CudnnOrigin::search);
  }

 private:
  CudnnBench& bench(bool nhwc) {
    std::optional<CudnnBench>& made = benches_[nhwc];
    if (!made) made.emplace(problem_, tensors_, reference_, attempt_.precision, steps_, nhwc);
    return *made;
  }

  /// Those that the heuristics propose, of both layouts at once.
  void make_plans() {
    std::vector<CudnnCandidate*> proposed;
    std::vector<CudnnPlanKey> keys;
    for (CudnnCandidate& candidate : found_.candidates) {
      if (!candidate.status.empty() || !is_wanted(family_of(candidate.algorithm))) continue;
      proposed.push_back(&candidate);
      keys.push_back(key_of(candidate));
    }
    std::vector<CudnnCandidate> made = CudnnPlanners(found_.graphs).make(keys);
    for (std::size_t i = 0; i < made.size(); ++i) {
      proposed[i]->status = std::move(made[i].status);
      proposed[i]->workspace_bytes = made[i].workspace_bytes;
      proposed[i]->run = std::move(made[i].run);
    }
  }

  bool is_wanted(std::string_view family) const { return !attempt_.winograd_only || family == kWinogradFamily; }

  void add(const CudnnCandidate& candidate, CudnnOrigin origin) {
    CudnnTrial trial = trial_of(candidate, fmt::format("{}{}", candidate.algorithm, attempt_.note),
                                layout_name(candidate), attempt_.precision);
    trial.configuration = candidate.configuration;
    trial.output = candidate.output;
    if (candidate.configuration) {
      trial.origin = origin;
      tried_.insert(key_of(candidate));
    }
    if (!is_wanted(trial.family())) return;
    if (candidate.run && !attempt_.search_seconds) {
      if (const char* const reason = too_slow_to_try(candidate.algorithm, problem_)) {
        trial.status = reason;
        baseline_.trials.push_back(std::move(trial));
        return;
      }
    }
    try {
      const CudnnTrial* const best = baseline_.best_of(trial.family());
      if (candidate.run)
        bench(candidate.nhwc).measure(candidate, {fastest_.time_us, best ? *best->time_us : kNothingYet}, trial);
    } catch (const DeviceError& error) {
      throw DeviceError(fmt::format("cuDNN's {} in {}: {}", trial.algorithm, trial.layout, error.what()));
    }
    if (trial.ok() && *trial.time_us < fastest_.time_us) fastest_ = {*trial.time_us, candidate};
    if (candidate.configuration) hints_.push_back({key_of(candidate), trial.ok() ? trial.time_us : std::nullopt});
    baseline_.trials.push_back(std::move(trial));
  }

  /// The plans that won on this problem, on whatever GPU and by whatever version.
  void add_winners(bool nhwc) {
    for (const CudnnGraph& graph : found_.graphs) {
      CudnnPlanner planner;
      for (const CudnnWinner& winner : cudnn_winners()) {
        if (graph.nhwc != nhwc || !winner.fits(attempt_.precision, graph)) continue;
        const CudnnPlanKey key{graph.nhwc, graph.output, winner.configuration};
        if (winner.problem != to_string(problem_) || tried_.contains(key)) continue;
        if (!planner) planner = graph.planner();
        add(planner(winner.configuration), CudnnOrigin::winners);
      }
    }
  }

  void search(CudnnJournal& journal) {
    for (const CudnnGraph& graph : found_.graphs) {
      for (const CudnnWinner& winner : cudnn_winners()) {  // of other problems, too
        if (winner.fits(attempt_.precision, graph))
          hints_.push_back({{graph.nhwc, graph.output, winner.configuration}});
      }
    }
    const auto glance = [this](const CudnnCandidate& candidate, double best_us) {
      return bench(candidate.nhwc).glance(candidate, best_us);
    };
    const CudnnSearchSummary summary =
        search_cudnn(found_.graphs, hints_, glance, fastest_.time_us, *attempt_.search_seconds, journal);
    if (!baseline_.search) baseline_.search.emplace();
    baseline_.search->add(summary);
  }

  static CudnnPlanKey key_of(const CudnnCandidate& candidate) {
    return {candidate.nhwc, candidate.output, *candidate.configuration};
  }

  const ConvProblem& problem_;
  const Attempt& attempt_;
  const HostTensors& tensors_;
  const Reference& reference_;
  Fastest& fastest_;
  CudnnBaseline& baseline_;
  CudnnSteps steps_;
  CudnnCandidates found_;
  std::array<std::optional<CudnnBench>, 2> benches_;  // NCHW and NHWC
  std::set<CudnnPlanKey> tried_;
  std::vector<CudnnHint> hints_;
};

// ---- Once more ------------------------------------------------------------------------------------------------------

/// Microseconds per launch with buffers that L2 does not hold; nothing where 64 copies of them would be too few.
std::optional<double> time_cold(const CudnnBench& bench, const CudnnCandidate& candidate) {
  struct Copy {
    CudnnBench bench;
    DeviceBuffer output, workspace;
  };
  const std::int64_t count = cold_copies(bench.tensor_bytes(candidate), device_info().l2_bytes);
  if (count > kMaxColdCopies) return std::nullopt;
  std::vector<Copy> copies;
  copies.reserve(static_cast<std::size_t>(count));  // the launches below point into it
  std::vector<std::function<void(Stream)>> launches;
  for (std::int64_t i = 0; i < count; ++i) {
    const Copy& copy =
        copies.emplace_back(Copy{bench.copy(), bench.output_of(candidate), CudnnBench::workspace_of(candidate)});
    launches.push_back([&](Stream stream) { copy.bench.start(candidate, copy.output, copy.workspace, stream); });
  }
  GraphTimer timer(launches, std::max(1, repetitions_for(launches.front(), kGroupUs) / static_cast<int>(count)));
  TimeSeries series;
  for (int i = 0; i < kGroups; ++i) series.groups.push_back(timer.sample());
  return series.median();
}

// ---- Two passes -----------------------------------------------------------------------------------------------------

/// A filter of rank one: its tap (i, j) is column[i] * row[j].
struct Factors {
  std::vector<float> column, row;
};

/// Splits the filter at its largest tap; none where it is no such product.
std::optional<Factors> factors_of(const ConvProblem& problem, const std::vector<float>& filter) {
  constexpr double kTolerance = 1e-6;  // of the largest tap
  const auto rows = static_cast<std::size_t>(problem.r), columns = static_cast<std::size_t>(problem.s);
  const auto largest = static_cast<std::size_t>(
      std::max_element(filter.begin(), filter.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }) -
      filter.begin());
  const double peak = filter[largest];
  if (!(std::abs(peak) > 0)) return std::nullopt;
  Factors factors;
  for (std::size_t i = 0; i < rows; ++i)
    factors.column.push_back(static_cast<float>(filter[i * columns + largest % columns] / peak));
  for (std::size_t j = 0; j < columns; ++j) factors.row.push_back(filter[largest / columns * columns + j]);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const double product = static_cast<double>(factors.column[i]) * factors.row[j];
      if (!(std::abs(filter[i * columns + j] - product) <= kTolerance * std::abs(peak))) return std::nullopt;
    }
  }
  return factors;
}

/// Only the part of the problem that runs along w: a filter of one row.
ConvProblem along_rows(ConvProblem problem) {
  problem.r = problem.stride_h = problem.dilation_h = 1;
  problem.pad_h = 0;
  return problem;
}
/// The part that runs along h, on what the other part leaves.
ConvProblem along_columns(ConvProblem problem) {
  problem.w = problem.q();
  problem.s = problem.stride_w = problem.dilation_w = 1;
  problem.pad_w = 0;
  return problem;
}

/// One pass: the fastest candidate, and its filter on the device.
struct Pass {
  Fastest fastest;
  DeviceBuffer filter;
};

Pass best_pass(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference) {
  Pass pass;
  CudnnBaseline trials;
  Trials(problem, {.proposed_only = true}, tensors, reference, pass.fastest, trials).run();
  pass.filter = DeviceBuffer(tensors.filter.size() * sizeof(float), "cuDNN's filter of one pass");
  pass.filter.upload(tensors.filter.data());
  return pass;
}

/// The two passes as one candidate. One channel lies in memory alike in both layouts.
CudnnCandidate join(const Pass& first, const Pass& second, const DeviceBuffer& between) {
  const CudnnCandidate &a = first.fastest.candidate, &b = second.fastest.candidate;
  CudnnCandidate both;
  both.status = "ok";
  both.workspace_bytes = std::max(a.workspace_bytes, b.workspace_bytes);
  both.run = [&](const CudnnOperands& operands, void* output, void* workspace, Stream stream) {
    const std::string refusal = a.run({operands.input, first.filter.data()}, between.data(), workspace, stream);
    if (!refusal.empty()) return refusal;
    return b.run({between.data(), second.filter.data()}, output, workspace, stream);
  };
  return both;
}

/// Adds a trial of the fastest 1 x s convolution and after it the fastest r x 1 convolution.
/// @throws MachineError if the memory is not there
void try_two_passes(const ConvProblem& problem, const Factors& factors, const HostTensors& tensors,
                    const Reference& reference, CudnnBaseline& baseline) {
  const ConvProblem rows = along_rows(problem), columns = along_columns(problem);
  const HostTensors row_tensors{tensors.input, factors.row};
  const Reference row_reference = convolve_reference(rows, row_tensors.input, row_tensors.filter);
  const HostTensors column_tensors{{row_reference.output.begin(), row_reference.output.end()}, factors.column};

  const Pass first = best_pass(rows, row_tensors, row_reference);
  const Pass second = best_pass(columns, column_tensors, reference);
  if (!first.fastest.candidate.run || !second.fastest.candidate.run) {
    baseline.trials.push_back({kTwoPasses, "NCHW", "no algorithm computes both passes", std::nullopt, 0});
    return;
  }
  const DeviceBuffer between(static_cast<std::size_t>(rows.output_size()) * sizeof(float), "between the passes");
  const CudnnCandidate both = join(first, second, between);
  const CudnnCandidate &a = first.fastest.candidate, &b = second.fastest.candidate;
  CudnnTrial& trial = baseline.trials.emplace_back(trial_of(
      both, fmt::format("{}: {} + {}", kTwoPasses, a.algorithm, b.algorithm),
      a.nhwc == b.nhwc ? layout_name(a) : fmt::format("{} + {}", layout_name(a), layout_name(b)), Precision::fp32));
  trial.workspace_bytes += static_cast<std::int64_t>(between.bytes());
  CudnnBench(problem, tensors, reference, Precision::fp32, {}, false).measure(both, {}, trial);
}

}  // namespace

const char* too_slow_to_try(std::string_view algorithm, const ConvProblem& problem) {
  constexpr std::int64_t kTaps = 11 * 11, kOutputs = 1 << 20;
  const bool one_channel = problem.c == 1 && problem.k == 1;
  if (!algorithm.starts_with("FFT_TILING") || !one_channel || problem.r * problem.s <= kTaps ||
      problem.output_size() <= kOutputs)
    return nullptr;
  return "not tried: one launch takes many seconds; --cudnn exhaustive tries it";
}

const char* to_string(CudnnOrigin origin) {
  switch (origin) {
    case CudnnOrigin::heuristics:
      return "heuristics";
    case CudnnOrigin::winners:
      return "winners";
    case CudnnOrigin::search:
      return "search";
  }
  throw std::logic_error("not an origin");
}

CudnnBaseline measure_cudnn(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference,
                            Precision precision, std::optional<double> search_seconds, const CudnnBaseline* in_halves) {
  CudnnBaseline baseline;
  baseline.precision = precision;
  if (problem.padding != Padding::zero && (problem.pad_h > 0 || problem.pad_w > 0)) {
    baseline.unavailable = "cuDNN pads with zeros only";
    return baseline;
  }
  baseline.unavailable = module().unavailable;
  if (!baseline.unavailable.empty()) return baseline;
  device_info();  // without a GPU it says so in words of its own, and cuDNN would not

  try {
    Fastest fastest;
    // The same tensors in memory, but other engines may take them.
    const bool signal = problem.h == 1 && problem.r == 1 && problem.w > 1;
    if (signal && search_seconds) *search_seconds /= 2;
    Trials(problem, {.precision = precision, .search_seconds = search_seconds}, tensors, reference, fastest, baseline)
        .run();
    if (precision == Precision::int8 && in_halves && in_halves->unavailable.empty()) {
      add_winograd_trials(*in_halves, baseline);
    } else if (precision == Precision::int8) {
      Fastest of_winograd;
      Trials(problem, {.precision = Precision::fp16, .winograd_only = true, .proposed_only = true}, tensors, reference,
             of_winograd, baseline)
          .run();
    }
    if (signal) {
      Trials(turned(problem), {.note = " as h x 1", .precision = precision, .search_seconds = search_seconds}, tensors,
             reference, fastest, baseline)
          .run();
    }
    if (fastest.candidate.run) baseline.best_candidate = std::make_shared<CudnnCandidate>(std::move(fastest.candidate));
  } catch (const MachineError& error) {
    baseline.trials.clear();
    baseline.unavailable = error.what();
  }
  const bool one_image =
      problem.c == 1 && problem.k == 1 && problem.r > 1 && problem.s > 1 && problem.epilogue == Epilogue::none;
  if (!baseline.unavailable.empty() || precision != Precision::fp32 || !one_image) return baseline;
  if (const std::optional<Factors> factors = factors_of(problem, tensors.filter)) {
    try {
      try_two_passes(problem, *factors, tensors, reference, baseline);
    } catch (const MachineError& error) {
      baseline.trials.push_back({kTwoPasses, "NCHW", error.what(), std::nullopt, 0});
    }
  }
  return baseline;
}

void add_winograd_trials(const CudnnBaseline& from, CudnnBaseline& to) {
  std::ranges::copy_if(from.trials, std::back_inserter(to.trials),
                       [](const CudnnTrial& trial) { return trial.family() == kWinogradFamily; });
}

void measure_cudnn_again(const ConvProblem& problem, const HostTensors& tensors, CudnnBaseline& baseline) {
  const CudnnTrial* const best = baseline.best();
  const auto candidate_of_best = std::exchange(baseline.best_candidate, nullptr);
  if (!best || !candidate_of_best || *best->time_us > kOnceUs) return;
  const CudnnCandidate& candidate = *candidate_of_best;
  CudnnTrial& trial = baseline.trials[static_cast<std::size_t>(best - baseline.trials.data())];
  const Reference none;
  try {
    const CudnnBench bench(problem, tensors, none, baseline.precision, baseline.steps, candidate.nhwc);
    const DeviceBuffer output = bench.output_of(candidate), workspace = CudnnBench::workspace_of(candidate);
    CudnnTrial again = trial;
    time_hot([&](Stream stream) { bench.start(candidate, output, workspace, stream); }, {}, again);
    trial.time_again_us = again.time_us;
    if (trial.status == "ok") trial.time_cold_us = time_cold(bench, candidate);
  } catch (const MachineError&) {  // the memory does not hold the copies
  }
}

}  // namespace convladder
