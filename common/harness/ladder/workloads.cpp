#include "common/harness/ladder/workloads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/tracks.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

ConvProblem signal(std::int64_t length, std::int64_t radius) {
  ConvProblem problem;
  problem.w = length;
  problem.s = 2 * radius + 1;
  problem.pad_w = radius;
  return problem;
}

/// Shorter than a warp, than a tile, and just past one: where overhead is all there is.
void add_short_signals(std::vector<NamedWorkload>& workloads) {
  for (const int length : {1, 7, 255, 257}) workloads.push_back({fmt::format("w={} r=5", length), signal(length, 5)});
}

std::vector<NamedWorkload> signals_on_gpu() {
  constexpr std::int64_t kLength = std::int64_t{1} << 24;
  std::vector<NamedWorkload> result;
  for (const int radius : {5, 1, 31, 127, 512})
    result.push_back({fmt::format("w=2^24 r={}", radius), signal(kLength, radius)});
  result.push_back({"w=2^24+259 r=5", signal(kLength + 259, 5)});
  add_short_signals(result);
  return result;
}

std::vector<NamedWorkload> signals_in_simulator() {
  constexpr std::int64_t kLength = 65536;
  std::vector<NamedWorkload> result;
  for (const int radius : {5, 1, 31}) result.push_back({fmt::format("w=65536 r={}", radius), signal(kLength, radius)});
  result.push_back({"w=65536+259 r=5", signal(kLength + 259, 5)});
  add_short_signals(result);
  // The naive stage reads a sample and a tap for each product.
  for (NamedWorkload& workload : result) workload.simulated_accesses = 2 * workload.problem.s * workload.problem.w;
  return result;
}

ConvProblem image(std::int64_t width, std::int64_t height, std::int64_t side) {
  ConvProblem problem;
  problem.h = height;
  problem.w = width;
  problem.r = problem.s = side;
  problem.pad_h = problem.pad_w = (side - 1) / 2;
  return problem;
}

NamedWorkload named_image(std::string_view name, std::int64_t width, std::int64_t height, std::int64_t side) {
  return {fmt::format("{} {}x{}", name, side, side), image(width, height, side), track_named("images").filter};
}

/// One pixel, primes, and less than a tile.
void add_small_images(std::vector<NamedWorkload>& workloads) {
  for (const auto& [width, height] : {std::pair{1, 1}, {7, 5}, {61, 31}, {257, 127}})
    workloads.push_back(named_image(fmt::format("{}x{}", width, height), width, height, 5));
}

std::vector<NamedWorkload> images_on_gpu() {
  std::vector<NamedWorkload> result;
  for (const int side : {3, 11, 31, 5, 7, 9, 15, 21, 41, 51, 65})
    result.push_back(named_image("3840x2160", 3840, 2160, side));
  result.push_back(named_image("3847x2161", 3847, 2161, 5));
  add_small_images(result);
  return result;
}

std::vector<NamedWorkload> images_in_simulator() {
  std::vector<NamedWorkload> result;
  for (const int side : {3, 11, 31}) {
    const int size = side > 11 ? 128 : 256;
    result.push_back(named_image(fmt::format("{}x{}", size, size), size, size, side));
  }
  result.push_back(named_image("256x256", 256, 256, 5));
  result.push_back(named_image("263x257", 263, 257, 5));
  add_small_images(result);
  // The naive stage reads a pixel and a tap for each product.
  for (NamedWorkload& workload : result) workload.simulated_accesses = workload.problem.flops();
  return result;
}

ConvProblem depthwise(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t side,
                      std::int64_t stride) {
  ConvProblem problem = image(w, h, side);
  problem.n = n;
  problem.c = problem.k = problem.groups = c;
  problem.stride_h = problem.stride_w = stride;
  return problem;
}

/// @param network where the layer is from  @param stride named where it is not 1
NamedWorkload named_depthwise(std::string_view network, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                              std::int64_t side, std::int64_t stride = 1) {
  std::string name = fmt::format("{} ({},{},{},{}) {}x{}", network, n, c, h, w, side, side);
  if (stride != 1) name += fmt::format(" stride {}", stride);
  return {name, depthwise(n, c, h, w, side, stride)};
}

std::vector<NamedWorkload> depthwise_on_gpu() {
  return {named_depthwise("small", 3, 4, 16, 32, 7),           named_depthwise("ConvNeXt", 32, 96, 56, 56, 7),
          named_depthwise("MobileNet", 32, 144, 56, 56, 3),    named_depthwise("MobileNet", 32, 144, 56, 56, 3, 2),
          named_depthwise("EfficientNet", 32, 240, 28, 28, 5), named_depthwise("ConvNeXt", 32, 384, 14, 14, 7),
          named_depthwise("ConvNeXt", 32, 768, 7, 7, 7),       named_depthwise("primes", 3, 5, 61, 67, 5)};
}

std::vector<NamedWorkload> depthwise_in_simulator() {
  std::vector<NamedWorkload> result{
      named_depthwise("small", 3, 4, 16, 32, 7),         named_depthwise("ConvNeXt", 1, 6, 56, 56, 7),
      named_depthwise("MobileNet", 1, 18, 56, 56, 3),    named_depthwise("MobileNet", 1, 18, 56, 56, 3, 2),
      named_depthwise("EfficientNet", 1, 15, 28, 28, 5), named_depthwise("ConvNeXt", 1, 24, 14, 14, 7),
      named_depthwise("ConvNeXt", 1, 48, 7, 7, 7),       named_depthwise("primes", 3, 5, 61, 67, 5)};
  // The naive stage reads a pixel and a tap for each product.
  for (NamedWorkload& workload : result) workload.simulated_accesses = workload.problem.flops();
  return result;
}

/// A layer of a network: a batch of square images over all channels, square filters.
struct Layer {
  std::string_view name;
  std::int64_t n, c, size, k, side, stride = 1, pad = 0;
};

NamedWorkload named_layer(const Layer& layer) {
  ConvProblem problem = image(layer.size, layer.size, layer.side);
  problem.n = layer.n;
  problem.c = layer.c;
  problem.k = layer.k;
  problem.stride_h = problem.stride_w = layer.stride;
  problem.pad_h = problem.pad_w = layer.pad;
  std::string name = fmt::format("{} ({},{},{},{})->{} {}x{}", layer.name, layer.n, layer.c, layer.size, layer.size,
                                 layer.k, layer.side, layer.side);
  if (layer.stride != 1) name += fmt::format(" stride {}", layer.stride);
  return {std::move(name), problem};
}

/// The twelve layers of the benchmark in Lu's public im2win code, without padding; three unlike ones first.
constexpr Layer kLayers[] = {
    {"layer 9", 128, 64, 56, 64, 3},     {"layer 12", 128, 512, 7, 512, 3},  {"layer 1", 128, 3, 227, 96, 11, 4},
    {"layer 2", 128, 3, 231, 96, 11, 4}, {"layer 3", 128, 3, 227, 64, 7, 2}, {"layer 4", 128, 64, 224, 64, 7, 2},
    {"layer 5", 128, 96, 24, 256, 5},    {"layer 6", 128, 256, 12, 512, 3},  {"layer 7", 128, 3, 224, 64, 3},
    {"layer 8", 128, 64, 112, 128, 3},   {"layer 10", 128, 128, 28, 128, 3}, {"layer 11", 128, 256, 14, 256, 3}};

std::vector<NamedWorkload> lowering_on_gpu() {
  std::vector<NamedWorkload> result;
  for (const Layer& layer : kLayers) result.push_back(named_layer(layer));
  for (const std::int64_t n : {32, 128}) {
    for (Layer layer : {Layer{"conv2", n, 64, 56, 64, 3},
                        {"conv3", n, 128, 28, 128, 3},
                        {"conv4", n, 256, 14, 256, 3},
                        {"conv5", n, 512, 7, 512, 3}}) {
      layer.pad = 1;
      result.push_back(named_layer(layer));
    }
  }
  return result;
}

std::vector<NamedWorkload> lowering_in_simulator() {
  std::vector<NamedWorkload> result;
  for (const Layer& layer : {Layer{"layer 9", 1, 16, 26, 16, 3},
                             {"layer 12", 2, 48, 7, 48, 3},
                             {"layer 1", 1, 3, 59, 12, 11, 4},
                             {"layer 2", 1, 3, 63, 12, 11, 4},
                             {"layer 3", 1, 3, 57, 8, 7, 2},
                             {"layer 4", 1, 8, 39, 8, 7, 2},
                             {"layer 5", 1, 6, 24, 16, 5},
                             {"layer 6", 2, 16, 12, 32, 3},
                             {"layer 7", 1, 3, 74, 8, 3},
                             {"layer 8", 1, 8, 38, 16, 3},
                             {"layer 10", 1, 32, 14, 32, 3},
                             {"layer 11", 1, 48, 9, 48, 3},
                             {"conv4", 2, 16, 14, 16, 3, 1, 1}})
    result.push_back(named_layer(layer));
  result.push_back(
      {"primes (2,5,23,29)->7 3x5 dilation 2", parse_shape("n=2,c=5,h=23,w=29,k=7,r=3,s=5,dilation_h=2,dilation_w=2")});
  // The first stage reads a pixel and a tap for each product.
  for (NamedWorkload& workload : result) workload.simulated_accesses = workload.problem.flops();
  return result;
}

/// The same layers with a batch for which im2col's matrix takes less than 1 GB; before them, three small batches.
std::vector<NamedWorkload> lowering_on_cpu() {
  constexpr std::int64_t kBatch = 16, kSmallBatch = 2, kFloats = 1'000'000'000 / 4;
  std::vector<NamedWorkload> result;
  const auto add = [&](Layer layer, std::int64_t batch) {
    layer.n = 1;
    layer.n = std::min(batch, kFloats / im2col_size(named_layer(layer).problem));
    result.push_back(named_layer(layer));
  };
  for (const Layer& layer : std::span(kLayers).first(kBenchWorkloads)) add(layer, kSmallBatch);
  for (const Layer& layer : kLayers) add(layer, kBatch);
  return result;
}

NamedWorkload named_square(std::string_view name, std::int64_t n, std::int64_t channels, std::int64_t size) {
  return named_layer({name, n, channels, size, channels, 3, 1, 1});
}

/// One image of growing size, and the four kinds of layers of a ResNet: with other batches, then with other channels.
std::vector<NamedWorkload> winograd_on_gpu() {
  constexpr std::int64_t kBatch = 32;  // of the sweep over the channels
  constexpr std::int64_t kWideBatch =
      8;  // F(4x4): 1568 tiles of 256 filters are 392 blocks of 16 x 64, three a multiprocessor
  struct Kind {
    std::string_view name;
    std::int64_t channels, size;
  };
  constexpr Kind kKinds[] = {{"conv2", 64, 56}, {"conv3", 128, 28}, {"conv4", 256, 14}, {"conv5", 512, 7}};
  std::vector<NamedWorkload> result{named_square("image", 1, 64, 224), named_square("image", 1, 64, 960),
                                    named_square("conv3", kBatch, 128, 28)};
  const auto add = [&](NamedWorkload workload) {
    const auto same = [&](const NamedWorkload& other) { return other.name == workload.name; };
    if (std::none_of(result.begin(), result.end(), same)) result.push_back(std::move(workload));
  };
  for (const std::int64_t size : {320, 448, 640, 768}) add(named_square("image", 1, 64, size));
  for (const std::int64_t n : {32, 64, 96, 128})
    for (const Kind& kind : kKinds) add(named_square(kind.name, n, kind.channels, kind.size));
  for (const std::int64_t channels : {256, 512}) add(named_square("wide", kWideBatch, channels, 56));
  for (const Kind& kind : kKinds)
    for (const std::int64_t channels : {64, 128, 256, 512}) add(named_square(kind.name, kBatch, channels, kind.size));
  return result;
}

std::vector<NamedWorkload> winograd_in_simulator() {
  std::vector<NamedWorkload> result{named_square("image", 1, 16, 29), named_square("conv4", 1, 48, 14),
                                    named_square("conv5", 2, 48, 7),  named_square("image", 1, 16, 58),
                                    named_square("conv2", 2, 16, 30), named_square("conv3", 1, 32, 29),
                                    named_square("conv4", 1, 64, 13), named_layer({"odd", 2, 5, 57, 7, 3, 1, 1})};
  // The first stage, with tiles of 2 x 2, reads two numbers for each of four products an output and channel.
  for (NamedWorkload& workload : result) workload.simulated_accesses = workload.problem.flops() / 9 * 4;
  return result;
}

/// The 23 different convolutions of a ResNet-50 whose 3 x 3 filters have the strides (53 in all).
constexpr Layer kResNet50[] = {{"ResNet-50", 0, 3, 224, 64, 7, 2, 3},   {"ResNet-50", 0, 64, 56, 64, 1},
                               {"ResNet-50", 0, 64, 56, 64, 3, 1, 1},   {"ResNet-50", 0, 64, 56, 256, 1},
                               {"ResNet-50", 0, 256, 56, 64, 1},        {"ResNet-50", 0, 256, 56, 128, 1},
                               {"ResNet-50", 0, 128, 56, 128, 3, 2, 1}, {"ResNet-50", 0, 128, 28, 512, 1},
                               {"ResNet-50", 0, 256, 56, 512, 1, 2},    {"ResNet-50", 0, 512, 28, 128, 1},
                               {"ResNet-50", 0, 128, 28, 128, 3, 1, 1}, {"ResNet-50", 0, 512, 28, 256, 1},
                               {"ResNet-50", 0, 256, 28, 256, 3, 2, 1}, {"ResNet-50", 0, 256, 14, 1024, 1},
                               {"ResNet-50", 0, 512, 28, 1024, 1, 2},   {"ResNet-50", 0, 1024, 14, 256, 1},
                               {"ResNet-50", 0, 256, 14, 256, 3, 1, 1}, {"ResNet-50", 0, 1024, 14, 512, 1},
                               {"ResNet-50", 0, 512, 14, 512, 3, 2, 1}, {"ResNet-50", 0, 512, 7, 2048, 1},
                               {"ResNet-50", 0, 1024, 14, 2048, 1, 2},  {"ResNet-50", 0, 2048, 7, 512, 1},
                               {"ResNet-50", 0, 512, 7, 512, 3, 1, 1}};

/// The images and ResNet layers of the winograd track, VGG's, 56 x 56 with more channels, and layers of the kinds that
/// Winograd leaves out. Then image models' decoders and UNet levels, super-resolution, and a ResNet-50 whole.
std::vector<NamedWorkload> hopper_on_gpu() {
  std::vector<NamedWorkload> result{named_square("image", 1, 64, 224), named_square("image", 1, 64, 960),
                                    named_square("conv3", 32, 128, 28)};
  for (const std::int64_t size : {320, 448, 640, 768}) result.push_back(named_square("image", 1, 64, size));
  for (const std::int64_t n : {32, 64, 128}) {
    result.push_back(named_square("conv2", n, 64, 56));
    if (n != 32) result.push_back(named_square("conv3", n, 128, 28));
    result.push_back(named_square("conv4", n, 256, 14));
    result.push_back(named_square("conv5", n, 512, 7));
  }
  result.push_back(named_square("VGG", 32, 64, 224));
  result.push_back(named_square("VGG", 32, 128, 112));
  result.push_back(named_square("VGG", 32, 256, 56));
  result.push_back(named_square("VGG", 32, 512, 28));
  for (const std::int64_t channels : {128, 512}) result.push_back(named_square("conv2", 32, channels, 56));
  for (const Layer& layer : {Layer{"conv3", 32, 128, 56, 128, 3, 2, 1},
                             {"conv4", 32, 1024, 14, 256, 1},
                             {"Inception", 32, 48, 35, 64, 5, 1, 2}})
    result.push_back(named_layer(layer));
  for (const auto& [channels, size] : {std::pair{128, 1024}, {256, 512}, {512, 128}})
    result.push_back(named_square("VAE", 1, channels, size));
  for (const auto& [channels, size] : {std::pair{320, 64}, {640, 32}, {1280, 16}})
    result.push_back(named_square("UNet", 2, channels, size));
  for (const int channels : {64, 32}) {
    NamedWorkload workload{fmt::format("super-resolution (1,{0},1080,1920)->{0} 3x3", channels), image(1920, 1080, 3)};
    workload.problem.c = workload.problem.k = channels;
    result.push_back(std::move(workload));
  }
  for (const std::int64_t n : {1, 32, 256}) {
    for (Layer layer : kResNet50) {
      layer.n = n;
      NamedWorkload workload = named_layer(layer);
      const std::string problem = to_string(workload.problem);
      const auto same = [&](const NamedWorkload& other) { return to_string(other.problem) == problem; };
      if (std::none_of(result.begin(), result.end(), same)) result.push_back(std::move(workload));
    }
  }
  return result;
}

std::vector<NamedWorkload> hopper_in_simulator() {
  std::vector<NamedWorkload> result;
  for (const Layer& layer : {Layer{"image", 1, 64, 16, 64, 3, 1, 1},
                             {"conv5", 2, 96, 7, 80, 3, 1, 1},
                             {"conv3", 1, 32, 29, 32, 3, 1, 1},
                             {"conv3", 1, 32, 23, 40, 3, 2, 1},
                             {"conv4", 1, 128, 14, 96, 1},
                             {"Inception", 1, 24, 15, 32, 5, 1, 2},
                             {"odd", 2, 5, 19, 7, 3, 1, 1}})
    result.push_back(named_layer(layer));
  // A number that a lane loads serves 64 products.
  for (NamedWorkload& workload : result) workload.simulated_accesses = workload.problem.flops() / 64;
  return result;
}

/// Batches for 40 to divide, and single images.
std::vector<NamedWorkload> several(std::initializer_list<std::array<std::int64_t, 4>> sizes) {
  std::vector<NamedWorkload> result;
  for (const auto& [n, width, height, side] : sizes) {
    NamedWorkload workload = named_image(fmt::format("{}x{}x{}", n, width, height), width, height, side);
    workload.problem.n = n;
    workload.filter = track_named("several").filter;
    result.push_back(workload);
  }
  return result;
}

std::vector<NamedWorkload> several_on_gpu() {
  return several(
      {{8, 3840, 2160, 3}, {8, 3840, 2160, 11}, {1, 3840, 2160, 3}, {1, 3840, 2160, 11}, {1, 6144, 4096, 11}});
}

std::vector<NamedWorkload> several_in_simulator() {
  std::vector<NamedWorkload> result =
      several({{6, 256, 64, 3}, {1, 256, 192, 3}, {1, 256, 192, 11}, {5, 61, 31, 5}, {1, 7, 2, 5}});
  for (NamedWorkload& workload : result) workload.simulated_accesses = workload.problem.flops() / 16;
  return result;
}

struct TrackWorkloads {
  std::string_view track;
  std::vector<NamedWorkload> (*on_gpu)(), (*in_simulator)();
};

constexpr TrackWorkloads kWorkloads[] = {
    {"signals", &signals_on_gpu, &signals_in_simulator},
    {"images", &images_on_gpu, &images_in_simulator},
    {"depthwise", &depthwise_on_gpu, &depthwise_in_simulator},
    {"lowering", &lowering_on_gpu, &lowering_in_simulator},
    {"cpu", &lowering_on_cpu, &lowering_on_cpu},
    {"winograd", &winograd_on_gpu, &winograd_in_simulator},
    {"hopper", &hopper_on_gpu, &hopper_in_simulator},
    {"several", &several_on_gpu, &several_in_simulator},
};

std::string without_spaces(std::string_view text) {
  std::string result(text);
  result.erase(std::remove(result.begin(), result.end(), ' '), result.end());
  return result;
}

}  // namespace

std::vector<NamedWorkload> workloads_of(std::string_view track, Backend backend) {
  for (const TrackWorkloads& workloads : kWorkloads)
    if (workloads.track == track) return backend == Backend::gpu ? workloads.on_gpu() : workloads.in_simulator();
  return {};
}

std::vector<NamedWorkload> bench_workloads(std::string_view track, Backend backend) {
  std::vector<NamedWorkload> result = workloads_of(track, backend);
  const std::size_t most = backend == Backend::gpu && track_named(track).alike_on_gpu ? 1 : kBenchWorkloads;
  if (result.size() > most) result.resize(most);
  return result;
}

std::vector<NamedWorkload> select_workloads(std::string_view track, Backend backend, std::string_view name) {
  std::vector<NamedWorkload> result = workloads_of(track, backend);
  if (name == "all") return result;
  std::erase_if(result, [&](const NamedWorkload& w) {
    return without_spaces(w.name) != without_spaces(name) && !w.name.starts_with(std::string(name) + " (");
  });
  return result;
}

}  // namespace convladder
