#include "common/harness/ladder/banded_layer.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <deque>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"

namespace convladder {
namespace {

using Bytes = std::vector<std::byte>;

/// Every address of the simulator is the host's own.
Bytes bytes_of(const void* device, std::int64_t count) {
  Bytes bytes(static_cast<std::size_t>(count));
  std::memcpy(bytes.data(), device, bytes.size());
  return bytes;
}

/// The whole output of a stage, from bands on so many devices.
Bytes in_bands(const StageInfo& stage, const ConvProblem& problem, const Tensors& whole, int count) {
  const bool halves = stage.tensors == Elements::halves;
  const std::unique_ptr<LocalRanks> ranks(make_local_ranks(count));
  std::deque<BandedLayer> layers;
  std::vector<Part> parts;
  for (int rank = 0; rank < count; ++rank) {
    BandedLayer& layer = layers.emplace_back(stage, problem, rank, count);
    Part& own = parts.emplace_back(layer.part());
    if (own.problem.n == 0) continue;
    own.buffer = static_cast<float*>(ranks->allocate(rank, layer.buffer_bytes(), "buffer"));
    own.output = static_cast<float*>(ranks->allocate(rank, layer.output_bytes(), "part of the output"));
    const auto* const input =
        halves ? reinterpret_cast<const char*>(whole.half_input) : reinterpret_cast<const char*>(whole.input);
    for (std::int64_t image = 0; image < problem.n; ++image) {
      ranks->copy(own.row(image, own.above), input + (image * problem.h + own.first_row) * own.row_bytes,
                  own.rows * own.row_bytes);
      for (std::int64_t at = 0; at < own.problem.h; ++at)
        if (source_row(problem, own, at) < 0) ranks->fill(own.row(image, at), 0, own.row_bytes);
    }
    run_and_wait([&](Stream stream) { layer.prepare(whole, stream); });
  }
  const Observation seen = observe(
      [&](Stream) {
        for (int rank = 0; rank < count; ++rank) {
          ranks->begin_capture(rank);
          layers[static_cast<std::size_t>(rank)].launch(parts[static_cast<std::size_t>(rank)],
                                                        ranks->communicator(rank), ranks->stream(rank));
          ranks->end_capture(rank);
        }
        ranks->run();
      },
      false);
  if (!seen.faults.empty()) FAIL(seen.faults.front().kind << ": " << seen.faults.front().other);
  Bytes output(static_cast<std::size_t>(problem.output_size()) * (halves ? 2 : 4));
  for (int rank = 0; rank < count; ++rank) {
    const Part& own = parts[static_cast<std::size_t>(rank)];
    const std::int64_t row = layers[static_cast<std::size_t>(rank)].output_row_bytes();
    for (std::int64_t image = 0; image < own.problem.n; ++image) {
      const std::int64_t rows = own.problem.p();
      std::memcpy(output.data() + (image * problem.p() + own.first_output) * row,
                  reinterpret_cast<const char*>(own.output) + image * rows * row, static_cast<std::size_t>(rows * row));
    }
  }
  return output;
}

void check_bands(const char* designation, std::initializer_list<const char*> shapes) {
  const StageInfo& stage = find_stage(designation);
  for (const char* sizes : shapes) {
    const ConvProblem problem = parse_shape(sizes);
    CAPTURE(sizes);
    const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 3);
    DeviceTensors tensors(problem, stage.tensors, host.input.data(), host.filter.data());
    const std::unique_ptr<Stage> one(stage.make());
    use_default(*one, problem);
    run_and_wait([&](Stream stream) { one->prepare(problem, tensors.view(), stream); });
    run_and_wait([&](Stream stream) { one->launch(problem, tensors.view(), stream); });
    const Bytes expected = bytes_of(tensors.output().data(), static_cast<std::int64_t>(tensors.output().bytes()));
    for (const int count : {2, 3, 4, 8}) {
      CAPTURE(count);
      CHECK(in_bands(stage, problem, tensors.view(), count) == expected);
    }
  }
}

TEST_CASE("a layer in bands: stage 33 has the bits of one device (simulator)") {
  check_bands("33", {"c=16,k=24,h=17,w=20,r=3,s=3", "n=2,c=40,k=16,h=9,w=13,r=3,s=3", "c=8,k=8,h=5,w=9,r=3,s=3",
                     "c=16,k=16,h=12,w=10,r=3,s=3,pad_h=0,pad_w=0"});
}

TEST_CASE("a layer in bands: stage 36 has the bits of one device (simulator)") {
  // With one slice of channels and several, and with F(2,3).
  check_bands("36", {"c=16,k=24,h=17,w=20,r=3,s=3", "n=2,c=80,k=16,h=9,w=13,r=3,s=3", "c=128,k=72,h=12,w=14,r=3,s=3"});
}

TEST_CASE("a layer in bands: other tensors are refused") {
  CHECK_THROWS_WITH_AS(BandedLayer(find_stage("09"), parse_shape("h=8,w=8,r=3,s=3"), 0, 2),
                       "09-register-2d has no tensors in NHWC: bands of it are not supported", UsageError);
}

}  // namespace
}  // namespace convladder
