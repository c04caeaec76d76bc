#include "common/harness/ladder/banded_chain.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/banded_layer.hpp"

namespace convladder {
namespace {

using Bytes = std::vector<std::byte>;

/// The output of a chain, from bands on so many devices. Every address of the simulator is the host's own.
Bytes in_bands(const StageInfo& stage, const ConvProblem& problem, int depth, Halo halo, const Tensors& whole,
               int count) {
  const std::unique_ptr<LocalRanks> ranks(make_local_ranks(count));
  std::deque<BandedChain> chains;
  std::vector<std::array<void*, 3>> buffers(static_cast<std::size_t>(count));
  const auto* const input = stage.tensors == Elements::halves ? reinterpret_cast<const char*>(whole.half_input)
                                                              : reinterpret_cast<const char*>(whole.input);
  for (int rank = 0; rank < count; ++rank) {
    BandedChain& chain = chains.emplace_back(stage, problem, depth, halo, rank, count);
    if (chain.part().problem.n == 0) continue;
    for (void*& buffer : buffers[static_cast<std::size_t>(rank)]) {
      buffer = ranks->allocate(rank, chain.buffer_bytes(), "buffer");
      Part part = chain.part();
      part.buffer = static_cast<float*>(buffer);
      for (std::int64_t at = 0; at < part.problem.h; ++at)
        if (source_row(chain.problem(), part, at) < 0) ranks->fill(part.row(0, at), 0, part.row_bytes);
      if (buffer == buffers[static_cast<std::size_t>(rank)][0])
        ranks->copy(part.row(0, part.above), input + part.first_row * part.row_bytes, part.rows * part.row_bytes);
    }
    run_and_wait([&](Stream stream) { chain.prepare(whole, stream); });
  }
  const Observation seen = observe(
      [&](Stream) {
        for (int rank = 0; rank < count; ++rank) {
          ranks->begin_capture(rank);
          chains[static_cast<std::size_t>(rank)].launch(buffers[static_cast<std::size_t>(rank)],
                                                        ranks->communicator(rank), ranks->stream(rank));
          ranks->end_capture(rank);
        }
        ranks->run();
      },
      false);
  if (!seen.faults.empty()) FAIL(seen.faults.front().kind << ": " << seen.faults.front().other);
  Bytes output;
  for (int rank = 0; rank < count; ++rank) {
    const BandedChain& chain = chains[static_cast<std::size_t>(rank)];
    Part part = chain.part();
    if (part.problem.n == 0) continue;
    part.buffer = static_cast<float*>(buffers[static_cast<std::size_t>(rank)][static_cast<std::size_t>(chain.last())]);
    const auto* const own = static_cast<const std::byte*>(part.row(0, part.above));
    output.insert(output.end(), own, own + part.rows * part.row_bytes);
  }
  return output;
}

void check_chain(const char* designation, int depth, std::initializer_list<const char*> shapes) {
  const StageInfo& stage = find_stage(designation);
  for (const char* sizes : shapes) {
    const ConvProblem problem = parse_shape(sizes);
    CAPTURE(sizes);
    const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 3);
    DeviceTensors tensors(problem, stage.tensors, host.input.data(), host.filter.data());
    // On one device: each output is the next input.
    const std::unique_ptr<Stage> one(stage.make());
    use_default(*one, problem);
    run_and_wait([&](Stream stream) { one->prepare(problem, tensors.view(), stream); });
    DeviceTensors other(problem, stage.tensors, host.input.data(), host.filter.data());
    Tensors from = tensors.view(), to = other.view();
    for (int layer = 0; layer < depth; ++layer) {
      Tensors now = from;
      now.output = to.output;
      now.half_output = to.half_output;
      run_and_wait([&](Stream stream) { one->launch(problem, now, stream); });
      const Tensors before = layer == 0 ? tensors.view() : from;
      from.input = now.output;
      from.half_input = now.half_output;
      to.output = layer == 0 ? before.output : const_cast<float*>(before.input);
      to.half_output = layer == 0 ? before.half_output : const_cast<__half*>(before.half_input);
    }
    const bool halves = stage.tensors == Elements::halves;
    const auto* const result =
        halves ? reinterpret_cast<const std::byte*>(from.half_input) : reinterpret_cast<const std::byte*>(from.input);
    const Bytes expected(result, result + problem.output_size() * (halves ? 2 : 4));
    for (const Halo halo : {Halo::exchanged, Halo::grown}) {
      for (const int count : {1, 2, 3, 4, 8}) {
        CAPTURE(count);
        CAPTURE(static_cast<int>(halo));
        CHECK(in_bands(stage, problem, depth, halo, tensors.view(), count) == expected);
      }
    }
  }
}

TEST_CASE("a chain in bands: pictures by 09 have the bits of one device (simulator)") {
  // Halos that reach beyond a neighbour, bands without rows, and both kernels of 09.
  check_chain("09", 4, {"h=60,w=20,r=5,s=5", "h=41,w=17,r=7,s=3", "h=6,w=12,r=3,s=3"});
  check_chain("09", 1, {"h=33,w=20,r=3,s=3"});
}

TEST_CASE("a chain in bands: layers by 33 have the bits of one device (simulator)") {
  check_chain("33", 4, {"c=16,k=16,h=26,w=12,r=3,s=3"});
  check_chain("33", 3, {"c=8,k=8,h=9,w=10,r=3,s=3"});
}

TEST_CASE("a chain in bands: other stages and problems are refused") {
  const auto make = [](const char* stage, const char* sizes, Padding padding) {
    ConvProblem problem = parse_shape(sizes);
    problem.padding = padding;
    BandedChain(find_stage(stage), problem, 4, Halo::grown, 0, 2);
  };
  CHECK_THROWS_WITH_AS(make("36", "c=8,k=8,h=8,w=8,r=3,s=3", Padding::zero),
                       "36-split-fp32 cannot be a layer of a chain: only 09 and 33 can", UsageError);
  CHECK_THROWS_WITH_AS(make("33", "c=8,k=16,h=8,w=8,r=3,s=3", Padding::zero),
                       "a chain needs one image, and outputs of the input's size and channels", UsageError);
  CHECK_THROWS_WITH_AS(make("09", "h=8,w=8,r=3,s=3", Padding::reflect), "a halo that grows needs padding by zeros",
                       UsageError);
}

}  // namespace
}  // namespace convladder
