/*
 * flops.h: floating point operations of one call of an operator, from what its inputs were: torch's own formulas and,
 * if they are asked for, those of torch.utils.flop_counter for more operators.
 * (Sources: torch/csrc/profiler/util.cpp of PyTorch 2.13, saveExtraArgs and computeFlops; torch/utils/flop_counter.py.)
 *
 * torch's: aten::mm, addmm, bmm and baddbmm count a multiplication and an addition for each term; conv2d too; mul and
 * add count one for each element of the first input. Nothing else.
 * Extended: aten::conv1d, conv3d, conv_transpose1d, 2d, 3d and convolution_backward; scaled_dot_product_attention and
 * the backward kernels of it; mv and addmv.
 *
 * Arithmetic wraps at 64 bits, as torch's.
 */
#ifndef TP_FLOPS_H
#define TP_FLOPS_H

#include "../agent/base.h"

#define TP_FLOPS_INPUTS 16 /* inputs that are looked at; the formulas need eleven */
#define TP_FLOPS_DIMS 8    /* dimensions of one that are kept; more of them fit no formula but mul's and add's */
#define TP_FLOPS_NUMBERS 3 /* of a list that are kept; the formulas know no longer one */

enum tp_flops_formulas { TP_FLOPS_NONE, TP_FLOPS_TORCH, TP_FLOPS_EXTENDED };

/* What is known of an input besides its shape; only whole numbers count. */
enum tp_flops_value { TP_FLOPS_NO_VALUE, TP_FLOPS_SCALAR, TP_FLOPS_LIST };

struct tp_flops_input {
    bool tensor;
    uint32_t dims;               /* how many it has; the first ones are in dim */
    int64_t dim[TP_FLOPS_DIMS];
    int64_t elements;            /* of a tensor: the product of all of them */
    enum tp_flops_value value;
    uint32_t numbers;            /* how many a list has; the first ones, or the scalar, are in number */
    int64_t number[TP_FLOPS_NUMBERS];
};

/* Reads a value's text, as in "Concrete Inputs": "1", "True", "[1, 1]". */
void tp_flops_read_value(struct tp_flops_input *input, const char *text);

/* Is there a formula for an operator of this name? */
bool tp_flops_knows(const char *name, size_t bytes, enum tp_flops_formulas formulas);

/* 0: there is none, or the inputs are not as it needs them. */
uint64_t tp_flops(const char *name, size_t bytes, const struct tp_flops_input *inputs, size_t count,
                  enum tp_flops_formulas formulas);

#endif
