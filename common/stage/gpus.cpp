#include "common/stage/gpus.hpp"

#include <cctype>
#include <string>

namespace convladder {
namespace {

// A line each: tools/lab/sim.py reads the name and the compute capability.
constexpr Gpu kGpus[] = {
    {"V100", "Tesla V100-SXM2-16GB", 70, 80, 96, 96, 6144, 16, 2048, 32, 1530, 877, 4096},
    {"RTX 2080 Ti", "NVIDIA GeForce RTX 2080 Ti", 75, 68, 64, 64, 5632, 11, 1024, 16, 1545, 7000, 352},
    {"T4", "Tesla T4", 75, 40, 64, 64, 4096, 16, 1024, 16, 1590, 5001, 256},
    {"A100", "NVIDIA A100-SXM4-40GB", 80, 108, 163, 164, 40960, 40, 2048, 32, 1410, 1215, 5120},
    {"RTX 3090", "NVIDIA GeForce RTX 3090", 86, 82, 99, 100, 6144, 24, 1536, 16, 1695, 9751, 384},
    {"RTX 4090", "NVIDIA GeForce RTX 4090", 89, 128, 99, 100, 73728, 24, 1536, 24, 2520, 10501, 384},
    {"L4", "NVIDIA L4", 89, 58, 99, 100, 49152, 24, 1536, 24, 2040, 6251, 192},
    {"H100", "NVIDIA H100 80GB HBM3", 90, 132, 227, 228, 51200, 80, 2048, 32, 1980, 2619, 5120},
    {"H200", "NVIDIA H200", 90, 132, 227, 228, 61440, 141, 2048, 32, 1980, 3201, 6144},
    {"B200", "NVIDIA B200", 100, 148, 227, 228, 129024, 179, 2048, 32, 1965, 3996, 8192},
};

/// Lower case, without blanks and the maker's words.
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c))) result += static_cast<char>(std::tolower(c));
  for (const std::string_view word : {"nvidia", "geforce", "tesla"})
    if (result.starts_with(word)) result.erase(0, word.size());
  return result;
}

}  // namespace

std::span<const Gpu> gpus() { return kGpus; }

const Gpu* find_gpu(std::string_view name) {
  for (const Gpu& gpu : kGpus)
    if (plain(gpu.name) == plain(name)) return &gpu;
  return nullptr;
}

}  // namespace convladder
