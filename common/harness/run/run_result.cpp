#include "common/harness/run/run_result.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace convladder {
namespace {

/// So many samples will do when they have taken so long.
constexpr struct {
  std::size_t samples;
  std::chrono::seconds time;
} kEnough[] = {{3, std::chrono::seconds{2}}, {5, std::chrono::seconds{1}}};

}  // namespace

bool enough_samples(std::size_t samples, std::chrono::steady_clock::duration time) {
  return samples >= kSamples || std::any_of(std::begin(kEnough), std::end(kEnough), [&](const auto& enough) {
           return samples >= enough.samples && time >= enough.time;
         });
}

Workload make_workload(std::string name, const ConvProblem& problem, InputKind inputs, FilterForm filter,
                       std::uint64_t seed) {
  Workload workload;
  workload.name = std::move(name);
  workload.problem = problem;
  workload.inputs = inputs;
  workload.tensors = make_inputs(problem, inputs, filter, seed);
  workload.reference = convolve_reference(problem, workload.tensors);
  return workload;
}

const char* to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::wrong:
      return "wrong";
    case Status::fault:
      return "fault";
    case Status::refused:
      return "refused";
    case Status::error:
      return "error";
  }
  throw std::logic_error("not a status");
}

std::vector<const CounterField*> broken_claims(const Counters& counters, const Prediction& prediction) {
  std::vector<const CounterField*> broken;
  for (const CounterField& field : kCounterFields) {
    const std::int64_t claim = prediction.*field.member;
    if (claim >= 0 && claim != counters.*field.member) broken.push_back(&field);
  }
  return broken;
}

std::vector<double> take_samples(const std::function<double()>& sample) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::vector<double> samples;
  while (!enough_samples(samples.size(), Clock::now() - start)) samples.push_back(sample());
  return samples;
}

}  // namespace convladder
