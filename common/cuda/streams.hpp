/// @file
/// What a plain CUDA program has put into an order: streams, events and graphs. Each call still runs to its end at
/// once; here is kept what on a GPU would have been free to overlap, so that two that touch the same memory are found.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/cuda/include/cuda_runtime.h"
#include "common/simt/clock.hpp"
#include "common/simt/runtime.hpp"

namespace simt_cuda {

using simt::Clock;

/// Work begins in a stream: tells the simulator what it can race with.
/// @param work without what a launch is told of afterwards
void begin_work(cudaStream_t stream, simt::Unordered work);
/// The blocks of the launch that has just ended, which begin_work() began: the first and the last one's serial number.
void end_launch(const Configuration& configuration, std::pair<std::uint32_t, std::uint32_t> blocks);
/// The host waits for all work of a stream, or for all.
void wait_for(cudaStream_t stream);
/// The same of all streams.
void wait_for_all();
/// Tells the simulator what the host's own accesses can race with. Whether there is any.
bool begin_host_access();
/// What is over when work begins in the stream.
Clock begin_in(cudaStream_t stream);
/// What the stream's own work has come to.
Clock reached_in(cudaStream_t stream);
/// The stream's own work has come so far.
void reach(cudaStream_t stream, Clock clock);

// ---- For graphs, in runtime.cpp ------------------------------------------------------------------------------------

/// A launch of a kernel of which the address is known. @param what for a refusal
Step* later(const char* what, const void* kernel, const Configuration& configuration, void** arguments);
/// Elements of 1, 2 or 4 bytes.
cudaError fill_pattern(const cudaMemsetParams& parameters, cudaStream_t stream, const char* file, int line);
/// Whether a graph's nodes run: none of them holds up the host.
bool& in_graph();
/// Memory that a graph frees, if anybody does.
cudaError allocate_for_graph(void** pointer, size_t bytes, SIM_NAMED);
/// As if it had just been allocated, at its address.
void begin_of_graph(void* pointer);
/// @return whether it is a graph's memory that was there until now
bool end_of_graph(void* pointer);

/// Whether the stream is one; null and CUDA's two constants are.
bool is_stream(cudaStream_t stream);

}  // namespace simt_cuda
