// 42 halo-overlap: the interior of a band is filtered while the rows at its borders travel.
//
// Since 41: there the kernel waited for the exchange, though only a few tiles of outputs need what comes. Here the
// tiles of 41 are made by two launches, side by side, and the exchange is on the stream of the smaller one:
//
//        stream            second stream, of higher priority
//          |  1. fork -----> |
//     2. interior        3. exchange        neither waits for the other
//          |                borders         as soon as all rows have come, before what is left of the interior
//          | <----- 4. join  |
//
//   1. The second stream follows the first, so that it is part of the same graph. Where no tile is interior, all is put
//      on the first stream.
//   2. The tiles whose windows lie within the rank's own rows need nothing that travels.
//   3. The exchange, and after it one launch for all other tiles: above and below, of all images. Its blocks take the
//      next multiprocessors that become free, since its stream has the higher priority: no tail is left behind.
//   4. What follows on the first stream waits for both.
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

  std::int64_t rows_together(const ConvProblem& problem) const override { return tile_height(image_of(problem)); }

  void launch_rank(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) override {
    if (all.ranks() == 1) return launch_register_2d<float>(own.buffer, own.output, image_of(problem), 1.0f, stream);
    const bool idle = own.problem.n == 0;  // more ranks than rows
    const BandTiles tiles = idle ? BandTiles{} : band_tiles(own);
    const bool beside = tiles.interior.tiles > 0;  // else there is nothing that need not wait
    const Stream second = beside ? all.side_stream() : stream;
    // 1.
    if (beside) all.follow(second, stream);
    // 3. Put on its stream first: without a graph, it starts before the interior's blocks fill the GPU.
    exchange_halos(problem, own, all, second);
    filter_tiles(own, tiles.borders, second);
    // 2.
    filter_tiles(own, tiles.interior, stream);
    // 4.
    if (beside) all.follow(stream, second);
  }

  // The tiles are those of 41.
  Prediction predict_rank(const ConvProblem&, const Part& own) const override {
    return predict_register_2d(own.problem);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::HaloOverlap)
