#include "common/harness/run/prepared_stage.hpp"

#include <map>
#include <utility>

#include "common/harness/check/quantise.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/stage_run.hpp"
#include "common/harness/run/user_problem.hpp"

namespace convladder {
namespace {

/// Which instance of a stage prepared last. What stages keep in constant memory belongs to the kernel, not to the
/// instance, and is that one's.
std::map<const StageInfo*, const PreparedStage*>& last_prepared() {
  static std::map<const StageInfo*, const PreparedStage*> last;
  return last;
}

/// Of the launches of all instances of a stage. They stay, as CUDA may be gone when the process ends.
StreamOrder& order_of(const StageInfo& stage) {
  static auto& orders = *new std::map<const StageInfo*, StreamOrder>;
  return orders[&stage];
}

/// Whether an instance may find its constants overwritten by another. In the other tracks the filter may be large, and
/// lies in workspaces.
bool uses_constants(const StageInfo& stage) {
  return stage.track == "signals" || stage.track == "images" || stage.track == "depthwise";
}

}  // namespace

FaultError::FaultError(std::vector<Fault> its_faults)
    : std::runtime_error(describe(its_faults.front())), faults(std::move(its_faults)) {}

PreparedStage::PreparedStage(const StageInfo& info, const ConvProblem& problem, std::vector<float> filter,
                             const std::string& settings, std::vector<float> bias)
    : info_(info), problem_(problem), filter_(std::move(filter)), bias_(std::move(bias)) {
  if (!settings.empty()) require_settings(settings, {&info});
  options_.settings = settings;
  if (const std::string rule = device_refusal(info); !rule.empty()) throw MachineError(rule);
  if (runs_on_host(info)) {
    require_valid_on_host(problem);
  } else {
    require_valid(problem);
  }
  if (const std::string rule = refusal(info, problem, filter_.data()); !rule.empty()) throw RefusedError(rule);
}

PreparedStage::~PreparedStage() {
  if (last_prepared()[&info_] == this) last_prepared().erase(&info_);
}

bool PreparedStage::must_prepare() const {
  if (!stage_ || takes_bytes(info_)) return true;  // the steps of bytes are part of what is prepared
  const auto last = last_prepared().find(&info_);
  return uses_constants(info_) && (last == last_prepared().end() || last->second != this);
}

void PreparedStage::prepare(const Tensors& tensors, Stream stream) {
  stage_.reset();
  std::unique_ptr<Stage> stage(info_.make());
  std::optional<UsedConfiguration> used;
  if (const std::string rule = configure_stage(info_, *stage, problem_, options_, used); !rule.empty())
    throw RefusedError(rule);
  stage->prepare(problem_, tensors, stream);
  stage_ = std::move(stage);
  last_prepared()[&info_] = this;
}

/// Makes the stage ready for the input of `tensors`.
void PreparedStage::prepare_or_calibrate(const Tensors& tensors, Stream stream) {
  if (must_prepare())
    prepare(tensors, stream);
  else
    stage_->calibrate(problem_, tensors, stream);
}

StreamOrder& PreparedStage::order() { return uses_constants(info_) ? order_of(info_) : own_order_; }

Tensors PreparedStage::place(const std::vector<float>& input, const std::vector<float>& residual) {
  if (tensors_ && !takes_bytes(info_)) {
    tensors_->set_input(input.data());
    if (problem_.has_residual()) tensors_->set_residual(residual.data());
  } else {
    const HostTensors tensors{input, filter_, bias_, residual};
    // The steps of an output in bytes are those of the exact result.
    const float output_step = takes_bytes(info_) ? int8_step(convolve_reference(problem_, tensors).output) : 1;
    tensors_.emplace(problem_, info_.tensors, tensors, output_step);
  }
  tensors_->poison_output();
  return tensors_->view();
}

std::vector<float> PreparedStage::run_on_host(const std::vector<float>& input) {
  std::vector<float> output(static_cast<std::size_t>(problem_.output_size()));
  const Tensors tensors{input.data(), filter_.data(), output.data()};
  prepare_or_calibrate(tensors, nullptr);
  stage_->launch(problem_, tensors, nullptr);
  return output;
}

std::vector<float> PreparedStage::run(const std::vector<float>& input, const std::vector<float>& residual) {
  if (const std::string rule = half_refusal(info_, problem_, input, residual); !rule.empty()) throw RefusedError(rule);
  if (runs_on_host(info_)) return run_on_host(input);
  const Tensors tensors = place(input, residual);
  const auto observed = [](const std::function<void(Stream)>& work) {
    Observation seen = observe(work, false);
    if (!seen.faults.empty()) throw FaultError(std::move(seen.faults));
  };
  observed([&](Stream stream) { prepare_or_calibrate(tensors, stream); });
  observed([&](Stream stream) { stage_->launch(problem_, tensors, stream); });
  std::vector<float> output(static_cast<std::size_t>(problem_.output_size()));
  tensors_->download_output(output.data());
  return output;
}

/// Filter and bias, copied to the device once.
Tensors PreparedStage::parameters_on_device() {
  const auto once = [](std::optional<DeviceBuffer>& buffer, const std::vector<float>& values, const char* name) {
    if (!buffer) {
      buffer.emplace(values.size() * sizeof(float), name);
      buffer->upload(values.data());
    }
    return buffer->floats();
  };
  Tensors tensors{nullptr, once(filter_on_device_, filter_, "filter"), nullptr};
  if (problem_.has_bias()) tensors.bias = once(bias_on_device_, bias_, "bias");
  return tensors;
}

void PreparedStage::launch(const void* input, void* output, Stream stream, const void* residual) {
  Tensors tensors = parameters_on_device();
  if (takes_halves(info_)) {
    tensors.half_input = static_cast<const __half*>(input);
    tensors.half_output = static_cast<__half*>(output);
    tensors.half_residual = static_cast<const __half*>(residual);
  } else if (takes_bf16(info_)) {
    tensors.bf16_input = static_cast<const bfloat16*>(input);
    tensors.bf16_output = static_cast<bfloat16*>(output);
  } else {
    tensors.input = static_cast<const float*>(input);
    tensors.output = static_cast<float*>(output);
  }
  order().enter(stream);
  prepare_or_calibrate(tensors, stream);
  stage_->launch(problem_, tensors, stream);
  order().leave(stream);
}

}  // namespace convladder
