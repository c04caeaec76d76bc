#include "common/kernel/kernel.hpp"
#include "tests/simt/devices.hpp"

using convladder::Communicator;
using convladder::launch;
using convladder::Stream;

namespace {

// Sums of three neighbours, of the positions [first, last].
__global__ void add_neighbours(const float* numbers, float* sums, int first, int last) {
  const int i = first + static_cast<int>(threadIdx.x);
  if (i <= last) sums[i] = numbers[i - 1] + numbers[i] + numbers[i + 1];  // <- add_neighbours
}

__global__ void take_over(float* numbers, const float* sums, int count) {
  const int i = 1 + static_cast<int>(threadIdx.x);
  if (i <= count) numbers[i] = sums[i];
}

// Leaves each number as it is, and writes it.
__global__ void rewrite(float* numbers, int count) {
  const int i = 1 + static_cast<int>(threadIdx.x);
  if (i <= count) numbers[i] += 0.0f;
}

void exchange_ends(const Line& own, Communicator& all, Stream stream, Slip slip) {
  const int next = (all.rank() + 1) % all.ranks(), before = (all.rank() + all.ranks() - 1) % all.ranks();
  const bool first = all.rank() == 0, second = all.rank() == 1;
  const auto bytes = static_cast<std::int64_t>(sizeof(float));
  float *const begin = own.numbers, *const end = own.numbers + own.count + 1;
  float* const sent = slip == Slip::uninitialised ? own.sums + 1 : slip == Slip::overlaps ? begin : begin + 1;
  if (slip != Slip::no_group) all.group_start();
  if (slip == Slip::swapped && first) {
    all.send(end - 1, bytes, next, stream);
    all.send(begin + 1, bytes, before, stream);
  } else if (!(slip == Slip::nobody_sends && second)) {
    all.send(sent, bytes, before, stream);  // <- sends_first
    all.send(end - 1, bytes, next, stream);
  }
  all.receive(slip == Slip::past_the_end && second ? end + 1 : end, bytes, next, stream);  // <- receives_end
  all.receive(begin, slip == Slip::fewer_bytes && second ? 2 : bytes, before, stream);     // <- receives_begin
  if (slip != Slip::no_group) all.group_end();
}

}  // namespace

void smooth(const Line& own, const Line& neighbour, Communicator& all, Stream stream, Slip slip) {
  const Stream side = all.side_stream();
  const auto sums = [&](int first, int last) {
    const float* const numbers = slip == Slip::peers_memory ? neighbour.numbers : own.numbers;
    launch(add_neighbours, dim3(1), dim3(32), 0, stream)(numbers, own.sums, first, last);
  };
  if (slip == Slip::sends_too_soon) {
    all.follow(side, stream);
    launch(rewrite, dim3(1), dim3(32), 0, stream)(own.numbers, own.count);
  }
  for (int round = 0; round < 2; ++round) {
    const bool forgets = (slip == Slip::sends_too_soon && round == 0) || (slip == Slip::overwrites && round == 1);
    if (slip != Slip::out_of_graph && !forgets) all.follow(side, stream);
    exchange_ends(own, all, side, slip);
    sums(2, own.count - 1);
    if (slip != Slip::no_wait && slip != Slip::no_end) all.follow(stream, side);
    sums(1, 1);
    sums(own.count, own.count);
    if (slip == Slip::no_wait) all.follow(stream, side);
    launch(take_over, dim3(1), dim3(32), 0, stream)(own.numbers, own.sums, own.count);
  }
}
