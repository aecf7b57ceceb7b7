/*
 * inputs.h: what an operator was given, item by item, as record.h describes it. Records may come from a damaged file: a
 * cursor never leaves its words, and stops where they make no sense.
 */
#ifndef TP_INPUTS_H
#define TP_INPUTS_H

#include "../agent/base.h"
#include "../agent/record.h"

struct tp_input_cursor {
    const uint64_t *at, *end;
};

#define TP_INPUT_DIMENSIONS_MAX 255

struct tp_input {
    uint8_t kind;  /* enum tp_input_kind */
    uint8_t type;  /* of a tensor's elements, as c10::ScalarType counts them */
    uint8_t flags; /* enum tp_input_flag */
    uint8_t dimensions;
    uint32_t count; /* of a list; of a long one no elements follow */
    const uint64_t *words;
    int64_t integer; /* of an int, of a bool */
};

/* The next item. Behind a list its elements are the next ones. False: there is none. */
bool tp_input_next(struct tp_input_cursor *cursor, struct tp_input *ret);

/* How many elements of a list follow. */
static inline uint32_t tp_input_elements(const struct tp_input *input)
{
    bool list = input->kind == TP_INPUT_TENSORS || input->kind == TP_INPUT_SCALARS;
    return list && !(input->flags & TP_INPUT_LONG) ? input->count : 0;
}

/* Words of a tensor's sizes and strides. */
size_t tp_input_shape_words(const struct tp_input *tensor);

/* Of a tensor; room for TP_INPUT_DIMENSIONS_MAX. How many there are: no strides where the layout has none. */
size_t tp_input_sizes(const struct tp_input *input, int64_t *ret);
size_t tp_input_strides(const struct tp_input *input, int64_t *ret);

double tp_input_double(const struct tp_input *input, unsigned part); /* part 1: imaginary */

/* Are these words at most `count` inputs, whole and nothing but? */
bool tp_inputs_sound(const uint64_t *words, size_t word_count, size_t count);

/* Sizes of all `count` inputs, as Python prints torch's input_shapes: "[[3, 4], []]"; lists of tensors are "[]". The room:
 * TP_INPUTS_SHAPES bytes. Returns the length. */
#define TP_INPUTS_SHAPES (64 * 1024)
size_t tp_inputs_shapes(const uint64_t *words, size_t word_count, size_t count, char *ret);

/* What C++ calls the element type ("long int"); "" for a number that is not known. */
const char *tp_input_type_name(unsigned type);

#endif
