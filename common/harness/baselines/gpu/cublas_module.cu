/// @file
/// The module `convladder_cublas`: convolution by im2col and a matrix product of cuBLAS, and every call of cuBLAS.
///
/// The products, row-major, are made in one of two ways; prepare() times both on the problem's own tensors, and keeps
/// the faster:
///
///   an image:  output[n] = filter * matrix[n]      for each image n, in one batched call of cuBLAS
///              [k][p q]    [k][c r s]  [c r s][p q]
///   the batch: product   = filter * matrix         in one call; then its rows are put where the output wants them
///              [k][n p q]  [k][c r s]  [c r s][n p q]
///
/// cuBLAS takes column-major matrices: a row-major [a][b] is its b x a matrix, so it computes the transposes, with the
/// factors in the other order. The math mode is CUBLAS_DEFAULT_MATH: fp32 throughout, without TF32.
#include <cublas_v2.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "common/harness/device/device.hpp"
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = 4;                                      // elements that a thread moves when rows are put in place
constexpr std::size_t kLibraryBytes = std::size_t{64} << 20;  // cuBLAS's own workspace, so that graphs can capture it
constexpr int kTimed = 3;                                     // runs of each way when they are compared

// The unfolding of one image and of a batch: im2col as chapter 17 has it, in a copy of its own, so that the baseline
// stays what it is when the lesson's kernel changes.

constexpr int kIm2colThreads = 256;

/// A thread writes what one window holds of one channel: neighbouring threads write neighbouring columns of a row.
/// Grid: (channels x windows of an image in blocks, images).
__global__ void im2col(const float* __restrict__ input,  // [batch][channels][height][width]
                       float* __restrict__ matrix,       // [batch][channels * rows * columns][out_height * out_width]
                       Lowering l) {
  const int n = block_in_y(), cpq = blockIdx.x * kIm2colThreads + threadIdx.x;
  if (n >= l.batch || cpq >= l.channels * output_plane(l)) return;
  const int c = cpq / output_plane(l), pq = cpq % output_plane(l);
  const int top = pq / l.out_width * l.stride_y - l.pad_y, left = pq % l.out_width * l.stride_x - l.pad_x;
  const std::int64_t plane = static_cast<std::int64_t>(n) * l.channels + c;
  const float* in = input + plane * input_plane(l);
  float* out = matrix + plane * window(l) * output_plane(l) + pq;
  for (int r = 0; r < l.rows; ++r) {
    const int i = border_index(top + r * l.dilation_y, l.height, l.padding);
    for (int s = 0; s < l.columns; ++s) {
      const int j = border_index(left + s * l.dilation_x, l.width, l.padding);
      *out = i >= 0 && j >= 0 ? in[static_cast<std::int64_t>(i) * l.width + j] : 0.0f;
      out += output_plane(l);
    }
  }
}

void launch_im2col(const float* input, float* matrix, const Lowering& l, Stream stream) {
  launch(im2col, grid_in_y(blocks_for(l.channels * output_plane(l), kIm2colThreads), l.batch), dim3(kIm2colThreads), 0,
         stream)(input, matrix, l);
}

/// im2col with the columns of all images side by side: a thread writes what one window holds of one
/// channel.
/// @param matrix [channels][rows][columns][batch][plane]
__global__ void im2col_of_batch(const float* input, float* matrix, Lowering l) {
  const int plane = output_plane(l);
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kIm2colThreads + threadIdx.x;
  const int n = block_in_y();
  if (n >= l.batch || i >= l.channels * plane) return;
  const int c = static_cast<int>(i) / plane, pq = static_cast<int>(i) % plane;
  const int top = pq / l.out_width * l.stride_y - l.pad_y, left = pq % l.out_width * l.stride_x - l.pad_x;
  const float* in = input + (static_cast<std::int64_t>(n) * l.channels + c) * input_plane(l);
  const std::int64_t row_step = static_cast<std::int64_t>(l.batch) * plane;
  float* out = matrix + c * window(l) * row_step + static_cast<std::int64_t>(n) * plane + pq;
  for (int r = 0; r < l.rows; ++r) {
    const int y = border_index(top + r * l.dilation_y, l.height, l.padding);
    for (int s = 0; s < l.columns; ++s) {
      const int x = border_index(left + s * l.dilation_x, l.width, l.padding);
      *out = y < 0 || x < 0 ? 0.0f : in[static_cast<std::int64_t>(y) * l.width + x];
      out += row_step;
    }
  }
}

/// @param product [filters][batch][plane]  @param output [batch][filters][plane]
__global__ void put_in_place(const float* product, float* output, Lowering l) {
  const int plane = output_plane(l);
  const std::int64_t count = static_cast<std::int64_t>(l.batch) * l.filters * plane;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads * kEach;
  const std::int64_t first_plane = first / plane;  // the same for the whole block
  const int offset = static_cast<int>(first - first_plane * plane);
  UNROLL
  for (int j = 0; j < kEach; ++j) {
    const int i = offset + j * kThreads + threadIdx.x;
    if (first + (i - offset) >= count) return;
    const std::int64_t which = first_plane + i / plane;
    const std::int64_t image = which / l.filters, filter = which - image * l.filters;
    output[which * plane + i % plane] = product[(filter * l.batch + image) * plane + i % plane];
  }
}

// The module has a CUDA runtime of its own, and with it its own checks.
void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw DeviceError(std::string(what) + " failed: " + cudaGetErrorString(status));
}
void require(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError(std::string(what) + " failed: cuBLAS says " + cublasGetStatusString(status));
}

/// Device memory with an owner.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { cudaFree(floats_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void allocate(std::int64_t count) {
    free();
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    const cudaError_t status = cudaMalloc(&floats_, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw MachineError("not enough GPU memory: im2col and cuBLAS need " + std::to_string(bytes >> 20) +
                         " MiB; use a smaller problem");
    }
    require(status, "allocating memory for im2col");
    count_ = count;
  }
  void free() {
    cudaFree(std::exchange(floats_, nullptr));
    count_ = 0;
  }
  float* floats() const { return floats_; }
  std::int64_t bytes() const { return count_ * static_cast<std::int64_t>(sizeof(float)); }

 private:
  float* floats_ = nullptr;
  std::int64_t count_ = 0;
};

/// cuBLAS, with a workspace that stays. Never destroyed: when the program ends, CUDA may end first.
class Library {
 public:
  static Library& get() {
    static Library& library = *new Library;
    return library;
  }

  /// The handle, for work on this stream.
  cublasHandle_t on(Stream stream) const {
    require(cublasSetStream(handle_, stream), "setting cuBLAS's stream");
    require(cublasSetWorkspace(handle_, workspace_, kLibraryBytes),
            "setting cuBLAS's workspace");  // reset by the above
    return handle_;
  }

 private:
  Library() {
    require(cudaMalloc(&workspace_, kLibraryBytes), "allocating cuBLAS's workspace");
    require(cublasCreate(&handle_), "starting cuBLAS");
    require(cublasSetMathMode(handle_, CUBLAS_DEFAULT_MATH), "choosing fp32 without TF32");
  }

  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
};

class Im2colCublas final : public Stage {
  const char* library() const override {
    static const std::string name = [] {
      std::string text = "cuBLAS";
      for (const auto part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
        int value = 0;
        require(cublasGetProperty(part, &value), "asking for the version");
        text += (part == MAJOR_VERSION ? " " : ".") + std::to_string(value);
      }
      return text;
    }();
    return name.c_str();
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    matrix_.allocate(im2col_size(problem));
    whole_batch_ = false;
    if (l.batch > 1) {
      product_.allocate(problem.output_size());
      const double images = time(false, l, tensors, stream), batch = time(true, l, tensors, stream);
      whole_batch_ = batch < images;
      if (!whole_batch_) product_.free();
      note(problem, images, batch);
    }
    state_memory(matrix_.bytes() + product_.bytes());
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    run(whole_batch_, lowering_of(problem), tensors, stream);
  }

  bool launch_without_transform(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    multiply(whole_batch_, lowering_of(problem), tensors, stream);
    return true;
  }

  void run(bool whole_batch, const Lowering& l, const Tensors& tensors, Stream stream) const {
    if (whole_batch) {
      const dim3 grid = grid_in_y(blocks_for(l.channels * output_plane(l), kIm2colThreads), l.batch);
      convladder::launch(im2col_of_batch, grid, dim3(kIm2colThreads), 0, stream)(tensors.input, matrix_.floats(), l);
    } else {
      launch_im2col(tensors.input, matrix_.floats(), l, stream);
    }
    multiply(whole_batch, l, tensors, stream);
  }

  void multiply(bool whole_batch, const Lowering& l, const Tensors& tensors, Stream stream) const {
    const float one = 1, zero = 0;
    const int plane = output_plane(l), rows = depth(l);
    const cublasHandle_t handle = Library::get().on(stream);
    if (!whole_batch) {
      require(
          cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, plane, l.filters, rows, &one, matrix_.floats(),
                                    plane, static_cast<long long>(rows) * plane, tensors.filter, rows, 0, &zero,
                                    tensors.output, plane, static_cast<long long>(l.filters) * plane, l.batch),
          "the batched product");
      return;
    }
    const int columns = l.batch * plane;
    require(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, columns, l.filters, rows, &one, matrix_.floats(), columns,
                        tensors.filter, rows, &zero, product_.floats(), columns),
            "the product");
    const std::int64_t outputs = static_cast<std::int64_t>(columns) * l.filters;
    const auto blocks = static_cast<unsigned>((outputs - 1) / (kThreads * kEach) + 1);
    convladder::launch(put_in_place, dim3(blocks), dim3(kThreads), 0, stream)(product_.floats(), tensors.output, l);
  }

  /// Milliseconds of kTimed runs.
  double time(bool whole_batch, const Lowering& l, const Tensors& tensors, Stream stream) const {
    cudaEvent_t begin = nullptr, end = nullptr;
    require(cudaEventCreate(&begin), "creating an event");
    require(cudaEventCreate(&end), "creating an event");
    run(whole_batch, l, tensors, stream);
    require(cudaEventRecord(begin, stream), "recording an event");
    for (int i = 0; i < kTimed; ++i) run(whole_batch, l, tensors, stream);
    require(cudaEventRecord(end, stream), "recording an event");
    require(cudaEventSynchronize(end), "running im2col and cuBLAS");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "reading the events' times");
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return milliseconds;
  }

  /// Says once for each problem in a row which way was chosen.
  void note(const ConvProblem& problem, double images, double batch) const {
    static std::int64_t noted[5] = {};
    const std::int64_t sizes[5] = {problem.n, problem.c, problem.h, problem.k, problem.r};
    if (std::equal(std::begin(sizes), std::end(sizes), std::begin(noted))) return;
    std::copy(std::begin(sizes), std::end(sizes), std::begin(noted));
    std::fprintf(stderr, "cuBLAS by %s (%.3g ms; by %s %.3g ms) ... ", whole_batch_ ? "one product" : "image",
                 (whole_batch_ ? batch : images) / kTimed, whole_batch_ ? "image" : "one product",
                 (whole_batch_ ? images : batch) / kTimed);
  }

  bool whole_batch_ = false;
  Buffer matrix_;   ///< [batch][depth][plane], or [depth][batch][plane] for the whole batch
  Buffer product_;  ///< [filters][batch][plane], for the whole batch alone
};

}  // namespace

// What kernel.hpp's launches call.
void finish_launch(const void*, dim3, std::size_t) { require(cudaGetLastError(), "a kernel of im2col and cuBLAS"); }
void allow_shared_bytes(const void*, std::size_t) {}  // none of them takes more than 48 KB

}  // namespace convladder

extern "C" convladder::Stage* convladder_cublas_stage() { return new convladder::Im2colCublas; }
