/// @file
/// CUDA as a kernel file sees it, on a machine without CUDA: keywords, built-in variables, barriers, shuffles, votes,
/// atomics and vector types, over the simulator's runtime (runtime.hpp). Included through common/kernel/kernel.hpp.
///
/// Kernel files are compiled with -fsanitize=thread and -fsanitize-coverage=trace-pc, whose hooks the runtime defines:
/// that is how it sees every access and every branch. A function that is compiled both with and without these flags
/// would be one symbol to the linker, which may keep the copy without hooks; so everything here that a kernel calls is
/// always inlined, or lives in the runtime.
#pragma once
#include <math.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

#include "common/stage/stage.hpp"

/// @cond
// ---- Keywords ------------------------------------------------------------------------------------------------------

#if !defined(SIMT_PLAIN_CUDA)  // there tools/lab/cuda_front_end.py replaces them
#define __global__
#define __device__
#define __host__
#endif
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define UNROLL
#define UNROLL_BY(n)

// A block's threads run on one host thread, so a thread-local variable is what they share. Without constant
// initialisation g++ would test a (shared) flag. Each variable is preceded by a guard, so that an index past its end
// meets no other array; so write __shared__ and __constant__ first in a declaration.
#if defined(__clang__)
#define SIMT_CONSTINIT
#else
#define SIMT_CONSTINIT __constinit
#endif
#define SIMT_JOIN_(a, b) a##b
#define SIMT_JOIN(a, b) SIMT_JOIN_(a, b)
#if !defined(SIMT_PLAIN_CUDA)
#define __shared__                                                                                            \
  __attribute__((used)) static SIMT_CONSTINIT thread_local ::simt::Guard SIMT_JOIN(simt_guard_, __COUNTER__); \
  static SIMT_CONSTINIT thread_local
#define __constant__                                                                                        \
  __attribute__((used, section("simt_constant"))) static ::simt::Guard SIMT_JOIN(simt_guard_, __COUNTER__); \
  __attribute__((section("simt_constant")))
#endif

/// @endcond
// ---- Built-in types ------------------------------------------------------------------------------------------------

/// Three indices, as in CUDA.
struct uint3 {
  unsigned x, y, z;
};

/// Sizes of a grid or block, as in CUDA.
struct dim3 {
  unsigned x, y, z;
  /// What is not given is 1.
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  /// Of three indices.
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  /// As three indices.
  constexpr operator uint3() const { return {x, y, z}; }
};

/// @cond
namespace simt {
struct Guard {
  unsigned char bytes[4096];
};
typedef std::uint32_t Word __attribute__((may_alias));
typedef std::uint32_t Words2 __attribute__((vector_size(8), may_alias));
typedef std::uint32_t Words4 __attribute__((vector_size(16), may_alias));
}  // namespace simt

// A plain program may give fewer values than there are; the rest are zero.
#if defined(SIMT_PLAIN_CUDA)
#define SIMT_REST = 0
#else
#define SIMT_REST
#endif
// A plain struct would be copied member by member; through a vector register the copy stays the one access that it is
// on a GPU. But a union that has a member with such a copy has none itself: for programs that copy one, plain copies.
#if defined(SIMT_PLAIN_COPIES)
#define SIMT_COPIES(Name, Words) Name() = default;
#else
#define SIMT_COPIES(Name, Words)                                                       \
  Name() = default;                                                                    \
  __forceinline__ Name(const Name& o) { copy(o); }                                     \
  __forceinline__ Name& operator=(const Name& o) { return copy(o), *this; }            \
  __forceinline__ void copy(const Name& o) {                                           \
    *reinterpret_cast<simt::Words*>(this) = *reinterpret_cast<const simt::Words*>(&o); \
  }
#endif
#define SIMT_VECTOR2(Name, Scalar)                                                   \
  struct __align__(8) Name {                                                         \
    Scalar x, y;                                                                     \
    constexpr __forceinline__ Name(Scalar x_, Scalar y_ SIMT_REST) : x(x_), y(y_) {} \
    SIMT_COPIES(Name, Words2)                                                        \
  };                                                                                 \
  __forceinline__ Name make_##Name(Scalar x, Scalar y) { return Name(x, y); }
#define SIMT_VECTOR4(Name, Scalar, Words)                                                                    \
  struct __align__(sizeof(simt::Words)) Name {                                                               \
    Scalar x, y, z, w;                                                                                       \
    constexpr __forceinline__ Name(Scalar x_, Scalar y_ SIMT_REST, Scalar z_ SIMT_REST, Scalar w_ SIMT_REST) \
        : x(x_), y(y_), z(z_), w(w_) {}                                                                      \
    SIMT_COPIES(Name, Words)                                                                                 \
  };                                                                                                         \
  __forceinline__ Name make_##Name(Scalar x, Scalar y, Scalar z, Scalar w) { return Name(x, y, z, w); }
SIMT_VECTOR2(float2, float)
SIMT_VECTOR2(int2, int)
SIMT_VECTOR2(uint2, unsigned)
SIMT_VECTOR4(float4, float, Words4)
SIMT_VECTOR4(int4, int, Words4)
SIMT_VECTOR4(uint4, unsigned, Words4)
SIMT_VECTOR4(char4, signed char, Word)
#undef SIMT_VECTOR2
#undef SIMT_VECTOR4

// ---- What the runtime offers to kernels ----------------------------------------------------------------------------

namespace simt {

// Constant within a thread, so the compiler may keep them in registers as it does on a GPU.
uint3 thread_index() __attribute__((const));
uint3 block_index() __attribute__((const));
dim3 block_size() __attribute__((const));
dim3 grid_size() __attribute__((const));
int lane_index() __attribute__((const));
void* dynamic_shared_memory() __attribute__((const));
/// Addresses in the window of shared memory, as PTX's 32-bit ones: dynamic memory begins at 0, static memory behind it.
std::uint64_t shared_address_of(const void* pointer);
std::uintptr_t address_of_shared(std::uint64_t address);

void block_barrier(int line);
/// The barrier, and how many of the block's threads came with a predicate that is not zero.
int block_votes(int predicate, int line);
/// Waits for all blocks of a cooperative launch; each thread of a block calls it.
void grid_barrier(int line);

/// A warp collective: the lanes of `mask` arrive, each with a payload; when all have, `combine` runs once over the
/// payloads (indexed by lane; null for lanes outside) and all go on. Shuffles, votes, __syncwarp and the warp-wide
/// matrix instructions are made of it. Only __syncwarp orders memory.
using Combine = void (*)(void** payloads, unsigned mask);
enum class Orders { nothing, memory };
void collective(unsigned mask, void* payload, Combine combine, Orders orders, int line);

enum class Scope { block, device };
void fence(Scope scope);
/// Stores with release, and loads with acquire, of a number by which devices tell each other what is over. The first
/// load by a thread may find the number before the last one, unless what stored this is over: that may come late.
void store_signal(unsigned* signal, unsigned value);
unsigned load_signal(const unsigned* signal);

/// An atomic access of 2 or 4 bytes: what `update` makes of the old value and `value` takes its place.
/// @returns the old one
std::uint64_t atomic_update(void* address, unsigned bytes, std::uint64_t value,
                            std::uint64_t (*update)(std::uint64_t old, std::uint64_t value));

void copy_memory(void* to, const void* from, std::size_t bytes);
void set_memory(void* to, int value, std::size_t bytes);

/// @param source bytes that are read; the rest becomes zero
void copy_async(void* shared, const void* global, unsigned bytes, unsigned source);
void commit_copies();
void wait_copies(unsigned pending);

/// Runs a kernel over a grid, to its end. `call` invokes it with its arguments, once for each thread.
/// @param cooperative the blocks may wait for each other
/// @param cluster blocks that run at once and reach each other's shared memory; a divisor of the grid in each direction
void run_grid(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, void (*call)(const void*),
              const void* arguments, bool cooperative = false, dim3 cluster = {});

/// @param symbol in constant memory  @param source in device memory
void copy_to_constant(void* symbol, const void* source, std::size_t bytes);

}  // namespace simt

/// @endcond
// Function calls, since a variable would be an observed access.
/// @name Built-in variables
/// As in CUDA.
/// @{

/// As in CUDA.
#if !defined(SIMT_PLAIN_CUDA)  // there a program may have variables of these names
#define threadIdx (::simt::thread_index())
#define blockIdx (::simt::block_index())
#define blockDim (::simt::block_size())
#define gridDim (::simt::grid_size())
#endif
constexpr int warpSize = 32;
/// @}

/// @name Barriers and fences
/// As in CUDA: docs/simulator.md tells what each orders.
/// @{

/// As in CUDA. The line tells barriers at different places apart even where the compiler merges two calls.
__forceinline__ void __syncthreads(int line = __builtin_LINE()) { simt::block_barrier(line); }
__forceinline__ void __syncwarp(unsigned mask = ~0u, int line = __builtin_LINE()) {
  simt::collective(mask, nullptr, nullptr, simt::Orders::memory, line);
}
__forceinline__ void __threadfence() { simt::fence(simt::Scope::device); }
__forceinline__ void __threadfence_block() { simt::fence(simt::Scope::block); }
/// @}

/// As in CUDA: a plain load here.
template <class T>
__forceinline__ T __ldg(const T* address) {
  return *address;
}

/// As in CUDA, where it passes L1 by: a load that counts as any other. It is always made, whatever a register holds.
template <class T>
__forceinline__ T __ldcg(const T* address) {
  __asm__ volatile("" ::: "memory");
  return *address;
}
/// As in CUDA: a store that counts as any other, and is always made.
template <class T>
__forceinline__ void __stcg(T* address, T value) {
  *address = value;
  __asm__ volatile("" ::: "memory");
}

// ---- Shuffles and votes --------------------------------------------------------------------------------------------

/// @cond
namespace simt {

template <class T>
struct Exchange {
  T mine, received;
  int source;
};

template <class T>
void exchange(void** payloads, unsigned mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    auto* self = static_cast<Exchange<T>*>(payloads[lane]);
    // Reading a lane that does not take part is undefined on a GPU; here it is zero.
    const bool present = mask >> self->source & 1;
    self->received = present ? static_cast<Exchange<T>*>(payloads[self->source])->mine : T{};
  }
}

template <class T>
__forceinline__ T shuffle(unsigned mask, T value, int source, int line) {
  Exchange<T> payload{value, value, source & 31};  // a GPU, too, takes five bits
  collective(mask, &payload, &exchange<T>, Orders::nothing, line);
  return payload.received;
}

/// The lanes of `mask` whose predicate is not zero.
unsigned ballot(unsigned mask, int predicate, int line);
/// The lanes that are at this call together: all that come to it before the warp can do nothing else.
unsigned active_mask(int line);
/// Holds the lane until the other lanes of its warp are here too, or can do nothing else: what they do next, they do in
/// the order of their lanes. `place` tells one call from another.
void come_together(const void* place);

}  // namespace simt
/// @endcond

/// @name Shuffles and votes
/// As in CUDA. A lane of the mask that never arrives is a fault.
/// @{

/// As in CUDA.
template <class T>
__forceinline__ T __shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
  const int lane = simt::lane_index();
  return simt::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)), line);
}
template <class T>
__forceinline__ T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  const int lane = simt::lane_index(), in_segment = lane & (width - 1);
  return simt::shuffle(mask, value, in_segment >= static_cast<int>(delta) ? lane - static_cast<int>(delta) : lane,
                       line);
}
template <class T>
__forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                                   int line = __builtin_LINE()) {
  const int lane = simt::lane_index(), in_segment = lane & (width - 1);
  const bool inside = in_segment + static_cast<int>(delta) < width;
  return simt::shuffle(mask, value, inside ? lane + static_cast<int>(delta) : lane, line);
}
template <class T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, int line = __builtin_LINE()) {
  const int lane = simt::lane_index(), source = lane ^ bits;
  // A source past the lane's own segment gives the lane's own value.
  return simt::shuffle(mask, value, (source & ~(width - 1)) > (lane & ~(width - 1)) ? lane : source, line);
}
__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return simt::ballot(mask, predicate, line);
}
__forceinline__ int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return simt::ballot(mask, predicate, line) != 0;
}
__forceinline__ int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return simt::ballot(mask, !predicate, line) == 0;
}
/// @}

// ---- Atomics (in the runtime; threads are never pre-empted, so plain code is atomic) -------------------------------

/// @name Atomics
/// As in CUDA, for int, unsigned, unsigned long long; add and exchange for float, add for double;
/// atomicInc and atomicDec for unsigned.
/// @{

/// @cond
#define SIMT_ATOMICS(T)              \
  T atomicAdd(T* address, T value);  \
  T atomicMin(T* address, T value);  \
  T atomicMax(T* address, T value);  \
  T atomicExch(T* address, T value); \
  T atomicSub(T* address, T value);  \
  T atomicAnd(T* address, T value);  \
  T atomicOr(T* address, T value);   \
  T atomicXor(T* address, T value);  \
  T atomicCAS(T* address, T compare, T value);
SIMT_ATOMICS(int)
SIMT_ATOMICS(unsigned)
SIMT_ATOMICS(unsigned long long)
#undef SIMT_ATOMICS
unsigned short atomicCAS(unsigned short* address, unsigned short compare, unsigned short value);
unsigned char atomicCAS(unsigned char* address, unsigned char compare, unsigned char value);
long long atomicMin(long long* address, long long value);
long long atomicMax(long long* address, long long value);
long long atomicAnd(long long* address, long long value);
long long atomicOr(long long* address, long long value);
long long atomicXor(long long* address, long long value);
/// @endcond
/// As in CUDA.
float atomicAdd(float* address, float value);
double atomicAdd(double* address, double value);
unsigned atomicInc(unsigned* address, unsigned limit);
unsigned atomicDec(unsigned* address, unsigned limit);
float atomicExch(float* address, float value);
/// @}

// ---- Arithmetic ----------------------------------------------------------------------------------------------------

/// @name Minimum and maximum
/// As in CUDA.
/// @{

/// As in CUDA.
__forceinline__ int min(int a, int b) { return b < a ? b : a; }
__forceinline__ int max(int a, int b) { return a < b ? b : a; }
__forceinline__ unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
__forceinline__ unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
__forceinline__ long long min(long long a, long long b) { return b < a ? b : a; }
__forceinline__ long long max(long long a, long long b) { return a < b ? b : a; }
/// @}

/// @cond
namespace simt {
int round_to_int(float value) noexcept __attribute__((const));
}
/// @endcond

/// @name Rounding, and products with sums
/// As in CUDA. The functions for float in math.h may be called, too: `fabsf`, `fmaf`, `fmaxf`, `fminf`, `rintf`.
/// @{

/// As in CUDA: to nearest, ties to even; the largest int where the value is out of range, 0 for NaN.
__forceinline__ int __float2int_rn(float value) { return simt::round_to_int(value); }
__forceinline__ float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
/// As in CUDA: within [0, 1]; 0 for NaN.
__forceinline__ float __saturatef(float value) { return value > 0 ? value < 1 ? value : 1 : 0; }
/// The larger of two numbers; NaN where one of them is, unlike fmaxf().
__forceinline__ float max_or_nan(float a, float b) { return a != a || a > b ? a : b; }
/// As in CUDA: the same bits.
__forceinline__ unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
__forceinline__ float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
/// As in CUDA: four bytes of the eight of x and y, numbered from x's lowest on, by the lower 3 bits of each hexadecimal
/// digit; the fourth bit, a sign for all bits, is not used here.
__forceinline__ unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
  return result;
}
/// As in CUDA: `c` and the products of four signed bytes.
__forceinline__ int __dp4a(int a, int b, int c) {
  unsigned sum = static_cast<unsigned>(c);
  sum += static_cast<unsigned>(static_cast<signed char>(a) * static_cast<signed char>(b));
  sum += static_cast<unsigned>(static_cast<signed char>(a >> 8) * static_cast<signed char>(b >> 8));
  sum += static_cast<unsigned>(static_cast<signed char>(a >> 16) * static_cast<signed char>(b >> 16));
  sum += static_cast<unsigned>(static_cast<signed char>(a >> 24) * static_cast<signed char>(b >> 24));
  return static_cast<int>(sum);
}
/// @}

// ---- The launch function, and memory -------------------------------------------------------------------------------

/// @cond
namespace simt {

/// From here on the thread's accesses are observed.
void watch();

/// A thread's entry. Its copies of the arguments, which on a GPU are constants, are made before anything is observed.
template <class... Parameters>
__attribute__((no_sanitize("thread"))) void enter(void (*kernel)(Parameters...), Parameters... values) {
  watch();
  kernel(static_cast<Parameters&&>(values)...);
}

/// A launch that waits on a stream of one of several devices.
struct DeferredLaunch {
  const void* kernel;
  dim3 grid, block;
  std::size_t shared_bytes;
  void (*call)(const void*);
  dim3 cluster;
};
/// Puts it on the stream, with a copy of its arguments.
void defer(convladder::Stream stream, const DeferredLaunch& launch, const void* arguments, std::size_t bytes);

/// Copies of a kernel's arguments.
template <class... Values>
struct Kept {
  static Kept of() { return {}; }
  template <class... Parameters, class... All>
  __attribute__((no_sanitize("thread"))) void pass(void (*kernel)(Parameters...), const All&... all) const {
    enter<Parameters...>(kernel, static_cast<Parameters>(all)...);
  }
};
template <class First, class... Rest>
struct Kept<First, Rest...> {
  First first;
  Kept<Rest...> rest;
  static Kept of(First value, Rest... values) { return {value, Kept<Rest...>::of(values...)}; }
  template <class... Parameters, class... Before>
  __attribute__((no_sanitize("thread"))) void pass(void (*kernel)(Parameters...), const Before&... before) const {
    rest.pass(kernel, before..., first);
  }
};

}  // namespace simt
/// @endcond

namespace convladder {

/// What launch() makes: to be called with the kernel's arguments.
template <class... Parameters>
struct Launch {
  void (*kernel)(Parameters...);
  dim3 grid, block;
  std::size_t shared_bytes;
  Stream stream;
  dim3 cluster;

  /// Runs the grid; on a stream of one of several devices, when its turn comes.
  template <class... Arguments>
  void operator()(Arguments&&... arguments) const {
    struct Later {
      void (*kernel)(Parameters...);
      simt::Kept<Parameters...> values;
      __attribute__((no_sanitize("thread"))) static void run(const void* self) {
        const Later& kept = *static_cast<const Later*>(self);
        kept.values.pass(kept.kernel);
      }
    };
    const auto* const address = reinterpret_cast<const void*>(kernel);
    if constexpr (__is_trivially_copyable(Later)) {
      if (stream) {
        const Later later{kernel, simt::Kept<Parameters...>::of(static_cast<Parameters>(arguments)...)};
        return simt::defer(stream, {address, grid, block, shared_bytes, &Later::run, cluster}, &later, sizeof later);
      }
    }
    // Not instrumented: it reads the host's stack.
    const auto call = [&]() __attribute__((no_sanitize("thread"))) {
      simt::enter<Parameters...>(kernel, static_cast<Parameters>(arguments)...);
    };
    using Call = decltype(call);
    simt::run_grid(
        address, grid, block, shared_bytes,
        [](const void* self) __attribute__((no_sanitize("thread"))) { (*static_cast<Call*>(self))(); }, &call, false,
        cluster);
  }
};

/// Starts a kernel: `launch(kernel, grid, block, shared_bytes, stream)(arguments...)`; kernel.hpp tells what each is.
template <class... Parameters>
Launch<Parameters...> launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                             Stream stream, dim3 cluster = {}) {
  return {kernel, grid, block, shared_bytes, stream, cluster};
}

/// The block's dynamic shared memory, 32-byte aligned.
template <class T>
__forceinline__ T* dynamic_shared() {
  return static_cast<T*>(simt::dynamic_shared_memory());
}

/// Starts a copy of 4, 8 or 16 bytes from global to shared memory: see kernel.hpp.
template <int Bytes, bool ThroughL1 = (Bytes < 16)>
__forceinline__ void copy_async(void* shared, const void* global, bool inside = true) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "copy_async copies 4, 8 or 16 bytes");
  static_assert(ThroughL1 || Bytes == 16, "only copies of 16 bytes can pass L1 by");
  simt::copy_async(shared, global, Bytes, inside ? Bytes : 0);
}

/// Closes a group of copies: see kernel.hpp.
__forceinline__ void commit_copies() { simt::commit_copies(); }

/// Waits for all groups but the newest `Pending`: see kernel.hpp.
template <int Pending>
__forceinline__ void wait_copies() {
  static_assert(Pending >= 0, "the number of groups that may be unfinished");
  simt::wait_copies(Pending);
}

/// Copies `count` elements from device memory into a `__constant__` array.
template <class T, std::size_t N>
void upload_constant(T (&symbol)[N], const T* source, std::size_t count, Stream) {
  static_assert(N * sizeof(T) <= 64 * 1024, "constant memory holds 64 KB");
  simt::copy_to_constant(symbol, source, count * sizeof(T));
}

}  // namespace convladder
