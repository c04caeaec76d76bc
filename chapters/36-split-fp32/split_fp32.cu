// 36 split-fp32, its stage. The kernels, and what they do, are in split_fp32.cuh and winograd_columns.cuh.
#include "chapters/36-split-fp32/prediction.hpp"
#include "chapters/36-split-fp32/split_fp32.cuh"
#include "chapters/36-split-fp32/winograd_columns.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs: what is split, the pixels or F(2,3)'s sums of them; positions of a tile, the parts' format, which products
// are summed, whose a tile is, and into how many slices channels go.
enum { kAuto };
enum { kPixels = 1, kColumns };
constexpr int kTransforms[] = {kAuto, kPixels, kColumns};
constexpr const char* kTransformWords[] = {"auto", "none", "f23"};
constexpr int kPositions[] = {kAuto, 64, 80, 88, 96, 104, 112, 120};
constexpr const char* kPositionWords[] = {"auto", "64", "80", "88", "96", "104", "112", "120"};
// Whether both consumers have one tile, and 64 filters each. Then a box is split once for 128 filters, not for 64.
enum { kOwnTiles = 1, kSharedTiles };
constexpr int kTileNumbers[] = {kAuto, kOwnTiles, kSharedTiles};
constexpr const char* kTileWords[] = {"auto", "own", "shared"};
constexpr int kSlices[] = {kAuto, 1, 2, 4, 8};
constexpr const char* kSliceWords[] = {"auto", "1", "2", "4", "8"};
constexpr int kProducts[] = {kOneProduct, kTwoProducts, kThreeProducts, kFourProducts, kOneLongSum};
constexpr const char* kProductWords[] = {"1", "2", "3", "4", "3-in-one-sum"};
enum { kHalf, kBf16, kTf32 };
constexpr int kFormats[] = {kHalf, kBf16, kTf32};
constexpr const char* kFormatWords[] = {"half", "bf16", "tf32"};
constexpr Knob kKnobs[] = {
    {"transform", kTransforms, kTransformWords, kAuto}, {"positions", kPositions, kPositionWords, kAuto},
    {"format", kFormats, kFormatWords, kHalf},          {"products", kProducts, kProductWords, kThreeProducts},
    {"tiles", kTileNumbers, kTileWords, kAuto},         {"split", kSlices, kSliceWords, kAuto}};

// Of the busiest block, up to a factor: its rounds of tiles, each of its taps and of what no product hides; and the
// sums of slices, which go out and come in. A tap's products take 12 cycles a position. With F(2,3) they do not hide
// their filters: each consumer has its own, four parts of 8 KiB for both, which one thread asks for one after the
// other, and the ring has room for two taps. So bringing a tap's filters and multiplying them take two taps' time. How
// long bringing takes is fitted to an H100 (docs/hopper.md).
std::int64_t cycles_of(const Tiles& g, int positions, int multiprocessors) {
  constexpr std::int64_t kTileCycles = 3000, kBringCycles = 1350, kBytesPerCycle = 20;
  const std::int64_t products = 12 * positions;
  const std::int64_t tap = g.cut == Cut::row_pairs ? (kBringCycles + products) / 2 : products;
  const std::int64_t rounds = blocks_for(g.works, multiprocessors), blocks = blocks_for(g.channel_blocks, g.slices);
  const std::int64_t sums = g.slices > 1 ? g.slices * positions * kBlock * 2 * 4 : 0;
  return rounds * (blocks * g.taps * tap + kTileCycles + sums / kBytesPerCycle);
}

class SplitFp32 final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }
  // With 128 channels or more F(2,3) is taken where it has fewer cycles. Tiles are shared where a box is split for few
  // taps. What is not as usual has kernels for 120 positions alone, and 88 and 112 none for shared tiles.
  Configuration decided(const ConvProblem& problem, const DeviceLimits& limits,
                        const Configuration& configuration) const override {
    Configuration best = configuration;
    std::int64_t least = 0;
    bool as_wanted = false;  // whether few taps, and only they, share
    const auto consider = [&](Configuration one) {
      if (one["split"] == kAuto) one["split"] = 1;
      if (!check_configuration(problem, limits, one).accepted()) return;
      const Tiles g = cut(problem, one);
      const bool shares = g.cut == Cut::shared;
      const bool wanted = (g.taps < 4 * g.phases && g.filter_blocks % 2 == 0) == shares || g.cut == Cut::row_pairs;
      for (const int slices : kSlices) {
        if (configuration["split"] == kAuto) one["split"] = slices;
        if (slices == kAuto || one["split"] != slices || slices > most_slices(problem, one)) continue;
        const std::int64_t cycles = cycles_of(in_slices(g, slices), one["positions"], limits.multiprocessors);
        if (least > 0 && (as_wanted != wanted ? as_wanted : cycles > least)) continue;
        best = one, least = cycles, as_wanted = wanted;
      }
    };
    const auto choices = [&](const char* knob, const auto& values, auto&& with) {
      for (const int value : values)
        if (value != kAuto && (configuration[knob] == kAuto || configuration[knob] == value)) with(value);
    };
    Configuration one = configuration;
    choices("transform", kTransforms, [&](int transform) {
      if (configuration["transform"] == kAuto && transform == kColumns && problem.c < 2 * kBlock) return;
      one["transform"] = transform;
      choices("tiles", kTileNumbers, [&](int tiles) {
        one["tiles"] = tiles;
        choices("positions", kPositions, [&](int positions) {
          one["positions"] = positions;
          consider(one);
        });
      });
    });
    return best;
  }
  static Cut cut_of(const Configuration& configuration) {
    return configuration["transform"] == kColumns   ? Cut::row_pairs
           : configuration["tiles"] == kSharedTiles ? Cut::shared
                                                    : Cut::own;
  }
  static Tiles cut(const ConvProblem& problem, const Configuration& configuration) {
    return in_slices(fewest_tiles(lowering_of(problem), configuration["positions"], cut_of(configuration),
                                  configuration["format"] == kTf32),
                     configuration["split"]);
  }
  // Whether there is no kernel for so many positions but that of F(2,3).
  static bool for_columns_alone(int positions) { return positions < 88 || positions == 96; }
  static bool three_of_halves(const Configuration& configuration) {
    return configuration["products"] == kThreeProducts && configuration["format"] == kHalf;
  }
  static int most_slices(const ConvProblem& problem, const Configuration& configuration) {
    const bool sliced = three_of_halves(configuration) && configuration["transform"] != kColumns;
    return sliced ? blocks_for(static_cast<int>(problem.c), kBlock) : 1;
  }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    if (configuration["transform"] == kColumns) return check_columns(problem, configuration);
    const int positions = configuration["positions"] == kAuto ? 120 : configuration["positions"];
    if (for_columns_alone(positions))
      return Verdict::refuse("64, 80 and 96 positions are for transform=f23; got positions={}", positions);
    const bool shared = configuration["tiles"] == kSharedTiles;
    const int products = configuration["products"];
    if (configuration["format"] != kHalf && products != kOneProduct && products != kThreeProducts)
      return Verdict::refuse("products of bf16 and of TF32 are 1 or 3; got products={}", kProductWords[products - 1]);
    if (!three_of_halves(configuration) && (positions != 120 || shared))
      return Verdict::refuse("other than 3 products of halves want 120 positions and tiles=own; got positions={}",
                             positions);
    if (configuration["split"] > most_slices(problem, configuration))
      return Verdict::refuse("split={} wants 3 products of halves and as many blocks of 64 channels; got c={}",
                             configuration["split"], problem.c);
    if (shared && positions != 104 && positions != 120)
      return Verdict::refuse("shared tiles have 104 or 120 positions; got positions={}", positions);
    if (shared && blocks_for(static_cast<int>(problem.k), kBlock) % 2 != 0)
      return Verdict::refuse("a shared tile has 128 filters, so k must fill an even number of blocks of 64; got k={}",
                             problem.k);
    return check_tiles(problem, positions, cut_of(configuration));
  }
  static Verdict check_tiles(const ConvProblem& problem, int positions, Cut cut) {
    if (fewest_tiles(lowering_of(problem), positions, cut).images > 0) return Verdict::accept();
    return Verdict::refuse("no tile of {} positions fits in shared memory with the pixels that it needs", positions);
  }
  static Verdict check_columns(const ConvProblem& problem, const Configuration& configuration) {
    const int positions = configuration["positions"] == kAuto ? 64 : configuration["positions"];
    if (problem.r != 3 || problem.s != 3 || problem.stride_h != 1 || problem.stride_w != 1 || problem.dilation_h != 1 ||
        problem.dilation_w != 1)
      return Verdict::refuse(
          "transform=f23 wants 3 x 3 filters, stride 1 and dilation 1; got r={}, s={}, stride_h={}, "
          "stride_w={}, dilation_h={}, dilation_w={}",
          problem.r, problem.s, problem.stride_h, problem.stride_w, problem.dilation_h, problem.dilation_w);
    if (!three_of_halves(configuration) || configuration["tiles"] == kOwnTiles || configuration["split"] > 1)
      return Verdict::refuse("transform=f23 wants 3 products of halves, tiles=shared and split=1");
    if (positions > 104)
      return Verdict::refuse("transform=f23 has 64, 80, 88, 96 or 104 positions; got positions={}", positions);
    const Verdict verdict = check_implicit_gemm(problem, kBlock, 2 * kBlock);
    return verdict.accepted() ? check_tiles(problem, positions, Cut::row_pairs) : verdict;
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    if (problem.padding != Padding::zero)
      return Verdict::refuse("the padding must be zeros; got {}",
                             problem.padding == Padding::replicate ? "replicate" : "reflect");
    if (const Verdict verdict = check_implicit_gemm(problem, kBlock, kBlock); !verdict.accepted()) return verdict;
    if (problem.r > kMostTaps || problem.s > kMostTaps || problem.r * problem.s > kMostTaps)
      return Verdict::refuse("a filter may have at most {} taps; got r={}, s={}", kMostTaps, problem.r, problem.s);
    for (const int positions : kPositions)
      if (!for_columns_alone(positions) && fewest_tiles(lowering_of(problem), positions, Cut::own).images > 0)
        return Verdict::accept();
    return Verdict::refuse(
        "the taps lie too far apart for a tile's pixels to fit in shared memory; got r={}, s={}, dilation_h={}, "
        "dilation_w={}",
        problem.r, problem.s, problem.dilation_h, problem.dilation_w);
  }

  Tiles tiles(const ConvProblem& problem) const { return cut(problem, configuration()); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Tiles g = tiles(problem);
    const int size = g.filter_blocks * g.channel_blocks * g.taps * kBlock * kWords, filters = g.filter_blocks * kBlock;
    packed_.allocate<unsigned>(2 * std::int64_t{size});
    scales_.allocate<SumScale>(filters);
    exponents_.allocate<int>(filters);
    input_scale_.allocate<InputScale>(1);
    largest_.allocate<int>(1);
    const auto run = [&](auto kernel, int blocks, int threads) {
      return convladder::launch(kernel, dim3(blocks), dim3(threads), 0, stream);
    };
    if (g.slices > 1) {
      const int counters = 2 * g.pairs;
      sliced_.allocate(std::int64_t{2} * g.works * knob("positions") * kBlock);
      counters_.allocate<int>(counters);
      run(clear, blocks_for(counters, kPackThreads), kPackThreads)(counters_.ints(), counters);
    }
    calibrate(problem, tensors, stream);
    const auto packing = g.cut == Cut::row_pairs   ? pack<Fp16, TransformedTaps>
                         : knob("format") == kBf16 ? pack<Bf16, TapsAsTheyAre>
                         : knob("format") == kTf32 ? pack<Tf32, TapsAsTheyAre>
                                                   : pack<Fp16, TapsAsTheyAre>;
    run(packing, blocks_for(size, kPackThreads), kPackThreads)(tensors.filter, exponents_.ints(),
                                                               packed_.as<unsigned>(), g, size);
  }

  // The scales of the input and, since both are taken back from the sums together, of the filters.
  void calibrate(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Tiles g = tiles(problem);
    const auto run = [&](auto kernel, int blocks, int threads) {
      return convladder::launch(kernel, dim3(blocks), dim3(threads), 0, stream);
    };
    const std::int64_t input = problem.input_size();
    const int input_blocks = static_cast<int>(
        at_most(4 * device_limits().multiprocessors, static_cast<int>((input - 1) / kPackThreads + 1)));
    run(clear, 1, 1)(largest_.ints(), 1);
    run(find_largest, input_blocks, kPackThreads)(tensors.input, input, largest_.ints());
    run(scale_input, 1, 1)(largest_.ints(), input_scale_.as<InputScale>(), g.cut == Cut::row_pairs ? 2 : 1);
    run(scale_filters, g.filter_blocks * kBlock / (kPackThreads / 32), kPackThreads)(
        tensors.filter, input_scale_.as<InputScale>(), exponents_.ints(), scales_.as<SumScale>(), g.of.filters,
        depth(g.of));
  }

  static std::size_t shared_bytes(const Tiles& g, int positions) {
    return static_cast<std::size_t>(fixed_bytes(positions, g.cut) + g.slot * position_bytes(g.cut));
  }

  template <int N, int Products, Cut kCut = Cut::own, class Format = Fp16>
  void multiply(const Tiles& g, const Tensors& tensors, Stream stream) {
    const std::uint64_t filters = g.of.filters, pixel = 4 * filters;
    const auto width = static_cast<std::uint64_t>(g.of.out_width), height = static_cast<std::uint64_t>(g.of.out_height);
    TensorMap outputs{};
    if (g.of.filters % 4 == 0)
      outputs = make_tensor_map(
          tensors.output,
          {TensorElement::fp32,
           Swizzle::bytes128,
           4,
           {{filters, 4, 32},
            {width, pixel, static_cast<unsigned>(g.tile_columns)},
            {height, pixel * width, static_cast<unsigned>(g.tile_rows)},
            {static_cast<std::uint64_t>(g.of.batch), pixel * width * height, static_cast<unsigned>(g.images)}}});
    const int blocks = at_most(g.works, device_limits().multiprocessors);
    convladder::launch(split_multiply<N, Products, kCut, Format>, dim3(blocks), dim3(kThreads), shared_bytes(g, N),
                       stream)(tensors.input, packed_.as<unsigned>(), input_scale_.as<InputScale>(),
                               scales_.as<SumScale>(), tensors.filter, sliced_.as<float4>(), counters_.ints(), outputs,
                               tensors.output, g);
  }

  template <int N>
  void multiply_columns(const Tiles& g, const Tensors& tensors, Stream stream) {
    const int blocks = at_most(g.works, device_limits().multiprocessors);
    convladder::launch(split_columns<N>, dim3(blocks), dim3(kThreads), shared_bytes(g, N), stream)(
        tensors.input, packed_.as<unsigned>(), input_scale_.as<InputScale>(), scales_.as<SumScale>(), tensors.filter,
        tensors.output, g);
  }
  void launch_columns(const Tiles& g, const Tensors& tensors, Stream stream) {
    switch (knob("positions")) {
      case 64:
        return multiply_columns<64>(g, tensors, stream);
      case 80:
        return multiply_columns<80>(g, tensors, stream);
      case 88:
        return multiply_columns<88>(g, tensors, stream);
      case 96:
        return multiply_columns<96>(g, tensors, stream);
      default:
        return multiply_columns<104>(g, tensors, stream);
    }
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Tiles g = tiles(problem);
    if (g.cut == Cut::row_pairs) return launch_columns(g, tensors, stream);
    const bool one = knob("products") == kOneProduct;
    if (knob("format") == kBf16)
      return one ? multiply<120, kOneProduct, Cut::own, Bf16>(g, tensors, stream)
                 : multiply<120, kThreeProducts, Cut::own, Bf16>(g, tensors, stream);
    if (knob("format") == kTf32)
      return one ? multiply<120, kOneProduct, Cut::own, Tf32>(g, tensors, stream)
                 : multiply<120, kThreeProducts, Cut::own, Tf32>(g, tensors, stream);
    switch (knob("products")) {
      case kOneProduct:
        return multiply<120, kOneProduct>(g, tensors, stream);
      case kTwoProducts:
        return multiply<120, kTwoProducts>(g, tensors, stream);
      case kFourProducts:
        return multiply<120, kFourProducts>(g, tensors, stream);
      case kOneLongSum:
        return multiply<120, kOneLongSum>(g, tensors, stream);
      default:
        break;
    }
    if (g.cut == Cut::shared)
      return knob("positions") == 104 ? multiply<104, kThreeProducts, Cut::shared>(g, tensors, stream)
                                      : multiply<120, kThreeProducts, Cut::shared>(g, tensors, stream);
    switch (knob("positions")) {
      case 88:
        return multiply<88, kThreeProducts>(g, tensors, stream);
      case 104:
        return multiply<104, kThreeProducts>(g, tensors, stream);
      case 112:
        return multiply<112, kThreeProducts>(g, tensors, stream);
      default:
        return multiply<120, kThreeProducts>(g, tensors, stream);
    }
  }

  // In units of 2^-24 of the sum of magnitudes. Splitting loses 2^-22 of each factor, which are 8, and the product that
  // is left out another 4; with the 8 bits of bf16 it is 2^-16 each time. Of the wgmmas of a tap each cuts off the new
  // sum, 2, and each of its 16 products and the old sum at 25 bits below the largest, 17 / 2; the four with the high
  // halves have the sums' full size, the others a thousandth of it. Then come one addition a tap to the master sum, one
  // a slice, and the last multiplication, which is exact.
  ErrorModel error_model(const ConvProblem& problem, const float* filter) const override {
    if (knob("transform") == kColumns) return WinogradForm{.m = 2, .along_height = true, .split_channels = -1};
    constexpr std::int64_t kStep = 11;
    const bool bf16 = knob("format") == kBf16;
    const std::int64_t split = bf16 ? 3 << 8 : 3 << 2;
    const int products = knob("products"), channels = channels_for(knob("format") == kTf32);
    const std::int64_t taps = blocks_for(static_cast<int>(problem.c), channels) * problem.r * problem.s;
    std::int64_t roundings = split + 4 * kStep + taps + knob("split") - 1;
    if (products == kOneLongSum) roundings = split + 4 * kStep * taps;
    // Halves have no bits below 2^-25, so a filter's numbers are right to 2^-38 of its largest one. Two products leave
    // out a filter's low halves, and one those of the pixels as well; TF32 has as many bits.
    const double missing = products == kOneProduct    ? (bf16 ? 0x1p-7 : 0x1p-10)
                           : products == kTwoProducts ? 0x1p-11
                                                      : 0x1p-38;
    float most = 0.0f;
    for (std::int64_t i = 0; i < problem.filter_size(); ++i)
      if (const float magnitude = fabsf(filter[i]); magnitude > most && magnitude <= 3.40282347e38f) most = magnitude;
    return {roundings, missing * most};
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Tiles g = tiles(problem);
    return prediction_of(problem, g, knob("positions"), at_most(g.works, device_limits().multiprocessors));
  }

  Workspace packed_{*this, "packed filter"};
  Workspace scales_{*this, "scales of the sums"};
  Workspace exponents_{*this, "exponents of the filters"};
  Workspace input_scale_{*this, "scale of the input"};
  Workspace largest_{*this, "largest magnitude"};
  Workspace sliced_{*this, "sums of slices"};
  Workspace counters_{*this, "slices that are done"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::SplitFp32)
