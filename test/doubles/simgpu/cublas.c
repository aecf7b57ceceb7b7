/* cuBLAS: products of real matrices are computed. */
#include "library.h"
#include "matrix.h"
#include "sim_cublas.h"

#include <stdlib.h>

struct handle {
    struct sim_handle base;
    cublasPointerMode_t pointer_mode;
    cublasMath_t math_mode;
};

enum { TILE = 128, THREADS = 256 };

static struct handle *of(cublasHandle_t handle)
{
    return (struct handle *)handle;
}

cublasStatus_t sim_cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = calloc(1, sizeof(struct handle));
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t sim_cublasDestroy_v2(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim_cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    (void)handle;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim_cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    of(handle)->base.stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim_cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
    *stream = (cudaStream_t)(uintptr_t)of(handle)->base.stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim_cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    (void)handle, (void)workspace, (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim_cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
    of(handle)->pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim_cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode)
{
    *mode = of(handle)->pointer_mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim_cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    of(handle)->math_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim_cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
    *mode = of(handle)->math_mode;
    return CUBLAS_STATUS_SUCCESS;
}

static struct sim_matrix matrix(const void *data, cudaDataType type, cublasOperation_t operation, int64_t rows, int64_t columns,
                                int64_t pitch, int64_t stride)
{
    bool transposed = operation != CUBLAS_OP_N;
    return (struct sim_matrix){.data = (void *)(uintptr_t)data, .type = type, .transposed = transposed, .pitch = pitch, .stride = stride,
                               .rows = transposed ? columns : rows, .columns = transposed ? rows : columns};
}

cublasStatus_t sim_cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                                              int k, const void *alpha, const void *a, cudaDataType a_type, int a_pitch,
                                              long long a_stride, const void *b, cudaDataType b_type, int b_pitch,
                                              long long b_stride, const void *beta, void *c, cudaDataType c_type, int c_pitch,
                                              long long c_stride, int batch, cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    (void)algo;
    if (!sim_matrix_known(a_type) || !sim_matrix_known(b_type) || !sim_matrix_known(c_type))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    cudaDataType scalars = compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : compute == CUBLAS_COMPUTE_16F ? CUDA_R_16F : CUDA_R_32F;
    struct sim_product product = {
        .alpha = sim_scalar(alpha, scalars),
        .a = matrix(a, a_type, of_a, m, k, a_pitch, a_stride),
        .b = matrix(b, b_type, of_b, k, n, b_pitch, b_stride),
        .beta = sim_scalar(beta, scalars),
        .c = matrix(c, c_type, CUBLAS_OP_N, m, n, c_pitch, c_stride),
        .result = matrix(c, c_type, CUBLAS_OP_N, m, n, c_pitch, c_stride),
        .batch = batch,
    };
    uint32_t blocks = (uint32_t)((m + TILE - 1) / TILE * ((n + TILE - 1) / TILE) * batch);
    int error = sim_library_compute(of(handle)->base.stream, "void simgpu::gemm<128, 128>(simgpu::Arguments)", blocks, THREADS,
                                    sim_product, &product, sizeof product);
    return error ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim_cublasGemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k,
                                const void *alpha, const void *a, cudaDataType a_type, int a_pitch, const void *b,
                                cudaDataType b_type, int b_pitch, const void *beta, void *c, cudaDataType c_type, int c_pitch,
                                cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    return sim_cublasGemmStridedBatchedEx(handle, of_a, of_b, m, n, k, alpha, a, a_type, a_pitch, 0, b, b_type, b_pitch, 0, beta, c,
                                          c_type, c_pitch, 0, 1, compute, algo);
}

/* The same with the types in the name. */
#define GEMM(letter, number, type, compute) \
    cublasStatus_t sim_cublas##letter##gemm_v2(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, \
                                               int k, const number *alpha, const number *a, int a_pitch, const number *b, \
                                               int b_pitch, const number *beta, number *c, int c_pitch) \
    { \
        return sim_cublasGemmEx(handle, of_a, of_b, m, n, k, alpha, a, type, a_pitch, b, type, b_pitch, beta, c, type, c_pitch, \
                                compute, CUBLAS_GEMM_DEFAULT); \
    } \
    cublasStatus_t sim_cublas##letter##gemmStridedBatched( \
        cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k, const number *alpha, \
        const number *a, int a_pitch, long long a_stride, const number *b, int b_pitch, long long b_stride, const number *beta, \
        number *c, int c_pitch, long long c_stride, int batch) \
    { \
        return sim_cublasGemmStridedBatchedEx(handle, of_a, of_b, m, n, k, alpha, a, type, a_pitch, a_stride, b, type, b_pitch, \
                                              b_stride, beta, c, type, c_pitch, c_stride, batch, compute, CUBLAS_GEMM_DEFAULT); \
    } \
    /* A vector is a matrix of one row, whose pitch is the way to its next element. */ \
    cublasStatus_t sim_cublas##letter##gemv_v2(cublasHandle_t handle, cublasOperation_t of_a, int m, int n, const number *alpha, \
                                               const number *a, int a_pitch, const number *x, int x_step, const number *beta, \
                                               number *y, int y_step) \
    { \
        bool turned = of_a != CUBLAS_OP_N; \
        return sim_cublasGemmEx(handle, CUBLAS_OP_N, turned ? CUBLAS_OP_N : CUBLAS_OP_T, 1, turned ? n : m, turned ? m : n, alpha, \
                                x, type, x_step, a, type, a_pitch, beta, y, type, y_step, compute, CUBLAS_GEMM_DEFAULT); \
    } \
    cublasStatus_t sim_cublas##letter##dot_v2(cublasHandle_t handle, int n, const number *x, int x_step, const number *y, \
                                              int y_step, number *result) \
    { \
        const number one = 1, none = 0; \
        return sim_cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 1, 1, n, &one, x, type, x_step, y, type, y_step, &none, result, \
                                type, 1, compute, CUBLAS_GEMM_DEFAULT); \
    }
GEMM(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
GEMM(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
