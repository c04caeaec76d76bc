// Counts what two kernels for the same transposition ask of global memory.
#include <cstdio>
#include <vector>

#include "common/harness/device/device.hpp"
#include "transpose.hpp"

int main() {
  using namespace convladder;
  constexpr int kSize = 64;
  std::vector<float> input(kSize * kSize), output(kSize * kSize);
  for (int i = 0; i < kSize * kSize; ++i) input[static_cast<std::size_t>(i)] = static_cast<float>(i);
  DeviceBuffer from(input.size() * sizeof(float), "input"), to(output.size() * sizeof(float), "output");
  from.upload(input.data());
  bool right = true;
  for (const bool tiled : {false, true}) {
    to.poison();
    const Observation seen = observe([&](Stream) { transpose(from.floats(), to.floats(), tiled); }, false);
    to.download(output.data());
    for (int i = 0; i < kSize * kSize; ++i)
      right = right && output[static_cast<std::size_t>(i)] == static_cast<float>(i % kSize * kSize + i / kSize);
    const Counters& c = seen.counters;
    // A coalesced request of 32 floats touches 4 sectors, one with a stride 32.
    right = right && seen.faults.empty() && c.global_store_requests == 128 &&
            c.global_store_sectors == 128 * (tiled ? 4 : 32) && c.shared_load_conflicts == 0;
    std::printf("%s: %lld store requests, %lld sectors\n", tiled ? "tiled" : "naive",
                static_cast<long long>(c.global_store_requests), static_cast<long long>(c.global_store_sectors));
  }
  return right ? 0 : 1;
}
