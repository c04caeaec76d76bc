// Runs stage 09 on an image in the simulator, and compares its output with sums in double precision.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/reference.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/ladder/registry.hpp"

int main() {
  using namespace convladder;
  ConvProblem problem;
  problem.h = 30, problem.w = 50, problem.r = problem.s = 5, problem.pad_h = problem.pad_w = 2;
  std::vector<float> input(static_cast<std::size_t>(problem.input_size()));
  std::vector<float> filter(static_cast<std::size_t>(problem.filter_size()));
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < filter.size(); ++i) filter[i] = std::cos(static_cast<float>(i));

  const StageInfo& info = find_stage("09");
  const std::unique_ptr<Stage> stage(info.make());
  if (const Verdict verdict = stage->check(problem, device_limits()); !verdict.accepted()) {
    std::printf("%s refuses: %s\n", info.name.data(), verdict.reason());
    return 3;
  }
  DeviceTensors tensors(problem, info.tensors, input.data(), filter.data());
  run_and_wait([&](Stream stream) { stage->prepare(problem, tensors.view(), stream); });
  const Observation seen = observe([&](Stream stream) { stage->launch(problem, tensors.view(), stream); }, false);

  std::vector<float> output(static_cast<std::size_t>(problem.output_size()));
  tensors.download_output(output.data());
  const std::vector<double> exact = convolve_reference(problem, input, filter).output;
  double most = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) most = std::max(most, std::fabs(output[i] - exact[i]));
  std::printf("%s: %zu outputs, %zu faults, %lld bytes loaded, largest error %.1e\n", info.name.data(), output.size(),
              seen.faults.size(), static_cast<long long>(seen.counters.global_load_bytes), most);
  return seen.faults.empty() && most < 1e-4 ? 0 : 1;
}
