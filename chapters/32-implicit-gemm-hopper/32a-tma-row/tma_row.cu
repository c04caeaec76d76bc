// 32a tma-row: pixels come by TMA, and the multiply-adds are ordinary ones.
//
//   y[n][p][q][k] = sum over r, s, c of filter[k][c][r][s] * x[n][p + r - pad_h][q + s - pad_w][c]       8 channels
//
// The idea: TMA copies a box of a tensor at one thread's request. The thread gives the box's first coordinates, which
// may be negative, and the part outside of the tensor arrives as zeros: no thread computes an address or asks where the
// image ends. All threads wait for the copy at an mbarrier: its phase ends when an arrival and so many bytes have come.
// `--configuration copy=threads` copies the same box by ordinary loads and stores.
//
//   1. A block has 32 pixels of a row of outputs, a warp all of them for 8 filters at a time, a thread one of them.
//   2. One thread makes the mbarrier, for one arrival a phase. The block barrier keeps others from an mbarrier that is
//      not made yet; the fence does so with TMA.
//   3. The same thread arrives and says how many bytes will come, those of zeros too, and asks for the box: the rows of
//      pixels that the block's windows reach.
//   4. Everybody waits for the end of phase 0, and then sees the pixels that TMA wrote.
//   5. A pixel is 16 bytes, 8 channels. Its products with 8 filters, whose taps are in constant memory.
//   6. The thread stores the sums of 8 filters as halves.

#include "common/kernel/half.hpp"
#include "common/kernel/hopper.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

constexpr int kPixels = 32;   // of a block, in a row of outputs
constexpr int kChannels = 8;  // of a pixel: 16 bytes, the least that TMA moves
constexpr int kFilters = 8;   // of a thread at a time
constexpr int kThreads = 128;
constexpr int kMaxSide = 7;      // of a filter
constexpr int kMaxTaps = 16384;  // of all filters: 64 KB of constant memory

__constant__ float taps[kMaxTaps];  // [filters][channels][rows][columns]

template <bool ByTma>
__global__ void __launch_bounds__(kThreads) convolve(const __grid_constant__ TensorMap map,  // of the input
                                                     const half* input,  // [batch][height][width][8]
                                                     half* output,       // [batch][out_height][out_width][filters]
                                                     Lowering l) {
  uint4* const box = dynamic_shared_1024<uint4>();  // [rows][kPixels + columns - 1], a pixel each
  __shared__ Mbarrier arrived;
  // 1.
  const int tiles = blocks_for(l.out_width, kPixels), row = static_cast<int>(blockIdx.x) / tiles;
  const int first = static_cast<int>(blockIdx.x) % tiles * kPixels, thread = threadIdx.x, lane = thread % 32;
  const int x = first - l.pad_x, y = row % l.out_height - l.pad_y, image = row / l.out_height;
  const int box_width = kPixels + l.columns - 1, box_pixels = l.rows * box_width;

  if constexpr (ByTma) {
    if (thread == 0) {
      // 2.
      mbarrier_init(&arrived, 1);
      fence_mbarrier_init();
      // 3.
      mbarrier_expect(&arrived, box_pixels * static_cast<int>(sizeof(uint4)));
      tensor_load(box, map, &arrived, 0, x, y, image);
    }
    __syncthreads();
    // 4.
    mbarrier_wait(&arrived, 0);
  } else {
    for (int i = thread; i < box_pixels; i += kThreads) {
      const int h = y + i / box_width, w = x + i % box_width;
      const bool inside = h >= 0 && h < l.height && w >= 0 && w < l.width;
      box[i] =
          inside ? reinterpret_cast<const uint4*>(input)[(image * l.height + h) * l.width + w] : make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
  }

  for (int k = thread / 32 * kFilters; k < l.filters; k += kThreads / 32 * kFilters) {
    // 5.
    float sums[kFilters] = {};
    for (int tap = 0; tap < window(l); ++tap) {
      const uint4 pixel = box[tap / l.columns * box_width + lane + tap % l.columns];
      const half2* const pairs = reinterpret_cast<const half2*>(&pixel);
      UNROLL
      for (int c = 0; c < kChannels; ++c) {
        const float value = c % 2 == 0 ? __low2float(pairs[c / 2]) : __high2float(pairs[c / 2]);
        UNROLL
        for (int j = 0; j < kFilters; ++j) sums[j] += value * taps[((k + j) * kChannels + c) * window(l) + tap];
      }
    }
    // 6.
    uint4 rounded;
    UNROLL
    for (int j = 0; j < kFilters; j += 2)
      reinterpret_cast<half2*>(&rounded)[j / 2] = __floats2half2_rn(sums[j], sums[j + 1]);
    if (first + lane < l.out_width)
      *reinterpret_cast<uint4*>(output + (row * l.out_width + first + lane) * l.filters + k) = rounded;
  }
}

// ---- The host side --------------------------------------------------------------------------------------------------

constexpr int kChoices[] = {0, 1};
constexpr const char* kWords[] = {"threads", "tma"};
constexpr Knob kKnobs[] = {{"copy", kChoices, kWords, 1}};

std::int64_t blocks_of(const Lowering& l) {
  return std::int64_t{l.batch} * l.out_height * blocks_for(l.out_width, kPixels);
}

// How many of `count` positions, from `first` on, lie in [0, size).
std::int64_t inside(int first, int count, int size) {
  const int begin = first > 0 ? first : 0, end = first + count < size ? first + count : size;
  return begin < end ? end - begin : 0;
}

class TmaRow final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, false}; }

  Verdict check(const ConvProblem& p, const DeviceLimits&) const override {
    if (p.c != kChannels) return Verdict::refuse("a pixel must have 8 channels, 16 bytes; got c={}", p.c);
    if (p.k % kFilters != 0) return Verdict::refuse("k must be a multiple of 8; got k={}", p.k);
    if (p.r > kMaxSide || p.s > kMaxSide)
      return Verdict::refuse("a filter may be up to {} x {}; got r={}, s={}", kMaxSide, kMaxSide, p.r, p.s);
    if (p.k * p.c * p.r * p.s > kMaxTaps)
      return Verdict::refuse("constant memory holds {} taps; got k={}, r={}, s={}", kMaxTaps, p.k, p.r, p.s);
    if (p.stride_h != 1 || p.stride_w != 1 || p.dilation_h != 1 || p.dilation_w != 1)
      return Verdict::refuse(
          "strides and dilations must be 1; got stride_h={}, stride_w={}, dilation_h={}, "
          "dilation_w={}",
          p.stride_h, p.stride_w, p.dilation_h, p.dilation_w);
    if (p.padding != Padding::zero) return Verdict::refuse("the padding must be zeros, which TMA fills in");
    return check_implicit_gemm(p, kChannels, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(taps, tensors.filter, problem.filter_size(), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    const unsigned columns = kPixels + l.columns - 1, rows = l.rows;
    const std::uint64_t pixel = sizeof(uint4), width = l.width, height = l.height, batch = l.batch;
    const TensorMap map = make_tensor_map(tensors.half_input, {TensorElement::fp16,
                                                               Swizzle::none,
                                                               4,
                                                               {{kChannels, 2, kChannels},
                                                                {width, pixel, columns},
                                                                {height, width * pixel, rows},
                                                                {batch, height * width * pixel, 1}}});
    convladder::launch(knob("copy") ? convolve<true> : convolve<false>, static_cast<unsigned>(blocks_of(l)), kThreads,
                       rows * columns * pixel, stream)(map, tensors.half_input, tensors.half_output, l);
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Lowering l = lowering_of(problem);
    const int box_width = kPixels + l.columns - 1;
    std::int64_t rows = 0, columns = 0;  // of boxes, inside of an image
    for (int p = 0; p < l.out_height; ++p) rows += inside(p - l.pad_y, l.rows, l.height);
    for (int q = 0; q < l.out_width; q += kPixels) columns += inside(q - l.pad_x, box_width, l.width);
    const std::int64_t products = blocks_of(l) * (l.filters / kFilters) * window(l);  // of a warp, pixel by filters
    Prediction p;
    p.global_load_bytes = l.batch * rows * columns * 16;
    if (knob("copy")) p.global_load_requests = blocks_of(l);
    p.global_store_bytes = 2 * problem.output_size();
    p.shared_load_requests = products;
    p.shared_store_requests = knob("copy") ? 0 : blocks_of(l) * blocks_for(l.rows * box_width, 32);
    p.constant_load_requests = products * kChannels * kFilters;
    p.shared_load_conflicts = p.shared_store_conflicts = p.atomic_requests = 0;
    p.barriers = blocks_of(l);
    p.flops = problem.flops();
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::TmaRow)
