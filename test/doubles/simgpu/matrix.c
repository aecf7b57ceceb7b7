#include "matrix.h"

#include <stdlib.h>
#include <string.h>

static float of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 0)
        return (sign ? -1.0F : 1.0F) * (float)fraction / 16777216.0F;
    return of_bits(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

static uint16_t half_of(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (size >= 0x47800000)
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) /* too small for a normal one */
        return (uint16_t)(sign | (bits_of(of_bits(size) + 0.5F) - bits_of(0.5F)));
    uint32_t rounded = size + 0xfff + (size >> 13 & 1); /* ties to even */
    return (uint16_t)(sign | (rounded - (UINT32_C(112) << 23)) >> 13);
}

static uint16_t bfloat_of(float value)
{
    uint32_t bits = bits_of(value);
    return (uint16_t)(value != value ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

bool sim_matrix_known(cudaDataType type)
{
    return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

static double element(const void *data, cudaDataType type, int64_t at)
{
    switch (type) {
    case CUDA_R_64F:
        return ((const double *)data)[at];
    case CUDA_R_16F:
        return of_half(((const uint16_t *)data)[at]);
    case CUDA_R_16BF:
        return of_bits((uint32_t)((const uint16_t *)data)[at] << 16);
    default:
        return ((const float *)data)[at];
    }
}

static void set_element(void *data, cudaDataType type, int64_t at, double value)
{
    switch (type) {
    case CUDA_R_64F:
        ((double *)data)[at] = value;
        break;
    case CUDA_R_16F:
        ((uint16_t *)data)[at] = half_of((float)value);
        break;
    case CUDA_R_16BF:
        ((uint16_t *)data)[at] = bfloat_of((float)value);
        break;
    default:
        ((float *)data)[at] = (float)value;
    }
}

double sim_scalar(const void *scalar, cudaDataType type)
{
    return element(scalar, type, 0);
}

/* Of the matrix as it is meant: transposed if it is. */
static double at(const struct sim_matrix *matrix, int nth, int64_t row, int64_t column)
{
    int64_t place = matrix->transposed ? column + row * matrix->pitch : row + column * matrix->pitch;
    return element(matrix->data, matrix->type, nth * matrix->stride + place);
}

void sim_product(void *product)
{
    const struct sim_product *p = product;
    const struct sim_matrix *a = &p->a, *result = &p->result;
    int64_t rows = result->rows, columns = result->columns, inner = a->transposed ? a->rows : a->columns;
    double *left = malloc((size_t)(rows * inner + 1) * sizeof *left), *sums = malloc((size_t)(rows + 1) * sizeof *sums);
    if (!left || !sums)
        abort();
    for (int nth = 0; nth < p->batch; nth++) {
        for (int64_t i = 0; i < inner; i++)
            for (int64_t row = 0; row < rows; row++)
                left[i * rows + row] = at(a, nth, row, i);
        for (int64_t column = 0; column < columns; column++) {
            memset(sums, 0, (size_t)rows * sizeof *sums);
            for (int64_t i = 0; i < inner; i++) {
                double factor = at(&p->b, nth, i, column);
                for (int64_t row = 0; row < rows; row++)
                    sums[row] += left[i * rows + row] * factor;
            }
            for (int64_t row = 0; row < rows; row++) {
                double value = p->alpha * sums[row];
                if (p->beta != 0)
                    value += p->beta * at(&p->c, nth, row, column);
                if (p->epilogue & SIM_BIAS)
                    value += element(p->bias, p->bias_type, row);
                if (p->epilogue & SIM_RELU && value < 0)
                    value = 0;
                set_element(result->data, result->type, nth * result->stride + row + column * result->pitch, value);
            }
        }
    }
    free(left);
    free(sums);
}
