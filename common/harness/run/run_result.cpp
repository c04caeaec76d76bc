#include "common/harness/run/run_result.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace convladder {
namespace {

constexpr std::size_t kLeastSamples = 5;
constexpr std::chrono::seconds kSamplingTime{1};  // then kLeastSamples samples will do

}  // namespace

Workload make_workload(std::string name, const ConvProblem& problem, InputKind inputs, FilterForm filter,
                       std::uint64_t seed) {
  Workload workload{std::move(name), problem, inputs, make_inputs(problem, inputs, filter, seed), {}};
  workload.reference = convolve_reference(problem, workload.tensors.input, workload.tensors.filter);
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
  while (samples.size() < kLeastSamples || (samples.size() < kSamples && Clock::now() - start < kSamplingTime))
    samples.push_back(sample());
  return samples;
}

}  // namespace convladder
