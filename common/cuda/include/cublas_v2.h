/// @file
/// The matrix products and a few vector functions of cuBLAS, for programs that compare their kernels with it: computed
/// on the host in order, so what is printed as their time means nothing.
#pragma once
#include "common/cuda/include/cuComplex.h"
#include "common/cuda/include/cuda_bf16.h"
#include "common/cuda/include/cuda_fp16.h"
#include "common/cuda/include/library_types.h"

/// @cond
#define CUBLAS_API_H_
#define CUBLAS_V2_H_
#define CUBLASAPI
#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 0
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VERSION 130000
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasSetStream_v2 cublasSetStream
#define cublasGetStream_v2 cublasGetStream
#define cublasSgemm_v2 cublasSgemm
#define cublasDgemm_v2 cublasDgemm
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
typedef enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1, CUBLAS_FILL_MODE_FULL = 2 } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3
} cublasMath_t;
typedef enum {
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_ALGO0 = 0,
  CUBLAS_GEMM_ALGO1 = 1,
  CUBLAS_GEMM_ALGO2 = 2,
  CUBLAS_GEMM_ALGO3 = 3,
  CUBLAS_GEMM_ALGO4 = 4,
  CUBLAS_GEMM_ALGO5 = 5,
  CUBLAS_GEMM_ALGO6 = 6,
  CUBLAS_GEMM_ALGO7 = 7,
  CUBLAS_GEMM_ALGO8 = 8,
  CUBLAS_GEMM_ALGO9 = 9,
  CUBLAS_GEMM_ALGO10 = 10,
  CUBLAS_GEMM_ALGO11 = 11,
  CUBLAS_GEMM_ALGO12 = 12,
  CUBLAS_GEMM_ALGO13 = 13,
  CUBLAS_GEMM_ALGO14 = 14,
  CUBLAS_GEMM_ALGO15 = 15,
  CUBLAS_GEMM_ALGO16 = 16,
  CUBLAS_GEMM_ALGO17 = 17,
  CUBLAS_GEMM_ALGO18 = 18,
  CUBLAS_GEMM_ALGO19 = 19,
  CUBLAS_GEMM_ALGO20 = 20,
  CUBLAS_GEMM_ALGO21 = 21,
  CUBLAS_GEMM_ALGO22 = 22,
  CUBLAS_GEMM_ALGO23 = 23,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
  CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
  CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
  CUBLAS_GEMM_ALGO1_TENSOR_OP = 101,
  CUBLAS_GEMM_ALGO2_TENSOR_OP = 102,
  CUBLAS_GEMM_ALGO3_TENSOR_OP = 103,
  CUBLAS_GEMM_ALGO4_TENSOR_OP = 104,
  CUBLAS_GEMM_ALGO5_TENSOR_OP = 105,
  CUBLAS_GEMM_ALGO6_TENSOR_OP = 106,
  CUBLAS_GEMM_ALGO7_TENSOR_OP = 107,
  CUBLAS_GEMM_ALGO8_TENSOR_OP = 108,
  CUBLAS_GEMM_ALGO9_TENSOR_OP = 109,
  CUBLAS_GEMM_ALGO10_TENSOR_OP = 110,
  CUBLAS_GEMM_ALGO11_TENSOR_OP = 111,
  CUBLAS_GEMM_ALGO12_TENSOR_OP = 112,
  CUBLAS_GEMM_ALGO13_TENSOR_OP = 113,
  CUBLAS_GEMM_ALGO14_TENSOR_OP = 114,
  CUBLAS_GEMM_ALGO15_TENSOR_OP = 115
} cublasGemmAlgo_t;
typedef cudaDataType cublasDataType_t;
typedef enum {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode);
inline cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t* mode) {
  return *mode = CUBLAS_DEFAULT_MATH, CUBLAS_STATUS_SUCCESS;
}
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

// Copies of matrices by columns and of vectors with steps, between the host and the device.
inline cublasStatus_t cublasSetMatrix(int rows, int columns, int bytes, const void* from, int ld_from, void* to,
                                      int ld_to, SIM_HERE) {
  return cudaMemcpy2D(to, static_cast<size_t>(ld_to) * bytes, from, static_cast<size_t>(ld_from) * bytes,
                      static_cast<size_t>(rows) * bytes, columns, cudaMemcpyHostToDevice, file, line)
             ? CUBLAS_STATUS_MAPPING_ERROR
             : CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetMatrix(int rows, int columns, int bytes, const void* from, int ld_from, void* to,
                                      int ld_to, SIM_HERE) {
  return cudaMemcpy2D(to, static_cast<size_t>(ld_to) * bytes, from, static_cast<size_t>(ld_from) * bytes,
                      static_cast<size_t>(rows) * bytes, columns, cudaMemcpyDeviceToHost, file, line)
             ? CUBLAS_STATUS_MAPPING_ERROR
             : CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetVector(int n, int bytes, const void* from, int step, void* to, int step_to, SIM_HERE) {
  return cublasSetMatrix(1, n, bytes, from, step, to, step_to, file, line);
}
inline cublasStatus_t cublasGetVector(int n, int bytes, const void* from, int step, void* to, int step_to, SIM_HERE) {
  return cublasGetMatrix(1, n, bytes, from, step, to, step_to, file, line);
}

// Functions of vectors and of whole matrices, by the type of the elements. `kind` names the function.
namespace simt_cuda {
enum class Vector { axpy, copy, swap, scale, dot, norm, absolutes, largest, smallest };
cublasStatus_t vector_function(cublasHandle_t handle, Vector kind, cudaDataType type, int n, const void* alpha,
                               const void* x, int step_x, void* y, int step_y, void* result, const char* file,
                               int line);
cublasStatus_t matrix_sum(cublasHandle_t handle, cudaDataType type, cublasOperation_t op_a, cublasOperation_t op_b,
                          int m, int n, const void* alpha, const void* a, int lda, const void* beta, const void* b,
                          int ldb, void* c, int ldc, const char* file, int line);
cublasStatus_t rank_one(cublasHandle_t handle, cudaDataType type, int m, int n, const void* alpha, const void* x,
                        int step_x, const void* y, int step_y, void* a, int lda, const char* file, int line);
cublasStatus_t scaled_by_vector(cublasHandle_t handle, cudaDataType type, bool left, int m, int n, const void* a,
                                int lda, const void* x, int step_x, void* c, int ldc, const char* file, int line);
}  // namespace simt_cuda
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                   int k, const void* alpha, const void* const a[], cudaDataType type_a, int lda,
                                   const void* const b[], cudaDataType type_b, int ldb, const void* beta,
                                   void* const c[], cudaDataType type_c, int ldc, int count,
                                   cublasComputeType_t compute, cublasGemmAlgo_t algorithm, SIM_HERE);
#define SIM_VECTORS(letter, T, type)                                                                                   \
  inline cublasStatus_t cublas##letter##axpy(cublasHandle_t h, int n, const T* alpha, const T* x, int step_x, T* y,    \
                                             int step_y, SIM_HERE) {                                                   \
    return simt_cuda::vector_function(h, simt_cuda::Vector::axpy, type, n, alpha, x, step_x, y, step_y, nullptr, file, \
                                      line);                                                                           \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##copy(cublasHandle_t h, int n, const T* x, int step_x, T* y, int step_y,        \
                                             SIM_HERE) {                                                               \
    return simt_cuda::vector_function(h, simt_cuda::Vector::copy, type, n, nullptr, x, step_x, y, step_y, nullptr,     \
                                      file, line);                                                                     \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##swap(cublasHandle_t h, int n, T* x, int step_x, T* y, int step_y, SIM_HERE) {  \
    return simt_cuda::vector_function(h, simt_cuda::Vector::swap, type, n, nullptr, x, step_x, y, step_y, nullptr,     \
                                      file, line);                                                                     \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##scal(cublasHandle_t h, int n, const T* alpha, T* x, int step_x, SIM_HERE) {    \
    return simt_cuda::vector_function(h, simt_cuda::Vector::scale, type, n, alpha, nullptr, 1, x, step_x, nullptr,     \
                                      file, line);                                                                     \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##dot(cublasHandle_t h, int n, const T* x, int step_x, const T* y, int step_y,   \
                                            T* result, SIM_HERE) {                                                     \
    return simt_cuda::vector_function(h, simt_cuda::Vector::dot, type, n, nullptr, x, step_x, const_cast<T*>(y),       \
                                      step_y, result, file, line);                                                     \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##nrm2(cublasHandle_t h, int n, const T* x, int step_x, T* result, SIM_HERE) {   \
    return simt_cuda::vector_function(h, simt_cuda::Vector::norm, type, n, nullptr, x, step_x, nullptr, 1, result,     \
                                      file, line);                                                                     \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##asum(cublasHandle_t h, int n, const T* x, int step_x, T* result, SIM_HERE) {   \
    return simt_cuda::vector_function(h, simt_cuda::Vector::absolutes, type, n, nullptr, x, step_x, nullptr, 1,        \
                                      result, file, line);                                                             \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##ger(cublasHandle_t h, int m, int n, const T* alpha, const T* x, int step_x,    \
                                            const T* y, int step_y, T* a, int lda, SIM_HERE) {                         \
    return simt_cuda::rank_one(h, type, m, n, alpha, x, step_x, y, step_y, a, lda, file, line);                        \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##geam(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m,  \
                                             int n, const T* alpha, const T* a, int lda, const T* beta, const T* b,    \
                                             int ldb, T* c, int ldc, SIM_HERE) {                                       \
    return simt_cuda::matrix_sum(h, type, op_a, op_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc, file, line);          \
  }                                                                                                                    \
  inline cublasStatus_t cublas##letter##dgmm(cublasHandle_t h, cublasSideMode_t side, int m, int n, const T* a,        \
                                             int lda, const T* x, int step_x, T* c, int ldc, SIM_HERE) {               \
    return simt_cuda::scaled_by_vector(h, type, side == CUBLAS_SIDE_LEFT, m, n, a, lda, x, step_x, c, ldc, file,       \
                                       line);                                                                          \
  }
SIM_VECTORS(S, float, CUDA_R_32F)
SIM_VECTORS(D, double, CUDA_R_64F)
#undef SIM_VECTORS
#define SIM_INDEX(letter, T, type)                                                                                     \
  inline cublasStatus_t cublasI##letter##amax(cublasHandle_t h, int n, const T* x, int step_x, int* result,            \
                                              SIM_HERE) {                                                              \
    return simt_cuda::vector_function(h, simt_cuda::Vector::largest, type, n, nullptr, x, step_x, nullptr, 1, result,  \
                                      file, line);                                                                     \
  }                                                                                                                    \
  inline cublasStatus_t cublasI##letter##amin(cublasHandle_t h, int n, const T* x, int step_x, int* result,            \
                                              SIM_HERE) {                                                              \
    return simt_cuda::vector_function(h, simt_cuda::Vector::smallest, type, n, nullptr, x, step_x, nullptr, 1, result, \
                                      file, line);                                                                     \
  }
SIM_INDEX(s, float, CUDA_R_32F)
SIM_INDEX(d, double, CUDA_R_64F)
#undef SIM_INDEX

#define SIM_GEMM(letter, T, type, compute)                                                                            \
  inline cublasStatus_t cublas##letter##gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,   \
                                             int m, int n, int k, const T* alpha, const T* a, int lda, const T* b,    \
                                             int ldb, const T* beta, T* c, int ldc, SIM_HERE) {                       \
    return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, a, type, lda, b, type, ldb, beta, c, type, ldc, compute,  \
                        CUBLAS_GEMM_DEFAULT, file, line);                                                             \
  }                                                                                                                   \
  inline cublasStatus_t cublas##letter##gemmStridedBatched(                                                           \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, const T* alpha,     \
      const T* a, int lda, long long stride_a, const T* b, int ldb, long long stride_b, const T* beta, T* c, int ldc, \
      long long stride_c, int count, SIM_HERE) {                                                                      \
    return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type, lda, stride_a, b, type, ldb,       \
                                      stride_b, beta, c, type, ldc, stride_c, count, compute, CUBLAS_GEMM_DEFAULT,    \
                                      file, line);                                                                    \
  }                                                                                                                   \
  inline cublasStatus_t cublas##letter##gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n,               \
                                             const T* alpha, const T* a, int lda, const T* x, int step_x,             \
                                             const T* beta, T* y, int step_y, SIM_HERE) {                             \
    const int rows = op == CUBLAS_OP_N ? m : n, columns = op == CUBLAS_OP_N ? n : m;                                  \
    return cublasGemmEx(handle, CUBLAS_OP_N, op == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N, 1, rows, columns, alpha,  \
                        x, type, step_x, a, type, lda, beta, y, type, step_y, compute, CUBLAS_GEMM_DEFAULT, file,     \
                        line);                                                                                        \
  }
#define SIM_BATCHED(letter, T, type, compute)                                                                          \
  inline cublasStatus_t cublas##letter##gemmBatched(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b,  \
                                                    int m, int n, int k, const T* alpha, const T* const a[], int lda,  \
                                                    const T* const b[], int ldb, const T* beta, T* const c[], int ldc, \
                                                    int count, SIM_HERE) {                                             \
    return cublasGemmBatchedEx(h, op_a, op_b, m, n, k, alpha, reinterpret_cast<const void* const*>(a), type, lda,      \
                               reinterpret_cast<const void* const*>(b), type, ldb, beta,                               \
                               reinterpret_cast<void* const*>(c), type, ldc, count, compute, CUBLAS_GEMM_DEFAULT,      \
                               file, line);                                                                            \
  }
SIM_BATCHED(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
SIM_BATCHED(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
SIM_BATCHED(H, __half, CUDA_R_16F, CUBLAS_COMPUTE_16F)
#undef SIM_BATCHED
inline cublasStatus_t cublasSgemmEx(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                    int k, const float* alpha, const void* a, cudaDataType type_a, int lda,
                                    const void* b, cudaDataType type_b, int ldb, const float* beta, void* c,
                                    cudaDataType type_c, int ldc, SIM_HERE) {
  return cublasGemmEx(h, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT, file, line);
}
SIM_GEMM(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
SIM_GEMM(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
SIM_GEMM(H, __half, CUDA_R_16F, CUBLAS_COMPUTE_16F)
#undef SIM_GEMM
/// @endcond
