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
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

bool owns(const Part& part, std::int64_t row) { return row >= part.first_row && row < part.first_row + part.rows; }

class HaloExchange final : public SeveralStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
  }

  Part part(const ConvProblem& problem, int rank, int ranks) const override { return band_part(problem, rank, ranks); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    SeveralStage::prepare(problem, tensors, stream);
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  // 1. Sends and receives what the buffer of rank `to` lacks, as far as this rank takes part. Both sides go through the
  // rows in the same order: what is sent first is received first.
  static void fill_halo_of(int to, const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) {
    const Part its = band_part(problem, to, all.ranks(), own.unit);
    std::int64_t rows = 1;
    for (std::int64_t at = 0; at < its.problem.h; at += rows) {
      rows = 1;
      if (at == its.above && its.rows > 0) {  // its own
        rows = its.rows;
        continue;
      }
      const std::int64_t source = source_row(problem, its, at);
      if (source < 0) continue;  // zeros
      int owner = 0;
      while (!owns(band_part(problem, owner, all.ranks(), own.unit), source)) ++owner;
      // Neighbours in the buffer that are neighbours in the image go together.
      const Part from = band_part(problem, owner, all.ranks(), own.unit);
      while (at + rows < its.problem.h && at + rows != its.above &&
             source_row(problem, its, at + rows) == source + rows && owns(from, source + rows))
        ++rows;
      const std::int64_t bytes = rows * own.row_bytes;
      for (std::int64_t image = 0; image < its.problem.n; ++image) {
        if (owner == all.rank()) all.send(own.row(image, own.above + source - own.first_row), bytes, to, stream);
        if (to == all.rank()) all.receive(own.row(image, at), bytes, owner, stream);
      }
    }
  }

  // 2.
  void exchange(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) const override {
    if (all.ranks() == 1) return;
    all.group_start();
    for (int to = 0; to < all.ranks(); ++to) fill_halo_of(to, problem, own, all, stream);
    all.group_end();
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
