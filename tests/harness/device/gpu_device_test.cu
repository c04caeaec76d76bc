// DeviceBuffer, observe and GraphTimer on a GPU. A program without one ends with status 77 before its tests.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/harness/device/timing.hpp"
#include "common/kernel/kernel.hpp"

using namespace convladder;

namespace {

__global__ void store(float* data, long index, float value) { data[index] = value; }
__global__ void add_one(unsigned* counter) { atomicAdd(counter, 1u); }
template <int kFactor>
__global__ void scale(float* data) {
  __shared__ float held[64];
  held[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = kFactor * held[63 - threadIdx.x];
}
__global__ void use_dynamic_shared(float* out) {
  float* shared = dynamic_shared<float>();
  shared[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
__global__ void wait_cycles(long long cycles) {
  for (const long long start = clock64(); clock64() - start < cycles;) {
  }
}

void run_store(const DeviceBuffer& buffer, long index, float value) {
  observe([&](Stream stream) { launch(store, dim3(1), dim3(1), 0, stream)(buffer.floats(), index, value); }, false);
}

/// The message of the error that `work` throws, "" if none.
template <class Error, class Work>
std::string error_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("DeviceBuffer keeps its contents, alignment and owner") {
  std::vector<float> source(1001), back(1001);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i);
  DeviceBuffer buffer(source.size() * sizeof(float), "buffer");
  CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256 == 0);
  buffer.upload(source.data());
  DeviceBuffer moved(std::move(buffer));
  CHECK(buffer.data() == nullptr);
  moved.download(back.data());
  CHECK(back == source);
  CHECK(moved.guards_intact());

  DeviceBuffer empty(0, "empty");
  empty.poison();
  empty.upload(nullptr);
  empty.download(nullptr);
  CHECK(empty.guards_intact());
  empty = std::move(moved);
  CHECK(empty.bytes() == source.size() * sizeof(float));
  CHECK(DeviceBuffer().guards_intact());
}

TEST_CASE("poison fills every word, whatever was there") {
  for (const std::size_t words : {1u, 255u, 257u, 3'000'001u}) {
    DeviceBuffer buffer(words * 4, "buffer");
    std::vector<std::uint32_t> back(words, 0);
    buffer.upload(back.data());
    buffer.poison();
    buffer.download(back.data());
    CHECK(back == std::vector<std::uint32_t>(words, kPoison));
    CHECK(buffer.guards_intact());
  }
}

TEST_CASE("poison fills an odd number of halves, and no more") {
  for (const std::size_t count : {1u, 3u, 255u, 1'000'001u}) {
    DeviceBuffer buffer(count * 2, "buffer");
    std::vector<std::uint16_t> back(count, 0);
    buffer.upload(back.data());
    buffer.poison();
    buffer.download(back.data());
    CHECK(back == std::vector<std::uint16_t>(count, kHalfPoison));
    CHECK(buffer.guards_intact());
  }
}

TEST_CASE("a store just outside a buffer is seen, until poison() mends the bands") {
  for (const long offset : {-1024L, -1L, 100L, 1123L}) {
    CAPTURE(offset);
    DeviceBuffer buffer(100 * sizeof(float), "buffer");
    buffer.poison();
    run_store(buffer, offset, 0.0f);
    CHECK_FALSE(buffer.guards_intact());
    buffer.poison();
    CHECK(buffer.guards_intact());
    run_store(buffer, offset, std::numeric_limits<float>::quiet_NaN());
    CHECK_FALSE(buffer.guards_intact());
  }
  DeviceBuffer buffer(100 * sizeof(float), "buffer");
  buffer.poison();
  run_store(buffer, 0, 0.0f);
  run_store(buffer, 99, 0.0f);
  CHECK(buffer.guards_intact());
}

TEST_CASE("memory that is not there is a MachineError naming both sizes, and breaks nothing") {
  const std::string message = error_of<MachineError>([] { DeviceBuffer(std::size_t{1} << 44, "output"); });
  CHECK(contains(message, "not enough GPU memory: output needs 16777216 MiB, "));
  CHECK(contains(message, " MiB are free"));
  DeviceBuffer buffer(4, "buffer");
  CHECK_NOTHROW(run_store(buffer, 0, 1.0f));
}

TEST_CASE("observe tells each kernel's name, registers, shared memory and occupancy, once") {
  DeviceBuffer buffer(64 * sizeof(float), "buffer");
  const Observation observation = observe(
      [&](Stream stream) {
        for (int i = 0; i < 3; ++i) launch(scale<3>, dim3(1), dim3(64), 0, stream)(buffer.floats());
        launch(use_dynamic_shared, dim3(1), dim3(64), 65536, stream)(buffer.floats());
      },
      false);
  REQUIRE(observation.kernels.size() == 2);
  const KernelInfo &first = observation.kernels[0], &second = observation.kernels[1];
  CHECK(first.name == "scale<3>");
  CHECK(first.registers > 0);
  CHECK(first.shared_bytes == 256);
  CHECK(first.spill_bytes == 0);
  CHECK(first.occupancy > 0.5);
  CHECK(first.occupancy <= 1);
  CHECK(second.name == "use_dynamic_shared");
  CHECK(second.shared_bytes == 65536);
  CHECK(second.occupancy < 0.25);
  CHECK(observation.faults.empty());
}

TEST_CASE("a kernel that cannot start is a DeviceError naming it, and the next one runs") {
  DeviceBuffer buffer(4096 * sizeof(float), "buffer");
  const std::string too_many_threads = error_of<DeviceError>([&] {
    observe([&](Stream stream) { launch(use_dynamic_shared, dim3(1), dim3(4096), 0, stream)(buffer.floats()); }, false);
  });
  CHECK(contains(too_many_threads, "kernel use_dynamic_shared did not start: "));
  const std::string too_much_shared = error_of<DeviceError>([&] {
    observe([&](Stream stream) { launch(use_dynamic_shared, dim3(1), dim3(64), 1 << 20, stream)(buffer.floats()); },
            false);
  });
  CHECK(contains(too_much_shared, "kernel use_dynamic_shared asks for 1048576 bytes of dynamic shared memory"));
  CHECK_NOTHROW(run_store(buffer, 0, 1.0f));
}

// Loses the GPU context, so it runs in a process of its own, which the test after it starts.
TEST_CASE("child: a store to no memory" * doctest::skip()) {
  DeviceBuffer buffer(4, "buffer");
  const std::string name = device_info().name;
  const std::string message = error_of<DeviceError>([&] { run_store(buffer, 1L << 45, 1.0f); });
  CHECK(contains(message, "running store: "));
  CHECK(contains(message, "the GPU context is lost"));
  CHECK(device_info().name == name);  // a report is still to be written
}

TEST_CASE("a store to no memory is a DeviceError that says the context is lost") {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "'" + program + "' --no-skip --test-case='child: a store to no memory'";
  CHECK(std::system((command + " | grep -q '3 passed | 0 failed'").c_str()) == 0);  // its three assertions
}

TEST_CASE("run_and_wait waits and tells the time") {
  const double short_us =
      run_and_wait([](Stream stream) { launch(wait_cycles, dim3(1), dim3(1), 0, stream)(100'000LL); });
  const double long_us =
      run_and_wait([](Stream stream) { launch(wait_cycles, dim3(1), dim3(1), 0, stream)(20'000'000LL); });
  CHECK(short_us > 0);
  CHECK(long_us > 5000);  // at least 5 ms up to a clock of 4 GHz
  CHECK(long_us > short_us);
}

TEST_CASE("GraphTimer runs every round, and its time is per launch") {
  DeviceBuffer counter(sizeof(unsigned), "counter");
  unsigned count = 0;
  counter.upload(&count);
  const auto add = [&](Stream stream) {
    launch(add_one, dim3(1), dim3(1), 0, stream)(static_cast<unsigned*>(counter.data()));
  };
  GraphTimer timer({add, add, add}, 5);
  counter.download(&count);
  const unsigned warm_up = count;
  CHECK(warm_up % 15 == 0);
  const double time_us = timer.sample();
  CHECK(time_us > 0);
  counter.download(&count);
  CHECK(count == warm_up + 15);

  const auto wait = [](Stream stream) { launch(wait_cycles, dim3(1), dim3(1), 0, stream)(400'000LL); };
  GraphTimer once({wait}, 1), twenty({wait}, 20);
  const double once_us = once.sample(), twenty_us = twenty.sample();
  CHECK(once_us > 100);
  CHECK(twenty_us == doctest::Approx(once_us).epsilon(0.25));
  CHECK(repetitions_for(wait, 4 * once_us) >= 2);
  CHECK(repetitions_for(wait, 4 * once_us) <= 6);
  CHECK(repetitions_for(wait, 0.001) == 1);
  CHECK(repetitions_for(add, 1e9) == 200);
}

TEST_CASE("no part of L2 is set aside for accesses that persist while there is a GraphTimer") {
  std::size_t before = 0, during = 1, after = 0;
  const auto limit = [](std::size_t& bytes) { return cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize); };
  if (cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20) != cudaSuccess) {
    cudaGetLastError();
    return;  // before Ampere there is no such thing
  }
  limit(before);
  REQUIRE(before > 0);
  const auto wait = [](Stream stream) { launch(wait_cycles, dim3(1), dim3(1), 0, stream)(1000LL); };
  {
    GraphTimer first({wait}, 1);
    {
      const GraphTimer second({wait}, 1);
      limit(during);
      CHECK(during == 0);
    }
    limit(during);
    CHECK(during == 0);
    CHECK(first.sample() > 0);
  }
  limit(after);
  CHECK(after == before);
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
}

TEST_CASE("what the driver tells during samples is of a GPU at work") {
  const auto wait = [](Stream stream) { launch(wait_cycles, dim3(1), dim3(1), 0, stream)(4'000'000LL); };
  GraphTimer timer({wait}, 1);
  CHECK_FALSE(timer.conditions());
  for (int i = 0; i < 3; ++i) timer.sample();
  const auto seen = timer.conditions();
  if (!seen) return;  // this driver, or who runs this, has no NVML
  CHECK(seen->samples == 3);
  CHECK(seen->sm_clock_mhz > 100);
  CHECK(seen->least_sm_clock_mhz <= seen->sm_clock_mhz);
  CHECK(seen->power_w > 1);
  CHECK(seen->power_w <= seen->most_power_w);
}

TEST_CASE("a launch that fails while it is captured throws, and the stream is usable after it") {
  DeviceBuffer buffer(4096 * sizeof(float), "buffer");
  const auto wrong = [&](Stream stream) {
    launch(use_dynamic_shared, dim3(1), dim3(4096), 0, stream)(buffer.floats());
  };
  const auto waiting = [&](Stream) { buffer.poison(); };  // waits for the stream, which a capture does not allow
  CHECK_THROWS_AS(GraphTimer({wrong}, 2), DeviceError);
  CHECK_THROWS_AS(GraphTimer({waiting}, 2), DeviceError);
  CHECK_NOTHROW(run_store(buffer, 0, 1.0f));
  GraphTimer good({[&](Stream stream) { launch(store, dim3(1), dim3(1), 0, stream)(buffer.floats(), 0L, 2.0f); }}, 2);
  CHECK(good.sample() > 0);
}

TEST_CASE("the device's facts and ceilings are those of a GPU") {
  const DeviceInfo info = device_info();
  CHECK(backend() == Backend::gpu);
  CHECK_FALSE(info.name.empty());
  CHECK(info.compute_capability >= 70);
  CHECK(info.compute_capability == device_limits().compute_capability);
  CHECK(info.shared_bytes_per_block == device_limits().shared_bytes_per_block);
  CHECK(info.free_memory_bytes <= info.memory_bytes);

  const Ceilings ceilings = measure_ceilings();
  CHECK(ceilings.dram_bytes_per_s > 5e10);
  CHECK(ceilings.dram_bytes_per_s < 5e13);
  CHECK(ceilings.l2_bytes_per_s > ceilings.dram_bytes_per_s * 0.8);
  // Two operations a clock in each of at most 128 lanes, at no more than 4 GHz.
  CHECK(ceilings.fp32_flops_per_s > 1e11);
  CHECK(ceilings.fp32_flops_per_s < 2.0 * 128 * info.multiprocessors * 4e9);
  if (info.compute_capability >= 75) {  // Tensor Cores for both
    CHECK(ceilings.fp16_flops_per_s > 2 * ceilings.fp32_flops_per_s);
    CHECK(ceilings.int8_ops_per_s > 1.2 * ceilings.fp16_flops_per_s);
    CHECK(ceilings.int8_ops_per_s < 1e16);
  }
  CHECK(ceilings.launch_us > 0.1);
  CHECK(ceilings.launch_us < 20);
}
