// Barriers, bulk copies and matrix products of sm_90: order, and misuse.
#include <type_traits>

#include "common/kernel/hopper.hpp"
#include "tests/simt/hopper_kernels.hpp"

using namespace convladder;

namespace {

// ---- Order ---------------------------------------------------------------------------------------------------------

__global__ void handoff(float* output, Handoff form) {
  __shared__ Mbarrier full;
  __shared__ float tile[32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0) mbarrier_init(&full, 32);
  __syncthreads();
  const bool named = form == Handoff::named || form == Handoff::named_no_wait || form == Handoff::named_arrive_after;
  if (threadIdx.x < 32) {
    if (form == Handoff::named_arrive_after) named_barrier_arrive(1, 64);
    tile[31 - lane] = static_cast<float>(lane);  // <- handoff
    if (!named) mbarrier_arrive(&full);
    if (form == Handoff::named || form == Handoff::named_no_wait) named_barrier_arrive(1, 64);
  } else {
    if (form == Handoff::right) mbarrier_wait(&full, 0);
    if (form == Handoff::wrong_parity) mbarrier_wait(&full, 1);  // <- handoff, parity
    if (form == Handoff::named || form == Handoff::named_arrive_after) named_barrier_sync(1, 64);
    output[lane] = tile[31 - lane];  // <- handoff, read
  }
}

__global__ void handed_on(float* output, bool second_waits) {
  __shared__ Mbarrier barriers[2];
  __shared__ float number;
  if (threadIdx.x == 0) {
    mbarrier_init(&barriers[0], 1);
    mbarrier_init(&barriers[1], 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    number = 5;
    mbarrier_arrive(&barriers[0]);
  } else if (threadIdx.x == 32) {
    if (second_waits) mbarrier_wait(&barriers[0], 0);
    mbarrier_arrive(&barriers[1]);
  } else if (threadIdx.x == 64) {
    mbarrier_wait(&barriers[1], 0);
    output[0] = number;  // <- handed_on
  }
}

/// A copy of 32 numbers; thread 0 starts it.
__device__ __forceinline__ float* start_copy(Mbarrier* barrier, const float* input) {
  float* tile = dynamic_shared_1024<float>();
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, 1);
    fence_mbarrier_init();
    mbarrier_expect(barrier, 128);
    bulk_load(tile, input, 128, barrier);
  }
  __syncthreads();
  return tile;
}

__global__ void passed_on(const float* input, float* output, PassedOn how) {
  __shared__ Mbarrier barrier;
  const float* tile = start_copy(&barrier, input);
  if (threadIdx.x == 0) mbarrier_wait(&barrier, 0);
  if (how == PassedOn::by_warp_barrier) __syncwarp();
  if (how == PassedOn::by_block_barrier) __syncthreads();
  output[threadIdx.x] = tile[31 - threadIdx.x % 32];  // <- passed_on
}

__global__ void two_copies(const float* input, float* output, bool reads_first) {
  __shared__ Mbarrier barriers[2];
  float* tiles = dynamic_shared_1024<float>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      mbarrier_init(&barriers[i], 1);
      fence_mbarrier_init();
      mbarrier_expect(&barriers[i], 128);
      bulk_load(tiles + 32 * i, input, 128, &barriers[i]);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) mbarrier_wait(&barriers[0], 0);
  if (threadIdx.x == 32) {
    mbarrier_wait(&barriers[1], 0);
    output[0] = tiles[reads_first ? 3 : 35];  // <- two_copies
  }
}

__global__ void store_groups(const __grid_constant__ TensorMap map, bool overwrites_first) {
  float* tiles = dynamic_shared_1024<float>();
  tiles[threadIdx.x] = tiles[32 + threadIdx.x] = 1;
  fence_async_proxy();
  __syncwarp();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      tensor_store(map, tiles + 32 * i, 32 * i);
      bulk_commit();
    }
    bulk_wait_read<1>();
    tiles[overwrites_first ? 0 : 32] = 2;  // <- store_groups
  }
}

__global__ void prefetch(const unsigned char* input, float* output, int first, int bytes) {
  if (bytes >= 0 && threadIdx.x == 0) bulk_prefetch(input + first, bytes);  // <- prefetch
  output[threadIdx.x] = 1;
}

__global__ void misuse(const __grid_constant__ TensorMap map, const float* input, float* output, Misuse form) {
  __shared__ Mbarrier barriers[4];
  float* tile = dynamic_shared_1024<float>();
  Mbarrier* const barrier = &barriers[1];
  const bool first = threadIdx.x == 0;
  if (first) {
    if (form != Misuse::no_init) mbarrier_init(barrier, form == Misuse::too_many_arrivals ? 1 : 64);
    if (form == Misuse::barrier_in_global) mbarrier_init(reinterpret_cast<Mbarrier*>(output), 1);
    if (form != Misuse::init_unfenced) fence_mbarrier_init();
    if (form == Misuse::copy_over_write) tile[0] = 1;
  }
  if (form != Misuse::init_unordered) __syncthreads();
  if (first) {
    mbarrier_expect(barrier, 128);
    if (form == Misuse::rank)
      tensor_load(tile, map, barrier, 0, 0);
    else if (form == Misuse::between_pieces)
      tensor_load(tile, map, barrier, 3);
    else if (form == Misuse::stored_before)
      tensor_store(map, tile, -4);
    else if (form == Misuse::copy_misaligned)
      bulk_load(tile + 1, input, 128, barrier);
    else if (form == Misuse::copy_out_of_bounds)
      bulk_load(tile + 240, input, 128, barrier);
    else if (form == Misuse::copy_of_15_bytes)
      bulk_load(tile, input, 15, barrier);
    else
      bulk_load(tile, input, 128, barrier);
    if (form == Misuse::copy_onto_copy) bulk_load(tile + 28, input, 128, barrier);
    if (form == Misuse::too_many_arrivals) mbarrier_arrive(barrier);
  } else {
    mbarrier_arrive(barrier);
  }
  if (form == Misuse::never_waited) {
    __syncthreads();
  } else {
    mbarrier_wait(barrier, 0);
  }
  if (form == Misuse::named_id) named_barrier_sync(0, 64);
  if (form == Misuse::named_threads) named_barrier_sync(1, 48);
  if (form == Misuse::named_counts) named_barrier_sync(1, threadIdx.x < 32 ? 64 : 32);
  if (form == Misuse::named_twice && threadIdx.x < 32) {
    named_barrier_arrive(1, 64);
    named_barrier_arrive(1, 64);
  }
  if (form == Misuse::copy_then_threads && first) mbarrier_wait(barrier, 1);  // nobody comes to phase 1
  output[threadIdx.x] = tile[threadIdx.x % 32];
}

__global__ void column_misuse(const __grid_constant__ TensorMap map, float* output, ColumnMisuse misuse) {
  __shared__ Mbarrier barrier;
  float* const column = dynamic_shared_1024<float>();
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_expect(&barrier, 64);
    if (misuse == ColumnMisuse::box_of_columns)
      tensor_load(column, map, &barrier, 0, 0, 0);
    else if (misuse == ColumnMisuse::offset)
      im2col_load(column, map, &barrier, {-1}, 0, 0, 0);
    else if (misuse == ColumnMisuse::before_corner)
      im2col_load(column, map, &barrier, {0}, 0, -2, 0);
    else
      im2col_load(column, map, &barrier, {0}, 0, misuse == ColumnMisuse::behind_corner ? 4 : 3, 0);
  }
  __syncthreads();
  mbarrier_wait(&barrier, 0);
  output[threadIdx.x] = column[threadIdx.x];
}

template <int Registers>
__global__ void __launch_bounds__(384, 1) registers_of_warps() {
  __syncthreads();
  if (warp_index() >= 8)
    set_max_registers_decrease<40>();
  else
    set_max_registers_increase<Registers>();  // <- registers, increase
}

template <class Element>
__global__ void product_misuse(float* output, ProductMisuse misuse, int words) {
  const auto is = [&](ProductMisuse way) { return misuse == way; };
  unsigned* const shared = dynamic_shared_1024<unsigned>();  // 64 rows of A, 8 of B: [72][32 words]
  const unsigned ones = std::is_same_v<Element, Fp16> ? 0x3c003c00 : 0x3f800000;
  const int thread = static_cast<int>(threadIdx.x);
  if (is(ProductMisuse::fenced_too_early)) fence_async_proxy();
  for (int i = thread; i < words; i += static_cast<int>(blockDim.x))
    if (!is(ProductMisuse::unwritten) || i != 0) shared[i] = ones;  // <- product_misuse, fill
  if (!is(ProductMisuse::unfenced) && !is(ProductMisuse::fenced_too_early)) fence_async_proxy();
  if (is(ProductMisuse::unfenced_atomic)) atomicAdd(&shared[thread], 0u);
  if (!is(ProductMisuse::unordered)) __syncthreads();
  if (is(ProductMisuse::ended_lane) && thread == 5) return;

  std::uint64_t a = swizzled_descriptor(shared, Swizzle::bytes128);
  std::uint64_t b = swizzled_descriptor(shared + 64 * 32, Swizzle::bytes128);
  if (is(ProductMisuse::past_end)) b += 8;
  if (is(ProductMisuse::two_rows)) a += 7;
  if (is(ProductMisuse::lanes_differ) && thread % 32 == 3) a += 2;
  if (is(ProductMisuse::descriptor)) a |= 3ull << 62;
  float sums[8] = {};
  unsigned of_lane[4] = {ones, ones, ones, ones};
  wgmma_fence();
  if (is(ProductMisuse::touched_a)) {
    of_lane[1] = 0;
    wgmma<8>(reinterpret_cast<float(&)[4]>(sums[0]), of_lane, b, true);  // <- product_misuse
  } else if (is(ProductMisuse::other_element) && thread / 32 == 2) {
    wgmma<8, Bf16>(reinterpret_cast<float(&)[4]>(sums[0]), a, b, true);
  } else {
    wgmma<8, Element>(reinterpret_cast<float(&)[4]>(sums[0]), a, b, true);  // <- product_misuse
  }
  if (is(ProductMisuse::overlap)) wgmma<8, Element>(reinterpret_cast<float(&)[4]>(sums[2]), a, b, true);
  wgmma_commit();
  if (is(ProductMisuse::write_while_read)) shared[thread] = 0;  // <- product_misuse, write
  if (is(ProductMisuse::newest_in_flight) || is(ProductMisuse::oldest_done)) {
    wgmma<8, Element>(reinterpret_cast<float(&)[4]>(sums[4]), a + 2, b + 2, true);
    wgmma_commit();
    wgmma_wait<1>();
    // The first words of the warp's own first row are those of the first group, the next those of the second.
    const int word = is(ProductMisuse::oldest_done) ? 0 : 8;
    if (thread % 32 == 0) shared[thread / 32 * 16 * 32 + word] = 0;  // <- product_misuse, newest
  }
  // The first warp waits alone. Then the reads of all four are over, but each must wait for its own sums.
  if (is(ProductMisuse::right_after_others_wait) || is(ProductMisuse::read_after_others_wait)) {
    if (thread < 32) wgmma_wait<0>();
    __syncthreads();
    if (is(ProductMisuse::right_after_others_wait)) shared[thread] = 0;
    if (is(ProductMisuse::read_after_others_wait) && thread >= 32) output[thread] = sums[0];  // <- product_misuse, sums
  }
  wgmma_wait<0>();
  if (is(ProductMisuse::right_after_own_wait))
    for (int i = thread; i < words; i += static_cast<int>(blockDim.x)) shared[i] = 0;
  output[thread] = sums[0];
}

}  // namespace

void make_map(const void* tensor, const TensorForm& form) { make_tensor_map(tensor, form); }
void launch_handoff(float* output, Handoff form) { launch(handoff, 1, 64, 0, nullptr)(output, form); }
void launch_handed_on(float* output, bool second_waits) { launch(handed_on, 1, 96, 0, nullptr)(output, second_waits); }
void launch_passed_on(const float* input, float* output, PassedOn how) {
  launch(passed_on, 1, how == PassedOn::by_warp_barrier ? 32 : 96, 128, nullptr)(input, output, how);
}
void launch_two_copies(const float* input, float* output, bool reads_first) {
  launch(two_copies, 1, 64, 256, nullptr)(input, output, reads_first);
}
void launch_store_groups(float* output, bool overwrites_first) {
  const TensorMap map = make_tensor_map(output, {TensorElement::fp32, Swizzle::none, 1, {{64, 4, 32}}});
  launch(store_groups, 1, 32, 256, nullptr)(map, overwrites_first);
}
void launch_product_misuse(float* output, ProductMisuse misuse, bool of_tf32) {
  const unsigned threads = misuse == ProductMisuse::short_block ? 96 : 128;
  const auto kernel = of_tf32 ? product_misuse<Tf32> : product_misuse<Fp16>;
  launch(kernel, 1, threads, 72 * 128, nullptr)(output, misuse, 72 * 32);
}
void launch_registers(int warps, int registers) {
  const auto kernel = registers == 232   ? registers_of_warps<232>
                      : registers == 240 ? registers_of_warps<240>
                                         : registers_of_warps<160>;
  launch(kernel, 1, static_cast<unsigned>(32 * warps), 0, nullptr)();
}
void launch_prefetch(const unsigned char* input, float* output, int first, int bytes) {
  launch(prefetch, 1, 32, 0, nullptr)(input, output, first, bytes);
}
void launch_column_misuse(const float* input, float* output, ColumnMisuse misuse) {
  TensorForm form{TensorElement::fp32, Swizzle::none, 3, {{4, 4, 4}, {5, 16, 1}, {6, 80, 1}}};
  if (misuse != ColumnMisuse::column_of_boxes) {
    form.pixels = 4;
    form.lower[0] = form.upper[0] = -1;
  } else {
    form.dimensions[1].box = 4;
  }
  launch(column_misuse, 1, 4, 64, nullptr)(make_tensor_map(input, form), output, misuse);
}
void launch_misuse(const float* input, float* output, Misuse form) {
  const TensorMap map = make_tensor_map(input, {TensorElement::fp32, Swizzle::none, 1, {{32, 4, 32}}});
  launch(misuse, 1, 64, 1024, nullptr)(map, input, output, form);
}
