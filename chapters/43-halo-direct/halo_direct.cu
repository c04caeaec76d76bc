// 43 halo-direct: the kernel itself reads the neighbour's rows.
//
// Since 42: there rows were copied into the padding around a band, by calls of a library, before anything read them
// there. Over NVLink a kernel can load from another GPU's memory as from its own. So nothing is copied and nothing is
// called, and what is left of the exchange is what it also did: it told when rows are complete, and when they have been
// read. Here kernels tell each other that, by numbers in memory, signals:
//
//        stream            second stream                        the same of the other rank
//          |  fork --------> |
//     2. interior        1. tell: complete; wait     <------>   1. tell: complete; wait
//          |             3. borders: load its rows   <-------   (rows lie in its memory)
//          |             4. tell: have read; wait    <------>   4. tell: have read; wait
//          | <----- join     |
//
//   1. A rank has counted its launches, the epoch, and stores the next number into a signal of each rank that reads its
//      rows: with release, so that whoever sees it sees the rows. Then it waits, with acquire, for those whose rows it
//      reads. One warp waits, in a kernel of its own: no block that computes does.
//   2. Meanwhile the kernel of 09 computes the interior, as in 42.
//   3. A block of the borders finds out where each of its rows lies, loads them, computes, and stores its outputs.
//   4. The rank tells the owners that it has read, and waits for those that read its own rows. From then on they may be
//      overwritten.
//
// Who waits never keeps from running what it waits for: a kernel tells before it waits.
#include "chapters/43-halo-direct/halo_direct.cuh"

namespace convladder {
namespace {

class HaloDirect final : public SeveralStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_register_2d(problem, limits);
    if (!verdict.accepted() || problem.pad_h <= kMostPadding) return verdict;
    return Verdict::refuse(
        "the grid of the borders has room for at most {} rows of padding above and below; got pad_h={}", kMostPadding,
        problem.pad_h);
  }

  Part part(const ConvProblem& problem, int rank, int ranks) const override { return band_part(problem, rank, ranks); }
  bool touches_others() const override { return true; }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    SeveralStage::prepare(problem, tensors, stream);
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch_rank(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) override {
    if (all.ranks() == 1) return launch_register_2d<float>(own.buffer, own.output, image_of(problem), 1.0f, stream);
    if (own.problem.n == 0) return;  // more ranks than rows: it has none, and reads none
    const int self = all.rank();
    const unsigned owners = owners_of(problem, self, all.ranks()), readers = readers_of(problem, self, all.ranks());
    const SomeTiles interior = interior_tiles(own);
    const bool beside = interior.tiles > 0;
    const Stream second = beside ? all.side_stream() : stream;
    const auto meet_others = [&](unsigned to, unsigned from, int what) {
      convladder::launch(meet, dim3(1), dim3(kMostRanks), 0, second)(own.peers, self, to, from, what);
    };
    if (beside) all.follow(second, stream);
    // 1.
    meet_others(readers, owners, kReady);
    // 3.
    launch_borders(own, borders_of(interior), bands_of(problem, own, all.ranks()), second);
    // 4.
    meet_others(owners, readers, kDone);
    // 2.
    filter_tiles(own, interior, stream);
    if (beside) all.follow(stream, second);
  }

  // What is stored: the outputs, and the epoch. Signals do not count. A barrier in each block of the borders, one each
  // time that ranks meet, and those of the interior.
  Prediction predict_rank(const ConvProblem& problem, const Part& own) const override {
    if (devices() == 1) return predict_register_2d(problem);
    const SomeTiles interior = interior_tiles(own);
    const Borders borders = borders_of(interior);
    const std::int64_t across = tiles_across(interior.out_width);
    const std::int64_t blocks = across * (tiles_of(borders.above) + tiles_of(borders.end - borders.below));
    Prediction sum;
    sum.flops = own.problem.flops();
    sum.global_store_bytes = (own.problem.output_size() + 1) * 4;
    sum.barriers = 2 + own.problem.n * blocks + own.problem.n * barriers_of(interior);
    return sum;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::HaloDirect)
