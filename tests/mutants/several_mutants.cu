// Correct stages on three devices, and versions of them with one mistake each. The simulator must find every one of
// them.
#include "chapters/41-halo-exchange/halo_exchange.cuh"
#include "chapters/43-halo-direct/halo_direct.cuh"
#include "tests/mutants/several_mutants.hpp"

namespace convladder {
namespace {

// meet() of 43, with a mistake.
template <SeveralMutation M>
__global__ void mutated_meet(Peers peers, int self, unsigned to, unsigned from, int what) {
  unsigned* own = peers.signals[self];
  const unsigned rank = threadIdx.x, epoch = own[kEpoch] + (M == SeveralMutation::same_epoch ? 0 : 1);
  if (to >> rank & 1 && !(M == SeveralMutation::nobody_tells && what == kReady)) {
    unsigned* const signal = peers.signals[rank] + what + self;
    if (M == SeveralMutation::plain_store)
      *signal = epoch;
    else
      store_signal(signal, epoch);
  }
  if (from >> rank & 1 && !(M == SeveralMutation::no_wait && what == kReady)) {
    if (M == SeveralMutation::one_look && what == kReady)
      load_signal(own + what + rank);
    else
      wait_for(own + what + rank, epoch);
  }
  __syncthreads();
  if (rank == 0 && what == kDone) own[kEpoch] = epoch;
}

template <SeveralMutation M>
class Mutant final : public SeveralStage {
  static constexpr bool kExchanges = M < SeveralMutation::none_42, kDirect = M >= SeveralMutation::none_43;

  int devices() const override { return 3; }
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
  }
  Part part(const ConvProblem& problem, int rank, int ranks) const override { return band_part(problem, rank, ranks); }
  bool overlaps() const override { return !kExchanges && !kDirect; }
  std::int64_t rows_together(const ConvProblem& problem) const override { return tile_height(image_of(problem)); }
  bool touches_others() const override { return kDirect; }
  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    SeveralStage::prepare(problem, tensors, stream);
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch_rank(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) override {
    if (all.ranks() == 1 || own.problem.n == 0) return;
    if (kExchanges)
      exchange_first(problem, own, all, stream);
    else if (kDirect)
      read_from_others(problem, own, all, stream);
    else
      overlap(problem, own, all, stream);
  }

  // 41.
  static void exchange_first(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) {
    const auto filter = [&] { launch_register_2d<float>(own.buffer, own.output, image_of(own.problem), 1.0f, stream); };
    if (M == SeveralMutation::kernel_first) filter();
    exchange_halos(problem, own, all, M == SeveralMutation::not_in_graph_41 ? all.side_stream() : stream);
    if (M == SeveralMutation::overwrites) {
      const Stream side = all.side_stream();
      all.follow(side, stream);
      exchange_halos(problem, own, all, side);
      filter();
      all.follow(stream, side);
    } else if (M != SeveralMutation::kernel_first) {
      filter();
    }
  }

  // 42.
  static void overlap(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) {
    const BandTiles tiles = band_tiles(own);
    const Stream side = all.side_stream();
    if (M != SeveralMutation::not_in_graph_42) all.follow(side, stream);
    exchange_halos(problem, own, all, side);
    if (M == SeveralMutation::late_interior) all.follow(stream, side);
    filter_tiles(own, tiles.borders, M == SeveralMutation::borders_first ? stream : side);
    filter_tiles(own, tiles.interior, stream);
    if (M != SeveralMutation::no_join) all.follow(stream, side);
  }

  // 43.
  static void read_from_others(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) {
    const int self = all.rank();
    const unsigned owners = owners_of(problem, self, all.ranks()), readers = readers_of(problem, self, all.ranks());
    const SomeTiles interior = interior_tiles(own);
    const Stream side = all.side_stream();
    const auto meet_others = [&](unsigned to, unsigned from, int what) {
      convladder::launch(M == SeveralMutation::none_43 ? meet : mutated_meet<M>, dim3(1), dim3(kMostRanks), 0, side)(
          own.peers, self, to, from, what);
    };
    if (M != SeveralMutation::not_in_graph_43) all.follow(side, stream);
    meet_others(readers, owners, kReady);
    if (M == SeveralMutation::done_first) meet_others(owners, readers, kDone);
    launch_borders(own, borders_of(interior), bands_of(problem, own, all.ranks()), side);
    if (M == SeveralMutation::no_done)
      meet_others(0, 0, kDone);
    else if (M != SeveralMutation::done_first)
      meet_others(owners, readers, kDone);
    filter_tiles(own, interior, stream);
    all.follow(stream, side);
  }
};

}  // namespace

template <SeveralMutation M>
Stage* make_several_mutant() {
  return new Mutant<M>;
}
template Stage* make_several_mutant<SeveralMutation::none_41>();
template Stage* make_several_mutant<SeveralMutation::kernel_first>();
template Stage* make_several_mutant<SeveralMutation::overwrites>();
template Stage* make_several_mutant<SeveralMutation::not_in_graph_41>();
template Stage* make_several_mutant<SeveralMutation::none_42>();
template Stage* make_several_mutant<SeveralMutation::borders_first>();
template Stage* make_several_mutant<SeveralMutation::not_in_graph_42>();
template Stage* make_several_mutant<SeveralMutation::no_join>();
template Stage* make_several_mutant<SeveralMutation::late_interior>();
template Stage* make_several_mutant<SeveralMutation::none_43>();
template Stage* make_several_mutant<SeveralMutation::no_wait>();
template Stage* make_several_mutant<SeveralMutation::one_look>();
template Stage* make_several_mutant<SeveralMutation::plain_store>();
template Stage* make_several_mutant<SeveralMutation::same_epoch>();
template Stage* make_several_mutant<SeveralMutation::no_done>();
template Stage* make_several_mutant<SeveralMutation::done_first>();
template Stage* make_several_mutant<SeveralMutation::nobody_tells>();
template Stage* make_several_mutant<SeveralMutation::not_in_graph_43>();

}  // namespace convladder
