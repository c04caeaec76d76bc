// Plans that are made on several threads, by graphs without cuDNN.
#include "common/harness/baselines/cudnn_planners.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

using namespace convladder;

namespace {

/// A graph whose planners are each of one thread; engine 13 ends with an exception.
CudnnGraph fake_graph(bool nhwc, std::atomic<int>& strangers) {
  CudnnGraph graph;
  graph.nhwc = nhwc;
  graph.planner = [nhwc, &strangers] {
    return [nhwc, &strangers, own = std::this_thread::get_id()](const CudnnConfiguration& configuration) {
      if (std::this_thread::get_id() != own) ++strangers;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that no thread makes all before others begin
      if (configuration.engine == 13) throw std::runtime_error("no memory");
      CudnnCandidate candidate;
      candidate.status = "ok";
      candidate.algorithm = std::to_string(configuration.engine);
      candidate.nhwc = nhwc;
      return candidate;
    };
  };
  return graph;
}

}  // namespace

TEST_CASE("plans are made in their order, of all graphs at once, and what goes wrong is the status of one") {
  std::atomic<int> strangers = 0;
  const std::vector<CudnnGraph> graphs{fake_graph(false, strangers), fake_graph(true, strangers)};
  std::vector<CudnnPlanKey> keys;
  for (std::int64_t engine = 0; engine < 200; ++engine) keys.push_back({engine >= 100, Precision::fp32, {engine, {}}});
  keys.push_back({true, Precision::int8, {5, {}}});
  CudnnPlanners planners(graphs);
  const std::vector<CudnnCandidate> made = planners.make(keys);
  REQUIRE(made.size() == keys.size());
  for (std::size_t i = 0; i < 200; ++i) {
    CAPTURE(i);
    CHECK(made[i].status == (i == 13 ? "no memory" : "ok"));
    if (i == 13) continue;
    CHECK(made[i].algorithm == std::to_string(i));
    CHECK(made[i].nhwc == (i >= 100));
  }
  CHECK(made.back().status == "no graph of this layout and type");
  CHECK(strangers == 0);
  CHECK(CudnnPlanners(graphs).make({}).empty());
}
