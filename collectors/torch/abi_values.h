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

#endif
