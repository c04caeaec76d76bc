// 42 halo-overlap: the interior of a band is filtered while the rows at its borders travel.
//
// Since 41: there the kernel waited for the exchange, though only a few rows of outputs need what comes. Here the
// outputs of a band are computed in three parts, and the exchange has a second stream:
//
//        stream           second stream
//          |  1. fork -----> |
//     2. interior        exchange         neither waits for the other
//          | <----- 3. join  |
//     borders
//
//   1. The second stream follows the first, so that it is part of the same graph, and exchanges the halos.
//   2. Meanwhile the outputs whose windows lie within the rank's own rows are made.
//   3. The first stream waits for the second. Then come the outputs above and below the interior.
#include "chapters/09-register-2d/register_2d.cuh"
#include "chapters/41-halo-exchange/halo_exchange.cuh"
#include "chapters/42-halo-overlap/interior.cuh"

namespace convladder {
namespace {

class HaloOverlap final : public SeveralStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
  }

  Part part(const ConvProblem& problem, int rank, int ranks) const override { return band_part(problem, rank, ranks); }
  bool overlaps() const override { return true; }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    SeveralStage::prepare(problem, tensors, stream);
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch_rank(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) override {
    if (all.ranks() == 1) return launch_register_2d<float>(own.buffer, own.output, image_of(problem), 1.0f, stream);
    const Stream second = all.side_stream();
    // 1.
    all.follow(second, stream);
    exchange_halos(problem, own, all, second);
    // 2.
    const bool idle = own.problem.n == 0;  // more ranks than rows
    const Interior interior = idle ? Interior{0, 0} : interior_of(own);
    filter_rows(own, interior.begin, interior.end, stream);
    // 3.
    all.follow(stream, second);
    if (idle) return;
    filter_rows(own, 0, interior.begin, stream);
    filter_rows(own, interior.end, own.problem.p(), stream);
  }

  Prediction predict_rank(const ConvProblem& problem, const Part& own) const override {
    if (own.problem.h == problem.h && own.problem.pad_h == problem.pad_h) return predict_register_2d(problem);
    const Interior interior = interior_of(own);
    return predict_ranges(own, {0, interior.begin, interior.end, own.problem.p()});
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::HaloOverlap)
