/*
 * values.h: what an operator was given or gave back, value by value, as record.h describes it for execution traces.
 * Records may come from a damaged file: a cursor never leaves its words, and stops where they make no sense.
 */
#ifndef TP_VALUES_H
#define TP_VALUES_H

#include "inputs.h"

struct tp_value {
    uint8_t kind;  /* enum tp_value_kind */
    uint8_t flags; /* enum tp_input_flag, enum tp_value_flag */
    uint32_t count; /* of the values that follow it, of a string's bytes */
    uint32_t device;
    int64_t integer; /* of an int, of a bool */
    double number;
    const char *text;
    uint64_t address, data, offset; /* of a tensor */
    struct tp_input shape; /* of a tensor: for tp_input_sizes, tp_input_strides */
};

/* The next value. Behind a list or a tuple its elements are the next ones. False: there is none. */
bool tp_value_next(struct tp_input_cursor *cursor, struct tp_value *ret);

/* How many values follow that belong to this one. */
static inline uint32_t tp_value_elements(const struct tp_value *value)
{
    return value->kind == TP_VALUE_LIST || value->kind == TP_VALUE_TUPLE ? value->count : 0;
}

/* Are these words `count` values, whole and nothing but? Of cut ones a piece of the next may follow. */
bool tp_values_sound(const uint64_t *words, size_t word_count, size_t count, bool cut);

/* What PyTorch calls the kind: "GenericList". */
const char *tp_value_kind_name(unsigned kind);

#endif
