// The matrix products of cuBLAS, in order on the host.

#include "common/cuda/include/cublas_v2.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "common/cuda/host_memory.hpp"
#include "common/cuda/streams.hpp"
#include "common/simt/half.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
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
      return CUDA_R_16F;
    case CUBLAS_COMPUTE_64F:
      return CUDA_R_64F;
    case CUBLAS_COMPUTE_32I:
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

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void* alpha, const void* a, cudaDataType type_a, int lda,
                                          long long stride_a, const void* b, cudaDataType type_b, int ldb,
                                          long long stride_b, const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stride_c, int count, cublasComputeType_t compute,
                                          cublasGemmAlgo_t, const char* file, int line) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const int rows_a = op_a == CUBLAS_OP_N ? m : k, columns_a = op_a == CUBLAS_OP_N ? k : m;
  const int rows_b = op_b == CUBLAS_OP_N ? k : n, columns_b = op_b == CUBLAS_OP_N ? n : k;
  if (m < 0 || n < 0 || k < 0 || count < 0 || lda < std::max(1, rows_a) || ldb < std::max(1, rows_b) ||
      ldc < std::max(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_known(type_a) || !is_known(type_b) || !is_known(type_c)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
  const auto bytes = [&](cudaDataType type, long long stride, int ld, int rows, int columns) {
    if (rows == 0 || columns == 0) return std::size_t{0};
    return static_cast<std::size_t>((count - 1) * stride + static_cast<long long>(ld) * (columns - 1) + rows) *
           static_cast<std::size_t>(bytes_of(type));
  };
  const cudaDataType scale = scale_type(compute);
  const double by = element(alpha, scale, 0), keep = element(beta, scale, 0);
  const simt_cuda::HostWork work{"cuBLAS", handle->stream, __builtin_return_address(0), {file, line}};
  if (!work.reads(a, bytes(type_a, stride_a, lda, rows_a, columns_a)) ||
      !work.reads(b, bytes(type_b, stride_b, ldb, rows_b, columns_b)) ||
      !work.writes(c, bytes(type_c, stride_c, ldc, m, n)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  for (long long i = 0; i < count; ++i) {
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        double sum = 0;
        for (int inner = 0; inner < k; ++inner) {
          const long long at_a = op_a == CUBLAS_OP_N ? row + static_cast<long long>(inner) * lda
                                                     : inner + static_cast<long long>(row) * lda;
          const long long at_b = op_b == CUBLAS_OP_N ? inner + static_cast<long long>(column) * ldb
                                                     : column + static_cast<long long>(inner) * ldb;
          sum += element(a, type_a, i * stride_a + at_a) * element(b, type_b, i * stride_b + at_b);
        }
        const long long at = i * stride_c + row + static_cast<long long>(column) * ldc;
        set_element(c, type_c, at, by * sum + (keep == 0 ? 0 : keep * element(c, type_c, at)));
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}
