/*
 * Facts: torch/csrc/profiler/util.cpp (variantShapesToStr, ivalueListToStr), torch/csrc/autograd/profiler_kineto.cpp
 * (parseArgData), ATen/core/ivalue.cpp (how numbers are printed), and files made with PyTorch 2.13.0.
 *
 * Where ours differ: the value of a number that PyTorch does not know yet (a symbol) is empty; torch asks Python for its
 * name.
 */
#include "chrome_inputs.h"

#include <math.h>
#include <stdio.h>

#include "inputs.h"
#include "put.h"

#define NUMBER_ROOM 32
/* What an item needs at least, and for each word: two numbers of up to 20 digits, each with a comma. */
#define ITEM_ROOM 64
#define WORD_ROOM 44

typedef char *put_item(char *out, const struct tp_input *input, struct tp_input_cursor *elements);
_Static_assert(ITEM_ROOM + WORD_ROOM * TP_INPUTS_ITEMS_MAX <= 64 * 1024, "what a sink can reserve");

typedef size_t numbers_of(const struct tp_input *input, int64_t *ret);

/* Each input through put, in an array; those that were cut as what is not shown. */
static void write_array(struct tp_sink *sink, const char *key, const struct tp_event *event, put_item *put)
{
    struct tp_input_cursor cursor = {event->inputs, event->inputs + event->input_words};
    char *begin = tp_sink_reserve(sink, NUMBER_ROOM), *out = tp_put_text(begin, key, strlen(key));
    tp_sink_advance(sink, (size_t)(out - begin));
    for (unsigned i = 0; i < event->input_count; i++) {
        struct tp_input input;
        if (!tp_input_next(&cursor, &input))
            input = (struct tp_input){.kind = TP_INPUT_OTHER};
        begin = tp_sink_reserve(sink, ITEM_ROOM + WORD_ROOM * (size_t)event->input_words);
        out = put(i > 0 ? TP_PUT(begin, ",") : begin, &input, &cursor);
        tp_sink_advance(sink, (size_t)(out - begin));
    }
    tp_sink_put(sink, "]", 1);
}

static char *put_i64(char *out, int64_t value)
{
    if (value < 0)
        *out++ = '-';
    return tp_put_u64(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static char *put_numbers(char *out, const struct tp_input *tensor, numbers_of *of)
{
    int64_t numbers[TP_INPUT_DIMENSIONS_MAX];
    size_t count = of(tensor, numbers);
    *out++ = '[';
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            *out++ = ',';
        out = put_i64(out, numbers[i]);
    }
    *out++ = ']';
    return out;
}

static char *put_shape(char *out, const struct tp_input *input, struct tp_input_cursor *elements, numbers_of *of)
{
    if (input->kind == TP_INPUT_TENSOR)
        return put_numbers(out, input, of);
    *out++ = '[';
    struct tp_input element;
    for (uint32_t i = 0; i < tp_input_elements(input) && tp_input_next(elements, &element); i++) {
        if (input->kind != TP_INPUT_TENSORS)
            continue;
        if (i > 0)
            *out++ = ',';
        out = put_numbers(out, &element, of);
    }
    *out++ = ']';
    return out;
}

static char *put_sizes(char *out, const struct tp_input *input, struct tp_input_cursor *elements)
{
    return put_shape(out, input, elements, tp_input_sizes);
}

static char *put_strides(char *out, const struct tp_input *input, struct tp_input_cursor *elements)
{
    return put_shape(out, input, elements, tp_input_strides);
}

static const char *type_of(const struct tp_input *input)
{
    static const char *const types[TP_INPUT_KINDS] = {
        [TP_INPUT_INT] = "Scalar",    [TP_INPUT_DOUBLE] = "Scalar",      [TP_INPUT_COMPLEX] = "Scalar",
        [TP_INPUT_BOOL] = "Scalar",   [TP_INPUT_SYMBOL] = "Scalar",      [TP_INPUT_TENSORS] = "TensorList",
        [TP_INPUT_SCALARS] = "ScalarList",
    };
    if (input->kind == TP_INPUT_TENSOR)
        return tp_input_type_name(input->type);
    return types[input->kind] ? types[input->kind] : "";
}

static void skip(const struct tp_input *input, struct tp_input_cursor *elements)
{
    struct tp_input element;
    for (uint32_t i = 0; i < tp_input_elements(input); i++)
        tp_input_next(elements, &element);
}

static char *put_type(char *out, const struct tp_input *input, struct tp_input_cursor *elements)
{
    const char *type = type_of(input);
    skip(input, elements);
    *out++ = '"';
    out = tp_put_text(out, type, strlen(type));
    *out++ = '"';
    return out;
}

/* As PyTorch prints it: a whole number that 64 bits hold with a point behind it, zero without a sign; else 17 digits. */
static char *put_double(char *out, double value)
{
    bool whole = fabs(value) < 0x1p63 && value == (double)(int64_t)value;
    if (!whole)
        return out + snprintf(out, NUMBER_ROOM, "%.17g", value);
    out = put_i64(out, (int64_t)value);
    *out++ = '.';
    return out;
}

static char *put_number(char *out, const struct tp_input *input)
{
    switch (input->kind) {
    case TP_INPUT_INT:
        return put_i64(out, input->integer);
    case TP_INPUT_DOUBLE:
        return put_double(out, tp_input_double(input, 0));
    case TP_INPUT_COMPLEX:
        out = put_double(out, tp_input_double(input, 0));
        *out++ = tp_input_double(input, 1) >= 0 ? '+' : '-';
        out = put_double(out, fabs(tp_input_double(input, 1)));
        *out++ = 'j';
        return out;
    case TP_INPUT_BOOL:
        return input->integer ? TP_PUT(out, "True") : TP_PUT(out, "False");
    default:
        return out;
    }
}

static char *put_list(char *out, const struct tp_input *list, struct tp_input_cursor *elements)
{
    char *begin = out;
    bool symbols = false;
    struct tp_input element;
    *out++ = '[';
    for (uint32_t i = 0; i < tp_input_elements(list) && tp_input_next(elements, &element); i++) {
        if (i > 0)
            out = TP_PUT(out, ", ");
        symbols |= element.kind == TP_INPUT_SYMBOL;
        out = put_number(out, &element);
    }
    *out++ = ']';
    return symbols ? begin : out;
}

static char *put_value(char *out, const struct tp_input *input, struct tp_input_cursor *elements)
{
    *out++ = '"';
    if (input->kind == TP_INPUT_SCALARS)
        out = put_list(out, input, elements);
    else
        out = put_number(out, input);
    if (input->kind == TP_INPUT_TENSORS)
        skip(input, elements);
    *out++ = '"';
    return out;
}

void tp_chrome_write_inputs(struct tp_sink *sink, const struct tp_event *event)
{
    write_array(sink, ",\"Concrete Inputs\":[", event, put_value);
    write_array(sink, ",\"Input type\":[", event, put_type);
    write_array(sink, ",\"Input Strides\":[", event, put_strides);
    write_array(sink, ",\"Input Dims\":[", event, put_sizes);
}
