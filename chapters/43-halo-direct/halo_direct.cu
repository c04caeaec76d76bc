// 43 halo-direct: the kernel itself reads the neighbour's rows.
//
// Since 42: there rows were copied into the padding around a band, by calls of a library, before anything read them
// there. Over NVLink a kernel can load from another GPU's memory as from its own. So nothing is copied and nothing is
// called, and what is left of the exchange is what it also did: it told when rows are complete, and when they have been
// read. Here kernels tell each other that, by numbers in memory, signals:
//
//        rank 0                              rank 1
//   1. tell: rows complete  ----------->  signal ready[0]
//   2. interior                           interior
//   3. borders: wait for ready[1]         borders: wait for ready[0], load rows of rank 0
//   4. tell: have read      <-----------  tell: have read
//      wait for done[1]                   wait for done[0]
//
//   1. A rank counts its launches, the epoch, and stores it into a signal of each rank that reads its rows:
//      with release, so that whoever sees it sees the rows.
//   2. The kernel of 09 computes the interior, as in 42. It waits for nobody.
//   3. In a block of the borders each thread finds out where one row lies. If another rank owns it, the thread
//      waits for that rank's signal, with acquire. Then the block loads all rows, computes, and stores its outputs.
//   4. The rank tells the owners that it has read, and waits for those that read its own rows. From then on they may be
//      overwritten.
//
// Who waits never keeps from running what it waits for: a rank tells in a kernel that has ended before one begins that
// waits.
#include "chapters/43-halo-direct/halo_direct.cuh"

namespace convladder {
namespace {

// Ranks, other than itself, that own rows which rank `of` reads: a bit each.
unsigned owners_of(const ConvProblem& problem, int of, int ranks) {
  const Part its = band_part(problem, of, ranks);
  unsigned owners = 0;
  for (std::int64_t at = 0; its.problem.n > 0 && at < its.problem.h; ++at) {
    const std::int64_t source = source_row(problem, its, at);
    for (int owner = 0; source >= 0 && owner < ranks; ++owner) {
      const Part part = band_part(problem, owner, ranks);
      if (owner != of && source >= part.first_row && source < part.first_row + part.rows) owners |= 1u << owner;
    }
  }
  return owners;
}

unsigned readers_of(const ConvProblem& problem, int of, int ranks) {
  unsigned readers = 0;
  for (int rank = 0; rank < ranks; ++rank)
    if (owners_of(problem, rank, ranks) >> of & 1) readers |= 1u << rank;
  return readers;
}

Bands bands_of(const ConvProblem& problem, const Part& own, int self, int ranks) {
  Bands bands{};
  bands.rank = self;
  bands.first = static_cast<int>(own.first_row - own.above);
  bands.height = static_cast<int>(problem.h);
  for (int rank = 0; rank < ranks; ++rank) {
    const Part part = band_part(problem, rank, ranks);
    if (part.problem.n == 0) break;  // more ranks than rows
    bands.first_row[rank] = static_cast<int>(part.first_row);
    bands.first_row[rank + 1] = static_cast<int>(part.first_row + part.rows);
    bands.above[rank] = static_cast<int>(part.above);
    bands.rows[rank] = static_cast<int>(part.problem.h);
  }
  return bands;
}

class HaloDirect final : public SeveralStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
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
    const auto run = [&](auto kernel) { return convladder::launch(kernel, dim3(1), dim3(kMostRanks), 0, stream); };
    // 1.
    run(tell)(own.peers, self, readers, kReady);
    // 2.
    const Interior interior = interior_of(own);
    filter_rows(own, interior.begin, interior.end, stream);
    // 3.
    const Borders borders{static_cast<int>(interior.begin), static_cast<int>(interior.end),
                          static_cast<int>(own.problem.p())};
    launch_borders(own, borders, bands_of(problem, own, self, all.ranks()), stream);
    // 4.
    run(tell)(own.peers, self, owners, kDone);
    run(await_readers)(own.peers.signals[self], readers);
  }

  // What is stored: the outputs, and the epoch. Signals do not count. Two barriers a block of the borders, and one each
  // time that the rank tells.
  Prediction predict_rank(const ConvProblem& problem, const Part& own) const override {
    if (devices() == 1) return predict_register_2d(problem);
    const Interior interior = interior_of(own);
    const std::int64_t p = own.problem.p();
    Prediction sum = predict_ranges(own, {interior.begin, interior.begin, interior.end, interior.end});
    const std::int64_t inner = sum.barriers < 0 ? 0 : sum.barriers;  // no interior: nothing is claimed of it
    const std::int64_t tiles =
        tiles_of(static_cast<int>(interior.begin)) + tiles_of(static_cast<int>(p - interior.end));
    sum = {};
    sum.flops = own.problem.flops();
    sum.global_store_bytes = (own.problem.output_size() + 1) * 4;
    sum.barriers = inner + 2 + 2 * own.problem.n * tiles * tiles_across(static_cast<int>(own.problem.q()));
    return sum;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::HaloDirect)
