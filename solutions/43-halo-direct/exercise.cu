// Lab 43: rows read from the memory of other ranks, and the signals that make this right.
//
//   1. A rank begins an epoch, and tells those that read its rows that these are complete.
//   2. A thread that needs a row of another rank waits for that rank's signal.
//   3. The rank tells the owners of what it has read that it has read.
//   4. It waits for those that read its own rows.

#include "common/kernel/border.hpp"
#include "common/kernel/signals.hpp"
#include "common/kernel/tracks/image.hpp"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;  // outputs of a block, and its threads

// A rank's signals: of each rank whether its rows are complete, of each whether it has read, and the epoch.
constexpr int kReady = 0, kDone = kMostRanks, kEpoch = 2 * kMostRanks;

// Where rows lie.
struct Bands {
  int rank, first, height;                  // its own rank; the row of the image that its buffer begins with; all rows
  int first_row[kMostRanks + 1];            // of the image: that a rank owns; behind the last rank all rows end
  int above[kMostRanks], rows[kMostRanks];  // of its buffer: before its own rows, and in all
};

// Waits until a signal of this rank has come to the epoch.
__device__ __forceinline__ void wait_for(const unsigned* signal, unsigned epoch) {
  // SOLUTION
  while (load_signal(signal) != epoch) {
  }
  // STARTER
  // | if (load_signal(signal) != epoch) return;  // it looks once
  // END
}

// Tells the ranks of the set `to` that the rows of rank `self` are complete, which begins an epoch, or that it has
// read. A thread a rank.
__global__ void tell(Peers peers, int self, unsigned to, int what) {
  unsigned* own = peers.signals[self];
  const unsigned epoch = own[kEpoch] + (what == kReady ? 1 : 0);
  __syncthreads();
  if (threadIdx.x == 0 && what == kReady) own[kEpoch] = epoch;
  if (to >> threadIdx.x & 1) store_signal(peers.signals[threadIdx.x] + what + self, epoch);
}

// Waits until the ranks of the set `of` have read. A thread a rank.
__global__ void await_readers(const unsigned* own, unsigned of) {
  if (of >> threadIdx.x & 1) wait_for(own + kDone + threadIdx.x, own[kEpoch]);
}

// One thread, one output.
__global__ void filter_rows(const float* filter,  // [rows][columns]
                            float* output,        // [batch][out_height][out_width]
                            Image image, Bands bands, Peers peers) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int x = i % image.out_width, y = i / image.out_width % image.out_height,
            number = i / image.out_width / image.out_height;
  if (number >= image.batch) return;
  const unsigned* own = peers.signals[bands.rank];
  float sum = 0.0f;
  for (int r = 0; r < image.rows; ++r) {
    const int source = border_index(bands.first + y + r, bands.height, Padding::zero);
    if (source < 0) continue;
    int owner = 0;
    while (source >= bands.first_row[owner + 1]) ++owner;
    if (owner != bands.rank) wait_for(own + kReady + owner, own[kEpoch]);
    const int at = bands.above[owner] + source - bands.first_row[owner];
    const float* row = peers.buffers[owner] + (number * bands.rows[owner] + at) * image.width;
    for (int s = 0; s < image.columns; ++s) {
      const int column = border_index(x - image.pad_x + s, image.width, Padding::zero);
      if (column >= 0) sum += row[column] * filter[r * image.columns + s];
    }
  }
  output[(number * image.out_height + y) * image.out_width + x] = sum;
}

class Direct final : public SeveralStage {
  int devices() const override { return 4; }
  bool touches_others() const override { return true; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    if (problem.padding != Padding::zero) return Verdict::refuse("the padding must be zeros");
    return check_image(problem);
  }

  Part part(const ConvProblem& problem, int rank, int ranks) const override { return band_part(problem, rank, ranks); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    SeveralStage::prepare(problem, tensors, stream);
    filter_ = tensors.filter;
  }

  // Other ranks that own rows of the buffer of rank `of`: a bit each.
  unsigned owners_of(const ConvProblem& problem, int of, int ranks) const {
    const Part its = part(problem, of, ranks);
    unsigned owners = 0;
    for (std::int64_t at = 0; its.problem.n > 0 && at < its.problem.h; ++at) {
      const std::int64_t source = source_row(problem, its, at);
      for (int owner = 0; source >= 0 && owner < ranks; ++owner) {
        const Part theirs = part(problem, owner, ranks);
        if (owner != of && source >= theirs.first_row && source < theirs.first_row + theirs.rows) owners |= 1u << owner;
      }
    }
    return owners;
  }
  // Other ranks that read rows of rank `of`.
  unsigned readers_of(const ConvProblem& problem, int of, int ranks) const {
    unsigned readers = 0;
    for (int rank = 0; rank < ranks; ++rank)
      if (owners_of(problem, rank, ranks) >> of & 1) readers |= 1u << rank;
    return readers;
  }

  Bands bands_of(const ConvProblem& problem, const Part& own, int self, int ranks) const {
    Bands bands{};
    bands.rank = self;
    bands.first = static_cast<int>(own.first_row - own.above);
    bands.height = static_cast<int>(problem.h);
    for (int rank = 0; rank < ranks; ++rank) {
      const Part its = part(problem, rank, ranks);
      if (its.problem.n == 0) break;  // more ranks than rows
      bands.first_row[rank] = static_cast<int>(its.first_row);
      bands.first_row[rank + 1] = static_cast<int>(its.first_row + its.rows);
      bands.above[rank] = static_cast<int>(its.above);
      bands.rows[rank] = static_cast<int>(its.problem.h);
    }
    return bands;
  }

  void launch_rank(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) override {
    if (all.ranks() == 1 || own.problem.n == 0) return;  // on a GPU; or more ranks than rows
    const int self = all.rank();
    const unsigned owners = owners_of(problem, self, all.ranks()), readers = readers_of(problem, self, all.ranks());
    const Bands bands = bands_of(problem, own, self, all.ranks());
    const auto blocks = static_cast<unsigned>((own.problem.output_size() + kBlock - 1) / kBlock);
    const auto filter = convladder::launch(filter_rows, dim3(blocks), dim3(kBlock), 0, stream);
    const auto telling = convladder::launch(tell, dim3(1), dim3(kMostRanks), 0, stream);
    const auto awaiting = convladder::launch(await_readers, dim3(1), dim3(kMostRanks), 0, stream);
    // SOLUTION
    telling(own.peers, self, readers, kReady);
    filter(filter_, own.output, image_of(own.problem), bands, own.peers);
    telling(own.peers, self, owners, kDone);
    awaiting(own.peers.signals[self], readers);
    // STARTER
    // | // Now it tells those that own what it reads, before it has read.
    // | telling(own.peers, self, owners, kDone);
    // | filter(filter_, own.output, image_of(own.problem), bands, own.peers);
    // | awaiting(own.peers.signals[self], readers);
    // END
  }

  const float* filter_ = nullptr;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Direct)
