/*
 * abi_values.h: where PyTorch keeps what an execution trace tells of an operator besides its inputs: outputs, schema,
 * storages. Found at attach (calibrate_values.c); read by plain loads, from objects that the operator's caller keeps
 * alive.
 */
#ifndef TP_TORCH_ABI_VALUES_H
#define TP_TORCH_ABI_VALUES_H

#include "abi_inputs.h"

/* Offsets in bytes. */
struct tp_torch_value_places {
    uint16_t outputs; /* in at::RecordFunction: address of the first IValue, behind the last */
    uint16_t schema;  /* in it: address of the c10::FunctionSchema; or a std::string, if it has no schema */
    uint16_t has_schema; /* in it: 8 bits, 1: a schema */
    uint16_t storage; /* in c10::TensorImpl: address of its c10::StorageImpl, or NULL */
    uint16_t offset;  /* in c10::TensorImpl: 64 bits, of its first element */
    uint16_t device;  /* in c10::TensorImpl: 8 bits of type, 8 of index, 8 that are 0 where there is none */
    uint16_t data;    /* in c10::StorageImpl: address of its data */
    uint16_t held;    /* in what an IValue holds by reference: where its content begins */
    uint8_t none;     /* tag of an IValue that is None: the first one */
    uint16_t string;  /* bytes of a std::string: its address of text comes first; its length then, or before the text */
    bool schemas_are_texts; /* schema.h has found what it needs */
    size_t (*input_count)(const void *record_function); /* of the schema, where there is one */
    size_t (*output_count)(const void *record_function);
};

/* The last `count` of the values: an operator may be given a stack that holds more. */
static inline struct tp_torch_values tp_torch_last(struct tp_torch_values values, size_t count)
{
    if (count >= values.count)
        return values;
    return (struct tp_torch_values){values.at + (values.count - count) * TP_TORCH_VALUE_BYTES, count};
}

/* What an operator that ends now gives back. */
static inline struct tp_torch_values tp_torch_outputs(const struct tp_torch_value_places *at,
                                                      const void *record_function)
{
    const char *first = tp_torch_pointer(record_function, at->outputs);
    const char *end = tp_torch_pointer(record_function, (size_t)at->outputs + 8);
    struct tp_torch_values values = {first, (size_t)(end - first) / TP_TORCH_VALUE_BYTES};
    return values.count ? tp_torch_last(values, at->output_count(record_function)) : values;
}

/* NULL: it has a name only. */
static inline const void *tp_torch_schema(const struct tp_torch_value_places *at, const void *record_function)
{
    bool has = ((const uint8_t *)record_function)[at->has_schema] == 1;
    return has ? tp_torch_pointer(record_function, at->schema) : NULL;
}

/* A schema begins with two strings: name and overload. */
static inline const char *tp_torch_overload(const struct tp_torch_value_places *at, const void *schema)
{
    return tp_torch_pointer(schema, at->string);
}

/* enum tp_value_kind, but for tags that it does not know. */
static inline unsigned tp_torch_value_kind(const struct tp_torch_inputs *inputs, const struct tp_torch_value_places *at,
                                           const char *value)
{
    uint32_t tag;
    memcpy(&tag, value + 8, sizeof tag);
    unsigned kind = tag - at->none + TP_VALUE_NONE;
    return kind + (kind >= TP_VALUE_UINT && !inputs->has_uint);
}

/* libstdc++ has two: with the length behind the address, or before what it leads to (the older one, of one word). */
static inline const char *tp_torch_string(const struct tp_torch_value_places *at, const void *string, size_t *ret_bytes)
{
    const char *text = tp_torch_pointer(string, 0);
    *ret_bytes = at->string == 8 ? tp_torch_u64(text - 24, 0) : tp_torch_u64(string, 8);
    return text;
}

#endif
