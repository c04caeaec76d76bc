#include "common/cuda/streams.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "common/cuda/graphs.hpp"

using simt_cuda::Clock;

namespace {
/// Of a stream whose work goes into a graph.
struct Capture {
  std::shared_ptr<CUgraph_st> graph;
  std::vector<CUgraphNode_st*> last;  ///< what the next node waits for
  bool is_given = false;              ///< the program's own graph, which goes on after the capture
};
}  // namespace

struct CUstream_st {
  unsigned number;
  bool blocking;  ///< waits for the default stream, which waits for it
  Clock clock;
  Capture capture;
};
struct CUevent_st {
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  Clock clock;
  Capture capture;
};

namespace simt_cuda {
namespace {

struct Started {
  unsigned stream;
  std::uint64_t number;
  simt::Unordered work;
};

struct Streams {
  Clock host;
  CUstream_st legacy{0, true, {}, {}}, per_thread{1, true, {}, {}};
  std::set<CUstream_st*> all{&legacy, &per_thread};
  unsigned count = 2;
  std::deque<Started> started;  ///< what the host has not waited for
};

Streams& streams() {
  static auto& instance = *new Streams;  // outlives every destructor of the program
  return instance;
}

CUstream_st& stream_of(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy) return streams().legacy;
  return stream == cudaStreamPerThread ? streams().per_thread : *stream;
}

/// What is over when work begins in the stream.
Clock clock_of(const CUstream_st& stream) {
  Clock clock = stream.clock;
  clock.join(streams().host);
  if (&stream == &streams().legacy) {
    for (const CUstream_st* other : streams().all)
      if (other->blocking) clock.join(other->clock);
  } else if (stream.blocking) {
    clock.join(streams().legacy.clock);
  }
  return clock;
}

void forget_what_is_over() {
  std::erase_if(streams().started, [](const Started& s) { return streams().host[s.stream] >= s.number; });
}

std::vector<simt::Unordered> unordered_with(const Clock& clock) {
  std::vector<simt::Unordered> work;
  for (const Started& started : streams().started)
    if (clock[started.stream] < started.number) work.push_back(started.work);
  return work;
}

void host_knows(const Clock& clock) {
  streams().host.join(clock);
  forget_what_is_over();
}

}  // namespace

void begin_work(cudaStream_t handle, simt::Unordered work) {
  CUstream_st& stream = stream_of(handle);
  Clock clock = clock_of(stream);
  simt::set_unordered(unordered_with(clock));
  const std::uint64_t number = clock.tick(stream.number);
  stream.clock = std::move(clock);
  streams().started.push_back({stream.number, number, std::move(work)});
}

void end_launch(const Configuration& configuration, std::pair<std::uint32_t, std::uint32_t> blocks) {
  simt::Unordered& work = streams().started.back().work;
  std::tie(work.first, work.last) = blocks;
  const dim3 grid = configuration.grid, block = configuration.block;
  const unsigned sizes[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z};
  std::copy(sizes, sizes + 3, work.grid);
  std::copy(sizes + 3, sizes + 6, work.block);
}

void wait_for(cudaStream_t stream) { host_knows(clock_of(stream_of(stream))); }

bool& in_graph() {
  static bool runs = false;
  return runs;
}

void wait_for_all() {
  for (const CUstream_st* stream : streams().all) streams().host.join(stream->clock);
  streams().started.clear();
}

bool begin_host_access() {
  if (streams().started.empty()) return false;
  simt::set_unordered(unordered_with(streams().host));
  return true;
}

bool is_stream(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread ||
         streams().all.count(stream) != 0;
}

bool is_capturing(cudaStream_t stream) { return is_stream(stream) && stream_of(stream).capture.graph != nullptr; }

void add_step(cudaStream_t stream, Step* step, cudaGraphNodeType type) {
  Capture& capture = stream_of(stream).capture;
  capture.last = {add_node(*capture.graph, type, step, capture.last)};
}

Clock begin_in(cudaStream_t stream) { return clock_of(stream_of(stream)); }
Clock reached_in(cudaStream_t stream) { return stream_of(stream).clock; }
void reach(cudaStream_t stream, Clock clock) { stream_of(stream).clock = std::move(clock); }

}  // namespace simt_cuda

using simt_cuda::stream_of;
using simt_cuda::streams;

cudaError cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = new CUstream_st{streams().count++, !(flags & cudaStreamNonBlocking), {}, {}};
  streams().all.insert(*stream);
  return cudaSuccess;
}

cudaError cudaStreamDestroy(cudaStream_t stream) {
  if (!stream || streams().all.erase(stream) == 0) return cudaErrorInvalidResourceHandle;
  // What is in it goes on; nobody can wait for it any more but for all.
  streams().legacy.clock.join(stream->clock);
  delete stream;
  return cudaSuccess;
}

cudaError cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  if (!event || !simt_cuda::is_stream(handle)) return cudaErrorInvalidResourceHandle;
  CUstream_st& stream = stream_of(handle);
  stream.clock.join(event->clock);
  if (!event->capture.graph) return cudaSuccess;
  stream.capture.graph = event->capture.graph;
  for (CUgraphNode_st* node : event->capture.last)
    if (std::count(stream.capture.last.begin(), stream.capture.last.end(), node) == 0)
      stream.capture.last.push_back(node);
  return cudaSuccess;
}

cudaError cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError cudaEventDestroy(cudaEvent_t event) {
  if (!event) return cudaErrorInvalidResourceHandle;
  delete event;
  return cudaSuccess;
}

cudaError cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  if (!event || !simt_cuda::is_stream(handle)) return cudaErrorInvalidResourceHandle;
  const CUstream_st& stream = stream_of(handle);
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  event->clock = simt_cuda::clock_of(stream);
  event->capture = stream.capture;
  return cudaSuccess;
}

cudaError cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin || !end || !begin->recorded || !end->recorded) return cudaErrorInvalidResourceHandle;
  static bool said = false;
  if (!said) std::fprintf(stderr, "./lab sim: elapsed times are the simulator's on this machine, not a GPU's\n");
  said = true;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return cudaSuccess;
}

cudaError cudaEventSynchronize(cudaEvent_t event) {
  if (!event) return cudaErrorInvalidResourceHandle;
  simt_cuda::host_knows(event->clock);
  return cudaPeekAtLastError() == cudaSuccess ? cudaSuccess : cudaDeviceSynchronize();
}

cudaError cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }

cudaError cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || !simt_cuda::is_stream(stream) || simt_cuda::is_capturing(stream))
    return cudaErrorStreamCaptureUnsupported;
  stream_of(stream).capture = {std::make_shared<CUgraph_st>(), {}, false};
  return cudaSuccess;
}

cudaError cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* after,
                                        const cudaGraphEdgeData*, size_t count, cudaStreamCaptureMode mode) {
  if (!graph || (count > 0 && !after)) return cudaErrorInvalidValue;
  if (const cudaError error = cudaStreamBeginCapture(stream, mode)) return error;
  stream_of(stream).capture = {std::shared_ptr<CUgraph_st>(graph, [](CUgraph_st*) {}), {after, after + count}, true};
  return cudaSuccess;
}

cudaError cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* number,
                                   cudaGraph_t* graph, const cudaGraphNode_t** last, size_t* count) {
  if (!status || !simt_cuda::is_stream(stream)) return cudaErrorInvalidValue;
  cudaStreamIsCapturing(stream, status);
  const Capture& capture = stream_of(stream).capture;
  if (!capture.graph) return cudaSuccess;
  if (number) *number = reinterpret_cast<std::uintptr_t>(capture.graph.get());
  if (graph) *graph = capture.graph.get();
  if (last) *last = capture.last.data();
  if (count) *count = capture.last.size();
  return cudaSuccess;
}

cudaError cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* last, size_t count,
                                              unsigned flags) {
  if (!simt_cuda::is_capturing(stream)) return cudaErrorIllegalState;
  auto& present = stream_of(stream).capture.last;
  if (flags == cudaStreamSetCaptureDependencies) present.clear();
  present.insert(present.end(), last, last + count);
  return cudaSuccess;
}

cudaError cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!simt_cuda::is_capturing(stream)) return cudaErrorIllegalState;
  const auto captured = stream_of(stream).capture.graph;
  const bool is_given = stream_of(stream).capture.is_given;
  for (CUstream_st* other : streams().all)
    if (other->capture.graph == captured) other->capture = {};
  if (is_given) {
    if (graph) *graph = captured.get();
    return cudaSuccess;
  }
  *graph = new CUgraph_st(std::move(*captured));
  for (const auto& node : (*graph)->nodes) node->graph = *graph;
  return cudaSuccess;
}

cudaError cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = simt_cuda::is_capturing(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  if (!simt_cuda::is_stream(stream)) return cudaErrorInvalidResourceHandle;
  *flags = stream_of(stream).blocking ? cudaStreamDefault : cudaStreamNonBlocking;
  return cudaSuccess;
}
