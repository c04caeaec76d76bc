// The kernels that compare.py holds against Nsight Compute: each runs once, in order, on the back end that this program
// is linked with. On standard output: {device, cases: [{name, counters}]}, counters of the simulator alone. On a GPU,
// ncu has the kernels of each case in order, behind one that is called case_mark.
//
// ncu-cases STAGE SHAPE SETTINGS... runs these alone instead, the second launch of each.

#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/observation_json.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/stage/gpus.hpp"
#include "common/stage/tunable.hpp"
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

/// Stages that run on the same shapes, with the same settings of their knobs.
struct StageCases {
  std::vector<const char*> stages;
  std::vector<const char*> shapes;
  const char* settings = "";     ///< "" for the defaults
  bool kernels_prepare = false;  ///< count the kernels of prepare() too, as a case of their own
};

const StageCases kStageCases[] = {
    {{"01", "02", "03", "04"}, {"w=65536,s=11", "w=65521,s=63"}},
    {{"04"}, {"w=65521,s=63"}, "outputs=4"},
    {{"05", "06", "07", "08", "09"}, {"h=70,w=132,r=5,s=5", "h=127,w=261,r=11,s=11"}},
    {{"08"}, {"h=127,w=261,r=11,s=11"}, "fused=yes"},
    {{"10", "11", "12", "13", "14", "38", "39"},
     {"n=3,c=4,k=4,groups=4,h=16,w=32,r=7,s=7", "n=2,c=6,k=6,groups=6,h=29,w=31,r=5,s=5"}},
    {{"16", "17", "18", "19", "20", "21"},
     {"n=2,c=9,h=9,w=11,k=16,r=3,s=3", "n=3,c=5,h=15,w=13,k=130,r=5,s=3,stride_w=2"}},
    {{"23", "24", "25", "26", "27", "28", "29", "30", "35", "37"},
     {"n=2,c=64,h=28,w=28,k=64,r=3,s=3", "c=40,h=13,w=18,k=70,r=3,s=3"},
     "",
     true},
    {{"23", "24", "26"}, {"c=40,h=13,w=18,k=70,r=3,s=3"}, "m=4"},
    {{"31", "32", "33", "34", "36"}, {"n=2,c=64,h=28,w=28,k=64,r=3,s=3", "c=40,h=13,w=18,k=70,r=3,s=3"}, "", true},
    {{"31", "32", "34"}, {"n=2,c=72,h=14,w=19,k=100,r=5,s=5,stride_h=2,stride_w=2"}},
    {{"15"}, {"n=3,c=4,k=4,groups=4,h=16,w=32,r=7,s=7", "n=2,c=6,k=6,groups=6,h=29,w=31,r=5,s=5"}},
};

/// A stage on a problem, made ready on the device.
class Prepared {
 public:
  Prepared(const char* designation, const char* shape, const char* settings)
      : info_(convladder::find_stage(designation)),
        problem_(convladder::parse_shape(shape)),
        host_(convladder::make_inputs(problem_, convladder::InputKind::normal, track_of(info_).filter, 1)),
        tensors_(problem_, info_.tensors, host_.input.data(), host_.filter.data()),
        stage_(info_.make()) {
    const convladder::DeviceLimits limits = convladder::device_limits();
    require(stage_->check(problem_, limits));
    if (auto* const tunable = dynamic_cast<convladder::TunableStage*>(stage_.get())) {
      convladder::Configuration configuration = tunable->default_configuration(problem_, limits);
      if (*settings) convladder::apply_settings(settings, configuration);
      configuration = tunable->decided(problem_, limits, configuration);
      require(tunable->check_configuration(problem_, limits, configuration));
      tunable->use(configuration);
    }
    name_ = std::string(info_.folder) + ", " + shape + (*settings ? std::string(", ") + settings : "");
  }

  const std::string& name() const { return name_; }
  void prepare(Stream stream) { stage_->prepare(problem_, tensors_.view(), stream); }
  void launch(Stream stream) { stage_->launch(problem_, tensors_.view(), stream); }

 private:
  static void require(const convladder::Verdict& verdict) {
    if (!verdict.accepted()) throw std::runtime_error(verdict.reason());
  }

  const convladder::StageInfo& info_;
  convladder::ConvProblem problem_;
  convladder::HostTensors host_;
  convladder::DeviceTensors tensors_;
  std::unique_ptr<convladder::Stage> stage_;
  std::string name_;
};

void add_case(Json& cases, const std::string& name, const std::function<void(Stream)>& launch) {
  begin_case();
  const Observation seen = convladder::observe(launch, false);
  end_case();
  if (!seen.faults.empty()) {
    const convladder::Fault& fault = seen.faults.front();
    throw std::runtime_error(name + ": " + fault.kind + " in " + fault.kernel + ", " + fault.other);
  }
  Json entry = {{"name", name}};
  if (convladder::backend() == convladder::Backend::sim) entry["counters"] = convladder::counters_json(seen.counters);
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

/// @param kernels_prepare whether the kernels of prepare() are a case, too
void run_stage(Json& cases, Prepared& prepared, bool kernels_prepare) {
  const auto prepare = [&](Stream stream) { prepared.prepare(stream); };
  if (kernels_prepare)
    add_case(cases, prepared.name() + ", prepare", prepare);
  else
    convladder::run_and_wait(prepare);
  add_case(cases, prepared.name(), [&](Stream stream) { prepared.launch(stream); });
}

void run_stage_cases(Json& cases) {
  for (const StageCases& each : kStageCases) {
    for (const char* const stage : each.stages) {
      for (const char* const shape : each.shapes) {
        Prepared prepared(stage, shape, each.settings);
        run_stage(cases, prepared, each.kernels_prepare);
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (convladder::backend() == convladder::Backend::sim) convladder::stand_for(convladder::find_gpu("H200"));
    const convladder::DeviceInfo device = convladder::device_info();
    Json cases = Json::array();
    if (count == 1) {
      run_test_cases(cases);
      run_stage_cases(cases);
    }
    for (int i = 1; i + 2 < count; i += 3) {
      Prepared prepared(arguments[i], arguments[i + 1], arguments[i + 2]);
      convladder::run_and_wait([&](Stream stream) { prepared.prepare(stream); });
      convladder::run_and_wait([&](Stream stream) { prepared.launch(stream); });
      add_case(cases, prepared.name(), [&](Stream stream) { prepared.launch(stream); });
    }
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
