// The simulator as other GPUs: what a stage needs and the GPU lacks is refused, or found.

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/ladder/workloads.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"
#include "tests/usage_error.hpp"

using namespace convladder;

namespace {

/// While it lives, the simulator stands for the GPU.
struct As {
  explicit As(const char* name) { stand_for(&gpu_named(name)); }
  ~As() { stand_for(nullptr); }
  As(const As&) = delete;
  As& operator=(const As&) = delete;
};

/// A problem of the stage's track that takes a moment.
ConvProblem small_problem(const StageInfo& stage) { return parse_shape(track_of(stage).prune_shapes.front()); }

/// Launches the stage without asking whether it may. @return the faults
std::vector<Fault> faults_of(const StageInfo& info, const ConvProblem& problem) {
  const std::unique_ptr<Stage> stage(info.make());
  const auto bytes = [](std::int64_t elements) { return 4 * static_cast<std::size_t>(elements); };
  DeviceBuffer input(bytes(problem.input_size()), "input"), filter(bytes(problem.filter_size()), "filter"),
      output(bytes(problem.output_size()), "output");
  for (DeviceBuffer* buffer : {&input, &filter, &output}) buffer->upload(std::vector<char>(buffer->bytes()).data());
  Tensors tensors{static_cast<const float*>(input.data()), static_cast<const float*>(filter.data()),
                  static_cast<float*>(output.data())};
  if (takes_halves(info)) {
    tensors.half_input = static_cast<const __half*>(input.data());
    tensors.half_output = static_cast<__half*>(output.data());
  }
  const auto all = [&](Stream stream) {
    stage->prepare(problem, tensors, stream);
    stage->launch(problem, tensors, stream);
  };
  return observe(all, false).faults;
}

}  // namespace

TEST_CASE("simulated GPUs: each stage refuses or is right on each, so that stage.json asks for what kernels use") {
  for (const char* name : {"V100", "T4", "A100", "RTX 4090", "B200"}) {  // one of each generation, and of each limit
    const As as(name);
    for (const StageInfo& stage : stages()) {
      if (runs_on_host(stage)) continue;
      CAPTURE(name);
      CAPTURE(std::string(stage.folder));
      const ConvProblem problem = small_problem(stage);
      if (!refusal(stage, problem, nullptr).empty()) continue;
      const FilterForm form = track_of(stage).filter;
      const RunResult result = run_stage(stage, make_workload("", problem, InputKind::normal, form, 1), {});
      CHECK_MESSAGE(result.status == Status::ok, result.reason);
    }
  }
}

TEST_CASE("simulated GPUs: which stages the GPU lacks something for") {
  const auto refusing = [](const char* name) {
    const As as(name);
    std::string numbers;
    for (const StageInfo& stage : stages())
      if (!device_refusal(stage).empty()) numbers += std::to_string(stage.number) + " ";
    return numbers;
  };
  const auto begins = [](const std::string& text, const char* part) { return text.find(part) == 0; };
  CHECK(begins(refusing("V100"), "30 31 32 33 34 35 36 37 "));
  CHECK(begins(refusing("RTX 2080 Ti"), "31 32 33 34 35 36 37 "));
  CHECK(refusing("RTX 2080 Ti") == refusing("T4"));
  CHECK(begins(refusing("A100"), "32 33 34 36 37 38 "));
  CHECK(refusing("RTX 4090") == refusing("A100"));
  CHECK(refusing("L4") == refusing("A100"));
  CHECK(refusing("B200") == "32 33 34 36 37 ");  // sm_90a is for sm_90 alone; 38 wants sm_90 or later
  CHECK(refusing("H100").empty());
  CHECK(refusing("H200").empty());
  const As as("T4");
  CHECK(device_refusal(find_stage("32")) ==
        "implicit-gemm-hopper needs a GPU of sm_90a and Tesla T4 (simulated) is sm_75");
}

TEST_CASE("simulated GPUs: a kernel that runs all the same is at fault") {
  const auto first = [](const char* gpu, const char* stage) {
    const As as(gpu);
    const std::vector<Fault> faults = faults_of(find_stage(stage), small_problem(find_stage(stage)));
    REQUIRE_FALSE(faults.empty());
    return faults.front();
  };
  const Fault on_turing = first("T4", "31");
  CHECK(on_turing.kind == "missing_instruction");
  CHECK(on_turing.other == "mma.sync of this shape needs sm_80; Tesla T4 is sm_75");
  CHECK(first("A100", "32").kind == "invalid_launch");  // its shared memory, before anything else
  const Fault on_blackwell = first("B200", "32");
  CHECK(on_blackwell.kind == "missing_instruction");
  CHECK(has(on_blackwell.other, "needs sm_90a; NVIDIA B200 is sm_100"));
  // Stage 9's tile of 65 taps needs 124 KB.
  const As as("T4");
  const std::vector<Fault> faults = faults_of(find_stage("9"), parse_shape("h=80,w=80,r=65,s=65"));
  REQUIRE_FALSE(faults.empty());
  CHECK(faults.front().kind == "invalid_launch");
  CHECK(has(faults.front().other, "a block may have 64 KB"));
}

TEST_CASE("simulated GPUs: limits are the GPU's, and those of the simulator afterwards") {
  const DeviceLimits usual = device_limits();
  CHECK(usual.multiprocessors == 2);
  {
    const As as("rtx 2080 ti");
    CHECK(device_info().name == "NVIDIA GeForce RTX 2080 Ti (simulated)");
    CHECK(device_limits().compute_capability == 75);
    CHECK(device_limits().shared_bytes_per_block == 64 << 10);
    CHECK(device_limits().multiprocessors == 68);
    CHECK(device_limits().l2_bytes == 5632 << 10);
  }
  CHECK(device_info().name == "SIMT simulator");
  CHECK(device_limits().compute_capability == usual.compute_capability);
  CHECK(has(usage_error([] { gpu_named("T5"); }), "--gpu must be one of V100, RTX 2080 Ti, T4, A100,"));
}
