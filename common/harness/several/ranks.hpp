/// @file
/// The processes of a run on several GPUs: which of them this one is, and how they meet.
#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

#include "common/stage/communicator.hpp"

namespace convladder {

/// @throws DeviceError if `status` is an error of CUDA, naming `what` failed
void require(cudaError_t status, const char* what);

/// Which process of a run this is, as torchrun, mpirun and srun tell it by environment variables.
struct Place {
  int rank = 0, ranks = 1;
  int local_rank = 0;  ///< among those on this machine: its GPU
};
/// Of this process; alone where no variable says otherwise.
/// @throws UsageError if the variables contradict each other
Place place_of_process();

/// Shows this process its own GPU alone, as the first. To be called before anything of CUDA is.
void choose_gpu(const Place& place);

/// A communicator over NCCL, and what a measurement needs beside it.
class Ranks : public Communicator {
 public:
  /// All processes go on together from here, as far as their streams do.
  virtual void barrier(Stream stream) = 0;
  /// The largest of all ranks' numbers. Waits for the stream.
  virtual double largest(double own, Stream stream) = 0;
  /// Waits for what is on the stream. Where that waits for another rank for more than half a minute, the process says
  /// so and ends with status 1, as it does in all calls that wait for others.
  /// @param what that is, for messages; must outlive the communicator
  virtual void wait(Stream stream, const char* what) = 0;
  /// Opens memory of this rank to the kernels of all others, and theirs to its own. All ranks call it together.
  /// @param own from cudaMalloc  @returns where the memory of each rank is for this one
  virtual std::vector<void*> open_to_all(void* own) = 0;
  /// Gives back what open_to_all() has returned. All ranks call it together, and free no memory before.
  virtual void close(const std::vector<void*>& all) = 0;
};

/// Memory of all ranks, a piece of each on its GPU, that the kernels of all may touch. Zero at first. All ranks make
/// and destroy it together.
class SharedMemory {
 public:
  SharedMemory(Ranks& ranks, std::int64_t bytes);  ///< so many of this rank's
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Of a rank.
  void* of(int rank) const { return all_[static_cast<std::size_t>(rank)]; }

 private:
  Ranks& ranks_;
  void* own_ = nullptr;
  std::vector<void*> all_;
};

/// Waits for all others, and joins them.
/// @param id_file where rank 0 leaves NCCL's identifier for the others: a path that all see
/// @throws MachineError if the program was built without NCCL, or if the others do not come within half a minute
std::unique_ptr<Ranks> join_ranks(const Place& place, const std::string& id_file);

/// NCCL's version, "2.28.9", or "" where the program was built without it.
std::string nccl_version();

}  // namespace convladder
