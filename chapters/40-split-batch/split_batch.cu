// 40 split-batch: several GPUs, and each its own images.
//
// Since 09: the kernel is the same, and so is what a thread does. New is who runs it. A *rank* is one GPU with the host
// code that drives it; the same host code runs on every rank, and only its number tells it what to do:
//
//   1. The batch is cut into as many parts as there are ranks. Their sizes differ by one image at most.
//   2. A rank holds its own images in its own memory, and filters them.
//
// Nobody sends anything: a window lies within one image. So the time is that of the largest part, and this is what the
// stages that do exchange rows are measured against.
#include "chapters/09-register-2d/register_2d.cuh"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

class SplitBatch final : public SeveralStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
  }

  // 1.
  Part part(const ConvProblem& problem, int rank, int ranks) const override {
    return images_part(problem, rank, ranks);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    SeveralStage::prepare(problem, tensors, stream);
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  // 2.
  void launch_rank(const ConvProblem&, const Part& part, Communicator&, Stream stream) override {
    if (part.problem.n == 0) return;  // more ranks than images
    launch_register_2d<float>(part.buffer, part.output, image_of(part.problem), 1.0f, stream);
  }

  Prediction predict_rank(const ConvProblem&, const Part& part) const override {
    return predict_register_2d(part.problem);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::SplitBatch)
