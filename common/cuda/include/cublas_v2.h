/// @file
/// The matrix products and a few vector functions of cuBLAS, for programs that compare their kernels with it: computed
/// on the host in order, so what is printed as their time means nothing.
#pragma once
#include "common/cuda/include/cuda_fp16.h"
#include "common/cuda/include/library_types.h"

/// @cond
typedef struct cublasContext* cublasHandle_t;
typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;
typedef enum {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  return *version = 130000, CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t status);
const char* cublasGetStatusName(cublasStatus_t status);

// Column-major. `count` products, one after another by the strides.
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void* alpha, const void* a, cudaDataType type_a, int lda,
                                          long long stride_a, const void* b, cudaDataType type_b, int ldb,
                                          long long stride_b, const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stride_c, int count, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm, SIM_HERE);
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                   int k, const void* alpha, const void* a, cudaDataType type_a, int lda, const void* b,
                                   cudaDataType type_b, int ldb, const void* beta, void* c, cudaDataType type_c,
                                   int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm, SIM_HERE) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c,
                                    type_c, ldc, 0, 1, compute, algorithm, file, line);
}
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                   int k, const void* alpha, const void* a, cudaDataType type_a, int lda, const void* b,
                                   cudaDataType type_b, int ldb, const void* beta, void* c, cudaDataType type_c,
                                   int ldc, cudaDataType compute, cublasGemmAlgo_t algorithm, SIM_HERE) {
  return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc,
                      compute == CUDA_R_64F   ? CUBLAS_COMPUTE_64F
                      : compute == CUDA_R_16F ? CUBLAS_COMPUTE_16F
                      : compute == CUDA_R_32I ? CUBLAS_COMPUTE_32I
                                              : CUBLAS_COMPUTE_32F,
                      algorithm, file, line);
}
#define SIM_GEMM(letter, T, type, compute)                                                                             \
  inline cublasStatus_t cublas##letter##gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,    \
                                             int m, int n, int k, const T* alpha, const T* a, int lda, const T* b,     \
                                             int ldb, const T* beta, T* c, int ldc, SIM_HERE) {                        \
    return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, a, type, lda, b, type, ldb, beta, c, type, ldc, compute,   \
                        CUBLAS_GEMM_DEFAULT, file, line);                                                              \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##gemmStridedBatched(                                                            \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, const T* alpha,      \
      const T* a, int lda, long long stride_a, const T* b, int ldb, long long stride_b, const T* beta, T* c, int ldc,  \
      long long stride_c, int count, SIM_HERE) {                                                                       \
    return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type, lda, stride_a, b, type, ldb,        \
                                      stride_b, beta, c, type, ldc, stride_c, count, compute, CUBLAS_GEMM_DEFAULT,     \
                                      file, line);                                                                     \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n,                \
                                             const T* alpha, const T* a, int lda, const T* x, int step_x,              \
                                             const T* beta, T* y, int step_y, SIM_HERE) {                              \
    const int rows = op == CUBLAS_OP_N ? m : n, columns = op == CUBLAS_OP_N ? n : m;                                   \
    return cublasGemmEx(handle, CUBLAS_OP_N, op == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N, 1, rows, columns, alpha, x, \
                        type, step_x, a, type, lda, beta, y, type, step_y, compute, CUBLAS_GEMM_DEFAULT, file, line);  \
  }
SIM_GEMM(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
SIM_GEMM(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
SIM_GEMM(H, __half, CUDA_R_16F, CUBLAS_COMPUTE_16F)
#undef SIM_GEMM
/// @endcond
