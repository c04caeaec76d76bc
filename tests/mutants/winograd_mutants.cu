// Correct Winograd kernels, simpler than those of the stages: fused in fp32, and partly fused on WMMA in fp16 and int8;
// and versions of them with one mistake each. The tests must reject every one of them.
#include <type_traits>

#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
#include "common/stage/workspace.hpp"
#include "tests/mutants/winograd_mutants.hpp"

namespace convladder {
namespace {

// ---- fp32: a thread computes one tile of one filter ----------------------------------------------------------------

constexpr int kThreads = 32;
constexpr int kFilterBlock = 16;

// U [filter block][channel][position][16]
template <class Form>
__global__ void lay_out_filters(const float* filter, float* u, Winograd w) {
  const int i = blockIdx.x * kThreads + threadIdx.x, k = i / w.channels, c = i % w.channels;
  if (k >= w.filters) return;
  float g[3][3], tile[kTileSize<Form>][kTileSize<Form>];
  for (int tap = 0; tap < 9; ++tap) g[tap / 3][tap % 3] = filter[i * 9 + tap];
  transform_filter<Form>(g, tile);
  float* out = u + (k / kFilterBlock * w.channels + c) * kPositions<Form> * kFilterBlock + k % kFilterBlock;
  for (int p = 0; p < kPositions<Form>; ++p) out[p * kFilterBlock] = tile[p / kTileSize<Form>][p % kTileSize<Form>];
}

template <class Form, WinogradMutation M>
__global__ void fused(const float* input, const float* u, float* output, Winograd w) {
  constexpr int kSize = kTileSize<Form>, kOutputs = kTileOutputs<Form>;
  const int t = blockIdx.x * kThreads + threadIdx.x, k = block_in_y();
  if (t >= w.tiles || k >= w.filters) return;
  const TilePlace place = place_of(w, t);
  if (place.image >= w.batch) return;
  const bool swapped = M == WinogradMutation::swapped_padding;
  const int pad_y = swapped ? w.pad_x : w.pad_y, pad_x = swapped ? w.pad_y : w.pad_x;
  const int shift = M == WinogradMutation::second_image_shifted && place.image > 0 ? 1 : 0;
  const auto index = [&](int i, int size, int pad) {
    return M == WinogradMutation::past_padding && i >= size + pad ? i : tile_index(i, size, pad, w.padding);
  };

  int block = k / kFilterBlock;
  const int last_whole = w.filters / kFilterBlock - 1;
  if (M == WinogradMutation::tail_block_of_filters && block > last_whole && last_whole >= 0) block = last_whole;
  float sums[kSize][kSize] = {};
  for (int c = 0; c < w.channels; ++c) {
    if (M == WinogradMutation::channels_above_64 && c >= 64) continue;
    const float* plane = input + (place.image * w.channels + c) * w.height * w.width;
    float tile[kSize][kSize];
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j) {
        const int y = index(place.row - pad_y + i, w.height, pad_y);
        const int x = index(place.column - pad_x + j + shift, w.width, pad_x);
        bool inside = y >= 0 && x >= 0;
        int at = y * w.width + x;
        if (M == WinogradMutation::mask_transposed && w.padding == Padding::zero) {
          const int y_of_bit = place.row - pad_y + j, x_of_bit = place.column - pad_x + i;
          inside = y_of_bit >= 0 && y_of_bit < w.height && x_of_bit >= 0 && x_of_bit < w.width;
          at = (place.row - pad_y + i) * w.width + place.column - pad_x + j;
          inside = inside && at >= 0 && at < w.height * w.width;  // so that nothing but the result shows it
        }
        if (M == WinogradMutation::reads_row_before && w.padding == Padding::zero && y >= 0) {
          at = y * w.width + place.column - pad_x + j;
          inside = at >= 0 && at < w.height * w.width;
        }
        const float value = inside ? plane[at] : 0.0f;
        tile[i][j] = M == WinogradMutation::nan_swallowed && value != value ? 0.0f : value;
      }
    }
    transform_input<Form>(tile);
    const float* taps = u + (block * w.channels + c) * kPositions<Form> * kFilterBlock + k % kFilterBlock;
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j) {
        const int row = M == WinogradMutation::wrong_sign && (i == 1 || i == 2) ? 3 - i : i;
        const int position = M == WinogradMutation::transposed_position ? j * kSize + i : i * kSize + j;
        sums[i][j] += tile[row][j] * taps[position * kFilterBlock];
      }
    }
  }

  float y[kOutputs][kOutputs];
  transform_output<Form>(sums, y);
  const int outputs = w.batch * w.filters * w.out_height * w.out_width;
  for (int i = 0; i < kOutputs; ++i) {
    for (int j = 0; j < kOutputs; ++j) {
      const int p = place.row + i, q = place.column + j;
      if (q >= w.out_width && M != WinogradMutation::unmasked_last_tile) continue;
      if (p >= w.out_height && M != WinogradMutation::unmasked_last_row) continue;
      const int at = ((place.image * w.filters + k) * w.out_height + p) * w.out_width + q;
      // Far past the end there may be no guard band; near it, what is written must be noticed.
      if (at >= outputs + 16) continue;
      output[at] = M == WinogradMutation::transposed_output ? y[j][i] : y[i][j];
    }
  }
}

template <WinogradMutation M>
class Mutant final : public Stage {
  using Form = F4;
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kTileOutputs<Form>, kFilterBlock);
  }
  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    u_.allocate(std::int64_t{blocks_for(w.filters, kFilterBlock)} * kFilterBlock * w.channels * kPositions<Form>);
    convladder::launch(lay_out_filters<Form>, dim3(blocks_for(w.filters * w.channels, kThreads)), dim3(kThreads), 0,
                       stream)(tensors.filter, u_.floats(), w);
  }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    Winograd w = winograd_of(problem, kTileOutputs<Form>);
    if (M == WinogradMutation::images_rounded_down) w.by_down = divisor_of(max(w.out_height / w.m, 1));
    convladder::launch(fused<Form, M>, grid_in_y(blocks_for(w.tiles, kThreads), w.filters), dim3(kThreads), 0, stream)(
        tensors.input, u_.floats(), tensors.output, w);
  }
  ErrorModel error_model(const ConvProblem&, const float*) const override { return WinogradForm{kTileOutputs<Form>}; }
  Prediction predict(const ConvProblem&) const override { return {}; }

  Workspace u_{*this, "transformed filter"};
};

// ---- fp16 and int8: a block of warps computes 16 tiles x 16 filters at all positions, in turn, a warp a column ------

template <class T>
struct Int8Form {
  using Form = F4Fractions;
};
template <>
struct Int8Form<signed char> {
  using Form = F2;
};
template <class T>
using FormOf = typename Int8Form<T>::Form;
template <class T>
constexpr int kWarps = kTileSize<FormOf<T>>;
constexpr int kTileBlock = 16, kStarted = 3;  // blocks that are started
template <class T>
constexpr int kPiece = kPositions<FormOf<T>>* kTileBlock* kBlock;
constexpr float kLargest = 127.0f;

__device__ __forceinline__ int clip(float value, float inverse) {
  return __float2int_rn(fminf(fmaxf(value * inverse, -kLargest), kLargest));
}
// Which of the positions a scale is taken from.
template <class Form, FragmentMutation M>
__device__ __forceinline__ int scaled_as(int position) {
  constexpr int kSize = kTileSize<Form>;
  return M == FragmentMutation::scales_of_transpose ? position % kSize * kSize + position / kSize : position;
}

// U [position][channel block][padded filters][16], and of bytes their scales [position][padded filters]: a thread a
// filter.
template <class T, FragmentMutation M>
__global__ void make_filters(const float* filter, T* u, float* scales, Winograd w) {
  using Form = FormOf<T>;
  constexpr int kSize = kTileSize<Form>;
  const int filters = padded_filters(w), channels = channel_blocks(w) * kBlock;
  const int k = blockIdx.x * kThreads + threadIdx.x;
  if (k >= filters) return;
  float tile[kSize][kSize], largest[kPositions<Form>] = {};
  if constexpr (sizeof(T) == 1) {
    for (int c = 0; c < (M == FragmentMutation::scale_of_first_channel ? 1 : channels); ++c) {
      load_filter<Form>(filter, w, k, c, tile);
      for (int i = 0; i < kPositions<Form>; ++i) largest[i] = fmaxf(largest[i], fabsf(tile[i / kSize][i % kSize]));
    }
    for (int i = 0; i < kPositions<Form>; ++i) scales[i * filters + k] = largest[i] / kLargest;
  }
  for (int c = 0; c < channels; ++c) {
    load_filter<Form>(filter, w, k, M == FragmentMutation::unfilled_channels ? min(c, w.channels - 1) : c, tile);
    for (int i = 0; i < kPositions<Form>; ++i) {
      T& out = u[((i * channels / kBlock + c / kBlock) * filters + k) * kBlock + c % kBlock];
      const float value = tile[i / kSize][i % kSize];
      if constexpr (sizeof(T) == 1)
        out = static_cast<signed char>(clip(value, largest[i] > 0.0f ? kLargest / largest[i] : 0.0f));
      else
        out = __float2half_rn(value);
    }
  }
}

// The input's scales [position]: a thread each. A 128th of the largest element, so that this one is clipped.
template <FragmentMutation M>
__global__ void find_scales(const half* input, float* scales, Winograd w) {
  const int position = threadIdx.x;
  float largest = 0.0f;
  for (int t = 0; t < w.tiles; ++t) {
    for (int c = 0; c < w.channels; c += 2) {
      half2 tile[4][4];
      load_tile<F2>(input, w, t, c, tile);
      for (int i = 0; i < 16; ++i) {
        if (i != position && M != FragmentMutation::scale_per_tensor) continue;
        const half2 pair = tile[i / 4][i % 4];
        largest = fmaxf(largest, fmaxf(fabsf(__low2float(pair)), fabsf(__high2float(pair))));
      }
    }
  }
  scales[position] = largest / 128;
}

template <class T, FragmentMutation M>
__global__ void multiply(const half* input,  // [batch][height][width][channels]
                         const T* u,         // [position][channel block][padded filters][16]
                         const float* scale_v, const float* scale_u,
                         T* pieces,  // [block][kPiece]
                         half* m,    // [position][padded tiles][padded filters]
                         Winograd w) {
  using Form = FormOf<T>;
  using Sum = std::conditional_t<sizeof(T) == 1, int, float>;
  constexpr int kSize = kTileSize<Form>;
  constexpr bool kLlc = M == FragmentMutation::none_llc || M == FragmentMutation::no_barrier_before_loads_llc ||
                        M == FragmentMutation::no_barrier_after_loads_llc || M == FragmentMutation::shared_piece;
  __shared__ __align__(32) T stages[kLlc ? 16 : kPiece<T>];
  __shared__ __align__(32) Sum patches[kSize][kPatch];
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_parts = filters / 16, parts = tiles / kTileBlock * filter_parts, thread = threadIdx.x;
  const int warp = thread / 32, lane = thread % 32;
  T* const piece = kLlc ? pieces + (M == FragmentMutation::shared_piece ? 0 : blockIdx.x) * kPiece<T> : stages;

  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    const int first_k = part % filter_parts * 16, first_t = part / filter_parts * kTileBlock;
    wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> sums[kSize];
    for (int i = 0; i < kSize; ++i) wmma::fill_fragment(sums[i], Sum{0});
    for (int block = 0; block < blocks; ++block) {
      for (int i = thread; i < kTileBlock * kBlock / 2; i += 32 * kSize) {
        const int t = i / 8, channel = block * kBlock + i % 8 * 2;
        half2 tile[kSize][kSize];
        load_tile<Form>(input, w, first_t + t, channel, tile);
        if (M == FragmentMutation::unfilled_channels && channel + 1 >= w.channels && first_t + t < w.tiles) {
          half2 last[kSize][kSize];
          load_tile<Form>(input, w, first_t + t, (w.channels - 1) / 2 * 2, last);
          for (int p = 0; p < kPositions<Form>; ++p) {
            half2& pair = tile[p / kSize][p % kSize];
            const half2 from = last[p / kSize][p % kSize];
            const half value = w.channels % 2 ? __low2half(from) : __high2half(from);
            pair = __halves2half2(channel < w.channels ? __low2half(pair) : value, value);
          }
        }
        if (M == FragmentMutation::pair_past_channels && channel + 1 == w.channels && first_t + t < w.tiles) {
          const TilePlace place = place_of(w, t + first_t);
          for (int p = 0; p < kPositions<Form>; ++p) {
            const int y = tile_index(place.row - w.pad_y + p / kSize, w.height, w.pad_y, w.padding);
            const int x = tile_index(place.column - w.pad_x + p % kSize, w.width, w.pad_x, w.padding);
            const half* pixel = input + ((place.image * w.height + y) * w.width + x) * w.channels + channel;
            const half zero = __float2half_rn(0.0f);
            tile[p / kSize][p % kSize] =
                y >= 0 && x >= 0 ? __halves2half2(pixel[0], pixel[1]) : __halves2half2(zero, zero);
          }
          transform_input<Form>(tile);
        }
        for (int p = 0; p < kPositions<Form>; ++p) {
          T* out = piece + (p * kTileBlock + t) * kBlock + i % 8 * 2;
          const half2 pair = tile[p / kSize][p % kSize];
          if constexpr (sizeof(T) == 1) {
            const float scale = scale_v[p], inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
            const auto byte = [&](float value) {
              return M == FragmentMutation::wraps ? __float2int_rn(value * inverse) : clip(value, inverse);
            };
            const int low = byte(__low2float(pair)), high = byte(__high2float(pair));
            const int mask = M == FragmentMutation::bytes_unsigned ? ~0 : 255;
            *reinterpret_cast<short*>(out) = static_cast<short>((low & mask) | high << 8);
          } else {
            *reinterpret_cast<half2*>(out) = pair;
          }
        }
      }
      if (M != FragmentMutation::no_barrier_before_loads && M != FragmentMutation::no_barrier_before_loads_llc)
        __syncthreads();
      for (int row = 0; row < kSize; ++row) {
        const int position = row * kSize + warp;
        wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> b;
        wmma::load_matrix_sync(a, piece + position * kTileBlock * kBlock, kBlock);
        wmma::load_matrix_sync(b, u + ((position * blocks + block) * filters + first_k) * kBlock, kBlock);
        wmma::mma_sync(sums[row], a, b, sums[row]);
      }
      if (M != FragmentMutation::no_barrier_after_loads && M != FragmentMutation::no_barrier_after_loads_llc)
        __syncthreads();
    }
    for (int row = 0; row < kSize; ++row) {
      const int position = row * kSize + warp;
      const int stored = M == FragmentMutation::position_of_transpose ? warp * kSize + row : position;
      Sum* const patch = patches[M == FragmentMutation::patch_of_next_warp ? (warp + row % 2) % kSize : warp];
      wmma::store_matrix_sync(patch, sums[row], Patch<FragmentShape<16, 16>>::kPitch, wmma::mem_row_major);
      __syncwarp();
      for (int i = lane; i < 256; i += 32) {
        const int t = first_t + i / 16, k = first_k + i % 16, scaled = scaled_as<Form, M>(position);
        float value = static_cast<float>(patch[i / 16 * Patch<FragmentShape<16, 16>>::kPitch + i % 16]);
        if constexpr (sizeof(T) == 1) {
          const int of = M == FragmentMutation::scale_of_next_filter ? min(k + 1, w.filters - 1) : k;
          value *= scale_v[scaled] * scale_u[scaled * filters + of];
        }
        m[(stored * tiles + t) * filters + k] = __float2half_rn(value);
      }
      __syncwarp();
    }
  }
}

// What pairs_of_odd_filters adds to the output transform: of an odd number of filters, a zero after each pixel's last.
__global__ void write_past_filters(half* output, int pixels, int filters) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (filters % 2 == 1 && i < pixels) output[(i + 1) * filters] = __float2half_rn(0.0f);
}

template <class T, FragmentMutation M>
class FragmentMutant final : public Stage {
  using Form = FormOf<T>;
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }
  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    u_.allocate<T>(filter_elements<Form>(w));
    m_.allocate<half>(product_elements<Form>(w));
    pieces_.allocate<T>(std::int64_t{kStarted} * kPiece<T>);
    scales_v_.allocate(kPositions<Form>);
    scales_u_.allocate(kPositions<Form> * padded_filters(w));
    convladder::launch(make_filters<T, M>, dim3(blocks_for(padded_filters(w), kThreads)), dim3(kThreads), 0, stream)(
        tensors.filter, u_.as<T>(), scales_u_.floats(), w);
    if (sizeof(T) == 1)
      convladder::launch(find_scales<M>, dim3(1), dim3(kPositions<F2>), 0, stream)(tensors.half_input,
                                                                                   scales_v_.floats(), w);
  }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    convladder::launch(multiply<T, M>, dim3(kStarted), dim3(32 * kTileSize<Form>), 0, stream)(
        tensors.half_input, u_.as<T>(), scales_v_.floats(), scales_u_.floats(), pieces_.as<T>(), m_.as<half>(), w);
    launch_transform_outputs<Form>(m_.as<half>(), tensors.half_output, w, stream);
    if (M == FragmentMutation::pairs_of_odd_filters) {
      const int pixels = w.batch * w.out_height * w.out_width;
      convladder::launch(write_past_filters, dim3(blocks_for(pixels, kThreads)), dim3(kThreads), 0, stream)(
          tensors.half_output, pixels, w.filters);
    }
  }
  ErrorModel error_model(const ConvProblem&, const float*) const override {
    return WinogradForm{kTileOutputs<Form>, sizeof(T) == 2, sizeof(T) == 2 ? Precision::fp16 : Precision::int8, true};
  }
  Prediction predict(const ConvProblem&) const override { return {}; }

  Workspace u_{*this, "transformed filter"};
  Workspace m_{*this, "products"};
  Workspace pieces_{*this, "transformed tiles"};
  Workspace scales_v_{*this, "scales of the input"};
  Workspace scales_u_{*this, "scales of the filters"};
};

}  // namespace

template <WinogradMutation M>
Stage* make_winograd_mutant() {
  return new Mutant<M>;
}
template <FragmentMutation M>
Stage* make_half_mutant() {
  return new FragmentMutant<half, M>;
}
template <FragmentMutation M>
Stage* make_int8_mutant() {
  return new FragmentMutant<signed char, M>;
}
template Stage* make_winograd_mutant<WinogradMutation::none>();
template Stage* make_winograd_mutant<WinogradMutation::second_image_shifted>();
template Stage* make_winograd_mutant<WinogradMutation::images_rounded_down>();
template Stage* make_winograd_mutant<WinogradMutation::unmasked_last_tile>();
template Stage* make_winograd_mutant<WinogradMutation::unmasked_last_row>();
template Stage* make_winograd_mutant<WinogradMutation::past_padding>();
template Stage* make_winograd_mutant<WinogradMutation::reads_row_before>();
template Stage* make_winograd_mutant<WinogradMutation::mask_transposed>();
template Stage* make_winograd_mutant<WinogradMutation::swapped_padding>();
template Stage* make_winograd_mutant<WinogradMutation::nan_swallowed>();
template Stage* make_winograd_mutant<WinogradMutation::wrong_sign>();
template Stage* make_winograd_mutant<WinogradMutation::transposed_position>();
template Stage* make_winograd_mutant<WinogradMutation::transposed_output>();
template Stage* make_winograd_mutant<WinogradMutation::channels_above_64>();
template Stage* make_winograd_mutant<WinogradMutation::tail_block_of_filters>();
template Stage* make_half_mutant<FragmentMutation::none>();
template Stage* make_half_mutant<FragmentMutation::none_llc>();
template Stage* make_half_mutant<FragmentMutation::pair_past_channels>();
template Stage* make_half_mutant<FragmentMutation::unfilled_channels>();
template Stage* make_half_mutant<FragmentMutation::pairs_of_odd_filters>();
template Stage* make_half_mutant<FragmentMutation::position_of_transpose>();
template Stage* make_half_mutant<FragmentMutation::no_barrier_before_loads>();
template Stage* make_half_mutant<FragmentMutation::no_barrier_after_loads>();
template Stage* make_half_mutant<FragmentMutation::no_barrier_before_loads_llc>();
template Stage* make_half_mutant<FragmentMutation::no_barrier_after_loads_llc>();
template Stage* make_half_mutant<FragmentMutation::shared_piece>();
template Stage* make_half_mutant<FragmentMutation::patch_of_next_warp>();
template Stage* make_int8_mutant<FragmentMutation::none>();
template Stage* make_int8_mutant<FragmentMutation::none_llc>();
template Stage* make_int8_mutant<FragmentMutation::no_barrier_before_loads>();
template Stage* make_int8_mutant<FragmentMutation::no_barrier_after_loads>();
template Stage* make_int8_mutant<FragmentMutation::scales_of_transpose>();
template Stage* make_int8_mutant<FragmentMutation::scale_of_next_filter>();
template Stage* make_int8_mutant<FragmentMutation::scale_of_first_channel>();
template Stage* make_int8_mutant<FragmentMutation::wraps>();
template Stage* make_int8_mutant<FragmentMutation::bytes_unsigned>();
template Stage* make_int8_mutant<FragmentMutation::scale_per_tensor>();

}  // namespace convladder
