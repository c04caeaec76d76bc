#include "common/harness/several/ranks.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <stop_token>
#include <thread>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#ifdef CONVLADDER_NCCL
#include <nccl.h>
#endif

namespace convladder {
namespace {

/// Of an environment variable; -1 where there is none.
int number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  if (!text) return -1;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || number < 0 || number > 1 << 20)
    throw UsageError(std::string(variable) + " must be a number; got " + text);
  return static_cast<int>(number);
}

}  // namespace

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw DeviceError(std::string(what) + " failed: " + cudaGetErrorString(status));
}

Place place_of_process() {
  // Of torchrun, Open MPI, MPICH and Slurm.
  for (const auto& [rank, ranks, local] :
       {std::array{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
        {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
        {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}}) {
    const Place place{number_of(rank), number_of(ranks), number_of(local)};
    if (place.rank < 0 || place.ranks < 0) continue;
    if (place.rank >= place.ranks)
      throw UsageError(std::string(rank) + " must be below " + ranks + "; got " + std::to_string(place.rank) + " of " +
                       std::to_string(place.ranks));
    return {place.rank, place.ranks, place.local_rank < 0 ? place.rank : place.local_rank};
  }
  return {};
}

void choose_gpu(const Place& place) {
  std::string own = std::to_string(place.local_rank);
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::stringstream list(visible);
    std::vector<std::string> all;
    for (std::string each; std::getline(list, each, ',');) all.push_back(each);
    if (static_cast<std::size_t>(place.local_rank) < all.size())
      own = all[static_cast<std::size_t>(place.local_rank)];
    else if (all.size() == 1)
      own = all.front();  // the launcher has chosen
    else
      throw MachineError("CUDA_VISIBLE_DEVICES shows " + std::to_string(all.size()) + " GPUs; this is process " +
                         std::to_string(place.local_rank) + " of the machine, counted from 0");
  }
  setenv("CUDA_VISIBLE_DEVICES", own.c_str(), 1);
}

SharedMemory::SharedMemory(Ranks& ranks, std::int64_t bytes) : ranks_(ranks) {
  // Other processes are shown whole pages of the driver, of 2 MiB.
  constexpr std::int64_t kPage = std::int64_t{2} << 20;
  const auto whole = static_cast<std::size_t>((bytes / kPage + 1) * kPage);
  require(cudaMalloc(&own_, whole), "allocating memory for all ranks");
  require(cudaMemset(own_, 0, whole), "filling memory for all ranks");
  require(cudaDeviceSynchronize(), "filling memory for all ranks");
  all_ = ranks.open_to_all(own_);
}

SharedMemory::~SharedMemory() {
  if (std::uncaught_exceptions() > 0) return;  // the others may not come; the process ends
  ranks_.close(all_);
  cudaFree(own_);
}

#ifdef CONVLADDER_NCCL

namespace {

constexpr auto kPatience = std::chrono::seconds(30);  ///< how long the other ranks may be waited for

void check_nccl(ncclResult_t status, const char* what) {
  if (status == ncclSuccess) return;
  const std::string details = ncclGetLastError(nullptr);
  throw DeviceError(std::string(what) + " failed: " + ncclGetErrorString(status) +
                    (details.empty() ? "" : " (" + details + ")"));
}

/// Ends the process where it has waited for the other ranks for too long. A wait for a rank that has ended has no end,
/// and neither NCCL nor CUDA can be told to give it up.
class Watch {
 public:
  explicit Watch(int rank) : rank_(rank), thread_([this](const std::stop_token& stop) { look_on(stop); }) {}

  void begin(const char* what) {
    const std::lock_guard lock(mutex_);
    what_ = what;
    deadline_ = Clock::now() + kPatience;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    what_ = nullptr;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void look_on(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      ended_.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; });
      if (!what_ || Clock::now() < deadline_) continue;
      print_stderr("rank {} has waited for the other ranks for half a minute, {}: one of them has ended, or hangs\n",
                   rank_, what_);
      std::fflush(nullptr);
      std::_Exit(1);
    }
  }

  int rank_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  const char* what_ = nullptr;
  Clock::time_point deadline_;
  std::jthread thread_;  // last: it uses the others
};

/// While it lives, the process waits for the other ranks.
class Waiting {
 public:
  Waiting(Watch& watch, const char* what) : watch_(watch) { watch_.begin(what); }
  ~Waiting() { watch_.end(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Watch& watch_;
};

/// Left in the file by rank 0, read by the others.
ncclUniqueId meet(const Place& place, const std::filesystem::path& file) {
  ncclUniqueId id{};
  if (place.rank == 0) {
    check_nccl(ncclGetUniqueId(&id), "making NCCL's identifier");
    if (place.ranks > 1) write_file(file, std::string(id.internal, sizeof id.internal));
    return id;
  }
  const auto start = std::filesystem::file_time_type::clock::now();
  while (std::filesystem::file_time_type::clock::now() < start + kPatience) {
    std::error_code error;
    // One of an earlier run may have been left behind.
    const bool fresh = std::filesystem::last_write_time(file, error) > start - kPatience && !error;
    if (std::ifstream in(file, std::ios::binary); fresh && in.read(id.internal, sizeof id.internal)) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw MachineError("rank 0 has not left NCCL's identifier in " + file.string() +
                     " within half a minute: all processes must see that file, and start together");
}

class OverNccl final : public Ranks {
 public:
  OverNccl(const Place& place, const std::string& id_file) : place_(place), watch_(place.rank) {
    setenv("NCCL_NVLS_ENABLE", "0", 0);  // point-to-point calls do not use NVLink's multicast
    const ncclUniqueId id = meet(place, id_file);
    {
      const Waiting waiting(watch_, "joining them");
      const ncclResult_t status = ncclCommInitRank(&communicator_, place.ranks, id, place.rank);
      std::error_code ignored;
      if (place.rank == 0) std::filesystem::remove(id_file, ignored);
      check_nccl(status, "joining NCCL's ranks");
    }
    int lowest = 0, highest = 0;
    require(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for priorities");
    require(cudaStreamCreateWithPriority(&side_, cudaStreamNonBlocking, highest), "creating a stream");
    require(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event");
    require(cudaMalloc(&numbers_, 2 * sizeof(double)), "allocating two numbers");
  }
  ~OverNccl() override {
    const Waiting waiting(watch_, "leaving them");
    cudaFree(numbers_);
    cudaEventDestroy(event_);
    cudaStreamDestroy(side_);
    ncclCommDestroy(communicator_);
  }

  int rank() const override { return place_.rank; }
  int ranks() const override { return place_.ranks; }
  void group_start() override { check_nccl(ncclGroupStart(), "beginning a group"); }
  void group_end() override {
    const Waiting waiting(watch_, "beginning to exchange");  // the first exchange of two ranks joins them
    check_nccl(ncclGroupEnd(), "ending a group");
  }
  void send(const void* from, std::int64_t bytes, int to, Stream stream) override {
    check_nccl(ncclSend(from, static_cast<std::size_t>(bytes), ncclChar, to, communicator_, stream), "sending");
  }
  void receive(void* to, std::int64_t bytes, int from, Stream stream) override {
    check_nccl(ncclRecv(to, static_cast<std::size_t>(bytes), ncclChar, from, communicator_, stream), "receiving");
  }
  Stream side_stream() override { return side_; }
  void follow(Stream later, Stream earlier) override {
    require(cudaEventRecord(event_, earlier), "recording an event");
    require(cudaStreamWaitEvent(later, event_, 0), "waiting for an event");
  }
  void barrier(Stream stream) override { reduce(stream); }
  double largest(double own, Stream stream) override {
    require(cudaMemcpyAsync(numbers_, &own, sizeof own, cudaMemcpyHostToDevice, stream), "copying a number");
    reduce(stream);
    require(cudaMemcpyAsync(&own, numbers_ + 1, sizeof own, cudaMemcpyDeviceToHost, stream), "copying a number");
    wait(stream, "comparing a number");
    return own;
  }
  std::vector<void*> open_to_all(void* own) override {
    const auto ranks = static_cast<std::size_t>(place_.ranks), self = static_cast<std::size_t>(place_.rank);
    std::vector<void*> all(ranks, own);
    if (ranks == 1) return all;
    std::vector<cudaIpcMemHandle_t> handles(ranks);
    require(cudaIpcGetMemHandle(&handles[self], own), "showing memory to other processes");
    constexpr std::size_t kBytes = sizeof(cudaIpcMemHandle_t);
    char* gathered = nullptr;
    require(cudaMalloc(&gathered, ranks * kBytes), "allocating room for handles");
    require(cudaMemcpyAsync(gathered + self * kBytes, &handles[self], kBytes, cudaMemcpyHostToDevice, side_),
            "copying a handle");
    {
      const Waiting waiting(watch_, "showing them memory");
      check_nccl(ncclAllGather(gathered + self * kBytes, gathered, kBytes, ncclChar, communicator_, side_),
                 "gathering handles");
    }
    wait(side_, "gathering handles");
    require(cudaMemcpy(handles.data(), gathered, ranks * kBytes, cudaMemcpyDeviceToHost), "copying handles");
    require(cudaFree(gathered), "freeing room for handles");
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (rank != self)
        require(cudaIpcOpenMemHandle(&all[rank], handles[rank], cudaIpcMemLazyEnablePeerAccess),
                "opening the memory of another process");
    return all;
  }
  void close(const std::vector<void*>& all) override {
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (rank != static_cast<std::size_t>(place_.rank))
        require(cudaIpcCloseMemHandle(all[rank]), "closing the memory of another process");
    barrier(side_);
    wait(side_, "closing memory");
  }
  void wait(Stream stream, const char* what) override {
    const Waiting waiting(watch_, what);
    require(cudaStreamSynchronize(stream), what);
  }

 private:
  void reduce(Stream stream) {
    const Waiting waiting(watch_, "beginning a reduction");
    check_nccl(ncclAllReduce(numbers_, numbers_ + 1, 1, ncclDouble, ncclMax, communicator_, stream), "reducing");
  }

  Place place_;
  Watch watch_;
  ncclComm_t communicator_ = nullptr;
  cudaStream_t side_ = nullptr;
  cudaEvent_t event_ = nullptr;
  double* numbers_ = nullptr;
};

}  // namespace

std::unique_ptr<Ranks> join_ranks(const Place& place, const std::string& id_file) {
  return std::make_unique<OverNccl>(place, id_file);
}

std::string nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "asking for NCCL's version");
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

#else

std::unique_ptr<Ranks> join_ranks(const Place&, const std::string&) {
  throw MachineError(
      "this program was built without NCCL; install libnccl-dev or the wheel nvidia-nccl-cu13, then build again");
}

std::string nccl_version() { return ""; }

#endif

}  // namespace convladder
