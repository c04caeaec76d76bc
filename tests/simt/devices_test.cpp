#include "common/simt/devices.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/simt/devices.hpp"
#include "tests/simt/expect.hpp"

namespace {

using simt::FaultKind;

/// Numbers of all ranks after both rounds; lines of 5, 6, ... numbers.
std::vector<float> run(int ranks, Slip slip) {
  simt::Devices devices(ranks);
  std::vector<Line> lines;
  std::vector<float> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const int count = 5 + rank;
    const auto bytes = static_cast<std::int64_t>((count + 2) * sizeof(float));
    Line& line = lines.emplace_back(Line{static_cast<float*>(devices.allocate(rank, bytes, "numbers")),
                                         static_cast<float*>(devices.allocate(rank, bytes, "sums")), count});
    std::vector<float> own{-1};  // the halo: wrong, and written
    for (int i = 0; i < count; ++i) own.push_back(static_cast<float>(10 * rank + i));
    own.push_back(-1);
    simt::upload(line.numbers, own.data(), own.size() * sizeof(float));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    devices.begin_capture(rank);
    smooth(lines[at], lines[(at + 1) % lines.size()], devices.communicator(rank), devices.stream(rank), slip);
    devices.end_capture(rank);
  }
  devices.run();
  for (const Line& line : lines) {
    std::vector<float> own(static_cast<std::size_t>(line.count));
    simt::download(own.data(), line.numbers + 1, own.size() * sizeof(float));
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

/// The first fault of it, with two ranks.
simt::FaultRecord first_fault(Slip slip) {
  const auto found = faults([&] { run(2, slip); });
  REQUIRE(!found.empty());
  return found.front();
}

void expect(Slip slip, FaultKind kind, const char* marker, const std::string& detail) {
  const simt::FaultRecord fault = first_fault(slip);
  CAPTURE(fault.detail);
  CHECK(std::string(to_string(fault.kind)) == to_string(kind));
  if (*marker) CHECK(simt::line_of(fault).line == marked_line(marker));
  CHECK(fault.detail.find(detail) != std::string::npos);
}

TEST_CASE("several devices: an exchange beside the inner sums is right, for any number of ranks") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    CAPTURE(ranks);
    std::vector<float> numbers;
    for (int rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < 5 + rank; ++i) numbers.push_back(static_cast<float>(10 * rank + i));
    for (int round = 0; round < 2; ++round) {
      const std::vector<float> before = numbers;
      const std::size_t size = before.size();
      for (std::size_t i = 0; i < size; ++i)
        numbers[i] = before[(i + size - 1) % size] + before[i] + before[(i + 1) % size];
    }
    simt::begin_measurement();
    // With two ranks both neighbours are the same one: what is sent first must be received first.
    CHECK(run(ranks, Slip::none) == numbers);
    CHECK(simt::measurement().faults.empty());
  }
}

TEST_CASE("several devices: what waits for nobody is a deadlock, with both sides named") {
  expect(Slip::no_group, FaultKind::deadlock, "sends_first",
         "rank 0 sends 4 bytes to rank 1, which waits until its own send to rank 0 at tests/simt/devices.cu:");
  expect(Slip::nobody_sends, FaultKind::deadlock, "receives_end", "rank 0 receives 4 bytes from rank 1, which waits");
}

TEST_CASE("several devices: sizes that differ are a fault, with both sides named") {
  expect(Slip::fewer_bytes, FaultKind::size_mismatch, "receives_begin",
         "rank 1 receives 2 bytes from rank 0, which sends 4 at tests/simt/devices.cu:");
}

TEST_CASE("several devices: an exchange and a kernel that nothing orders are a race") {
  expect(Slip::no_wait, FaultKind::race, "",
         "which 'add_neighbours' in another stream may still read at tests/simt/devices.cu:");
  expect(Slip::overwrites, FaultKind::race, "add_neighbours", "an exchange in another stream");
  expect(Slip::sends_too_soon, FaultKind::race, "sends_first",
         "rank 0 sends 4 bytes of 'numbers', which 'rewrite' in another stream writes at tests/simt/devices.cu:");
  expect(Slip::overlaps, FaultKind::race, "receives_begin", "rank 0 receives what the same group sends at tests/");
}

TEST_CASE("several devices: a graph without the exchange, or without an end, is found") {
  expect(Slip::out_of_graph, FaultKind::not_captured, "sends_first",
         "rank 0 puts an exchange on a stream that follows nothing in the graph");
  expect(Slip::no_end, FaultKind::not_captured, "sends_first", "the first stream never waits");
}

TEST_CASE("several devices: what is sent must be written, and lie where it may") {
  expect(Slip::uninitialised, FaultKind::uninitialized, "sends_first",
         " sends bytes of 'sums' that nothing has written");
  expect(Slip::past_the_end, FaultKind::out_of_bounds, "receives_end", "rank 1 receives 4 bytes");
  expect(Slip::peers_memory, FaultKind::out_of_bounds, "add_neighbours", "device 0 reads 'numbers' of device 1");
}

TEST_CASE("several devices: the order of sends decides what comes where") {
  simt::begin_measurement();
  CHECK(run(2, Slip::swapped) != run(2, Slip::none));  // right by every rule, and wrong
}

}  // namespace
