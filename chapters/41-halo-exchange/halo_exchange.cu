// 41 halo-exchange: one image, a band of rows on each GPU.
//
// Since 40: there need not be a batch. Windows at the edge of a band reach into rows that another rank owns: the halo
// of lesson 03, with NVLink where there was shared memory. Each rank has a buffer for its band with room for these rows
// around it, so that nothing is copied together afterwards:
//
//        rank 0            rank 1            rank 2
//      [ padding ]       [ from 0 ]        [ from 1 ]        r - 1 rows in all, above and below
//      [ its band ]      [ its band ]      [ its band ]      where the input lies from the beginning
//      [ from 1  ]       [ from 2 ]        [ padding ]
//
//   1. Each row around a band is a copy of some row of the image, or of zeros. Its owner sends it: a neighbour as a
//      rule; one further off where bands are thin; the rank itself where the image is mirrored at its edge.
//   2. All sends and receives of a rank are one group. No call waits for another one, so no order of them can hang.
//   3. On the same stream, and so after the group, the kernel of 09 runs on the buffer, without padding above or below.
#include "chapters/09-register-2d/register_2d.cuh"
#include "chapters/41-halo-exchange/halo_exchange.cuh"

namespace convladder {
namespace {

class HaloExchange final : public SeveralStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
  }

  Part part(const ConvProblem& problem, int rank, int ranks) const override { return band_part(problem, rank, ranks); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    SeveralStage::prepare(problem, tensors, stream);
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  // 1. and 2., in halo_exchange.cuh.
  void exchange(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) const override {
    exchange_halos(problem, own, all, stream);
  }

  // 3.
  void launch_rank(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) override {
    exchange(problem, own, all, stream);
    if (own.problem.n == 0) return;  // more ranks than rows
    launch_register_2d<float>(own.buffer, own.output, image_of(own.problem), 1.0f, stream);
  }

  Prediction predict_rank(const ConvProblem&, const Part& part) const override {
    return predict_register_2d(part.problem);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::HaloExchange)
