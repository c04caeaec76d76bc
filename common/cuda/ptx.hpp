/// @file
/// What tools/lab/ptx.py makes of inline PTX: registers as C++ variables, addresses, and the instructions that are no
/// operator of C++ and no function of the simulator. Included where a plain program has asm statements.
#pragma once
#include <limits>

#include "common/cuda/include/cuda_runtime.h"
#include "common/cuda/small_floats.hpp"
#include "common/simt/cluster.hpp"
#include "common/simt/half.hpp"
#include "common/simt/hopper.hpp"
#include "common/simt/mma.hpp"

/// @cond
namespace simt {
/// The map that cuTensorMapEncodeTiled() or cuTensorMapEncodeIm2col() left there.
const convladder::TensorMap& tensor_map_at(const void* address);
[[noreturn]] void refuse_registers(int line);
}  // namespace simt

namespace simt_ptx {

// ---- Registers -----------------------------------------------------------------------------------------------------

/// A register read as a type: its bits where the sizes are the same, else its number.
template <class T, class S>
__forceinline__ T as(const S& source) {
  if constexpr (std::is_array_v<S>)
    return static_cast<T>(reinterpret_cast<std::uintptr_t>(&source));
  else if constexpr (std::is_pointer_v<S>)
    return static_cast<T>(reinterpret_cast<std::uintptr_t>(source));
  else if constexpr (std::is_same_v<T, bool>)
    return source != S{};
  else if constexpr (std::is_same_v<std::remove_cv_t<S>, double> && std::is_same_v<T, float>)
    return static_cast<float>(source);  // a number in the text
  else if constexpr (sizeof(T) == sizeof(S))
    return __builtin_bit_cast(T, source);
  else
    return static_cast<T>(source);
}

/// A register written: as above.
template <class D, class V>
__forceinline__ void put(D& destination, const V& value) {
  if constexpr (std::is_pointer_v<D>)
    destination = reinterpret_cast<D>(static_cast<std::uintptr_t>(value));
  else
    destination = as<std::remove_volatile_t<D>>(value);
}

/// The accumulators of a wgmma, or its A, where they are.
template <int Count>
struct Registers {
  const volatile void* of[Count];
};
template <int Count>
__forceinline__ unsigned* registers_of(const Registers<Count>& registers, int line = __builtin_LINE()) {
  const auto* const first = static_cast<const volatile unsigned*>(registers.of[0]);
  bool in_order = true;
  for (int i = 1; i < Count; ++i) in_order &= registers.of[i] == first + i;
  if (!in_order) simt::refuse_registers(line);
  return const_cast<unsigned*>(first);
}

template <class T, int Parts, class... Values>
__forceinline__ T joined(Values... values) {
  constexpr int bits = 8 * sizeof(T) / Parts;
  T whole = 0;
  int at = 0;
  (
      [&] {
        whole |= static_cast<T>(values & (~0ull >> (64 - bits))) << bits * at;
        ++at;
      }(),
      ...);
  return whole;
}

// ---- Addresses -----------------------------------------------------------------------------------------------------

template <class T>
__forceinline__ T* generic(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}
template <class T>
__forceinline__ T* shared(std::uint64_t address) {
  return reinterpret_cast<T*>(simt::address_of_shared(address));
}
__forceinline__ std::uint64_t shared_address(const void* pointer) { return simt::shared_address_of(pointer); }

/// A CUtensorMap's bits, as cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col leave them.
__forceinline__ const convladder::TensorMap& tensor_map(std::uint64_t address) {
  return simt::tensor_map_at(reinterpret_cast<const void*>(address));
}
template <class... Coordinates>
__forceinline__ void tensor_load(void* shared, const convladder::TensorMap& map, void* barrier, Coordinates... at) {
  const int coordinates[] = {at...};
  simt::tensor_load(shared, map, barrier, coordinates, sizeof...(at));
}
template <class... Coordinates>
__forceinline__ void tensor_multicast(void* shared, const convladder::TensorMap& map, void* barrier, unsigned mask,
                                      Coordinates... at) {
  const int coordinates[] = {at...};
  simt::tensor_load(shared, map, barrier, coordinates, sizeof...(at), nullptr, mask);
}
template <class... Coordinates>
__forceinline__ void im2col_load(void* shared, const convladder::TensorMap& map, void* barrier,
                                 const int (&offsets)[sizeof...(Coordinates) - 2], Coordinates... at) {
  const int coordinates[] = {at...};
  simt::tensor_load(shared, map, barrier, coordinates, sizeof...(at), offsets);
}
template <class... Coordinates>
__forceinline__ void tensor_store(const convladder::TensorMap& map, const void* shared, Coordinates... at) {
  const int coordinates[] = {at...};
  simt::tensor_store(map, shared, coordinates, sizeof...(at));
}

// ---- Memory --------------------------------------------------------------------------------------------------------

template <class T>
__forceinline__ T load(const T* address) {
  __asm__ volatile("" ::: "memory");
  return *address;
}
template <int Count, class T>
struct Several {
  T of[Count];
};
template <std::size_t Bytes>
struct WordsOf;
template <>
struct WordsOf<2> {
  typedef std::uint16_t Type __attribute__((may_alias));
};
template <>
struct WordsOf<4> {
  using Type = simt::Word;
};
template <>
struct WordsOf<8> {
  using Type = simt::Words2;
};
template <>
struct WordsOf<16> {
  using Type = simt::Words4;
};
/// One access, however many registers it fills.
template <int Count, class T>
__forceinline__ Several<Count, T> load_vector(const T* address) {
  using Words = typename WordsOf<Count * sizeof(T)>::Type;
  __asm__ volatile("" ::: "memory");
  const Words words = *reinterpret_cast<const Words*>(address);
  return __builtin_bit_cast(Several<Count, T>, words);
}
template <int Count, class T, class... Values>
__forceinline__ void store(T* address, Values... values) {
  if constexpr (Count == 1) {
    *address = (values, ...);
  } else {
    using Words = typename WordsOf<Count * sizeof(T)>::Type;
    const Several<Count, T> all{{values...}};
    *reinterpret_cast<Words*>(address) = __builtin_bit_cast(Words, all);
  }
  __asm__ volatile("" ::: "memory");
}

/// The type that an atomic of so many bytes has.
template <class T>
using Atomic = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
template <class T>
__forceinline__ T load_atomic(const T* address) {
  if constexpr (sizeof(T) < 4)
    return *const_cast<const volatile T*>(address);
  else
    return as<T>(atomicAdd(reinterpret_cast<Atomic<T>*>(const_cast<T*>(address)), Atomic<T>{0}));
}
template <class T>
__forceinline__ void store_atomic(T* address, T value) {
  if constexpr (sizeof(T) < 4)
    *const_cast<volatile T*>(address) = value;
  else
    atomicExch(reinterpret_cast<Atomic<T>*>(address), as<Atomic<T>>(value));
}

// ---- Barriers and warps --------------------------------------------------------------------------------------------

__forceinline__ unsigned block_threads() { return simt::block_size().x * simt::block_size().y * simt::block_size().z; }
__forceinline__ void barrier(unsigned id, unsigned threads, bool wait, int line = __builtin_LINE()) {
  if (id == 0 && wait && threads == block_threads())
    simt::block_barrier(line);
  else
    simt::named_barrier(id, threads, wait);
}
/// The phase that the arrival belongs to, by its parity.
__forceinline__ std::uint64_t arrive(void* barrier, unsigned count) {
  const std::uint64_t parity = simt::mbarrier_parity(barrier);
  for (unsigned i = 0; i < count; ++i) simt::mbarrier_arrive(barrier);
  return parity;
}
__forceinline__ std::uint64_t arrive_drop(void* barrier, unsigned count) {
  const std::uint64_t parity = simt::mbarrier_parity(barrier);
  simt::mbarrier_arrive_drop(barrier, count);
  return parity;
}
__forceinline__ std::uint64_t arrive_expect(void* barrier, unsigned bytes) {
  const std::uint64_t parity = simt::mbarrier_parity(barrier);
  simt::mbarrier_expect(barrier, bytes);
  return parity;
}

/// As PTX has it: `clamp` holds the last lane and, above, which bits of a lane's number name its segment.
__forceinline__ std::uint32_t shuffle(char mode, std::uint32_t value, unsigned b, unsigned clamp, unsigned mask,
                                      bool& inside, int line = __builtin_LINE()) {
  const int lane = simt::lane_index(), segment = static_cast<int>(clamp >> 8 & 31), last = static_cast<int>(clamp & 31);
  const int most = (lane & segment) | (last & ~segment), least = lane & segment, by = static_cast<int>(b & 31);
  int source = lane;
  if (mode == 'u') source = lane - by, inside = source >= most;
  if (mode == 'd') source = lane + by, inside = source <= most;
  if (mode == 'b') source = lane ^ by, inside = source <= most;
  if (mode == 'i') source = least | (by & ~segment), inside = source <= most;
  return simt::shuffle(mask, value, inside ? source : lane, line);
}
__forceinline__ unsigned elect(unsigned mask, int line = __builtin_LINE()) {
  return static_cast<unsigned>(__builtin_ctz(simt::ballot(mask, 1, line)));
}
__forceinline__ unsigned lane_mask(int which) {
  const unsigned own = 1u << simt::lane_index();
  switch (which) {
    case 0:
      return own;
    case 1:
      return own - 1;
    case 2:
      return own | (own - 1);
    case 3:
      return ~(own | (own - 1));
    default:
      return ~(own - 1);
  }
}
__forceinline__ unsigned warp_id() {
  return ((simt::thread_index().z * simt::block_size().y + simt::thread_index().y) * simt::block_size().x +
          simt::thread_index().x) /
         32;
}
__forceinline__ unsigned multiprocessor() {
  return ((simt::block_index().z * simt::grid_size().y + simt::block_index().y) * simt::grid_size().x +
          simt::block_index().x) %
         132;
}
/// Nanoseconds of the processor's.
unsigned long long clock();
/// A fence in a kernel, nothing in host code.
void fence_in_kernel(simt::Scope scope);

// ---- Integers ------------------------------------------------------------------------------------------------------

template <class T, class S>
__forceinline__ T cast(S value) {
  return static_cast<T>(value);
}
template <class T, class S>
__forceinline__ T saturated(S value) {
  const auto wide = static_cast<__int128>(value);
  const auto least = static_cast<__int128>(std::numeric_limits<T>::min());
  const auto most = static_cast<__int128>(std::numeric_limits<T>::max());
  return static_cast<T>(wide < least ? least : wide > most ? most : wide);
}
template <class T>
__forceinline__ T to_integer(double value) {
  if (value != value) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}
template <class T>
__forceinline__ T absolute(T value) {
  return value < 0 ? -value : value;
}
template <class T>
__forceinline__ T carried(bool add, T a, T b, bool& carry, bool uses, bool sets) {
  const unsigned __int128 more = uses && carry ? 1 : 0;
  const unsigned __int128 result =
      add ? static_cast<unsigned __int128>(a) + b + more : static_cast<unsigned __int128>(a) - b - more;
  if (sets) carry = (result >> 8 * sizeof(T)) != 0;
  return static_cast<T>(result);
}
__forceinline__ std::uint64_t high_half(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}
__forceinline__ std::int64_t high_half(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<__int128>(a) * b >> 64);
}
template <class T>
__forceinline__ T shifted_left(T value, unsigned bits) {
  return bits >= 8 * sizeof(T) ? T{0} : static_cast<T>(value << bits);
}
template <class T>
__forceinline__ T shifted_right(T value, unsigned bits) {
  return bits >= 8 * sizeof(T) ? (value < 0 ? static_cast<T>(-1) : T{0}) : static_cast<T>(value >> bits);
}
__forceinline__ std::uint32_t funnel(std::uint32_t low, std::uint32_t high, unsigned bits, bool left, bool wrap) {
  bits = wrap ? bits & 31 : bits > 32 ? 32 : bits;
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint32_t>(left ? both << bits >> 32 : both >> bits);
}
template <class T>
__forceinline__ unsigned leading_zeros(T value) {
  if (value == 0) return 8 * sizeof(T);
  return static_cast<unsigned>(__builtin_clzll(value)) - (64 - 8 * sizeof(T));
}
template <class T>
__forceinline__ T reversed(T value) {
  T result = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); ++i) result |= (value >> i & 1) << (8 * sizeof(T) - 1 - i);
  return result;
}
/// bfe: bits past the end are copies of the sign.
template <class T>
__forceinline__ T extracted(T value, unsigned at, unsigned count) {
  constexpr unsigned bits = 8 * sizeof(T);
  at &= 255;
  count &= 255;
  if (count == 0) return 0;
  const unsigned last = at + count - 1 < bits - 1 ? at + count - 1 : bits - 1;
  const bool sign = value < 0 ? true : std::is_signed_v<T> && (value >> last & 1);
  T result = 0;
  for (unsigned i = 0; i < bits; ++i) {
    const bool bit = i < count && at + i < bits ? value >> (at + i) & 1 : std::is_signed_v<T> && sign;
    result |= static_cast<T>(bit) << i;
  }
  return result;
}
template <class T>
__forceinline__ T inserted(T from, T to, unsigned at, unsigned count) {
  at &= 255;
  count &= 255;
  for (unsigned i = 0; i < count && at + i < 8 * sizeof(T); ++i)
    to = static_cast<T>((to & ~(T{1} << (at + i))) | (from >> i & T{1}) << (at + i));
  return to;
}
__forceinline__ std::uint32_t logic(std::uint32_t a, std::uint32_t b, std::uint32_t c, unsigned table) {
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 8; ++i)
    if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}
__forceinline__ std::uint32_t permuted(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t both = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned which = selector >> 4 * i & 15;
    std::uint32_t byte = both >> 8 * (which & 7) & 255;
    if (which & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}
__forceinline__ int dot4(int a, int b, int c) {
  for (int i = 0; i < 4; ++i)
    c += static_cast<int>(static_cast<signed char>(a >> 8 * i)) * static_cast<signed char>(b >> 8 * i);
  return c;
}

// ---- Small floats --------------------------------------------------------------------------------------------------

__forceinline__ float low_float(std::uint32_t pair) { return __builtin_bit_cast(float, pair << 16); }
__forceinline__ float high_float(std::uint32_t pair) { return __builtin_bit_cast(float, pair & 0xffff0000u); }
__forceinline__ std::uint16_t to_bf16(float value) { return simt::bf16_from(value); }
__forceinline__ std::uint32_t bf16_pair(float high, float low) {
  return simt::bf16_from(low) | std::uint32_t{simt::bf16_from(high)} << 16;
}
/// 2 to each number of a pair, or to the lower one alone.
template <bool IsBfloat>
__forceinline__ std::uint32_t exponential_of(std::uint32_t pair) {
  if constexpr (IsBfloat) {
    const auto number = [](std::uint32_t bits) { return __builtin_bit_cast(float, bits << 16); };
    return simt::bf16_from(::exp2f(number(pair & 0xffff))) |
           static_cast<std::uint32_t>(simt::bf16_from(::exp2f(number(pair >> 16)))) << 16;
  } else {
    const auto number = [](std::uint32_t bits) { return simt::half_to_float(static_cast<std::uint16_t>(bits)); };
    return simt::halves_from(::exp2f(number(pair)), ::exp2f(number(pair >> 16)));
  }
}
/// Of a matrix of 8 x 8, of which a lane holds two neighbours of a row.
__forceinline__ std::uint32_t transposed_matrix(std::uint32_t pair) {
  const int lane = simt::lane_index(), from = lane % 4 * 8 + lane / 8, half = lane / 4 % 2 * 16;
  const std::uint32_t low = __shfl_sync(~0u, pair, from), high = __shfl_sync(~0u, pair, from + 4);
  return (low >> half & 0xffff) | (high >> half & 0xffff) << 16;
}
__forceinline__ std::uint32_t half_pair(float high, float low) { return simt::halves_from(low, high); }
/// To the nearest, ties away from zero.
__forceinline__ std::uint32_t to_tf32(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return (nan ? 0x7fffffffu : bits + 0x1000u) & 0xffffe000u;
}
__forceinline__ std::uint16_t e4m3_pair(float high, float low) {
  return static_cast<std::uint16_t>(simt::e4m3_from(low) | simt::e4m3_from(high) << 8);
}
__forceinline__ std::uint16_t e5m2_pair(float high, float low) {
  return static_cast<std::uint16_t>(simt::e5m2_from(low) | simt::e5m2_from(high) << 8);
}
__forceinline__ std::uint32_t halves_of_e4m3(std::uint16_t pair) {
  return simt::halves_from(simt::e4m3_to_float(pair & 255), simt::e4m3_to_float(pair >> 8));
}
__forceinline__ std::uint32_t halves_of_e5m2(std::uint16_t pair) { return (pair & 255u) << 8 | (pair & 0xff00u) << 16; }
/// @tparam Operation the second letter of its name
template <char Operation, bool Pair, class... Values>
__forceinline__ std::uint32_t bf16_arithmetic(Values... values) {
  const std::uint32_t bits[] = {values..., 0};
  const auto compute = [&](auto take) {
    const float a = take(bits[0]), b = take(bits[1]), c = take(bits[2 < sizeof...(values) ? 2 : 0]);
    switch (Operation) {
      case 'd':
        return a + b;
      case 'u':
        return a * b;
      case 'm':
        return __builtin_fmaf(a, b, c);
      case 'i':
        return __builtin_fminf(a, b);
      default:
        return Operation == 'a' ? __builtin_fmaxf(a, b) : a - b;
    }
  };
  const float low = compute([](std::uint32_t pair) { return low_float(pair); });
  if constexpr (!Pair) return simt::bf16_from(low);
  const float high = compute([](std::uint32_t pair) { return high_float(pair); });
  return bf16_pair(high, low);
}

}  // namespace simt_ptx
/// @endcond
