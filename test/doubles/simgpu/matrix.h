/* matrix.h: products of matrices that lie column after column. */
#pragma once

#include <library_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_matrix {
    void *data;
    cudaDataType type;
    int64_t rows, columns, pitch; /* as it lies in memory */
    bool transposed;
    int64_t stride;               /* to the next one of a batch */
};

enum sim_epilogue { SIM_RELU = 2, SIM_BIAS = 4 }; /* the bits of cublasLtEpilogue_t */

bool sim_matrix_known(cudaDataType type);
double sim_scalar(const void *scalar, cudaDataType type);
/* result = alpha * a * b + beta * c, each of `batch`; bias has an element for each row of the result. */
struct sim_product {
    double alpha, beta;
    struct sim_matrix a, b, c, result;
    int batch;
    unsigned epilogue;
    cudaDataType bias_type;
    const void *bias;
};
void sim_product(void *product);
