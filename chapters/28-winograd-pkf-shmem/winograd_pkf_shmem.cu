// 28 winograd-pkf-shmem: partial kernel fusion through shared memory.
//
// Since 27: the kernel that multiplies transforms the input itself. V, the largest tensor, never goes to global memory:
// a block keeps the transformed tiles of the channels that it multiplies in shared memory. The products still go out,
// and the output transform stays a kernel of its own: that is the "partial" of the fusion.
//
//   1. A block computes TBM tiles x TBN filters at all 36 positions. Two warps share a column of positions, half of the
//      filters each.
//   2. A step transforms 64 channels of the block's tiles into shared memory. A barrier: warps read what others wrote.
//   3. Each warp multiplies at its six positions. Their sums all stay in registers, 36 TBM TBN floats a block: that is
//      why TBN shrinks as TBM grows. A second barrier before the next channels.
//   4. The sums go out as halves.
//
// For comparison, "fused=output" joins the product with the output transform instead: output_fusion.cuh.

#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
#include "chapters/28-winograd-pkf-shmem/output_fusion.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

using Form = F4Fractions;

constexpr int kSize = kTileSize<Form>;
constexpr int kGroups = 2;  // warps of a column
constexpr int kWarps = kGroups * kSize, kThreads = 32 * kWarps;
constexpr int kDepth = 64;          // channels of a step
constexpr int kPitch = kDepth + 8;  // halves from tile to tile in shared memory: no two rows begin in one bank
constexpr int kSums = 1024;         // of a block at a position

template <int Tiles>
constexpr int kFilters = kSums / Tiles;

template <int Tiles>
__global__ void __launch_bounds__(kThreads, 1) multiply(const half* input,  // [batch][height][width][channels]
                                                        const half* u,  // [position][channel block][padded filters][16]
                                                        half* m,        // [position][padded tiles][padded filters]
                                                        Winograd w) {
  constexpr int kDown = Tiles / 16, kAcross = kFilters<Tiles> / 16 / kGroups;
  half* const transformed = dynamic_shared<half>();  // [position][Tiles][kPitch]
  float* const patches = reinterpret_cast<float*>(transformed + kPositions<Form> * Tiles * kPitch);
  // 1.
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_blocks = blocks_for(filters, kFilters<Tiles>), thread = threadIdx.x, warp = thread / 32;
  const int column = warp % kSize;
  const int first_k =
      static_cast<int>(blockIdx.x) % filter_blocks * kFilters<Tiles> + warp / kSize * (kFilters<Tiles> / kGroups);
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * Tiles;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[kSize][kDown][kAcross];
  UNROLL
  for (int i = 0; i < kSize * kDown * kAcross; ++i)
    wmma::fill_fragment(sums[i / kAcross / kDown][i / kAcross % kDown][i % kAcross], 0.0f);

  UNROLL_BY(1)
  for (int first_block = 0; first_block < blocks; first_block += kDepth / kBlock) {
    // 2. A warp takes 64 channels of a tile, each thread two.
    const int step_blocks = min(kDepth / kBlock, blocks - first_block);
    UNROLL_BY(1)
    for (int i = thread; i < Tiles * kDepth / 2; i += kThreads) {
      const int c = i % (kDepth / 2) * 2, t = i / (kDepth / 2);
      if (c >= step_blocks * kBlock) continue;
      half2 tile[kSize][kSize];
      load_tile<Form>(input, w, first_t + t, first_block * kBlock + c, tile);
      UNROLL
      for (int position = 0; position < kPositions<Form>; ++position)
        *reinterpret_cast<half2*>(transformed + (position * Tiles + t) * kPitch + c) =
            tile[position / kSize][position % kSize];
    }
    __syncthreads();
    // 3.
    UNROLL_BY(1)
    for (int block = 0; block < step_blocks; ++block) {
      UNROLL
      for (int row = 0; row < kSize; ++row) {
        const int position = row * kSize + column;
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[kDown];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
        UNROLL
        for (int i = 0; i < kDown; ++i)
          wmma::load_matrix_sync(a[i], transformed + (position * Tiles + 16 * i) * kPitch + block * kBlock, kPitch);
        UNROLL
        for (int j = 0; j < kAcross; ++j) {
          if (first_k + 16 * j >= filters) continue;
          wmma::load_matrix_sync(
              b, u + ((position * blocks + first_block + block) * filters + first_k + 16 * j) * kBlock, kBlock);
          UNROLL
          for (int i = 0; i < kDown; ++i) wmma::mma_sync(sums[row][i][j], a[i], b, sums[row][i][j]);
        }
      }
    }
    __syncthreads();  // the transformed tiles are read
  }
  // 4.
  UNROLL
  for (int row = 0; row < kSize; ++row) {
    UNROLL
    for (int i = 0; i < kDown; ++i) {
      UNROLL
      for (int j = 0; j < kAcross; ++j) {
        if (first_k + 16 * j >= filters) continue;
        store_sums(sums[row][i][j], patches + warp * kPatch,
                   m + ((row * kSize + column) * tiles + first_t + 16 * i) * filters + first_k + 16 * j, filters);
      }
    }
  }
}

// The knobs: TBM, the tiles of a block; and which transform is fused with the product.
enum { kInput, kOutput };
constexpr int kTileCounts[] = {16, 32}, kFused[] = {kInput, kOutput};
constexpr const char* kFusedWords[] = {"input", "output"};
constexpr Knob kKnobs[] = {{"tbm", kTileCounts, nullptr, 2}, {"fused", kFused, kFusedWords, 2}};

std::int64_t shared_bytes(int tbm, int fused) {
  const int row = fused == kInput ? kPitch : tbm == 16 ? kExchangePitch<kFilters<16>> : kExchangePitch<kFilters<32>>;
  return kPositions<Form> * tbm * row * 2 + kWarps * kPatch * 4;
}

// What the kernels read and write; v where the output transform is fused, m where the input's is.
struct HalfTensors {
  const half *input, *u;
  half *v, *m, *output;
};

template <int Tiles>
void launch_kernels(const HalfTensors& t, int fused, const Winograd& w, Stream stream) {
  const dim3 blocks(blocks_for(padded_filters(w), kFilters<Tiles>) * (padded_tiles(w) / Tiles)), threads(kThreads);
  const auto bytes = static_cast<std::size_t>(shared_bytes(Tiles, fused));
  if (fused == kInput) {
    launch(multiply<Tiles>, blocks, threads, bytes, stream)(t.input, t.u, t.m, w);
    launch_transform_outputs<Form>(t.m, t.output, w, stream);
  } else {
    launch_transform_inputs<Form>(t.input, t.v, w, stream);
    launch(multiply_and_transform<Form, Tiles, kFilters<Tiles>, kGroups>, blocks, threads, bytes, stream)(t.u, t.v,
                                                                                                          t.output, w);
  }
}

class WinogradPkfShmem final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 2}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    const int tbm = configuration.values[0], fused = configuration.values[1];
    const std::int64_t bytes = shared_bytes(tbm, fused);
    if (bytes > limits.shared_bytes_per_block)
      return Verdict::refuse("tbm=%d,fused=%s takes %lld bytes of shared memory; a block may have %lld", tbm,
                             kFusedWords[fused], static_cast<long long>(bytes),
                             static_cast<long long>(limits.shared_bytes_per_block));
    return check(problem, limits);
  }
  Configuration default_configuration(const ConvProblem&, const DeviceLimits&) const override { return {{16, kInput}}; }
  bool searched() const override { return false; }
  void use(const Configuration& configuration) override { knobs_ = configuration; }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const std::int64_t bytes = shared_bytes(16, kInput);
    if (bytes > limits.shared_bytes_per_block)
      return Verdict::refuse("a block needs %lld bytes of shared memory; it may have %lld",
                             static_cast<long long>(bytes), static_cast<long long>(limits.shared_bytes_per_block));
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  int tbm() const { return knobs_.values[0]; }
  int fused() const { return knobs_.values[1]; }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    u_.allocate<half>(filter_elements<Form>(w), "transformed filter");
    if (fused() == kInput)
      m_.allocate<half>(product_elements<Form>(w), "products");
    else
      v_.allocate<half>(input_elements<Form>(w), "transformed input");
    launch_transform_filters<Form>(tensors.filter, u_.as<half>(), w, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const auto launch_all = tbm() == 16 ? launch_kernels<16> : launch_kernels<32>;
    launch_all({tensors.half_input, u_.as<half>(), v_.as<half>(), m_.as<half>(), tensors.half_output}, fused(), w,
               stream);
  }

  std::int64_t workspace_bytes() const override { return u_.bytes() + v_.bytes() + m_.bytes(); }
  bool workspace_intact() const override { return u_.intact() && v_.intact() && m_.intact(); }
  WinogradForm winograd(const ConvProblem&) const override { return {kTileOutputs<Form>, true, Precision::fp16, true}; }

  Prediction predict(const ConvProblem& problem) const override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const std::int64_t tile_blocks = padded_tiles(w) / tbm(),
                       filter_blocks = blocks_for(padded_filters(w), kSums / tbm());
    const std::int64_t steps = blocks_for(channel_blocks(w), kDepth / kBlock), pairs = (w.filters + 1) / 2;
    const std::int64_t of_filters = 2 * filter_elements<Form>(w) * tile_blocks;
    Prediction p;
    if (fused() == kInput) {
      p.global_load_bytes =
          2 * tile_reads(w) * filter_blocks + of_filters + kPositions<Form> * std::int64_t{w.tiles} * pairs * 4;
      p.global_store_bytes = 2 * (product_elements<Form>(w) + problem.output_size());
      p.barriers = tile_blocks * filter_blocks * steps * 2;
    } else {
      p.global_load_bytes = 2 * tile_reads(w) + 2 * kGroups * input_elements<Form>(w) * filter_blocks + of_filters;
      p.global_store_bytes = 2 * (input_elements<Form>(w) + problem.output_size());
      p.barriers = tile_blocks * filter_blocks;
    }
    p.constant_load_requests = 0;
    p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
    return p;
  }

  Configuration knobs_{{16, kInput}};
  Workspace u_, v_, m_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradPkfShmem)
