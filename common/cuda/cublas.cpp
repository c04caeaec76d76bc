// The matrix products of cuBLAS, in order on the host; those of halves as the simulator's wgmma adds them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/cuda/host_memory.hpp"
#include "common/cuda/include/cublasLt.h"
#include "common/cuda/streams.hpp"
#include "common/simt/half.hpp"
#include "common/simt/tensor_core.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_HOST;
};

namespace {

int bytes_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
      return 8;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_8I:
      return 1;
    default:
      return 4;
  }
}

double element(const void* from, cudaDataType type, long long i) {
  const auto get = [&](auto value) {
    std::memcpy(&value, static_cast<const char*>(from) + i * static_cast<long long>(sizeof value), sizeof value);
    return value;
  };
  switch (type) {
    case CUDA_R_64F:
      return get(double{});
    case CUDA_R_16F:
      return simt::half_to_float(get(std::uint16_t{}));
    case CUDA_R_16BF:
      return __builtin_bit_cast(float, static_cast<std::uint32_t>(get(std::uint16_t{})) << 16);
    case CUDA_R_8I:
      return get(std::int8_t{});
    case CUDA_R_32I:
      return get(std::int32_t{});
    default:
      return get(float{});
  }
}

void set_element(void* to, cudaDataType type, long long i, double result) {
  const auto put = [&](auto value) {
    std::memcpy(static_cast<char*>(to) + i * static_cast<long long>(sizeof value), &value, sizeof value);
  };
  switch (type) {
    case CUDA_R_64F:
      return put(result);
    case CUDA_R_16F:
      return put(simt::half_from(result));
    case CUDA_R_16BF: {
      const auto bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(result));
      return put(static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
    }
    case CUDA_R_32I:
      return put(static_cast<std::int32_t>(result));
    default:
      return put(static_cast<float>(result));
  }
}

bool is_known(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_8I ||
         type == CUDA_R_32I;
}

/// In what alpha and beta are given, and how the sum is rounded.
cudaDataType scale_type(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return CUDA_R_16F;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return CUDA_R_64F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return CUDA_R_32I;
    default:
      return CUDA_R_32F;
  }
}

}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  *mode = handle->mode;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}
const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

namespace {

/// Whether `may(offset in bytes, bytes)` holds for the columns of a matrix, without the gaps between them.
/// @param first its first element's index
template <class May>
bool every_column(const May& may, cudaDataType type, long long first, int ld, int rows, int columns) {
  const auto size = static_cast<std::size_t>(bytes_of(type));
  const bool has_gaps = ld > rows;
  const std::size_t height = columns > 0 ? static_cast<std::size_t>(rows) : 0;
  const std::size_t at_once = has_gaps ? height : height * static_cast<std::size_t>(columns);
  for (long long column = 0; column == 0 || (has_gaps && column < columns); ++column)
    if (!may(static_cast<std::ptrdiff_t>(first + column * ld) * static_cast<std::ptrdiff_t>(size), at_once * size))
      return false;
  return true;
}

bool reads_matrix(const simt_cuda::HostWork& work, const void* matrix, cudaDataType type, long long first, int ld,
                  int rows, int columns) {
  const auto* const begin = static_cast<const char*>(matrix);
  return every_column([&](std::ptrdiff_t at, std::size_t bytes) { return work.reads(begin + at, bytes); }, type, first,
                      ld, rows, columns);
}

bool writes_matrix(const simt_cuda::HostWork& work, void* matrix, cudaDataType type, long long first, int ld, int rows,
                   int columns) {
  auto* const begin = static_cast<char*>(matrix);
  return every_column([&](std::ptrdiff_t at, std::size_t bytes) { return work.writes(begin + at, bytes); }, type, first,
                      ld, rows, columns);
}

/// A factor of a product, of which `outer` counts a's rows or b's columns.
struct Factor {
  const void* begin;
  cudaDataType type;
  long long first, per_outer, per_inner;  ///< in elements
  long long at(long long outer, long long inner) const { return first + outer * per_outer + inner * per_inner; }
};

/// All sums, each in double. @param put takes row, column and sum
template <class Put>
void multiply(const Factor& a, const Factor& b, int m, int n, int k, const Put& put) {
  // Column by column, so that the inner loop runs over rows that are neighbours.
  const auto rows = static_cast<std::size_t>(m);
  std::vector<double> packed(rows * static_cast<std::size_t>(k)), sums(rows);
  for (long long inner = 0; inner < k; ++inner)
    for (long long row = 0; row < m; ++row)
      packed[static_cast<std::size_t>(inner) * rows + static_cast<std::size_t>(row)] =
          element(a.begin, a.type, a.at(row, inner));
  for (long long column = 0; column < n; ++column) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (long long inner = 0; inner < k; ++inner) {
      const double at_b = element(b.begin, b.type, b.at(column, inner));
      const double* const from = &packed[static_cast<std::size_t>(inner) * rows];
      for (std::size_t row = 0; row < rows; ++row) sums[row] += from[row] * at_b;
    }
    for (long long row = 0; row < m; ++row) put(row, column, sums[static_cast<std::size_t>(row)]);
  }
}

/// The same of fp16 or bf16 by the simulator's model of Hopper's Tensor Cores: ladders compare a kernel with wgmma with
/// cuBLAS, and one that adds in the same order, 16 channels at a time, has the same bits.
template <class Put>
void multiply_halves(const Factor& a, const Factor& b, int m, int n, int k, const Put& put) {
  constexpr long long kStep = 16, kRows = 16, kColumns = 256;  // of one call
  using Step = std::array<std::uint16_t, kStep>;
  const long long steps = (k + kStep - 1) / kStep;
  const auto packed = [&](const Factor& factor, long long count, long long tile) {  // [tile][step][outer]
    std::vector<Step> to(static_cast<std::size_t>((count + tile - 1) / tile * tile * steps), Step{});
    for (long long outer = 0; outer < count; ++outer)
      for (long long inner = 0; inner < k; ++inner) {
        const long long at = (outer / tile * steps + inner / kStep) * tile + outer % tile;
        std::memcpy(&to[static_cast<std::size_t>(at)][static_cast<std::size_t>(inner % kStep)],
                    static_cast<const std::uint16_t*>(factor.begin) + factor.at(outer, inner), sizeof(std::uint16_t));
      }
    return to;
  };
  const std::vector<Step> of_a = packed(a, m, kRows), of_b = packed(b, n, kColumns);
  std::vector<std::uint32_t> sums(kRows * kColumns);
  for (long long row = 0; row < m; row += kRows)
    for (long long column = 0; column < n; column += kColumns) {
      const long long columns = std::min(kColumns, n - column);
      std::fill(sums.begin(), sums.end(), 0);
      for (long long step = 0; step < steps; ++step)
        simt::add_products(a.type == CUDA_R_16BF, &of_a[static_cast<std::size_t>(row * steps + step * kRows)],
                           &of_b[static_cast<std::size_t>(column * steps + step * kColumns)],
                           static_cast<unsigned>(columns), sums.data());
      for (long long i = 0; i < std::min(kRows, m - row); ++i)
        for (long long j = 0; j < columns; ++j)
          put(row + i, column + j, __builtin_bit_cast(float, sums[static_cast<std::size_t>(i * columns + j)]));
    }
}

}  // namespace

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void* alpha, const void* a, cudaDataType type_a, int lda,
                                          long long stride_a, const void* b, cudaDataType type_b, int ldb,
                                          long long stride_b, const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stride_c, int count, cublasComputeType_t compute, cublasGemmAlgo_t,
                                          const char* file, int line) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const int rows_a = op_a == CUBLAS_OP_N ? m : k, columns_a = op_a == CUBLAS_OP_N ? k : m;
  const int rows_b = op_b == CUBLAS_OP_N ? k : n, columns_b = op_b == CUBLAS_OP_N ? n : k;
  if (m < 0 || n < 0 || k < 0 || count < 0 || lda < std::max(1, rows_a) || ldb < std::max(1, rows_b) ||
      ldc < std::max(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_known(type_a) || !is_known(type_b) || !is_known(type_c)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
  const cudaDataType scale = scale_type(compute);
  const double by = element(alpha, scale, 0), keep = element(beta, scale, 0);
  const simt_cuda::HostWork work{"cuBLAS", handle->stream, __builtin_return_address(0), {file, line}};
  for (long long i = 0; i < count; ++i) {
    if (!reads_matrix(work, a, type_a, i * stride_a, lda, rows_a, columns_a) ||
        !reads_matrix(work, b, type_b, i * stride_b, ldb, rows_b, columns_b) ||
        !writes_matrix(work, c, type_c, i * stride_c, ldc, m, n))
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const bool on_tensor_cores =
      scale == CUDA_R_32F && type_a == type_b && (type_a == CUDA_R_16F || type_a == CUDA_R_16BF);
  for (long long i = 0; i < count; ++i) {
    const Factor of_a{a, type_a, i * stride_a, op_a == CUBLAS_OP_N ? 1 : lda, op_a == CUBLAS_OP_N ? lda : 1};
    const Factor of_b{b, type_b, i * stride_b, op_b == CUBLAS_OP_N ? ldb : 1, op_b == CUBLAS_OP_N ? 1 : ldb};
    const auto put = [&](long long row, long long column, double sum) {
      const long long at = i * stride_c + row + column * ldc;
      set_element(c, type_c, at, by * sum + (keep == 0 ? 0 : keep * element(c, type_c, at)));
    };
    if (on_tensor_cores)
      multiply_halves(of_a, of_b, m, n, k, put);
    else
      multiply(of_a, of_b, m, n, k, put);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                   int k, const void* alpha, const void* const a[], cudaDataType type_a, int lda,
                                   const void* const b[], cudaDataType type_b, int ldb, const void* beta,
                                   void* const c[], cudaDataType type_c, int ldc, int count,
                                   cublasComputeType_t compute, cublasGemmAlgo_t algorithm, const char* file,
                                   int line) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const simt_cuda::HostWork work{"cuBLAS", handle->stream, __builtin_return_address(0), {file, line}};
  const std::size_t bytes = static_cast<std::size_t>(std::max(count, 0)) * sizeof(void*);
  if (!work.reads(a, bytes) || !work.reads(b, bytes) || !work.reads(c, bytes)) return CUBLAS_STATUS_EXECUTION_FAILED;
  for (int i = 0; i < count; ++i) {
    const cublasStatus_t status =
        cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a[i], type_a, lda, 0, b[i], type_b, ldb, 0, beta,
                                   c[i], type_c, ldc, 0, 1, compute, algorithm, file, line);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}

namespace simt_cuda {
namespace {

/// Of a vector with steps; a negative step begins at its end.
struct Steps {
  int n, step;
  long long at(int i) const { return static_cast<long long>(step < 0 ? i - n + 1 : i) * step; }
  std::size_t bytes(cudaDataType type) const {
    return n <= 0 ? 0
                  : static_cast<std::size_t>((n - 1LL) * std::abs(step) + 1) * static_cast<std::size_t>(bytes_of(type));
  }
};

}  // namespace

cublasStatus_t vector_function(cublasHandle_t handle, Vector kind, cudaDataType type, int n, const void* alpha,
                               const void* x, int step_x, void* y, int step_y, void* result, const char* file,
                               int line) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const HostWork work{"cuBLAS", handle->stream, __builtin_return_address(0), {file, line}};
  const Steps xs{n, step_x}, ys{n, step_y};
  const bool is_index = kind == Vector::largest || kind == Vector::smallest;
  const bool changes_y = kind == Vector::axpy || kind == Vector::swap || kind == Vector::scale;
  if ((x && !work.reads(x, xs.bytes(type))) || (y && kind != Vector::copy && !work.reads(y, ys.bytes(type))) ||
      ((changes_y || kind == Vector::copy) && !work.writes(y, ys.bytes(type))) ||
      (kind == Vector::swap && !work.writes(const_cast<void*>(x), xs.bytes(type))) ||
      (result && handle->mode == CUBLAS_POINTER_MODE_DEVICE &&
       !work.writes(result, is_index ? 4 : static_cast<std::size_t>(bytes_of(type)))))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  const double by = alpha ? element(alpha, type, 0) : 0;
  double sum = 0, best = -1;
  int index = 0;
  for (int i = 0; i < n; ++i) {
    const double at_x = x ? element(x, type, xs.at(i)) : 0;
    const double at_y = y && kind != Vector::copy ? element(y, type, ys.at(i)) : 0;
    const double size = std::fabs(at_x);
    if (kind == Vector::axpy) set_element(y, type, ys.at(i), by * at_x + at_y);
    if (kind == Vector::copy || kind == Vector::swap) set_element(y, type, ys.at(i), at_x);
    if (kind == Vector::swap) set_element(const_cast<void*>(x), type, xs.at(i), at_y);
    if (kind == Vector::scale) set_element(y, type, ys.at(i), by * at_y);
    if (kind == Vector::dot) sum += at_x * at_y;
    if (kind == Vector::norm) sum += at_x * at_x;
    if (kind == Vector::absolutes) sum += size;
    if (is_index && (i == 0 || (kind == Vector::largest ? size > best : size < best))) best = size, index = i + 1;
  }
  if (!result) return CUBLAS_STATUS_SUCCESS;
  if (is_index)
    std::memcpy(result, &index, sizeof index);
  else
    set_element(result, type, 0, kind == Vector::norm ? std::sqrt(sum) : sum);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t matrix_sum(cublasHandle_t handle, cudaDataType type, cublasOperation_t op_a, cublasOperation_t op_b,
                          int m, int n, const void* alpha, const void* a, int lda, const void* beta, const void* b,
                          int ldb, void* c, int ldc, const char* file, int line) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool plain_a = op_a == CUBLAS_OP_N, plain_b = op_b == CUBLAS_OP_N;
  if (m < 0 || n < 0 || lda < std::max(1, plain_a ? m : n) || ldb < std::max(1, plain_b ? m : n) ||
      ldc < std::max(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  const HostWork work{"cuBLAS", handle->stream, __builtin_return_address(0), {file, line}};
  const double by_a = element(alpha, type, 0), by_b = element(beta, type, 0);
  if ((by_a != 0 && !reads_matrix(work, a, type, 0, lda, plain_a ? m : n, plain_a ? n : m)) ||
      (by_b != 0 && !reads_matrix(work, b, type, 0, ldb, plain_b ? m : n, plain_b ? n : m)) ||
      !writes_matrix(work, c, type, 0, ldc, m, n))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (long long column = 0; column < n; ++column) {
    for (long long row = 0; row < m; ++row) {
      double sum = 0;
      if (by_a != 0) sum += by_a * element(a, type, plain_a ? row + column * lda : column + row * lda);
      if (by_b != 0) sum += by_b * element(b, type, plain_b ? row + column * ldb : column + row * ldb);
      set_element(c, type, row + column * ldc, sum);
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t rank_one(cublasHandle_t handle, cudaDataType type, int m, int n, const void* alpha, const void* x,
                        int step_x, const void* y, int step_y, void* a, int lda, const char* file, int line) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || lda < std::max(1, m)) return CUBLAS_STATUS_INVALID_VALUE;
  const HostWork work{"cuBLAS", handle->stream, __builtin_return_address(0), {file, line}};
  const Steps xs{m, step_x}, ys{n, step_y};
  if (!work.reads(x, xs.bytes(type)) || !work.reads(y, ys.bytes(type)) || !reads_matrix(work, a, type, 0, lda, m, n) ||
      !writes_matrix(work, a, type, 0, lda, m, n))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  const double by = element(alpha, type, 0);
  for (int column = 0; column < n; ++column) {
    for (int row = 0; row < m; ++row) {
      const long long at = row + static_cast<long long>(column) * lda;
      set_element(a, type, at,
                  element(a, type, at) + by * element(x, type, xs.at(row)) * element(y, type, ys.at(column)));
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t scaled_by_vector(cublasHandle_t handle, cudaDataType type, bool left, int m, int n, const void* a,
                                int lda, const void* x, int step_x, void* c, int ldc, const char* file, int line) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || lda < std::max(1, m) || ldc < std::max(1, m)) return CUBLAS_STATUS_INVALID_VALUE;
  const HostWork work{"cuBLAS", handle->stream, __builtin_return_address(0), {file, line}};
  const Steps xs{left ? m : n, step_x};
  if (!reads_matrix(work, a, type, 0, lda, m, n) || !work.reads(x, xs.bytes(type)) ||
      !writes_matrix(work, c, type, 0, ldc, m, n))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (int column = 0; column < n; ++column) {
    for (int row = 0; row < m; ++row)
      set_element(
          c, type, row + static_cast<long long>(column) * ldc,
          element(a, type, row + static_cast<long long>(column) * lda) * element(x, type, xs.at(left ? row : column)));
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace simt_cuda

// ---- cuBLASLt: a product that is described piece by piece ----------------------------------------------------------

struct cublasLtContext : cublasContext {};

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  const auto set = [&](auto& member) {
    if (bytes < sizeof member) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&member, value, sizeof member);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(desc->transposes_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(desc->transposes_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(desc->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(desc->bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return set(desc->bias_type);
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return set(desc->compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return CUBLAS_STATUS_SUCCESS;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  if (bytes < 4) return CUBLAS_STATUS_INVALID_VALUE;
  int small = 0;
  std::memcpy(&small, value, sizeof small);
  long long large = small;
  if (bytes >= 8) std::memcpy(&large, value, sizeof large);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      layout->type = static_cast<cudaDataType>(small);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      layout->by_rows = small == CUBLASLT_ORDER_ROW;
      return small == CUBLASLT_ORDER_ROW || small == CUBLASLT_ORDER_COL ? CUBLAS_STATUS_SUCCESS
                                                                        : CUBLAS_STATUS_NOT_SUPPORTED;
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      layout->rows = static_cast<std::uint64_t>(large);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      layout->columns = static_cast<std::uint64_t>(large);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATRIX_LAYOUT_LD:
      layout->ld = large;
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      layout->count = small;
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      layout->stride = large;
      return CUBLAS_STATUS_SUCCESS;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

namespace {

double activated(double x, int epilogue) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU) return x > 0 ? x : 0;
  if (epilogue & CUBLASLT_EPILOGUE_GELU) return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
  return x;
}

}  // namespace

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t*, void*, std::size_t,
                              cudaStream_t stream, const char* file, int line) {
  if (!handle || !desc || !layout_a || !layout_b || !layout_c || !layout_d) return CUBLAS_STATUS_NOT_INITIALIZED;
  if ((desc->epilogue & ~(CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU_BIAS | CUBLASLT_EPILOGUE_GELU_BIAS)) != 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  handle->stream = stream;
  const auto ld = [](cublasLtMatrixLayout_t layout) { return static_cast<int>(layout->ld); };
  // A matrix by rows is its transpose by columns.
  const auto op = [](cublasOperation_t given, bool by_rows) {
    return (given == CUBLAS_OP_N) != by_rows ? CUBLAS_OP_N : CUBLAS_OP_T;
  };
  const auto op_a = op(desc->transposes_a, layout_a->by_rows), op_b = op(desc->transposes_b, layout_b->by_rows);
  const int m = static_cast<int>(layout_d->rows), n = static_cast<int>(layout_d->columns), count = layout_d->count;
  const int k = static_cast<int>(desc->transposes_a == CUBLAS_OP_N ? layout_a->columns : layout_a->rows);
  if (c != d && element(beta, scale_type(desc->compute), 0) != 0) {
    if (layout_c->type != layout_d->type || layout_c->ld != layout_d->ld || count != 1)
      return CUBLAS_STATUS_NOT_SUPPORTED;
    const std::size_t bytes = static_cast<std::size_t>(layout_d->ld) *
                              (layout_d->by_rows ? layout_d->rows : layout_d->columns) *
                              static_cast<std::size_t>(bytes_of(layout_d->type));
    if (cudaMemcpyAsync(d, c, bytes, cudaMemcpyDeviceToDevice, stream, file, line) != cudaSuccess)
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const auto product = [&](const void* left, cublasLtMatrixLayout_t at_left, cublasOperation_t op_left,
                           const void* right, cublasLtMatrixLayout_t at_right, cublasOperation_t op_right, int rows,
                           int columns) {
    return cublasGemmStridedBatchedEx(handle, op_left, op_right, rows, columns, k, alpha, left, at_left->type,
                                      ld(at_left), at_left->stride, right, at_right->type, ld(at_right),
                                      at_right->stride, beta, d, layout_d->type, ld(layout_d), layout_d->stride, count,
                                      desc->compute, CUBLAS_GEMM_DEFAULT, file, line);
  };
  const auto other = [](cublasOperation_t given) { return given == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const cublasStatus_t status = layout_d->by_rows ? product(b, layout_b, other(op_b), a, layout_a, other(op_a), n, m)
                                                  : product(a, layout_a, op_a, b, layout_b, op_b, m, n);
  if (status != CUBLAS_STATUS_SUCCESS || desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT) return status;
  const bool has_bias = (desc->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  const cudaDataType bias_type = desc->bias_type < 0 ? layout_d->type : static_cast<cudaDataType>(desc->bias_type);
  const simt_cuda::HostWork work{"cuBLASLt", stream, __builtin_return_address(0), {file, line}};
  if (has_bias && !work.reads(desc->bias, static_cast<std::size_t>(m) * static_cast<std::size_t>(bytes_of(bias_type))))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (long long i = 0; i < count; ++i) {
    for (long long column = 0; column < n; ++column) {
      for (long long row = 0; row < m; ++row) {
        const long long at =
            i * layout_d->stride + (layout_d->by_rows ? row * layout_d->ld + column : row + column * layout_d->ld);
        const double sum = element(d, layout_d->type, at) + (has_bias ? element(desc->bias, bias_type, row) : 0);
        set_element(d, layout_d->type, at, activated(sum, desc->epilogue));
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}
