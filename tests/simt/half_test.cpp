// Halves in the simulator: what their copies count.
#include "tests/simt/expect.hpp"
#include "tests/simt/kernels.hpp"

TEST_CASE("simt: a half is copied by one access of 2 bytes, a pair by one of 4") {
  std::vector<std::uint16_t> values(32 + 64 + 256);
  std::iota(values.begin(), values.end(), std::uint16_t{1});
  Array<std::uint16_t> input(values, "input"), output(values.size(), "output");
  const Counters c = count([&] { launch_half_copies(input, output); });
  CHECK(output.values() == values);
  CHECK(c.global_load_requests == 3);
  CHECK(c.global_load_bytes == 32 * (2 + 4 + 16));
  CHECK(c.global_load_sectors == 2 + 4 + 16);
  CHECK(c.global_store_requests == 3);
  CHECK(c.global_store_bytes == 32 * (2 + 4 + 16));
  CHECK(c.shared_store_requests == 1);
  CHECK(c.shared_load_requests == 1);
  CHECK(c.shared_load_conflicts == 0);
}

TEST_CASE("simt: accesses that pass L1 by count as others do") {
  Array<float> input(ramp(32), "input"), output(32, "output");
  Array<std::uint16_t> halves(32, "halves");
  const Counters c = count([&] { launch_cache_global(input, halves, output); });
  CHECK(output.values() == ramp(32));
  CHECK(c.global_load_requests == 2);
  CHECK(c.global_load_bytes == 32 * (4 + 2));
  CHECK(c.global_store_requests == 2);
}
