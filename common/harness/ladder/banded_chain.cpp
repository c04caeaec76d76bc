#include "common/harness/ladder/banded_chain.hpp"

#include <algorithm>
#include <string>

#include "common/harness/files/errors.hpp"
#include "common/harness/ladder/banded_layer.hpp"

namespace convladder {
namespace {

/// Rows of outputs that the stage makes together: a band begins at a multiple.
std::int64_t unit_of(const StageInfo& stage) { return stage.tensors == Elements::halves ? 2 : 1; }

/// A layer whose halo is that of all layers.
ConvProblem with_grown_halo(ConvProblem problem, std::int64_t rows) {
  problem.r = 2 * rows + 1;
  problem.pad_h = rows;
  return problem;
}

}  // namespace

BandedChain::BandedChain(const StageInfo& stage, const ConvProblem& problem, int layers, Halo halo, int rank, int ranks)
    : problem_(problem),
      exchanged_(problem),
      layers_(layers),
      halo_(halo),
      alone_(ranks == 1),
      halves_(stage.tensors == Elements::halves),
      step_((problem.pad_h + unit_of(stage) - 1) / unit_of(stage) * unit_of(stage)),
      exchanger_(find_stage("41").make()),
      stage_(stage.make()) {
  if (!halves_ && (stage.tensors != Elements::floats || problem.c > 1))
    throw UsageError(std::string(stage.folder) + " cannot be a layer of a chain: only 09 and 33 can");
  if (problem.n != 1 || problem.p() != problem.h || problem.q() != problem.w || problem.k != problem.c)
    throw UsageError("a chain needs one image, and outputs of the input's size and channels");
  if (halo == Halo::grown) {
    if (problem.padding != Padding::zero) throw UsageError("a halo that grows needs padding by zeros");
    exchanged_ = with_grown_halo(problem, layers * step_);
  }
  part_ = band_part(alone_ ? problem : exchanged_, rank, ranks, unit_of(stage));
  part_.row_bytes = problem.w * problem.c * (halves_ ? 2 : 4);
}

std::int64_t BandedChain::received_bytes() const {
  std::int64_t rows = 0;
  for (std::int64_t at = 0; !alone_ && part_.problem.n > 0 && at < part_.problem.h; ++at)
    if ((at < part_.above || at >= part_.above + part_.rows) && source_row(exchanged_, part_, at) >= 0) ++rows;
  return rows * part_.row_bytes * (halo_ == Halo::exchanged ? layers_ : 1);
}

void BandedChain::prepare(const Tensors& whole, Stream stream) {
  filter_ = whole.filter;
  if (part_.problem.n == 0) return;
  use_default(*stage_, problem_);
  stage_->prepare(problem_, whole, stream);
}

void BandedChain::launch_layer(int layer, const void* input, void* output, Stream stream) {
  ConvProblem rows = problem_;
  std::int64_t from = 0, to = 0;  // bytes of the buffers before the first row that is read, and written
  if (!alone_) {
    const std::int64_t more = halo_ == Halo::grown ? (layers_ - 1 - layer) * step_ : 0;
    const std::int64_t begin = std::max<std::int64_t>(part_.first_row - more, 0);
    const std::int64_t end = std::min(part_.first_row + part_.rows + more, problem_.h);
    rows.h = end - begin + problem_.r - 1;
    rows.pad_h = 0;
    to = (part_.above + begin - part_.first_row) * part_.row_bytes;
    from = to - problem_.pad_h * part_.row_bytes;
  }
  const char* const read = static_cast<const char*>(input) + from;
  char* const written = static_cast<char*>(output) + to;
  Tensors tensors{};
  tensors.filter = filter_;
  if (halves_) {
    tensors.half_input = reinterpret_cast<const __half*>(read);
    tensors.half_output = reinterpret_cast<__half*>(written);
  } else {
    tensors.input = reinterpret_cast<const float*>(read);
    tensors.output = reinterpret_cast<float*>(written);
  }
  stage_->launch(rows, tensors, stream);
}

void BandedChain::launch(const std::array<void*, 3>& buffers, Communicator& all, Stream stream) {
  for (int layer = 0; layer < layers_; ++layer) {
    void* const input = buffers[static_cast<std::size_t>(layer == 0 ? 0 : target_of(layer - 1))];
    Part own = part_;
    own.buffer = static_cast<float*>(input);
    if (layer == 0 || halo_ == Halo::exchanged)
      dynamic_cast<const SeveralStage&>(*exchanger_).exchange(exchanged_, own, all, stream);
    if (part_.problem.n > 0) launch_layer(layer, input, buffers[static_cast<std::size_t>(target_of(layer))], stream);
  }
}

}  // namespace convladder
