// The kernels that compare.py holds against Nsight Compute: each runs once, in order, on the back end that this program
// is linked with. On standard output: {device, cases: [{name, kernels, counters}]}. `kernels` (GPU) are the names that
// ncu will show, in order; `counters` (simulator) are what the simulator saw.

#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/observation_json.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/registry.hpp"
#include "tests/simt/kernels.hpp"
#include "tools/ncu/kernels.hpp"

namespace {

using convladder::DeviceBuffer;
using convladder::Observation;
using convladder::Stream;
using Json = nlohmann::ordered_json;

constexpr int kFloats = 1 << 14;  // more than any test kernel reads or writes

/// A test kernel with its arguments.
struct TestCase {
  const char* name;
  std::function<void(const float* input, float* output)> launch;
};

int* ints(float* data) { return reinterpret_cast<int*>(data); }

const TestCase kTestCases[] = {
    {"strided_load, stride 1", [](const float* x, float* y) { launch_strided_load(x, y, 1, 0, 2); }},
    {"strided_load, stride 1, off by one float", [](const float* x, float* y) { launch_strided_load(x, y, 1, 1, 2); }},
    {"strided_load, stride 2", [](const float* x, float* y) { launch_strided_load(x, y, 2, 0, 2); }},
    {"strided_load, stride 32", [](const float* x, float* y) { launch_strided_load(x, y, 32, 0, 2); }},
    {"broadcast_load", [](const float* x, float* y) { launch_broadcast_load(x, y); }},
    {"float4_copy", [](const float* x, float* y) { launch_float4_copy(x, y); }},
    {"struct_copy", [](const float* x, float* y) { launch_struct_copy(x, y); }},
    {"memory_copy", [](const float* x, float* y) { launch_memory_copy(x, y); }},
    {"two_branches", [](const float* x, float* y) { launch_two_branches(x, y); }},
    {"early_exit", [](const float* x, float* y) { launch_early_exit(x, y, 20); }},
    {"border_loop, n=256 r=5", [](const float* x, float* y) { launch_border_loop(x, x + 256, y, 256, 5); }},
    {"border_loop, n=1000 r=31", [](const float* x, float* y) { launch_border_loop(x, x + 1024, y, 1000, 31); }},
    {"border_image", [](const float* x, float* y) { launch_border_image(x, y, 64, 2); }},
    {"triangular_loop", [](const float* x, float* y) { launch_triangular_loop(x, y); }},
    {"nested_loops", [](const float* x, float* y) { launch_nested_loops(x, y); }},
    {"break_out", [](const float* x, float* y) { launch_break_out(x, y); }},
    {"continue_loop", [](const float* x, float* y) { launch_continue(x, y); }},
    {"long_divergent_loop", [](const float* x, float* y) { launch_long_divergent_loop(x, y, 6000); }},
    {"calls_in_branches", [](const float* x, float* y) { launch_calls_in_branches(x, y); }},
    {"shared_column, pitch 32", [](const float*, float* y) { launch_shared_column(y, false); }},
    {"shared_column, pitch 33", [](const float*, float* y) { launch_shared_column(y, true); }},
    {"shared_stride, stride 1", [](const float*, float* y) { launch_shared_stride(y, 1); }},
    {"shared_stride, stride 2", [](const float*, float* y) { launch_shared_stride(y, 2); }},
    {"shared_stride, stride 4", [](const float*, float* y) { launch_shared_stride(y, 4); }},
    {"shared_stride, stride 16", [](const float*, float* y) { launch_shared_stride(y, 16); }},
    {"shared_float4", [](const float*, float* y) { launch_shared_float4(y); }},
    {"shared_load_stride, float2, stride 0", [](const float*, float* y) { launch_shared_load_float2(y, 0); }},
    {"shared_load_stride, float2, stride 1", [](const float*, float* y) { launch_shared_load_float2(y, 1); }},
    {"shared_load_stride, float2, stride 2", [](const float*, float* y) { launch_shared_load_float2(y, 2); }},
    {"shared_load_stride, float2, stride 4", [](const float*, float* y) { launch_shared_load_float2(y, 4); }},
    {"shared_load_stride, float4, stride 0", [](const float*, float* y) { launch_shared_load_float4(y, 0); }},
    {"shared_load_stride, float4, stride 1", [](const float*, float* y) { launch_shared_load_float4(y, 1); }},
    {"shared_load_stride, float4, stride 2", [](const float*, float* y) { launch_shared_load_float4(y, 2); }},
    {"shared_load_stride, float4, stride 4", [](const float*, float* y) { launch_shared_load_float4(y, 4); }},
    {"shared_store_stride, float, stride 1", [](const float* x, float* y) { launch_shared_store_float(x, y, 1); }},
    {"shared_store_stride, float, stride 2", [](const float* x, float* y) { launch_shared_store_float(x, y, 2); }},
    {"shared_store_stride, float, stride 4", [](const float* x, float* y) { launch_shared_store_float(x, y, 4); }},
    {"shared_store_stride, float2, stride 1", [](const float* x, float* y) { launch_shared_store_float2(x, y, 1); }},
    {"shared_store_stride, float2, stride 2", [](const float* x, float* y) { launch_shared_store_float2(x, y, 2); }},
    {"shared_store_stride, float2, stride 4", [](const float* x, float* y) { launch_shared_store_float2(x, y, 4); }},
    {"shared_store_stride, float4, stride 1", [](const float* x, float* y) { launch_shared_store_float4(x, y, 1); }},
    {"shared_store_stride, float4, stride 2", [](const float* x, float* y) { launch_shared_store_float4(x, y, 2); }},
    {"shared_store_stride, float4, stride 4", [](const float* x, float* y) { launch_shared_store_float4(x, y, 4); }},
    {"constant_loads, one word", [](const float* x, float* y) { launch_constant_loads(x, y, true); }},
    {"constant_loads, a word a lane", [](const float* x, float* y) { launch_constant_loads(x, y, false); }},
    {"histogram", [](const float*, float* y) { launch_histogram(ints(y), ints(y) + 1024, 1000); }},
    {"block_histogram", [](const float*, float* y) { launch_block_histogram(ints(y), ints(y) + 32, ints(y) + 64); }},
    {"barriers", [](const float*, float* y) { launch_barriers(y, 5, 3, 100); }},
    {"warp_sum", [](const float* x, float* y) { launch_warp_sum(x, y, 64); }},
    {"warp_scan_shared", [](const float* x, float* y) { launch_warp_scan_shared(x, y); }},
};

/// Stages, each on the shapes below.
constexpr const char* kStages[] = {"01", "02", "03", "04"};
constexpr const char* kShapes[] = {"w=65536,s=11", "w=65521,s=63"};

void add_case(Json& cases, const std::string& name, const std::function<void(Stream)>& launch) {
  const Observation seen = convladder::observe(launch, false);
  if (!seen.faults.empty()) {
    const convladder::Fault& fault = seen.faults.front();
    throw std::runtime_error(name + ": " + fault.kind + " in " + fault.kernel + ", " + fault.other);
  }
  Json entry = {{"name", name}};
  if (convladder::backend() == convladder::Backend::gpu) {
    entry["kernels"] = Json::array();
    for (const convladder::KernelInfo& kernel : seen.kernels) entry["kernels"].push_back(kernel.name);
  } else {
    entry["counters"] = convladder::counters_json(seen.counters);
  }
  cases.push_back(std::move(entry));
}

void run_test_cases(Json& cases) {
  DeviceBuffer input(kFloats * sizeof(float), "input"), output(kFloats * sizeof(float), "output");
  std::vector<float> ramp(kFloats);
  std::iota(ramp.begin(), ramp.end(), 0.0f);
  input.upload(ramp.data());
  const std::vector<float> zeros(kFloats);
  for (const TestCase& test : kTestCases) {
    output.upload(zeros.data());
    add_case(cases, test.name, [&](Stream) { test.launch(input.floats(), output.floats()); });
  }
}

void run_stage_cases(Json& cases) {
  for (const char* designation : kStages) {
    for (const char* shape : kShapes) {
      const convladder::StageInfo& info = convladder::find_stage(designation);
      const convladder::ConvProblem problem = convladder::parse_shape(shape);
      const convladder::HostTensors host =
          convladder::make_inputs(problem, convladder::InputKind::normal, convladder::FilterForm::dense, 1);
      DeviceBuffer input(host.input.size() * sizeof(float), "input");
      DeviceBuffer filter(host.filter.size() * sizeof(float), "filter");
      DeviceBuffer output(static_cast<std::size_t>(problem.output_size()) * sizeof(float), "output");
      input.upload(host.input.data());
      filter.upload(host.filter.data());
      const convladder::Tensors tensors{input.floats(), filter.floats(), output.floats()};
      const std::unique_ptr<convladder::Stage> stage(info.make());
      convladder::run_and_wait([&](Stream stream) { stage->prepare(problem, tensors, stream); });
      add_case(cases, std::string(info.folder) + ", " + shape,
               [&](Stream stream) { stage->launch(problem, tensors, stream); });
    }
  }
}

}  // namespace

int main() {
  try {
    const convladder::DeviceInfo device = convladder::device_info();
    Json cases = Json::array();
    run_test_cases(cases);
    run_stage_cases(cases);
    const Json report = {{"device",
                          {{"name", device.name},
                           {"compute_capability", device.compute_capability},
                           {"cuda_driver", device.driver},
                           {"cuda_toolkit", device.toolkit}}},
                         {"cases", cases}};
    std::cout << report.dump(1) << '\n';
    return 0;
  } catch (const convladder::MachineError& error) {
    std::cerr << "ncu-cases: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "ncu-cases: " << error.what() << '\n';
    return 1;
  }
}
