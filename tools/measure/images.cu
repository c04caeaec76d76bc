// 08 and 09 in the forms that their settings choose, and copies of the same images, all in one run: checked against
// sums in double precision, then timed in turns, hot and cold. images.sh builds and runs it.
//
//   measure-images SECONDS   JSON to standard output, a table to standard error

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "chapters/08-separable/fused.cuh"
#include "chapters/09-register-2d/register_2d.cuh"

namespace convladder {

// What the harness has elsewhere.
void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}
void finish_launch(const void*, dim3, std::size_t) { check_cuda(cudaGetLastError(), "launch"); }
void allow_shared_bytes(const void* kernel, std::size_t bytes) {
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
             "shared memory");
}
dim3 image_grid(const Image& image, int tile_height, int tile_width) {
  return dim3(((image.out_height + tile_height - 1) / tile_height) * ((image.out_width + tile_width - 1) / tile_width),
              image.batch);
}

namespace {

constexpr int kLaunches = 20;  // of a graph
constexpr long kMost = 3840L * 4320;
constexpr int kPairs = 4;  // of input and output, for cold times

int multiprocessors;

__global__ void copy_plain(const float4* from, float4* to, long n) {
  const long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) to[i] = from[i];
}
__global__ void copy_streaming(const float4* from, float4* to, long n) {
  const long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) __stcs(to + i, from[i]);
}

// ---- The reference: zero padding of half the filter
// ------------------------------------------------------------------

__device__ double c_taps[kMaxFilterTaps];

__global__ void sum_rows(const float* in, double* between, int height, int width, int side) {
  const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
  if (x >= width) return;
  double sum = 0;
  for (int t = 0; t < side; ++t) {
    const int j = x + t - side / 2;
    if (j >= 0 && j < width) sum += c_taps[t] * in[static_cast<long>(y) * width + j];
  }
  between[static_cast<long>(y) * width + x] = sum;
}

// found: for 64 groups of rows the squares of the differences, those of what is right, and outputs that are no number.
__global__ void compare_columns(const double* between, const float* out, int height, int width, int side,
                                double* found) {
  const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
  double is = 0, sum = 0;
  if (x < width) {
    for (int t = 0; t < side; ++t) {
      const int i = y + t - side / 2;
      if (i >= 0 && i < height) sum += c_taps[kMaxFilterSide + t] * between[static_cast<long>(i) * width + x];
    }
    is = out[static_cast<long>(y) * width + x];
  }
  double wrong = (is - sum) * (is - sum), right = sum * sum, none = is - is == 0 ? 0 : 1;
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    wrong += __shfl_xor_sync(kAllLanes, wrong, lanes);
    right += __shfl_xor_sync(kAllLanes, right, lanes);
    none += __shfl_xor_sync(kAllLanes, none, lanes);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(found + y % 64 * 3, wrong);
    atomicAdd(found + y % 64 * 3 + 1, right);
    atomicAdd(found + y % 64 * 3 + 2, none);
  }
}
__global__ void compare_windows(const float* in, const float* out, int height, int width, int side, double* found) {
  const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
  double is = 0, sum = 0;
  if (x < width) {
    for (int r = 0; r < side; ++r)
      for (int s = 0; s < side; ++s) {
        const int i = y + r - side / 2, j = x + s - side / 2;
        if (i >= 0 && i < height && j >= 0 && j < width)
          sum += c_taps[r * side + s] * in[static_cast<long>(i) * width + j];
      }
    is = out[static_cast<long>(y) * width + x];
  }
  double wrong = (is - sum) * (is - sum), right = sum * sum, none = is - is == 0 ? 0 : 1;
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    wrong += __shfl_xor_sync(kAllLanes, wrong, lanes);
    right += __shfl_xor_sync(kAllLanes, right, lanes);
    none += __shfl_xor_sync(kAllLanes, none, lanes);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(found + y % 64 * 3, wrong);
    atomicAdd(found + y % 64 * 3 + 1, right);
    atomicAdd(found + y % 64 * 3 + 2, none);
  }
}

// ---- When each warp of 08's one kernel begins and ends
// ----------------------------------------------------------------

struct Moment {
  unsigned long long begin, end;  // ns
  long long cycles;
};
__device__ unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}
template <int kSide>
__global__ void __launch_bounds__(32 * kFusedWarps)
    traced_both(const float* input, float* output, Image image, int segment_rows, Moment* moments) {
  image.rows = image.columns = kSide;
  const int across = (image.out_width + kStrip - 1) / kStrip;
  const int index = blockIdx.x * kFusedWarps + threadIdx.y;
  const unsigned below = static_cast<unsigned>(index / across) * segment_rows;
  if (below >= static_cast<unsigned>(image.out_height)) return;
  const unsigned long long begin = now();
  const long long first = clock64();
  const int y = static_cast<int>(below), x = index % across * kStrip;
  const Segment segment{y, x, min(segment_rows, image.out_height - y), min(kStrip, image.out_width - x)};
  walk<kSide, true, false, false>(input, output, image, segment, {});
  if (threadIdx.x == 0) moments[index] = {begin, now(), clock64() - first};
}

// ---- The runs
// ----------------------------------------------------------------------------------------------------------

struct Shape {
  int height, width, side;
  std::string name() const {
    return std::to_string(width) + "x" + std::to_string(height) + " " + std::to_string(side) + "x" +
           std::to_string(side);
  }
  Image image() const { return {1, height, width, height, width, side, side, side / 2, side / 2, Padding::zero}; }
  long pixels() const { return static_cast<long>(height) * width; }
};

struct Run {
  std::string stage, setting;
  Shape shape;
  std::function<void(const float*, float*, Stream)> launch;
  double error = -1;
  bool right = true;
  cudaGraphExec_t hot = nullptr, cold = nullptr;
  std::vector<double> hot_us, cold_us;
};

double median(std::vector<double> v) {
  if (v.empty()) return NAN;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

float *inputs[kPairs], *outputs[kPairs], *between;
std::vector<Run> runs;

void copies(Shape shape) {
  const long n = shape.pixels() / 4;
  const unsigned blocks = static_cast<unsigned>((n + 255) / 256);
  runs.push_back({"copy", "plain", shape, [=](const float* in, float* out, Stream s) {
                    copy_plain<<<blocks, 256, 0, s>>>(reinterpret_cast<const float4*>(in),
                                                      reinterpret_cast<float4*>(out), n);
                  }});
  runs.push_back({"copy", "stores=streaming", shape, [=](const float* in, float* out, Stream s) {
                    copy_streaming<<<blocks, 256, 0, s>>>(reinterpret_cast<const float4*>(in),
                                                          reinterpret_cast<float4*>(out), n);
                  }});
  runs.push_back({"copy", "cudaMemcpy", shape, [=](const float* in, float* out, Stream s) {
                    check_cuda(cudaMemcpyAsync(out, in, n * 16, cudaMemcpyDeviceToDevice, s), "copy");
                  }});
}

// One side of convolve_both alone, so that no other is compiled.
template <int kSide, bool kStreaming>
void both(const float* in, float* out, const Image& image, int segment_rows, Stream s) {
  dim3 grid = image_grid(image, segment_rows, kStrip);
  grid.x = (grid.x + kFusedWarps - 1) / kFusedWarps;
  launch(convolve_both<kSide, kStreaming>, grid, dim3(32, kFusedWarps), Strip<kSide>::kBytes, s)(in, out, image,
                                                                                                 segment_rows);
}

template <int kSide>
void separable(Shape shape, std::vector<int> warp_counts, std::vector<int> wave_counts) {
  const Image image = shape.image();
  for (const int warps : warp_counts)
    for (const int waves : wave_counts)
      for (const bool streaming : {false, true}) {
        const int rows = segment_of(image, multiprocessors, warps, waves);
        std::string setting = "warps=" + std::to_string(warps);
        if (waves > 0) setting += ",waves=" + std::to_string(waves);
        if (streaming) setting += ",stores=streaming";
        runs.push_back({"08", setting, shape, [=](const float* in, float* out, Stream s) {
                          if (streaming)
                            both<kSide, true>(in, out, image, rows, s);
                          else
                            both<kSide, false>(in, out, image, rows, s);
                        }});
      }
}

template <int kSide, bool kStreaming>
void stacked(Shape shape) {
  const Image image = shape.image();
  const int rows = stacked_rows_of(image, multiprocessors);
  runs.push_back({"08", kStreaming ? "stacked=yes,stores=streaming" : "stacked=yes", shape,
                  [=](const float* in, float* out, Stream s) {
                    launch(convolve_stacked<kSide, kStreaming>,
                           image_grid(image, kStackedWarps * rows - kSide + 1, kStrip), dim3(32, kStackedWarps),
                           stacked_bytes(kSide), s)(in, out, image, rows);
                  }});
}

void two_passes(Shape shape) {
  const Image image = shape.image();
  runs.push_back({"08", "fused=no", shape, [=](const float* in, float* out, Stream s) {
                    launch_rows<RowForm<2, 1, true, true>>(in, between, image, s);
                    launch_columns<true, true>(between, out, image, s);
                  }});
}

template <int kSide, int kWarps, bool kStreaming>
void strips(Shape shape) {
  using F = SmallForm<kWarps, kStreaming>;
  const Image image = shape.image();
  const std::string setting = "warps=" + std::to_string(kWarps) + (kStreaming ? ",stores=streaming" : "");
  runs.push_back({"09", setting, shape, [=](const float* in, float* out, Stream s) {
                    launch(small_filter<kSide, kSide, float, Image, F>, image_grid(image, F::kHeight, kStripWidth),
                           dim3(kWarp, kWarps), 0, s)(in, out, image, 1.0f);
                  }});
}
template <int kSide>
void all_strips(Shape shape) {
  strips<kSide, 4, false>(shape);
  strips<kSide, 4, true>(shape);
  strips<kSide, 8, false>(shape);
  strips<kSide, 8, true>(shape);
  strips<kSide, 16, true>(shape);
}

void check(Run& run, double* found, double* wide) {
  const Shape& shape = run.shape;
  check_cuda(cudaMemset(outputs[0], 0xff, shape.pixels() * 4), "poison");  // no number
  run.launch(inputs[0], outputs[0], nullptr);
  check_cuda(cudaDeviceSynchronize(), run.setting.c_str());
  if (run.stage == "copy") return;
  check_cuda(cudaMemset(found, 0, 64 * 3 * 8), "clear");
  const dim3 grid((shape.width + 255) / 256, shape.height);
  if (run.stage == "08") {
    sum_rows<<<grid, 256>>>(inputs[0], wide, shape.height, shape.width, shape.side);
    compare_columns<<<grid, 256>>>(wide, outputs[0], shape.height, shape.width, shape.side, found);
  } else {
    compare_windows<<<grid, 256>>>(inputs[0], outputs[0], shape.height, shape.width, shape.side, found);
  }
  double parts[64][3], sums[3] = {};
  check_cuda(cudaMemcpy(parts, found, sizeof parts, cudaMemcpyDeviceToHost), "compare");
  for (const auto& part : parts)
    for (int i = 0; i < 3; ++i) sums[i] += part[i];
  run.error = std::sqrt(sums[0] / sums[1]);
  run.right = sums[2] == 0 && run.error < 1e-6;
}

cudaGraphExec_t graph_of(const Run& run, int pairs, Stream stream) {
  cudaGraph_t graph;
  cudaGraphExec_t made;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < kLaunches; ++i) run.launch(inputs[i % pairs], outputs[i % pairs], stream);
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  check_cuda(cudaGraphInstantiate(&made, graph, 0), "graph");
  return made;
}

template <int kSide>
void trace(Shape shape, int warps, Moment* moments, std::string& json) {
  const Image image = shape.image();
  const int rows = segment_of(image, multiprocessors, warps);
  const dim3 grid = image_grid(image, rows, kStrip);
  const int count = static_cast<int>(grid.x);
  for (int i = 0; i < 3; ++i)
    traced_both<kSide><<<(count + kFusedWarps - 1) / kFusedWarps, dim3(32, kFusedWarps), Strip<kSide>::kBytes>>>(
        inputs[0], outputs[0], image, rows, moments);
  std::vector<Moment> all(count);
  check_cuda(cudaMemcpy(all.data(), moments, count * sizeof(Moment), cudaMemcpyDeviceToHost), "trace");
  unsigned long long start = ~0ull;
  for (const Moment& m : all) start = std::min(start, m.begin);
  std::vector<double> begins, ends, clocks;
  for (const Moment& m : all) {
    begins.push_back((m.begin - start) / 1e3);
    ends.push_back((m.end - start) / 1e3);
    clocks.push_back(m.cycles * 1e3 / (m.end - m.begin));
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  char text[400];
  std::snprintf(text, sizeof text,
                "{\"shape\": \"%s\", \"warps\": %d, \"segments\": %d, \"rows\": %d, \"last begin\": %.2f, "
                "\"ends\": [%.2f, %.2f, %.2f, %.2f, %.2f], \"mhz\": %.0f}",
                shape.name().c_str(), warps, count, rows, begins.back(), ends[0], ends[count / 4], ends[count / 2],
                ends[count * 3 / 4], ends.back(), median(clocks));
  json += (json.empty() ? "" : ",\n    ") + std::string(text);
}

int measure(double seconds) {
  const auto began = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  cudaDeviceProp device;
  check_cuda(cudaGetDeviceProperties(&device, 0), "device");
  multiprocessors = device.multiProcessorCount;
  Stream stream;
  check_cuda(cudaStreamCreate(&stream), "stream");

  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> pixels(kMost);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = i < 4000037 ? normal(random) : pixels[i - 4000037];  // to fill all of them takes seconds
  // 24 megapixels are more than kMost: the pairs are as large as the largest shape.
  const long most = std::max(kMost, 24000000L);
  for (int i = 0; i < kPairs; ++i) {
    check_cuda(cudaMalloc(&inputs[i], most * 4), "memory");
    check_cuda(cudaMalloc(&outputs[i], most * 4), "memory");
    check_cuda(cudaMemcpy(inputs[i], pixels.data(), kMost * 4, cudaMemcpyHostToDevice), "input");
    check_cuda(cudaMemcpy(inputs[i] + kMost, pixels.data() + 12345, (most - kMost) * 4, cudaMemcpyHostToDevice),
               "input");
  }
  check_cuda(cudaMalloc(&between, most * 4), "memory");
  double *found, *wide;
  Moment* moments;
  check_cuda(cudaMalloc(&found, 64 * 3 * 8), "memory");
  check_cuda(cudaMalloc(&wide, most * 8), "memory");
  check_cuda(cudaMalloc(&moments, 1 << 20), "memory");

  // A filter of each kind; a shorter one takes the first taps. 08: the row, and the column from kMaxFilterSide on.
  std::vector<float> taps(kMaxFilterTaps);
  std::vector<double> doubles;
  for (float& tap : taps) tap = normal(random);
  for (const float tap : taps) doubles.push_back(tap);
  check_cuda(cudaMemcpyToSymbol(c_taps, doubles.data(), doubles.size() * 8), "taps");
  check_cuda(cudaMemcpyToSymbol(c_filter, taps.data(), taps.size() * 4), "taps");
  check_cuda(cudaMemcpyToSymbol(c_row, taps.data(), kMaxFilterSide * 4), "taps");
  check_cuda(cudaMemcpyToSymbol(c_column, taps.data() + kMaxFilterSide, kMaxFilterSide * 4), "taps");

  const Shape large{2160, 3840, 31}, many{4000, 6000, 9};
  copies(large);
  two_passes(large);
  separable<31>(large, {1, 2}, {0});
  stacked<31, false>(large);
  stacked<31, true>(large);
  copies(many);
  separable<9>(many, {2}, {0, 2, 4, 8});
  separable<9>(many, {4}, {0, 2});
  for (const Shape& shape : {Shape{1080, 3840, 31}, Shape{4320, 3840, 31}}) {  // what a row more costs
    copies(shape);
    separable<31>(shape, {1}, {0});
    stacked<31, false>(shape);
  }
  separable<9>({2160, 3840, 9}, {2}, {0, 2, 4});
  separable<3>({2160, 3840, 3}, {2}, {0, 2, 4, 8});
  separable<15>({2160, 3840, 15}, {2}, {0, 2});
  all_strips<5>({2160, 3840, 5});
  all_strips<3>({2160, 3840, 3});
  all_strips<7>({2160, 3840, 7});
  all_strips<5>({4320, 3840, 5});

  for (Run& run : runs) check(run, found, wide);
  for (Run& run : runs) {
    run.hot = graph_of(run, 1, stream);
    run.cold = graph_of(run, kPairs, stream);
  }
  std::string traces;
  trace<31>(large, 1, moments, traces);
  trace<31>(large, 2, moments, traces);
  trace<9>(many, 2, moments, traces);
  trace<3>({2160, 3840, 3}, 2, moments, traces);

  cudaEvent_t first, last;
  check_cuda(cudaEventCreate(&first), "event");
  check_cuda(cudaEventCreate(&last), "event");
  const auto time = [&](cudaGraphExec_t graph, int repetitions, std::vector<double>& us) {
    for (int i = -1; i < repetitions; ++i) {
      check_cuda(cudaEventRecord(first, stream), "event");
      check_cuda(cudaGraphLaunch(graph, stream), "launch");
      check_cuda(cudaEventRecord(last, stream), "event");
      check_cuda(cudaEventSynchronize(last), "wait");
      float ms;
      check_cuda(cudaEventElapsedTime(&ms, first, last), "event");
      if (i >= 0) us.push_back(ms * 1e3 / kLaunches);  // the first fills L2
    }
  };
  int rounds = 0;
  std::vector<double> ignored;
  for (int i = 0; i < 100; ++i) time(runs[3].hot, 1, ignored);  // until the clocks are up
  for (; rounds < 9 && (rounds < 3 || spent() < seconds); ++rounds)
    for (Run& run : runs) {
      time(run.hot, 3, run.hot_us);
      time(run.cold, 2, run.cold_us);
    }
  // Each is still right.
  for (Run& run : runs) {
    const double before = run.error;
    check(run, found, wide);
    run.right = run.right && std::abs(run.error - before) <= 1e-6 * std::abs(before);  // sums have no order
  }

  std::printf(
      "{\n  \"device\": \"%s\", \"multiprocessors\": %d, \"l2_bytes\": %d, \"rounds\": %d, \"seconds\": %.1f,\n",
      device.name, multiprocessors, device.l2CacheSize, rounds, spent());
  std::printf("  \"traces\": [%s],\n  \"rows\": [\n", traces.c_str());
  bool right = true;
  std::string shape;
  for (const Run& run : runs) {
    const double hot = median(run.hot_us), cold = median(run.cold_us);
    double copy = NAN, cold_copy = NAN;
    for (const Run& other : runs)
      if (other.stage == "copy" && other.setting == "plain" && other.shape.pixels() == run.shape.pixels())
        copy = median(other.hot_us), cold_copy = median(other.cold_us);
    right = right && run.right;
    std::printf(
        "    {\"stage\": \"%s\", \"setting\": \"%s\", \"shape\": \"%s\", \"us\": %.2f, \"least\": %.2f, "
        "\"most\": %.2f, \"cold_us\": %.2f, \"copy_us\": %.2f, \"cold_copy_us\": %.2f, \"error\": %.3g, "
        "\"right\": %s}%s\n",
        run.stage.c_str(), run.setting.c_str(), run.shape.name().c_str(), hot,
        *std::min_element(run.hot_us.begin(), run.hot_us.end()),
        *std::max_element(run.hot_us.begin(), run.hot_us.end()), cold, copy, cold_copy, run.error,
        run.right ? "true" : "false", &run == &runs.back() ? "" : ",");
    if (run.shape.name() != shape) {
      shape = run.shape.name();
      std::fprintf(stderr, "\n%-18s %-36s %8s %8s %8s %8s %8s\n", shape.c_str(), "setting", "hot us", "cold us",
                   "of copy", "cold", "error");
    }
    std::fprintf(stderr, "%-18s %-36s %8.2f %8.2f %7.1f%% %7.1f%% %8.1g%s\n", run.stage.c_str(), run.setting.c_str(),
                 hot, cold, 100 * copy / hot, 100 * cold_copy / cold, run.error, run.right ? "" : "  WRONG");
  }
  std::printf("  ]\n}\n");
  std::fprintf(stderr, "\n%s, %d rounds, %.1f s\n%s\n", device.name, rounds, spent(), traces.c_str());
  return right ? 0 : 1;
}

}  // namespace
}  // namespace convladder

int main(int count, char** words) { return convladder::measure(count > 1 ? std::atof(words[1]) : 20); }
