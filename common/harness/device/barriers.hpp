/// @file
/// The block barriers of kernels, as the simulator meets them. In a GPU program these functions throw.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace convladder {

/// A line of the source with a __syncthreads that blocks have passed.
struct Barrier {
  std::string file;  ///< relative to the project where it lies in it
  int line = 0;
  std::vector<std::string> kernels;                  ///< that have passed it, by name
  std::int64_t passed = 0;                           ///< how often, summed over blocks
  std::vector<std::pair<std::uint32_t, int>> calls;  ///< for without_barrier(): several where templates have instances
};

/// Runs `work` and tells the barriers that its launches passed, by file and line.
std::vector<Barrier> barriers_of(const std::function<void()>& work);

/// Runs `work` with every call of the barrier doing nothing.
void without_barrier(const Barrier& barrier, const std::function<void()>& work);

}  // namespace convladder
