/* cuBLASLt: one algorithm, which computes products of real matrices, with a bias and ReLU where they are asked for. */
#include "library.h"
#include "matrix.h"
#include "sim_cublasLt.h"

#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES = 64 };

/* Attributes by number; those that are wider than this are not simulated. */
struct attributes {
    uint64_t values[ATTRIBUTES];
};

static cublasStatus_t set(void *of, unsigned attribute, const void *value, size_t bytes)
{
    struct attributes *attributes = of;
    if (attribute >= ATTRIBUTES || bytes > sizeof *attributes->values)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    attributes->values[attribute] = 0;
    memcpy(&attributes->values[attribute], value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static uint64_t get(const void *of, unsigned attribute)
{
    return ((const struct attributes *)of)->values[attribute];
}

static cublasStatus_t make(void *to)
{
    struct attributes *attributes = calloc(1, sizeof *attributes);
    memcpy(to, &attributes, sizeof attributes);
    return attributes ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

static cublasStatus_t end(void *of)
{
    free(of);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t sim_cublasLtCreate(cublasLtHandle_t *handle)
{
    return make(handle);
}

cublasStatus_t sim_cublasLtDestroy(cublasLtHandle_t handle)
{
    return end(handle);
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

cublasStatus_t sim_cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *description, cublasComputeType_t compute, cudaDataType_t scale)
{
    cublasStatus_t status = make(description);
    if (status == CUBLAS_STATUS_SUCCESS) {
        set(*description, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &compute, sizeof compute);
        set(*description, CUBLASLT_MATMUL_DESC_SCALE_TYPE, &scale, sizeof scale);
    }
    return status;
}

cublasStatus_t sim_cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description)
{
    return end(description);
}

cublasStatus_t sim_cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
                                                  const void *value, size_t bytes)
{
    return set(description, attribute, value, bytes);
}

cublasStatus_t sim_cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t columns,
                                              int64_t pitch)
{
    cublasStatus_t status = make(layout);
    if (status == CUBLAS_STATUS_SUCCESS) {
        const int32_t batch = 1;
        set(*layout, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type);
        set(*layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows);
        set(*layout, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns);
        set(*layout, CUBLASLT_MATRIX_LAYOUT_LD, &pitch, sizeof pitch);
        set(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    }
    return status;
}

cublasStatus_t sim_cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return end(layout);
}

cublasStatus_t sim_cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                                                    const void *value, size_t bytes)
{
    return set(layout, attribute, value, bytes);
}

cublasStatus_t sim_cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    return make(preference);
}

cublasStatus_t sim_cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return end(preference);
}

cublasStatus_t sim_cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                        cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                        size_t bytes)
{
    return set(preference, attribute, value, bytes);
}

cublasStatus_t sim_cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                                  cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                                  cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int asked,
                                                  cublasLtMatmulHeuristicResult_t results[], int *found)
{
    (void)handle, (void)description, (void)a, (void)b, (void)c, (void)d, (void)preference;
    *found = asked > 0;
    if (*found)
        results[0] = (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1};
    return CUBLAS_STATUS_SUCCESS;
}

static struct sim_matrix matrix(const void *data, cublasLtMatrixLayout_t layout, bool transposed)
{
    return (struct sim_matrix){
        .data = (void *)(uintptr_t)data,
        .type = (cudaDataType)get(layout, CUBLASLT_MATRIX_LAYOUT_TYPE),
        .rows = (int64_t)get(layout, CUBLASLT_MATRIX_LAYOUT_ROWS),
        .columns = (int64_t)get(layout, CUBLASLT_MATRIX_LAYOUT_COLS),
        .pitch = (int64_t)get(layout, CUBLASLT_MATRIX_LAYOUT_LD),
        .stride = (int64_t)get(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET),
        .transposed = transposed,
    };
}

cublasStatus_t sim_cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void *alpha, const void *a,
                                  cublasLtMatrixLayout_t of_a, const void *b, cublasLtMatrixLayout_t of_b, const void *beta,
                                  const void *c, cublasLtMatrixLayout_t of_c, void *d, cublasLtMatrixLayout_t of_d,
                                  const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t stream)
{
    (void)handle, (void)algo, (void)workspace, (void)bytes;
    uint64_t epilogue = get(description, CUBLASLT_MATMUL_DESC_EPILOGUE);
    cudaDataType scale = (cudaDataType)get(description, CUBLASLT_MATMUL_DESC_SCALE_TYPE);
    cudaDataType bias_type = (cudaDataType)get(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
    struct sim_product product = {
        .alpha = sim_scalar(alpha, scale),
        .a = matrix(a, of_a, get(description, CUBLASLT_MATMUL_DESC_TRANSA) != CUBLAS_OP_N),
        .b = matrix(b, of_b, get(description, CUBLASLT_MATMUL_DESC_TRANSB) != CUBLAS_OP_N),
        .beta = sim_scalar(beta, scale),
        .c = matrix(c, of_c, false),
        .result = matrix(d, of_d, false),
        .batch = (int)get(of_d, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT),
        .epilogue = (unsigned)epilogue,
        .bias = (const void *)get(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER),
    };
    product.bias_type = bias_type ? bias_type : product.result.type; /* of no type: that of the result */
    uint64_t known = CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU_BIAS;
    if (epilogue & ~known || !sim_matrix_known(product.a.type) || !sim_matrix_known(product.b.type) ||
        !sim_matrix_known(product.c.type) || !sim_matrix_known(product.result.type))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    int error = sim_library_compute(stream, "simgpu_lt_gemm_128x128_tn", 108, 384, sim_product, &product, sizeof product);
    return error ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
