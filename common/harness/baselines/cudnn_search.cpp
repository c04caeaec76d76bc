#include "common/harness/baselines/cudnn_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "common/harness/baselines/cudnn_planners.hpp"
#include "common/harness/baselines/knob_search.hpp"
#include "common/harness/device/print_stderr.hpp"

namespace convladder {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kBatch = 4;                  // plans for each thread
constexpr auto kHangs = std::chrono::seconds(20);  // a launch that takes longer will not end
constexpr int kLostOfEngine = 2;                   // plans, after which an engine is set aside
constexpr std::size_t kFastest = 4;                // plans that are measured when the search is over

/// Seconds since it was made.
class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Ends the program where what runs while it lives does not end: a kernel that hangs cannot be stopped otherwise.
class Watchdog {
 public:
  explicit Watchdog(std::string message) : message_(std::move(message)), thread_([this] { wait(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kHangs, [this] { return ended_; })) return;
    print_stderr("\n./lab: {}\n", message_);
    std::_Exit(1);
  }

  std::string message_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;  // the last: it uses the others
};

/// The engines of all graphs in one row, as the search counts them.
class Space {
 public:
  Space(const std::vector<CudnnGraph>& graphs, CudnnSearchSummary& summary) {
    for (const CudnnGraph& graph : graphs) {
      for (const CudnnEngine& engine : graph.engines(summary.not_strict)) {
        places_[{graph.nhwc, graph.output, {engine.index, {}}}] = engines_.size();
        engines_.push_back({graph.nhwc, graph.output, {engine.index, {}}});
        std::vector<KnobRange>& ranges = ranges_.emplace_back();
        for (const CudnnKnob& knob : engine.knobs) ranges.push_back({knob.type, knob.least, knob.most, knob.stride});
      }
    }
    summary.engines += static_cast<int>(engines_.size());
  }

  const std::vector<std::vector<KnobRange>>& ranges() const { return ranges_; }

  /// An engine that is beyond all of them where it takes none of the graphs.
  KnobPoint point_of(const CudnnPlanKey& key) const {
    const auto found = places_.find({key.nhwc, key.output, {key.configuration.engine, {}}});
    return {found == places_.end() ? engines_.size() : found->second, key.configuration.knobs};
  }
  CudnnPlanKey key_of(const KnobPoint& point) const {
    CudnnPlanKey key = engines_[point.engine];
    key.configuration.knobs = point.knobs;
    return key;
  }

 private:
  std::vector<CudnnPlanKey> engines_;  // without knobs
  std::map<CudnnPlanKey, std::size_t> places_;
  std::vector<std::vector<KnobRange>> ranges_;
};

}  // namespace

CudnnSearchSummary search_cudnn(const std::vector<CudnnGraph>& graphs, const std::vector<CudnnHint>& hints,
                                const CudnnGlancing& glance, double best_us, double seconds, CudnnJournal& journal) {
  CudnnSearchSummary summary;
  const Space space(graphs, summary);
  KnobSearch search(space.ranges(), kSeed);
  summary.combinations = search.combinations();
  for (auto hint = hints.rbegin(); hint != hints.rend(); ++hint) {  // the first is tried first
    const KnobPoint point = space.point_of(hint->key);
    search.suggest(point);
    if (hint->time_us) search.tell(point, hint->time_us);
  }
  for (const auto& [key, finding] : journal.findings()) {
    search.tell(space.point_of(key), finding.time_us);
    if (finding.outcome == CudnnOutcome::right) best_us = std::min(best_us, *finding.time_us);
  }
  summary.from_journal = static_cast<std::int64_t>(journal.findings().size());

  const auto engine_of = [](CudnnPlanKey key) {
    key.configuration.knobs.clear();
    return key;
  };
  std::map<CudnnPlanKey, int> lost;  // plans of each engine, on this problem and others of its type
  for (const CudnnPlanKey& key : journal.lost()) ++lost[engine_of(key)];
  const auto set_aside = [&](const CudnnPlanKey& key) {
    const auto found = lost.find(engine_of(key));
    return found != lost.end() && found->second >= kLostOfEngine;
  };

  const Clock clock;
  CudnnPlanners planners(graphs);
  const auto try_one = [&](const CudnnPlanKey& key, const CudnnCandidate& candidate) {
    CudnnFinding finding;
    if (candidate.status == "ok") {
      finding.family = family_of(candidate.algorithm);
      journal.begin(key);
      const Watchdog watchdog(
          fmt::format("a plan of cuDNN's engine {} has hung the GPU for {} s; run the same command again: it leaves "
                      "that plan out",
                      key.configuration.engine, kHangs.count()));
      const CudnnGlance found = glance(candidate, best_us);
      finding.outcome = found.outcome;
      if (found.outcome == CudnnOutcome::right || found.outcome == CudnnOutcome::slower)
        finding.time_us = found.time_us;
      if (found.outcome == CudnnOutcome::right) best_us = std::min(best_us, found.time_us);
    }
    journal.end(key, finding);
    search.tell(space.point_of(key), finding.time_us);
  };
  bool all = journal.complete();
  while (!all && journal.searched_s() + clock.seconds() < seconds) {
    std::vector<CudnnPlanKey> keys;
    const std::vector<KnobPoint> points = search.next(kBatch * planners.threads());
    for (const KnobPoint& point : points) {
      if (const CudnnPlanKey key = space.key_of(point); set_aside(key))
        search.tell(point, {});
      else
        keys.push_back(key);
    }
    all = points.empty() && search.complete();
    if (points.empty()) break;
    const Clock compiling;
    const std::vector<CudnnCandidate> made = planners.make(keys);
    summary.compile_s += compiling.seconds();
    const Clock running;
    for (std::size_t i = 0; i < keys.size(); ++i) try_one(keys[i], made[i]);
    summary.run_s += running.seconds();
  }
  if (const double searched = clock.seconds(); !journal.complete() && (all || searched > 0.01))
    journal.add_seconds(searched, all);
  summary.complete = journal.complete();
  summary.searched_s = journal.searched_s();
  for (const auto& [key, finding] : journal.findings()) ++summary.outcomes[finding.outcome];
  return summary;
}

std::vector<CudnnCandidate> best_in(const CudnnJournal& journal, const std::set<CudnnPlanKey>& tried,
                                    const std::vector<CudnnGraph>& graphs) {
  std::vector<std::pair<double, CudnnPlanKey>> ranked;
  for (const auto& [key, finding] : journal.findings())
    if (finding.time_us && !tried.contains(key)) ranked.emplace_back(*finding.time_us, key);
  std::sort(ranked.begin(), ranked.end());
  std::vector<CudnnPlanKey> chosen;
  std::set<std::string> families;
  for (const auto& [time_us, key] : ranked) {
    const bool first_of_family = families.insert(journal.findings().at(key).family).second;
    if (chosen.size() < kFastest || first_of_family) chosen.push_back(key);
  }
  return CudnnPlanners(graphs).make(chosen);
}

std::int64_t CudnnSearchSummary::tried() const {
  std::int64_t sum = 0;
  for (const auto& [outcome, count] : outcomes) sum += count;
  return sum;
}

void CudnnSearchSummary::add(const CudnnSearchSummary& other) {
  engines += other.engines;
  not_strict += other.not_strict;
  combinations += other.combinations;
  complete = complete && other.complete;
  for (const auto& [outcome, count] : other.outcomes) outcomes[outcome] += count;
  from_journal += other.from_journal;
  searched_s += other.searched_s;
  compile_s += other.compile_s;
  run_s += other.run_s;
}

const char* to_string(CudnnOutcome outcome) {
  switch (outcome) {
    case CudnnOutcome::right:
      return "right";
    case CudnnOutcome::slower:
      return "slower";
    case CudnnOutcome::refused:
      return "refused";
    case CudnnOutcome::memory:
      return "memory";
    case CudnnOutcome::failed:
      return "failed";
    case CudnnOutcome::wrong:
      return "wrong";
    case CudnnOutcome::lost:
      return "lost";
  }
  throw std::logic_error("not an outcome");
}

std::string to_string(const CudnnSearchSummary& summary) {
  std::string counts;
  for (const CudnnOutcome outcome : kCudnnOutcomes) {
    const auto found = summary.outcomes.find(outcome);
    counts += fmt::format(", {} {}", found == summary.outcomes.end() ? 0 : found->second, to_string(outcome));
  }
  return fmt::format("{} engines{}, {:.4g} combinations of their knobs, {} tried in {:.1f} s ({} of them before){}{}",
                     summary.engines,
                     summary.not_strict > 0 ? fmt::format(" ({} more are not strict fp32)", summary.not_strict) : "",
                     summary.combinations, summary.tried(), summary.searched_s, summary.from_journal,
                     summary.complete ? ", which is all" : "", counts);
}

}  // namespace convladder
