#include "flops.h"

#include <string.h>

struct call {
    const struct tp_flops_input *inputs;
    size_t count;
};

/* Values. */

static bool read_number(const char **at, int64_t *ret)
{
    const char *c = *at;
    bool negative = *c == '-';
    uint64_t value = 0;
    c += negative;
    if (strncmp(c, "True", 4) == 0 || strncmp(c, "False", 5) == 0) {
        *ret = *c == 'T';
        *at = c + (*c == 'T' ? 4 : 5);
        return !negative;
    }
    if (*c < '0' || *c > '9')
        return false;
    for (; *c >= '0' && *c <= '9'; c++)
        value = value * 10 + (uint64_t)(*c - '0');
    *ret = (int64_t)(negative ? 0 - value : value);
    *at = c;
    return true;
}

void tp_flops_read_value(struct tp_flops_input *input, const char *text)
{
    int64_t number;
    input->value = TP_FLOPS_NO_VALUE;
    input->numbers = 0;
    if (*text != '[') {
        if (read_number(&text, &input->number[0]) && !*text)
            input->value = TP_FLOPS_SCALAR;
        return;
    }
    for (text++; *text != ']'; input->numbers++) {
        if (!read_number(&text, &number))
            return;
        if (input->numbers < TP_FLOPS_NUMBERS)
            input->number[input->numbers] = number;
        if (*text == ',')
            text += text[1] == ' ' ? 2 : 1;
        else if (*text != ']')
            return;
    }
    input->value = TP_FLOPS_LIST;
}

/* A list of so many numbers, or NULL. */
static const int64_t *list_of(const struct call *call, size_t input, uint32_t numbers)
{
    bool is_one = input < call->count && call->inputs[input].value == TP_FLOPS_LIST &&
                  call->inputs[input].numbers == numbers;
    return is_one ? call->inputs[input].number : NULL;
}

static bool read_scalar(const struct call *call, size_t input, int64_t *ret)
{
    if (input >= call->count || call->inputs[input].value != TP_FLOPS_SCALAR)
        return false;
    *ret = call->inputs[input].number[0];
    return true;
}

/* Tensors. */

static bool has_tensors(const struct call *call, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (i >= call->count || !call->inputs[i].tensor)
            return false;
    return true;
}

static bool has_shape(const struct call *call, size_t input, uint32_t dims)
{
    return has_tensors(call, input, 1) && call->inputs[input].dims == dims;
}

static uint64_t product(const struct tp_flops_input *input, uint32_t from)
{
    uint64_t product = 1;
    for (uint32_t i = from; i < input->dims && i < TP_FLOPS_DIMS; i++)
        product *= (uint64_t)input->dim[i];
    return product;
}

/* torch's formulas. */

static uint64_t matrices(const struct call *call, size_t left_at, bool batched)
{
    if (!has_tensors(call, 0, left_at + 2))
        return 0;
    const struct tp_flops_input *left = &call->inputs[left_at], *right = &call->inputs[left_at + 1];
    if (left->dims == 0 || left->dims > TP_FLOPS_DIMS)
        return 0;
    uint64_t inner = (uint64_t)left->dim[left->dims - 1], batch = batched ? (uint64_t)left->dim[0] : 1;
    if (inner == 0 || batch == 0)
        return 0;
    return (uint64_t)left->elements / inner / batch * (uint64_t)right->elements * 2;
}

static uint64_t of_mm(const struct call *call)
{
    return matrices(call, 0, false);
}

static uint64_t of_addmm(const struct call *call)
{
    return matrices(call, 1, false);
}

static uint64_t of_bmm(const struct call *call)
{
    return matrices(call, 0, true);
}

static uint64_t of_baddbmm(const struct call *call)
{
    return matrices(call, 1, true);
}

static uint64_t of_elements(const struct call *call)
{
    return has_tensors(call, 0, 1) ? (uint64_t)call->inputs[0].elements : 0;
}

/* Inputs of a convolution: input, weight, bias, stride, padding, dilation, groups. */
static uint64_t of_conv2d(const struct call *call)
{
    const int64_t *stride = list_of(call, 3, 2), *padding = list_of(call, 4, 2), *dilation = list_of(call, 5, 2);
    int64_t groups;
    if (!has_shape(call, 0, 4) || !has_shape(call, 1, 4) || !stride || !padding || !dilation ||
        !read_scalar(call, 6, &groups) || groups == 0 || stride[0] == 0 || stride[1] == 0)
        return 0;
    const int64_t *in = call->inputs[0].dim, *kernel = call->inputs[1].dim;
    uint64_t out = 1;
    for (int i = 0; i < 2; i++) {
        uint64_t reach = (uint64_t)dilation[i] * ((uint64_t)kernel[2 + i] - 1) + 1;
        out *= ((uint64_t)in[2 + i] + 2 * (uint64_t)padding[i] - reach) / (uint64_t)stride[i] + 1;
    }
    return 2 * (uint64_t)in[0] * out * product(&call->inputs[1], 2) * (uint64_t)in[1] * (uint64_t)kernel[0] /
           (uint64_t)groups;
}

/* Formulas of the flop counter. */

static uint64_t of_mv(const struct call *call)
{
    return has_shape(call, 0, 2) && has_shape(call, 1, 1) ? 2 * (uint64_t)call->inputs[0].elements : 0;
}

static uint64_t of_addmv(const struct call *call)
{
    return has_shape(call, 1, 2) && has_shape(call, 2, 1) ? 2 * (uint64_t)call->inputs[1].elements : 0;
}

/* Each element of the weight meets each place of the output. A padding that was given by name ("same") is not recorded:
 * then there is no telling. */
static uint64_t convolution(const struct call *call, uint32_t spatial)
{
    const int64_t *stride = list_of(call, 3, spatial), *padding = list_of(call, 4, spatial),
                  *dilation = list_of(call, 5, spatial);
    /* An input without a batch is one of a batch of one. */
    uint32_t lead = has_shape(call, 0, spatial + 1) ? 1 : 2;
    if (!has_shape(call, 0, spatial + lead) || !has_shape(call, 1, spatial + 2) || !stride || !padding || !dilation)
        return 0;
    const struct tp_flops_input *in = &call->inputs[0], *weight = &call->inputs[1];
    uint64_t places = 1;
    for (uint32_t i = 0; i < spatial; i++) {
        int64_t room = in->dim[lead + i] + 2 * padding[i] - dilation[i] * (weight->dim[2 + i] - 1) - 1;
        if (stride[i] <= 0 || room < 0)
            return 0;
        places *= (uint64_t)(room / stride[i] + 1);
    }
    return 2 * places * (lead == 2 ? (uint64_t)in->dim[0] : 1) * (uint64_t)weight->elements;
}

static uint64_t of_conv1d(const struct call *call)
{
    return convolution(call, 1);
}

static uint64_t of_conv3d(const struct call *call)
{
    return convolution(call, 3);
}

/* Each element of the weight meets each place of the input. */
static uint64_t transposed(const struct call *call, uint32_t spatial)
{
    uint32_t lead = has_shape(call, 0, spatial + 1) ? 1 : 2;
    if (!has_shape(call, 0, spatial + lead) || !has_shape(call, 1, spatial + 2))
        return 0;
    const struct tp_flops_input *in = &call->inputs[0];
    return 2 * (lead == 2 ? (uint64_t)in->dim[0] : 1) * product(in, lead) * (uint64_t)call->inputs[1].elements;
}

static uint64_t of_conv_transpose1d(const struct call *call)
{
    return transposed(call, 1);
}

static uint64_t of_conv_transpose2d(const struct call *call)
{
    return transposed(call, 2);
}

static uint64_t of_conv_transpose3d(const struct call *call)
{
    return transposed(call, 3);
}

/* Inputs: gradient of the output, input, weight, sizes of the bias, stride, padding, dilation, transposed, output
 * padding, groups, mask of what is wanted (gradients of input, weight, bias). */
static uint64_t of_convolution_backward(const struct call *call)
{
    int64_t is_transposed;
    const int64_t *mask = list_of(call, 10, 3);
    if (!has_tensors(call, 0, 3) || !read_scalar(call, 7, &is_transposed) || !mask)
        return 0;
    const struct tp_flops_input *out = &call->inputs[0], *in = &call->inputs[1], *weight = &call->inputs[2];
    if (out->dims < 3 || out->dims > TP_FLOPS_DIMS || in->dims != out->dims || weight->dims != out->dims)
        return 0;
    uint64_t flops = 0;
    if (mask[0])
        flops += product(is_transposed ? in : out, 2) * (uint64_t)out->dim[0] * (uint64_t)weight->elements * 2;
    if (mask[1])
        flops += product(is_transposed ? in : out, 2) * product(weight, 2) * (uint64_t)in->dim[0] *
                 (uint64_t)in->dim[1] * (uint64_t)out->dim[1] * 2;
    return flops;
}

/* Query, key and value: batch, heads, length, width. `terms_*`: how many products of matrices go over the width of the
 * query (and key), and over that of the value. */
static uint64_t attention(const struct call *call, size_t query_at, uint64_t terms_query, uint64_t terms_value)
{
    if (!has_shape(call, query_at, 4) || !has_shape(call, query_at + 1, 4) || !has_shape(call, query_at + 2, 4))
        return 0;
    const int64_t *query = call->inputs[query_at].dim, *key = call->inputs[query_at + 1].dim,
                  *value = call->inputs[query_at + 2].dim;
    uint64_t scores = (uint64_t)query[0] * (uint64_t)query[1] * (uint64_t)query[2] * (uint64_t)key[2];
    return 2 * scores * (terms_query * (uint64_t)query[3] + terms_value * (uint64_t)value[3]);
}

static uint64_t of_attention(const struct call *call)
{
    return attention(call, 0, 1, 1);
}

static uint64_t of_attention_backward(const struct call *call)
{
    return attention(call, 1, 3, 2);
}

static const struct {
    const char *name;
    enum tp_flops_formulas since;
    uint64_t (*flops)(const struct call *call);
} formulas_of[] = {
    {"aten::mm", TP_FLOPS_TORCH, of_mm},
    {"aten::addmm", TP_FLOPS_TORCH, of_addmm},
    {"aten::bmm", TP_FLOPS_TORCH, of_bmm},
    {"aten::baddbmm", TP_FLOPS_TORCH, of_baddbmm},
    {"aten::mul", TP_FLOPS_TORCH, of_elements},
    {"aten::add", TP_FLOPS_TORCH, of_elements},
    {"aten::conv2d", TP_FLOPS_TORCH, of_conv2d},
    {"aten::mv", TP_FLOPS_EXTENDED, of_mv},
    {"aten::addmv", TP_FLOPS_EXTENDED, of_addmv},
    {"aten::conv1d", TP_FLOPS_EXTENDED, of_conv1d},
    {"aten::conv3d", TP_FLOPS_EXTENDED, of_conv3d},
    {"aten::conv_transpose1d", TP_FLOPS_EXTENDED, of_conv_transpose1d},
    {"aten::conv_transpose2d", TP_FLOPS_EXTENDED, of_conv_transpose2d},
    {"aten::conv_transpose3d", TP_FLOPS_EXTENDED, of_conv_transpose3d},
    {"aten::convolution_backward", TP_FLOPS_EXTENDED, of_convolution_backward},
    {"aten::scaled_dot_product_attention", TP_FLOPS_EXTENDED, of_attention},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", TP_FLOPS_EXTENDED, of_attention_backward},
    {"aten::_scaled_dot_product_flash_attention_backward", TP_FLOPS_EXTENDED, of_attention_backward},
    {"aten::_scaled_dot_product_efficient_attention_backward", TP_FLOPS_EXTENDED, of_attention_backward},
    {"aten::_scaled_dot_product_cudnn_attention_backward", TP_FLOPS_EXTENDED, of_attention_backward},
};

static size_t find(const char *name, size_t bytes, enum tp_flops_formulas formulas)
{
    for (size_t i = 0; i < TP_COUNT(formulas_of); i++)
        if (formulas_of[i].since <= formulas && strlen(formulas_of[i].name) == bytes &&
            memcmp(formulas_of[i].name, name, bytes) == 0)
            return i;
    return TP_COUNT(formulas_of);
}

bool tp_flops_knows(const char *name, size_t bytes, enum tp_flops_formulas formulas)
{
    return find(name, bytes, formulas) < TP_COUNT(formulas_of);
}

uint64_t tp_flops(const char *name, size_t bytes, const struct tp_flops_input *inputs, size_t count,
                  enum tp_flops_formulas formulas)
{
    size_t at = find(name, bytes, formulas);
    return at < TP_COUNT(formulas_of) ? formulas_of[at].flops(&(struct call){inputs, count}) : 0;
}
