// cuRAND: XORWOW's sequences, which are matrices over two elements apart, Philox, and the host's generators.

#include "common/cuda/include/curand.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/cuda/host_memory.hpp"
#include "common/cuda/include/curand_kernel.h"

namespace simt_cuda {
namespace {

constexpr int kWords = 5, kBits = 160;
using Bits = std::array<std::uint32_t, kWords>;
using Matrix = std::array<Bits, kBits>;  ///< its columns

Bits advanced(const Bits& v) {
  const std::uint32_t t = v[0] ^ v[0] >> 2;
  return {v[1], v[2], v[3], v[4], (v[4] ^ v[4] << 4) ^ (t ^ t << 1)};
}

Bits product(const Matrix& matrix, const Bits& v) {
  Bits result{};
  for (int i = 0; i < kBits; ++i) {
    if (!(v[static_cast<std::size_t>(i / 32)] >> i % 32 & 1)) continue;
    for (int word = 0; word < kWords; ++word)
      result[static_cast<std::size_t>(word)] ^= matrix[static_cast<std::size_t>(i)][static_cast<std::size_t>(word)];
  }
  return result;
}

/// What 2^i steps do, for i up to 67 + 63: the first 64 for offsets, those from 67 on for sequences.
const Matrix& steps(int i) {
  static auto& powers = *new std::vector<std::unique_ptr<Matrix>>;
  while (static_cast<int>(powers.size()) <= i) {
    auto next = std::make_unique<Matrix>();
    for (std::size_t column = 0; column < kBits; ++column) {
      if (powers.empty()) {
        Bits unit{};
        unit[column / 32] = 1u << column % 32;
        (*next)[column] = advanced(unit);
      } else {
        (*next)[column] = product(*powers.back(), (*powers.back())[column]);
      }
    }
    powers.push_back(std::move(next));
  }
  return *powers[static_cast<std::size_t>(i)];
}

/// `count` times 2^`log` steps.
Bits skipped(Bits v, std::uint64_t count, int log) {
  for (int i = log; count != 0; count >>= 1, ++i)
    if (count & 1) v = product(steps(i), v);
  return v;
}

constexpr int kApart = 67;  // sequences are 2^67 numbers apart

curandStateXORWOW begun(std::uint64_t seed, const Bits* v) {
  const std::uint32_t s0 = static_cast<std::uint32_t>(seed) ^ 0xaad26b49u;
  const std::uint32_t s1 = static_cast<std::uint32_t>(seed >> 32) ^ 0xf7dcefddu;
  const std::uint32_t t0 = 1099087573u * s0, t1 = 2591861531u * s1;
  curandStateXORWOW state{};
  state.d = 6615241u + t1 + t0;
  const Bits first = {123456789u + t0, 362436069u ^ t0, 521288629u + t1, 88675123u ^ t1, 5783321u + t0};
  for (std::size_t i = 0; i < kWords; ++i) state.v[i] = v ? (*v)[i] : first[i];
  return state;
}

Bits bits_of(const unsigned* v) { return {v[0], v[1], v[2], v[3], v[4]}; }

}  // namespace

void xorwow_begin(unsigned long long seed, unsigned long long sequence, unsigned long long offset, unsigned* d,
                  unsigned* v) {
  const curandStateXORWOW state = begun(seed, nullptr);
  const Bits at = skipped(skipped(bits_of(state.v), sequence, kApart), offset, 0);
  std::copy(at.begin(), at.end(), v);
  *d = state.d + static_cast<unsigned>(offset) * 362437u;
}

void xorwow_skip(unsigned long long numbers, unsigned* d, unsigned* v) {
  const Bits at = skipped(bits_of(v), numbers, 0);
  std::copy(at.begin(), at.end(), v);
  *d += static_cast<unsigned>(numbers) * 362437u;
}

void philox(const unsigned* counter, const unsigned* key, unsigned* output) {
  std::uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0], b = std::uint64_t{0xCD9E8D57u} * c[2];
    const std::uint32_t next[4] = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
                                   static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    std::copy(next, next + 4, c);
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  std::copy(c, c + 4, output);
}

/// By the sum of its probabilities; where the mean is large, by the normal distribution.
unsigned poisson(double mean, double uniform) noexcept {
  if (mean > 500) {
    const double value = mean + std::sqrt(2 * mean) * erf_inverse(2 * uniform - 1);
    return value < 0 ? 0 : static_cast<unsigned>(std::lround(value));
  }
  double term = std::exp(-mean), sum = term;
  unsigned k = 0;
  while (sum < uniform && k < 5000) sum += term *= mean / ++k;
  return k;
}

}  // namespace simt_cuda

/// 4096 sequences, which take turns.
struct curandGenerator_st {
  static constexpr std::size_t kSequences = 4096;
  bool on_host;
  cudaStream_t stream = nullptr;
  std::uint64_t seed = 0, position = 0;
  std::vector<curandStateXORWOW> sequences;

  void begin() {
    sequences.clear();
    auto state = simt_cuda::begun(seed, nullptr);
    simt_cuda::Bits v = simt_cuda::bits_of(state.v);
    for (std::size_t i = 0; i < kSequences; ++i) {
      sequences.push_back(simt_cuda::begun(seed, &v));
      v = simt_cuda::product(simt_cuda::steps(simt_cuda::kApart), v);
    }
    for (std::size_t i = 0; i < kSequences; ++i)
      skipahead(position / kSequences + (i < position % kSequences ? 1 : 0), &sequences[i]);
  }
  unsigned next() {
    if (sequences.empty()) begin();
    return curand(&sequences[position++ % kSequences]);
  }
};

namespace {

/// Fills device memory, or the host's where the generator is of the host.
template <class T, class Value>
curandStatus_t generate(curandGenerator_t generator, T* to, std::size_t count, const simt_cuda::Place& place,
                        const void* caller, Value value) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  const simt_cuda::HostWork work{"cuRAND", generator->stream, caller, place};
  if (!generator->on_host && !work.writes(to, count * sizeof(T))) return CURAND_STATUS_PREEXISTING_FAILURE;
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(value());
  return CURAND_STATUS_SUCCESS;
}

/// A source of normally distributed numbers, two at a time.
struct Normals {
  curandGenerator_t generator;
  bool has_second = false;
  double second = 0;
  double operator()() {
    if (has_second) return has_second = false, second;
    const double u = simt_cuda::uniform(generator->next()), v = simt_cuda::uniform(generator->next());
    const double size = std::sqrt(-2 * std::log(u));
    has_second = true;
    second = size * std::cos(2 * M_PI * v);
    return size * std::sin(2 * M_PI * v);
  }
};

}  // namespace

#define SIM_CALLER simt_cuda::Place{file, line}, __builtin_return_address(0)

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t) {
  *generator = new curandGenerator_st{false, nullptr, 0, 0, {}};
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t) {
  *generator = new curandGenerator_st{true, nullptr, 0, 0, {}};
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->seed = seed;
  generator->position = 0;
  generator->sequences.clear();
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->position = offset;
  generator->sequences.clear();
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* to, size_t count, const char* file, int line) {
  return generate(generator, to, count, SIM_CALLER, [&] { return generator->next(); });
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* to, size_t count, const char* file, int line) {
  return generate(generator, to, count, SIM_CALLER, [&] { return simt_cuda::uniform(generator->next()); });
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* to, size_t count, const char* file,
                                           int line) {
  return generate(generator, to, count, SIM_CALLER, [&] {
    const unsigned x = generator->next(), y = generator->next();
    return simt_cuda::uniform_double(x, y);
  });
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* to, size_t count, float mean, float deviation,
                                    const char* file, int line) {
  if (count % 2 != 0) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  Normals normals{generator};
  return generate(generator, to, count, SIM_CALLER, [&] { return mean + deviation * normals(); });
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* to, size_t count, double mean,
                                          double deviation, const char* file, int line) {
  if (count % 2 != 0) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  Normals normals{generator};
  return generate(generator, to, count, SIM_CALLER, [&] { return mean + deviation * normals(); });
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* to, size_t count, float mean,
                                       float deviation, const char* file, int line) {
  if (count % 2 != 0) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  Normals normals{generator};
  return generate(generator, to, count, SIM_CALLER, [&] { return std::exp(mean + deviation * normals()); });
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* to, size_t count, double mean,
                                     const char* file, int line) {
  return generate(generator, to, count, SIM_CALLER,
                  [&] { return simt_cuda::poisson(mean, simt_cuda::uniform(generator->next())); });
}
