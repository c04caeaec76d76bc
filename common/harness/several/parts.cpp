#include "common/harness/several/parts.hpp"

#include "common/harness/device/gpu/device_gpu.hpp"

namespace convladder {

std::vector<Change> changes_of(const std::string& stage) {
  if (stage == "41") return {Change::none, Change::no_exchange};
  if (stage == "42") return {Change::none, Change::no_exchange, Change::one_stream, Change::interior_later};
  if (stage == "43") return {Change::none, Change::own_rows, Change::one_stream, Change::interior_later};
  return {};
}

std::string words_of(Change change) {
  switch (change) {
    case Change::none:
      return "";
    case Change::no_exchange:
      return "no exchange";
    case Change::one_stream:
      return "one stream";
    case Change::interior_later:
      return "interior later";
    case Change::own_rows:
      return "own rows";
  }
  return "";
}

Probe::Probe(Ranks& ranks, Change change, bool events)
    : ranks_(ranks), change_(change), with_events_(events), four_bytes_(4, "four bytes") {
  for (cudaEvent_t& event : events_) require(cudaEventCreate(&event), "creating an event");
}
Probe::~Probe() {
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

void Probe::group_start() {
  if (change_ != Change::no_exchange) ranks_.group_start();
  group_ = nullptr;
}
void Probe::group_end() {
  if (change_ == Change::no_exchange) return;
  ranks_.group_end();
  if (group_) record(kExchange, group_);
}
void Probe::send(const void* from, std::int64_t bytes, int to, Stream stream) {
  if (change_ != Change::no_exchange) ranks_.send(from, bytes, to, group_ = stream);
}
void Probe::receive(void* to, std::int64_t bytes, int from, Stream stream) {
  if (change_ != Change::no_exchange) ranks_.receive(to, bytes, from, group_ = stream);
}

Stream Probe::side_stream() { return change_ == Change::one_stream ? device_stream() : ranks_.side_stream(); }

void Probe::follow(Stream later, Stream earlier) {
  if (change_ == Change::one_stream) return;
  const bool fork = later == ranks_.side_stream();
  if (fork) {
    record(kBegin, earlier);
  } else {
    record(kSecond, earlier);
    record(kFirst, later);
  }
  ranks_.follow(later, earlier);
  if (fork && change_ == Change::interior_later)
    require(cudaMemsetAsync(four_bytes_.data(), 0, four_bytes_.bytes(), earlier), "filling memory");
}

void Probe::record(Event event, Stream stream) {
  cudaStreamCaptureStatus status{};
  require(cudaStreamIsCapturing(stream, &status), "asking for a capture");
  if (!with_events_ || status != cudaStreamCaptureStatusActive) return;
  require(cudaEventRecordWithFlags(events_[event], stream, cudaEventRecordExternal), "recording an event in a graph");
  recorded_[event] = true;
}

std::optional<double> Probe::until(Event event) {
  float milliseconds = -1;
  if (recorded_[kBegin] && recorded_[event] &&
      cudaEventElapsedTime(&milliseconds, events_[kBegin], events_[event]) != cudaSuccess) {
    cudaGetLastError();  // a driver that tells no times of a graph's events: the column stays empty
    milliseconds = -1;
  }
  const double slowest = ranks_.largest(milliseconds, device_stream());
  if (slowest < 0) return std::nullopt;
  return 1e3 * slowest;
}

Ends Probe::ends() { return {until(kExchange), until(kSecond), until(kFirst)}; }

}  // namespace convladder
