/// @file
/// The instructions of sm_90 in the simulator: the names of common/kernel/hopper.hpp, which tells what each does.
/// Included through it.
#pragma once
#include <type_traits>

#include "common/simt/cluster.hpp"
#include "common/simt/simt.hpp"
#include "common/stage/tensor_map.hpp"

namespace convladder {

/// A barrier in shared memory with phases: one ends when its arrivals and the bytes that it expects have come.
using Mbarrier = std::uint64_t;

/// For which N there is a wgmma of bytes.
template <int N>
constexpr bool kWgmmaBytes = N >= 8 && N <= 256 && (N % 16 == 0 || N == 8 || N == 24);

/// A tensor in global memory, for tensor_load() and tensor_store(): see common/kernel/hopper.hpp.
struct TensorMap {
  /// @cond
  const void* global;
  TensorForm form;
  /// @endcond
};

}  // namespace convladder

/// @cond
namespace simt {

void mbarrier_init(void* barrier, unsigned arrivals);
void fence_mbarrier_init();
void fence_async_proxy();
void mbarrier_arrive(void* barrier);
void mbarrier_expect(void* barrier, unsigned bytes);
/// The same without an arrival.
void mbarrier_expect_tx(void* barrier, unsigned bytes);
/// Of the phase that has not ended.
unsigned mbarrier_parity(void* barrier);
void mbarrier_wait(void* barrier, unsigned parity);
void named_barrier(unsigned id, unsigned threads, bool wait);
/// Of a cooperative group that is a tile of several warps. @param tile its number in the block
void tile_barrier(unsigned tile, unsigned threads);
/// The registers of each thread of the warp, from now on.
void set_max_registers(unsigned registers, bool increase);

/// @param multicast the blocks of the cluster, a bit for each rank, that get the copy, and the news of it, at the same
///        place; 0: `shared` says which
void bulk_load(void* shared, const void* global, unsigned bytes, void* barrier, unsigned multicast = 0);
void bulk_prefetch(const void* global, unsigned bytes);
/// @param at `count` coordinates, the innermost first  @param offsets of a column of pixels; null for a box
void tensor_load(void* shared, const convladder::TensorMap& map, void* barrier, const int* at, int count,
                 const int* offsets = nullptr, unsigned multicast = 0);
void tensor_store(const convladder::TensorMap& map, const void* shared, const int* at, int count);
void bulk_store(void* global, const void* shared, unsigned bytes);
void bulk_commit();
/// Waits for all but the newest `pending` groups.
void bulk_wait(unsigned pending);

/// Matrix descriptor, as the hardware has it. @param span of the swizzle; 0 for none
std::uint64_t matrix_descriptor(const void* shared, unsigned span, unsigned leading_bytes, unsigned stride_bytes);

enum class WgmmaElement { int8, uint8, e4m3, e5m2, fp16, bf16, tf32 };

/// One lane's part of a wgmma.
struct Wgmma {
  void* d;                  ///< n / 2 floats or ints, or n / 4 pairs of halves
  const unsigned* a_lanes;  ///< 4 registers of A, or null: then `a` describes it
  std::uint64_t a, b;
  unsigned n;
  WgmmaElement element;  ///< of A; integers are summed in int, the others in float or as halves
  bool accumulate;
  WgmmaElement element_b = element;
  bool half_sums = false, negated = false;          ///< `negated`: the products are subtracted
  bool transposed_a = false, transposed_b = false;  ///< a column is dense in shared memory; of 16 bits alone
};
void wgmma(const Wgmma& product, int line);
void wgmma_fence(int line);
void wgmma_commit(int line);
void wgmma_wait(unsigned pending, int line);

}  // namespace simt
/// @endcond

namespace convladder {

/// What wgmma multiplies: halves.
struct Fp16 {
  /// @cond
  static constexpr auto kElement = simt::WgmmaElement::fp16;
  /// @endcond
};
/// bfloat16.
struct Bf16 {
  /// @cond
  static constexpr auto kElement = simt::WgmmaElement::bf16;
  /// @endcond
};
/// Floats of which the upper 19 bits count.
struct Tf32 {
  /// @cond
  static constexpr auto kElement = simt::WgmmaElement::tf32;
  /// @endcond
};

/// The block's dynamic shared memory, 1024-byte aligned.
template <class T>
__forceinline__ T* dynamic_shared_1024() {
  return static_cast<T*>(simt::dynamic_shared_memory());
}

/// Makes a barrier of so many arrivals a phase.
__forceinline__ void mbarrier_init(Mbarrier* barrier, int arrivals) {
  simt::mbarrier_init(barrier, static_cast<unsigned>(arrivals));
}
/// Makes the thread's barriers visible to copies.
__forceinline__ void fence_mbarrier_init() { simt::fence_mbarrier_init(); }
/// One arrival, which hands on what the thread has done.
__forceinline__ void mbarrier_arrive(Mbarrier* barrier) { simt::mbarrier_arrive(barrier); }
/// One arrival; the phase also waits for copies of so many bytes.
__forceinline__ void mbarrier_expect(Mbarrier* barrier, int bytes) {
  simt::mbarrier_expect(barrier, static_cast<unsigned>(bytes));
}
/// Waits until phases 0, 2, ... (parity 0) or 1, 3, ... (1) have ended.
__forceinline__ void mbarrier_wait(Mbarrier* barrier, int parity) {
  simt::mbarrier_wait(barrier, static_cast<unsigned>(parity));
}
/// Makes what the thread has written, or knows of, visible to wgmma and bulk copies.
__forceinline__ void fence_async_proxy() { simt::fence_async_proxy(); }
/// A barrier for `threads` threads of the block, a multiple of 32. @param id 1 to 15
__forceinline__ void named_barrier_sync(int id, int threads) {
  simt::named_barrier(static_cast<unsigned>(id), static_cast<unsigned>(threads), true);
}
/// The same without waiting.
__forceinline__ void named_barrier_arrive(int id, int threads) {
  simt::named_barrier(static_cast<unsigned>(id), static_cast<unsigned>(threads), false);
}

/// The number of the block in its cluster.
__forceinline__ unsigned cluster_rank() { return simt::rank_in_cluster(); }
/// Comes to the cluster's barrier, and does not wait.
__forceinline__ void cluster_arrive(int line = __builtin_LINE()) { simt::cluster_arrive(true, true, line); }
/// The same, and what the thread has done does not become known.
__forceinline__ void cluster_arrive_relaxed(int line = __builtin_LINE()) { simt::cluster_arrive(false, true, line); }
/// Waits for all threads of the cluster.
__forceinline__ void cluster_wait(int line = __builtin_LINE()) { simt::cluster_wait(line); }
/// Starts a copy to that place in the shared memory of another block of the cluster, of a multiple of 16 bytes.
__forceinline__ void cluster_copy(void* to, int rank, const void* from, int bytes, Mbarrier* barrier) {
  const auto there = [rank](void* here) { return simt::map_shared(here, static_cast<unsigned>(rank)); };
  simt::bulk_copy_in_cluster(there(to), from, static_cast<unsigned>(bytes), there(barrier));
}

/// Starts a copy to shared memory, of a multiple of 16 bytes.
__forceinline__ void bulk_load(void* shared, const void* global, int bytes, Mbarrier* barrier) {
  simt::bulk_load(shared, global, static_cast<unsigned>(bytes), barrier);
}
/// Brings a multiple of 16 bytes to L2: here only its address and size are checked.
__forceinline__ void bulk_prefetch(const void* global, int bytes) {
  simt::bulk_prefetch(global, static_cast<unsigned>(bytes));
}
/// Starts a copy of the map's box to shared memory, with zeros outside the tensor.
/// @param coordinates of the box's first element, the innermost first
template <class... Coordinates>
__forceinline__ void tensor_load(void* shared, const TensorMap& map, Mbarrier* barrier, Coordinates... coordinates) {
  const int at[] = {static_cast<int>(coordinates)...};
  simt::tensor_load(shared, map, barrier, at, sizeof...(coordinates));
}
/// Starts a copy of a column of pixels to shared memory, with zeros outside the tensor.
/// @param offsets of the filter's element, in width, height, depth
/// @param coordinates of the column's first pixel: channel, width, height, depth, image
template <class... Coordinates>
__forceinline__ void im2col_load(void* shared, const TensorMap& map, Mbarrier* barrier,
                                 const int (&offsets)[sizeof...(Coordinates) - 2], Coordinates... coordinates) {
  const int at[] = {static_cast<int>(coordinates)...};
  simt::tensor_load(shared, map, barrier, at, sizeof...(coordinates), offsets);
}
/// Has nothing to do here: maps are read where they are.
__forceinline__ void prefetch_tensor_map(const TensorMap&) {}
/// Starts a copy of the map's box from shared memory; what lies outside the tensor is left out, in pieces of 16 bytes.
template <class... Coordinates>
__forceinline__ void tensor_store(const TensorMap& map, const void* shared, Coordinates... coordinates) {
  const int at[] = {static_cast<int>(coordinates)...};
  simt::tensor_store(map, shared, at, sizeof...(coordinates));
}
/// Starts a copy from shared memory, of a multiple of 16 bytes.
__forceinline__ void bulk_store(void* global, const void* shared, int bytes) {
  simt::bulk_store(global, shared, static_cast<unsigned>(bytes));
}
/// Makes one group of the thread's copies from shared memory.
__forceinline__ void bulk_commit() { simt::bulk_commit(); }
/// Waits until all of its groups but the newest `Pending` have read shared memory.
template <int Pending>
__forceinline__ void bulk_wait_read() {
  simt::bulk_wait(Pending);
}
/// Waits until they are complete.
template <int Pending>
__forceinline__ void bulk_wait() {
  simt::bulk_wait(Pending);
}

/// Describes rows of 64 or 128 swizzled bytes to wgmma. Add bytes / 16 to begin elsewhere.
__forceinline__ std::uint64_t swizzled_descriptor(const void* shared, Swizzle swizzle) {
  const unsigned span = swizzle == Swizzle::bytes64 ? 64 : 128;
  return simt::matrix_descriptor(shared, span, 16, 8 * span);
}
/// Describes pieces of 8 rows of 16 bytes, and how far they are apart along the sum and down the rows.
__forceinline__ std::uint64_t plain_descriptor(const void* shared, int across_bytes, int down_bytes) {
  return simt::matrix_descriptor(shared, 0, static_cast<unsigned>(across_bytes), static_cast<unsigned>(down_bytes));
}
/// Orders the warpgroup's accesses to its registers before the wgmmas that follow.
__forceinline__ void wgmma_fence(int line = __builtin_LINE()) { simt::wgmma_fence(line); }
/// Makes one group of the warpgroup's wgmmas.
__forceinline__ void wgmma_commit(int line = __builtin_LINE()) { simt::wgmma_commit(line); }
/// Waits until all groups but the newest `Pending` are complete.
template <int Pending>
__forceinline__ void wgmma_wait(int line = __builtin_LINE()) {
  simt::wgmma_wait(Pending, line);
}
/// Starts d = a b, or d += a b: 64 rows, N columns, a sum of 16 Fp16 or Bf16, or 8 Tf32.
template <int N, class Element = Fp16>
__forceinline__ void wgmma(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate,
                           int line = __builtin_LINE()) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256, "N is a multiple of 8 up to 256");
  simt::wgmma({d, nullptr, a, b, N, Element::kElement, accumulate}, line);
}
/// The same of halves, with A in registers.
template <int N>
__forceinline__ void wgmma(float (&d)[N / 2], const unsigned (&a)[4], std::uint64_t b, bool accumulate,
                           int line = __builtin_LINE()) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256, "N is a multiple of 8 up to 256");
  simt::wgmma({d, a, 0, b, N, simt::WgmmaElement::fp16, accumulate}, line);
}
/// The same for a sum of 32 signed bytes.
template <int N, class Element = std::int8_t>
__forceinline__ void wgmma(int (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate,
                           int line = __builtin_LINE()) {
  static_assert(std::is_same_v<Element, std::int8_t>, "sums in int are of signed bytes");
  static_assert(kWgmmaBytes<N>, "for bytes N is 8, 24, or a multiple of 16 up to 256");
  simt::wgmma({d, nullptr, a, b, N, simt::WgmmaElement::int8, accumulate}, line);
}
/// The same with A in registers.
template <int N>
__forceinline__ void wgmma(int (&d)[N / 2], const unsigned (&a)[4], std::uint64_t b, bool accumulate,
                           int line = __builtin_LINE()) {
  static_assert(kWgmmaBytes<N>, "for bytes N is 8, 24, or a multiple of 16 up to 256");
  simt::wgmma({d, a, 0, b, N, simt::WgmmaElement::int8, accumulate}, line);
}
/// Keeps a compiler for GPUs from moving accesses to registers; nothing here.
template <class T, int Count>
__forceinline__ void pin(T (&)[Count]) {}

/// Gives threads more registers: here it is only counted whether the block has so many.
template <int Registers>
__forceinline__ void set_max_registers_increase() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0, "24 to 256 registers, a multiple of 8");
  simt::set_max_registers(Registers, true);
}
/// Gives registers back.
template <int Registers>
__forceinline__ void set_max_registers_decrease() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0, "24 to 256 registers, a multiple of 8");
  simt::set_max_registers(Registers, false);
}

}  // namespace convladder
