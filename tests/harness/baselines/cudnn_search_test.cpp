// The search of cuDNN's plans, its journal and the winners, without cuDNN: graphs whose plans only tell their knobs.
#include "common/harness/baselines/cudnn_search.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>

#include "common/harness/baselines/cudnn_winners.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"

using namespace convladder;

namespace {

/// A file that is not there, and its folder, which is gone again after the test.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("convladder-search-" + std::to_string(getpid()));
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path file() const { return path / "a" / "int8.jsonl"; }
};

/// Two engines, 4 of one knob and 7 of none. Plans of engine 4 above 30 are refused.
struct FakeGraph {
  std::mutex mutex;
  std::vector<CudnnConfiguration> planned;
  int planners = 0;

  CudnnGraph graph() {
    CudnnGraph result;
    result.nhwc = true;
    result.output = Precision::int8;
    result.engines = [](int& left_out) {
      ++left_out;
      return std::vector<CudnnEngine>{{4, {{24, 0, 35, 1}}}, {7, {}}};
    };
    result.planner = [this] {
      const std::scoped_lock lock(mutex);
      ++planners;
      return [this](const CudnnConfiguration& configuration) {
        const std::scoped_lock lock(mutex);
        planned.push_back(configuration);
        CudnnCandidate candidate;
        candidate.algorithm = configuration.engine == 7 ? "FFT plan (fake)" : "plan (fake)";
        candidate.nhwc = true;
        candidate.output = Precision::int8;
        candidate.configuration = configuration;
        const auto knob = configuration.knobs.find(24);
        candidate.status = knob != configuration.knobs.end() && knob->second > 30 ? "NOT_SUPPORTED" : "ok";
        return candidate;
      };
    };
    return result;
  }
};

/// k24 = 28 takes 8 us, others 20 + k24; 3 is wrong and 5 fails, and 6 needs too much memory. Engine 7 takes 500 us.
CudnnGlance fake_glance(const CudnnCandidate& candidate, double best_us) {
  if (candidate.configuration->engine == 7) return {CudnnOutcome::slower, 500};
  const auto found = candidate.configuration->knobs.find(24);
  const std::int64_t knob = found == candidate.configuration->knobs.end() ? 0 : found->second;
  if (knob == 3) return {CudnnOutcome::wrong, 0};
  if (knob == 5) return {CudnnOutcome::failed, 0};
  if (knob == 6) return {CudnnOutcome::memory, 0};
  const double time_us = knob == 28 ? 8 : 20 + static_cast<double>(knob);
  return {time_us > best_us ? CudnnOutcome::slower : CudnnOutcome::right, time_us};
}

CudnnPlanKey key_of(std::int64_t engine, std::map<std::int64_t, std::int64_t> knobs) {
  return {true, Precision::int8, {engine, std::move(knobs)}};
}

}  // namespace

TEST_CASE(
    "the search of cuDNN's plans tries all of few, counts what became of them, and a second run searches nothing") {
  const Folder folder;
  FakeGraph fake;
  const std::vector<CudnnGraph> graphs{fake.graph()};
  const auto search = [&](double seconds, int& runs) {
    CudnnJournal journal(folder.file());
    return search_cudnn(
        graphs, {{key_of(4, {{24, 4}}), 24.0}, {key_of(4, {{24, 28}})}},
        [&runs](const CudnnCandidate& candidate, double best_us) {
          ++runs;
          return fake_glance(candidate, best_us);
        },
        24, seconds, journal);
  };
  int runs = 0;
  CudnnSearchSummary summary = search(60, runs);
  CHECK(summary.engines == 2);
  CHECK(summary.not_strict == 1);
  CHECK(summary.combinations == 37);
  CHECK(summary.complete);
  CHECK(summary.tried() == 37);  // 36 of the knob but the one that was timed before, and each engine's own
  CHECK(summary.outcomes[CudnnOutcome::refused] == 5);
  CHECK(summary.outcomes[CudnnOutcome::wrong] == 1);
  CHECK(summary.outcomes[CudnnOutcome::failed] == 1);
  CHECK(summary.outcomes[CudnnOutcome::memory] == 1);
  CHECK(summary.outcomes[CudnnOutcome::lost] == 0);
  CHECK(summary.from_journal == 0);
  CHECK(runs == 32);
  CHECK(fake.planned.front() == key_of(4, {{24, 28}}).configuration);  // the hint that has no time yet
  CHECK(to_string(summary).find(
            "2 engines (1 more are not strict fp32), 37 combinations of their knobs, 37 tried in") == 0);
  CHECK(to_string(summary).find("5 refused, 1 memory, 1 failed, 1 wrong, 0 lost") != std::string::npos);

  summary = search(60, runs = 0);
  CHECK(runs == 0);
  CHECK(summary.complete);
  CHECK(summary.tried() == 37);
  CHECK(summary.from_journal == 37);

  const CudnnJournal journal(folder.file());
  const std::vector<CudnnCandidate> best = best_in(journal, {key_of(4, {})}, graphs);
  REQUIRE(best.size() == 5);  // four, and the fastest FFT
  CHECK(best[0].configuration == key_of(4, {{24, 28}}).configuration);
  CHECK(best[1].configuration == key_of(4, {{24, 0}}).configuration);
  CHECK(best[4].algorithm == "FFT plan (fake)");
}

TEST_CASE("the search of cuDNN's plans ends when its time is over, and goes on where it ended with more") {
  const Folder folder;
  FakeGraph fake;
  const std::vector<CudnnGraph> graphs{fake.graph()};
  {
    CudnnJournal journal(folder.file());
    journal.add_seconds(30, false);
    journal.end(key_of(4, {{24, 1}}), {CudnnOutcome::right, 21.0});
  }
  CudnnJournal journal(folder.file());
  CudnnSearchSummary summary = search_cudnn(graphs, {}, fake_glance, 24, 30, journal);
  CHECK(summary.tried() == 1);
  CHECK_FALSE(summary.complete);
  CHECK(fake.planned.empty());
  summary = search_cudnn(graphs, {}, fake_glance, 24, 60, journal);
  CHECK(summary.complete);
  CHECK(summary.tried() == 38);
  CHECK(std::count(fake.planned.begin(), fake.planned.end(), key_of(4, {{24, 1}}).configuration) == 0);
}

TEST_CASE("a plan during whose run a program ended is lost, and not tried again") {
  const Folder folder;
  FakeGraph fake;
  const std::vector<CudnnGraph> graphs{fake.graph()};
  {
    CudnnJournal journal(folder.file());
    const auto glance = [](const CudnnCandidate& candidate, double best_us) {
      if (candidate.configuration->knobs.contains(24) && candidate.configuration->knobs.at(24) == 9)
        throw DeviceError("the context is lost");
      return fake_glance(candidate, best_us);
    };
    CHECK_THROWS_AS(search_cudnn(graphs, {}, glance, 24, 60, journal), DeviceError);
  }
  std::ofstream(folder.file(), std::ios::app) << R"({"layout": "NHWC", "outp)";  // a line that was not finished
  CudnnJournal journal(folder.file());
  CHECK(journal.findings().at(key_of(4, {{24, 9}})).outcome == CudnnOutcome::lost);
  fake.planned.clear();
  CudnnSearchSummary summary = search_cudnn(graphs, {}, fake_glance, 24, 60, journal);
  CHECK(summary.complete);
  CHECK(summary.outcomes[CudnnOutcome::lost] == 1);
  CHECK(std::count(fake.planned.begin(), fake.planned.end(), key_of(4, {{24, 9}}).configuration) == 0);
  // What was written after the broken line is read.
  CHECK(CudnnJournal(folder.file()).findings().size() == journal.findings().size());
  CHECK(CudnnJournal(folder.file()).complete());
}

TEST_CASE("an engine of which two plans were lost is set aside") {
  const Folder folder;
  FakeGraph fake;
  const std::vector<CudnnGraph> graphs{fake.graph()};
  const std::filesystem::path other = folder.file().parent_path() / "int8-other.jsonl";  // a problem of its type
  for (const bool second : {false, true}) {
    CudnnJournal journal(second ? other : folder.file());
    journal.begin(key_of(4, {{24, second ? 2 : 1}}));
  }
  CudnnJournal journal(folder.file());
  const CudnnSearchSummary summary = search_cudnn(graphs, {}, fake_glance, 24, 60, journal);
  CHECK(summary.complete);
  const auto of_engine = [](const CudnnConfiguration& plan) { return plan.engine == 4; };
  CHECK(std::none_of(fake.planned.begin(), fake.planned.end(), of_engine));
  CHECK_FALSE(fake.planned.empty());
}

TEST_CASE("a journal that cannot be written is no error") {
  CudnnJournal journal("/proc/no/such/folder/int8.jsonl");
  journal.end(key_of(4, {}), {CudnnOutcome::right, 21.0});
  CHECK(journal.findings().size() == 1);
}

TEST_CASE("the winners of cuDNN: the committed file is read, and others are told what does not fit") {
  for (const CudnnWinner& winner : cudnn_winners()) {
    CAPTURE(winner.problem);
    CHECK(winner.problem == to_string(parse_shape(winner.problem)));  // as it is looked for
    CHECK(winner.time_us > 0);
    CHECK(winner.configuration.engine >= 0);
  }
  const auto is_known = [](const CudnnWinner& winner) {
    return winner.problem == "n=1,c=64,h=224,w=224,k=64,r=3,s=3" && winner.precision == Precision::int8 &&
           winner.configuration == CudnnConfiguration{4, {{24, 28}}} && winner.nhwc;
  };
  CHECK(std::any_of(cudnn_winners().begin(), cudnn_winners().end(), is_known));
  const std::string good =
      R"([{"gpu": "G", "cudnn": "9.1.0", "problem": "w=3", "dtype": "fp16", "layout": "NHWC", "output": "fp16",)"
      R"( "engine": 62, "knobs": {"2": 3, "13": -1}, "time_us": 4}])";
  const std::vector<CudnnWinner> winners = parse_cudnn_winners(good);
  REQUIRE(winners.size() == 1);
  CHECK(winners[0].configuration == CudnnConfiguration{62, {{2, 3}, {13, -1}}});
  CudnnGraph graph;
  graph.nhwc = true;
  graph.output = Precision::fp16;
  CHECK(winners[0].fits(Precision::fp16, graph));
  CHECK_FALSE(winners[0].fits(Precision::int8, graph));
  graph.nhwc = false;
  CHECK_FALSE(winners[0].fits(Precision::fp16, graph));
  for (const auto& [part, other] : {std::pair("\"NHWC\"", "\"NCWH\""),
                                    {"\"fp16\"", "\"fp8\""},
                                    {"\"13\"", "\"k13\""},
                                    {"62", "\"62\""},
                                    {"\"gpu\"", "\"device\""},
                                    {"]", ""}}) {
    std::string bad = good;
    bad.replace(bad.find(part), std::string(part).size(), other);
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_cudnn_winners(bad), UsageError);
  }
}
