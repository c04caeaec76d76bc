#include "common/harness/ladder/banded_layer.hpp"

#include <string>

#include "common/harness/files/errors.hpp"

namespace convladder {
namespace {

constexpr std::int64_t kUnit = 2;  ///< rows of outputs that F(2,3) makes together

}  // namespace

void use_default(Stage& stage, const ConvProblem& problem) {
  auto* const tunable = dynamic_cast<TunableStage*>(&stage);
  if (!tunable) return;
  const DeviceLimits limits = device_limits();
  const Configuration configuration =
      tunable->decided(problem, limits, tunable->default_configuration(problem, limits));
  if (const Verdict verdict = tunable->check_configuration(problem, limits, configuration); !verdict.accepted())
    throw UsageError(std::string("a band of the layer is refused: ") + verdict.reason());
  tunable->use(configuration);
}

BandedLayer::BandedLayer(const StageInfo& stage, const ConvProblem& problem, int rank, int ranks)
    : problem_(problem),
      part_(band_part(problem, rank, ranks, kUnit)),
      floats_(stage.tensors == Elements::floats_nhwc),
      exchanger_(find_stage("41").make()),
      stage_(stage.make()) {
  if (!floats_ && stage.tensors != Elements::halves)
    throw UsageError(std::string(stage.folder) + " has no tensors in NHWC: bands of it are not supported");
  part_.row_bytes = problem.w * problem.c * element_bytes();
}

std::int64_t BandedLayer::element_bytes() const { return floats_ ? 4 : 2; }
std::int64_t BandedLayer::buffer_bytes() const { return part_.problem.n * part_.problem.h * part_.row_bytes; }
std::int64_t BandedLayer::output_row_bytes() const { return problem_.q() * problem_.k * element_bytes(); }
std::int64_t BandedLayer::output_bytes() const {
  return part_.problem.n == 0 ? 0 : part_.problem.n * part_.problem.p() * output_row_bytes();
}

void BandedLayer::prepare(const Tensors& whole, Stream stream) {
  filter_ = whole.filter;
  if (part_.problem.n == 0) return;
  // The order of the sums of floats depends on the knobs, and their scale on the largest number of the input.
  use_default(*stage_, floats_ ? problem_ : part_.problem);
  stage_->prepare(problem_, whole, stream);
}

void BandedLayer::launch(const Part& own, Communicator& all, Stream stream) {
  dynamic_cast<const SeveralStage&>(*exchanger_).exchange(problem_, own, all, stream);
  if (own.problem.n == 0) return;
  Tensors tensors{};
  tensors.filter = filter_;
  if (floats_) {
    tensors.input = own.buffer;
    tensors.output = own.output;
  } else {
    tensors.half_input = reinterpret_cast<const __half*>(own.buffer);
    tensors.half_output = reinterpret_cast<__half*>(own.output);
  }
  stage_->launch(own.problem, tensors, stream);
}

}  // namespace convladder
