/* Names of element types: caffe2::TypeMeta::name() of PyTorch 2.13 and 2.14, in the order of c10::ScalarType. */
#include "inputs.h"

#include <string.h>

#include "put.h"

static const char *const type_names[] = {
    "unsigned char",
    "signed char",
    "short int",
    "int",
    "long int",
    "c10::Half",
    "float",
    "double",
    "c10::complex<c10::Half>",
    "c10::complex<float>",
    "c10::complex<double>",
    "bool",
    "c10::qint8",
    "c10::quint8",
    "c10::qint32",
    "c10::BFloat16",
    "c10::quint4x2",
    "c10::quint2x4",
    "c10::bits1x8",
    "c10::bits2x4",
    "c10::bits4x2",
    "c10::bits8",
    "c10::bits16",
    "c10::Float8_e5m2",
    "c10::Float8_e4m3fn",
    "c10::Float8_e5m2fnuz",
    "c10::Float8_e4m3fnuz",
    "short unsigned int",
    "unsigned int",
    "long unsigned int",
    "c10::dummy_uint1_7_t<1>",
    "c10::dummy_uint1_7_t<2>",
    "c10::dummy_uint1_7_t<3>",
    "c10::dummy_uint1_7_t<4>",
    "c10::dummy_uint1_7_t<5>",
    "c10::dummy_uint1_7_t<6>",
    "c10::dummy_uint1_7_t<7>",
    "c10::dummy_int1_7_t<1>",
    "c10::dummy_int1_7_t<2>",
    "c10::dummy_int1_7_t<3>",
    "c10::dummy_int1_7_t<4>",
    "c10::dummy_int1_7_t<5>",
    "c10::dummy_int1_7_t<6>",
    "c10::dummy_int1_7_t<7>",
    "c10::Float8_e8m0fnu",
    "c10::Float4_e2m1fn_x2",
    "c10::complex<c10::BFloat16>",
};

const char *tp_input_type_name(unsigned type)
{
    return type < TP_COUNT(type_names) ? type_names[type] : "";
}

static size_t words_of(size_t numbers, unsigned flags)
{
    return flags & TP_INPUT_WIDE ? numbers : (numbers + 1) / 2;
}

static bool has_strides(const struct tp_input *input)
{
    return !(input->flags & (TP_INPUT_UNSTRIDED | TP_INPUT_CONTIGUOUS));
}

size_t tp_input_shape_words(const struct tp_input *tensor)
{
    return words_of(tensor->dimensions, tensor->flags) * (has_strides(tensor) ? 2 : 1);
}

/* Words behind the first one, without a list's elements. */
static size_t tail_of(const struct tp_input *input)
{
    switch (input->kind) {
    case TP_INPUT_TENSOR:
        return tp_input_shape_words(input);
    case TP_INPUT_INT:
        return input->flags & TP_INPUT_WIDE ? 1 : 0;
    case TP_INPUT_DOUBLE:
        return 1;
    case TP_INPUT_COMPLEX:
        return 2;
    default:
        return 0;
    }
}

bool tp_input_next(struct tp_input_cursor *cursor, struct tp_input *ret)
{
    if (cursor->at >= cursor->end)
        return false;
    uint64_t word = *cursor->at;
    *ret = (struct tp_input){
        .kind = (uint8_t)word,
        .type = (uint8_t)(word >> 8),
        .dimensions = (uint8_t)(word >> 16),
        .flags = (uint8_t)(word >> 24),
        .count = (uint32_t)(word >> 32),
        .words = cursor->at + 1,
        .integer = (int32_t)(word >> 32),
    };
    size_t tail = tail_of(ret);
    if (ret->kind == TP_INPUT_NONE || ret->kind >= TP_INPUT_KINDS || tail >= (size_t)(cursor->end - cursor->at))
        return false;
    if (ret->kind == TP_INPUT_INT && tail)
        ret->integer = (int64_t)ret->words[0];
    cursor->at += 1 + tail;
    return true;
}

static void get_numbers(const struct tp_input *input, const uint64_t *words, int64_t *ret)
{
    for (size_t i = 0; i < input->dimensions; i++)
        ret[i] = input->flags & TP_INPUT_WIDE ? (int64_t)words[i] : (uint32_t)(words[i / 2] >> i % 2 * 32);
}

size_t tp_input_sizes(const struct tp_input *input, int64_t *ret)
{
    get_numbers(input, input->words, ret);
    return input->dimensions;
}

size_t tp_input_strides(const struct tp_input *input, int64_t *ret)
{
    if (input->flags & TP_INPUT_UNSTRIDED)
        return 0;
    if (has_strides(input)) {
        get_numbers(input, input->words + words_of(input->dimensions, input->flags), ret);
        return input->dimensions;
    }
    get_numbers(input, input->words, ret);
    uint64_t stride = 1;
    for (size_t i = input->dimensions; i-- > 0;) {
        uint64_t size = (uint64_t)ret[i];
        ret[i] = (int64_t)stride;
        stride *= size > 1 ? size : 1;
    }
    return input->dimensions;
}

double tp_input_double(const struct tp_input *input, unsigned part)
{
    double value;
    memcpy(&value, &input->words[part], sizeof value);
    return value;
}

static bool is_number(const struct tp_input *input)
{
    return input->kind == TP_INPUT_INT || input->kind == TP_INPUT_DOUBLE || input->kind == TP_INPUT_COMPLEX ||
           input->kind == TP_INPUT_BOOL || input->kind == TP_INPUT_SYMBOL;
}

bool tp_inputs_sound(const uint64_t *words, size_t word_count, size_t count)
{
    struct tp_input_cursor cursor = {words, words + word_count};
    struct tp_input input, element;
    size_t items = 0;
    for (; tp_input_next(&cursor, &input); items++) {
        uint32_t elements = tp_input_elements(&input);
        if (elements > TP_INPUT_LIST_MAX)
            return false;
        for (; elements > 0; elements--)
            if (!tp_input_next(&cursor, &element) ||
                !(input.kind == TP_INPUT_TENSORS ? element.kind == TP_INPUT_TENSOR
                                                 : is_number(&element) || element.kind == TP_INPUT_OTHER))
                return false;
    }
    return cursor.at == cursor.end && items <= count;
}

/* Two numbers of up to 20 digits in a word, each with ", "; an input that is cut or shown as nothing. */
_Static_assert(44 * TP_INPUTS_ITEMS_MAX + 4 * TP_INPUTS_COUNT_MAX + 2 <= TP_INPUTS_SHAPES, "shapes of any record");

size_t tp_inputs_shapes(const uint64_t *words, size_t word_count, size_t count, char *ret)
{
    struct tp_input_cursor cursor = {words, words + word_count};
    int64_t sizes[TP_INPUT_DIMENSIONS_MAX];
    char *out = TP_PUT(ret, "[");
    for (size_t i = 0; i < count; i++) {
        struct tp_input input, element;
        size_t dimensions = 0;
        if (tp_input_next(&cursor, &input)) {
            for (uint32_t k = 0; k < tp_input_elements(&input); k++)
                tp_input_next(&cursor, &element);
            dimensions = input.kind == TP_INPUT_TENSOR ? tp_input_sizes(&input, sizes) : 0;
        }
        out = i > 0 ? TP_PUT(out, ", [") : TP_PUT(out, "[");
        for (size_t k = 0; k < dimensions; k++) {
            if (k > 0)
                out = TP_PUT(out, ", ");
            if (sizes[k] < 0)
                *out++ = '-';
            out = tp_put_u64(out, sizes[k] < 0 ? 0 - (uint64_t)sizes[k] : (uint64_t)sizes[k]);
        }
        *out++ = ']';
    }
    *out++ = ']';
    return (size_t)(out - ret);
}
