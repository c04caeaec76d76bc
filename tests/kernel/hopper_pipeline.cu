// A small kernel with all that sm_90 adds: a producer warp loads tiles of B to a ring; two warpgroups multiply them by
// their rows of A, which stay in shared memory, and store the results through staging buffers. Each way to break it is
// a value of `broken`.
#include "common/kernel/half.hpp"
#include "common/kernel/hopper.hpp"
#include "tests/kernel/hopper_pipeline.hpp"

namespace convladder {
namespace {

constexpr int kRow = 128;            ///< bytes of a row of A, B and of a staging buffer: 64 halves
constexpr int kRowsOfA = 64 * kRow;  ///< bytes, of one warpgroup

template <int N>
__global__ void __launch_bounds__(384, 1)
    pipeline(const __grid_constant__ TensorMap input, const __grid_constant__ TensorMap output, const unsigned char* a,
             int tiles, int slots, Broken broken) {
  constexpr int kTile = N * kRow;
  unsigned char* const shared_a = dynamic_shared_1024<unsigned char>();  // [2][64][kRow]
  unsigned char* const ring = shared_a + 2 * kRowsOfA;                   // [slots][N][kRow]
  unsigned char* const staging = ring + slots * kTile;                   // [2][N][kRow]
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(staging + 2 * kTile);
  Mbarrier* const empty = full + slots;
  Mbarrier* const a_full = empty + slots;
  const int warp = warp_index(), lane = static_cast<int>(threadIdx.x) % 32;
  const auto is = [&](Broken way) { return broken == way; };

  if (threadIdx.x == 256) {
    for (int i = 0; i < slots; ++i) {
      mbarrier_init(full + i, 1);
      mbarrier_init(empty + i, is(Broken::one_group_arrives) ? 4 : 8);
    }
    mbarrier_init(a_full, 1);
    if (!is(Broken::no_init_fence)) fence_mbarrier_init();
  }
  __syncthreads();

  if (warp >= 8) {
    set_max_registers_decrease<40>();
    if (warp > 8 || lane != 0) return;
    mbarrier_expect(a_full, 2 * kRowsOfA);
    bulk_load(shared_a, a, 2 * kRowsOfA, a_full);  // <- pipeline, unfenced
    for (int tile = 0; tile < tiles; ++tile) {
      const int slot = tile % slots, turn = tile / slots;
      if (turn > 0 && !is(Broken::no_empty_wait))
        mbarrier_wait((is(Broken::full_for_empty) ? full : empty) + slot, (turn - 1) & 1);  // <- pipeline, empty
      const int more = is(Broken::expect_too_many) ? 16 : is(Broken::expect_too_few) ? -16 : 0;
      mbarrier_expect(full + slot, kTile + more);                         // <- pipeline, expect
      tensor_load(ring + slot * kTile, input, full + slot, 0, tile * N);  // <- pipeline, load
    }
    return;
  }

  set_max_registers_increase<232>();
  const int group = warp / 4;
  const bool leads = threadIdx.x % 128 == 0;
  const int threads = is(Broken::named_count) ? 256 : 128;
  unsigned char* const stage = staging + group * kTile;
  const std::uint64_t rows_a = swizzled_descriptor(shared_a + group * kRowsOfA, Swizzle::bytes128);
  float sums[N / 2];
  mbarrier_wait(a_full, 0);
  for (int tile = 0; tile < tiles; ++tile) {
    const int slot = tile % slots, turn = tile / slots;
    const bool waits = !is(Broken::no_full_wait) && !(is(Broken::no_later_full_wait) && turn > 0) &&
                       !(is(Broken::one_lane_waits) && lane > 0);
    if (waits) mbarrier_wait(full + slot, (turn & 1) ^ (is(Broken::parity) ? 1 : 0));  // <- pipeline, full
    const std::uint64_t rows_b = swizzled_descriptor(ring + slot * kTile, Swizzle::bytes128);
    if (!is(Broken::no_wgmma_fence) && !(is(Broken::one_wgmma_fence) && tile > 0)) wgmma_fence();
    if (is(Broken::touched_after_fence)) sums[0] = 0;  // <- pipeline, touched
    for (int step = 0; step < 4; ++step) {
      if (is(Broken::one_wgmma_less) && warp == 1 && step == 3 && tile == tiles - 1) continue;
      const std::uint64_t other = is(Broken::other_descriptor) && warp == 1 ? 2 : 0;
      if (is(Broken::one_lane_less) && threadIdx.x == 37) continue;
      wgmma<N>(sums, rows_a + 2 * step + other, rows_b + 2 * step, step > 0);  // <- pipeline, wgmma
    }
    if (!is(Broken::no_commit)) wgmma_commit();
    if (is(Broken::read_before_wait) && sums[1] > 0) continue;  // <- pipeline, read
    if (is(Broken::write_before_wait)) sums[1] = 0;             // <- pipeline, write
    const bool arrives = !(is(Broken::arrival_missing) && warp == 5) && !(is(Broken::one_group_arrives) && group == 1);
    if (is(Broken::arrive_before_wait) && lane == 0) mbarrier_arrive(empty + slot);
    wgmma_wait<0>();  // <- pipeline, wait
    pin(sums);
    if (!is(Broken::arrive_before_wait) && arrives && lane == 0) mbarrier_arrive(empty + slot);

    // The staging buffer is free again.
    if (leads && !is(Broken::no_staging_wait)) bulk_wait_read<0>();
    named_barrier_sync(1 + group, threads);  // <- pipeline, named
    for (int i = 0; i < N / 2; ++i) {
      const int channel = warp % 4 * 16 + lane / 4 + i % 4 / 2 * 8, row = i / 4 * 8 + lane % 4 * 2 + i % 2;
      const int at = row * kRow + ((channel * 2) ^ (row % 8 * 16));
      *reinterpret_cast<half*>(stage + at) = __float2half(sums[i]);  // <- pipeline, stage
    }
    if (!is(Broken::no_proxy_fence) && !is(Broken::fence_after_barrier)) fence_async_proxy();
    if (!is(Broken::no_staging_barrier)) named_barrier_sync(1 + group, threads);
    if (is(Broken::fence_after_barrier)) fence_async_proxy();
    if (leads) {
      tensor_store(output, stage, 64 * group, tile * N);  // <- pipeline, store
      if (!is(Broken::wait_without_commit)) bulk_commit();
    }
  }
}

}  // namespace

void launch_pipeline(const void* a, const void* b, void* out, int rows, int n, int slots, Broken broken,
                     Stream stream) {
  const auto size = static_cast<std::uint64_t>(rows);
  const auto box = static_cast<unsigned>(n);
  const TensorMap input =
      make_tensor_map(b, {TensorElement::fp16, Swizzle::bytes128, 2, {{64, 2, 64}, {size, 128, box}}});
  const TensorMap output =
      make_tensor_map(out, {TensorElement::fp16, Swizzle::bytes128, 2, {{128, 2, 64}, {size, 256, box}}});
  const auto shared = static_cast<std::size_t>(2 * kRowsOfA + (slots + 2) * n * kRow + (2 * slots + 1) * 8);
  const auto kernel = n == 8 ? pipeline<8> : n == 64 ? pipeline<64> : pipeline<112>;
  launch(kernel, 1, 384, shared, stream)(input, output, static_cast<const unsigned char*>(a), (rows + n - 1) / n, slots,
                                         broken);
}

}  // namespace convladder
