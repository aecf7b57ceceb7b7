/*
 * abi_inputs.h: where PyTorch keeps the inputs of an operator, found at attach (calibrate_inputs.c), and how they are
 * read: plain loads from objects that the caller of the operator keeps alive while it begins. Nothing of PyTorch is
 * called, no reference is taken, nothing can throw.
 */
#ifndef TP_TORCH_ABI_INPUTS_H
#define TP_TORCH_ABI_INPUTS_H

#include <string.h>

#include "../../agent/base.h"
#include "../../agent/record.h"

/* What an IValue holds, as far as it is told apart here. */
enum tp_torch_kind {
    TP_TORCH_OTHER, /* 0: of every tag that is not known */
    TP_TORCH_TENSOR,
    TP_TORCH_INT,
    TP_TORCH_DOUBLE,
    TP_TORCH_BOOL,
    TP_TORCH_COMPLEX,
    TP_TORCH_SYMBOL,
    TP_TORCH_LIST,
};

#define TP_TORCH_TAGS 32
#define TP_TORCH_VALUE_BYTES 16 /* c10::IValue: payload, tag */

/* Offsets in bytes. */
struct tp_torch_inputs {
    bool known;
    uint16_t values; /* in at::RecordFunction: address of the first IValue; their count follows */
    /* In c10::TensorImpl. */
    uint16_t sizes;  /* number of dimensions; then sizes and strides, or the address of both */
    uint16_t inline_dimensions; /* up to how many lie in the object itself */
    uint16_t type;   /* 16 bits: number of the element type */
    uint16_t keys;   /* 64 bits: dispatch keys */
    uint16_t flags;         /* a byte */
    uint8_t symbolic;       /* in it: sizes are not numbers */
    uint8_t answers_itself; /* in it: the class has a function of its own that gives sizes */
    const void *functional; /* the virtual table of such a class: a wrapper that gives the sizes of what it holds; NULL */
    uint16_t functional_value; /* where it holds that */
    uint64_t nested_keys, unstrided_keys;
    const void *undefined; /* the one tensor that is none */
    /* In c10::detail::ListImpl: address of the first IValue, behind the last; type of the elements. */
    uint16_t list_values, list_type;
    const void *tensor_type;
    uint16_t complex; /* in c10::ivalue::ComplexHolder: two doubles */
    uint8_t kinds[TP_TORCH_TAGS];
    bool has_uint; /* UInt is one of the tags, behind Int */
};

static inline const void *tp_torch_pointer(const void *object, size_t offset)
{
    const void *pointer;
    memcpy(&pointer, (const char *)object + offset, sizeof pointer);
    return pointer;
}

static inline uint64_t tp_torch_u64(const void *object, size_t offset)
{
    uint64_t word;
    memcpy(&word, (const char *)object + offset, sizeof word);
    return word;
}

/* c10::ArrayRef<const c10::IValue>. */
struct tp_torch_values {
    const char *at;
    size_t count;
};

/* The inputs of an operator that begins now. */
static inline struct tp_torch_values tp_torch_values(const struct tp_torch_inputs *at, const void *record_function)
{
    return (struct tp_torch_values){tp_torch_pointer(record_function, at->values),
                                    tp_torch_u64(record_function, (size_t)at->values + 8)};
}

static inline enum tp_torch_kind tp_torch_kind(const struct tp_torch_inputs *at, const char *value)
{
    uint32_t tag;
    memcpy(&tag, value + 8, sizeof tag);
    return tag < TP_TORCH_TAGS ? (enum tp_torch_kind)at->kinds[tag] : TP_TORCH_OTHER;
}

struct tp_torch_tensor {
    const int64_t *sizes, *strides; /* strides NULL: a layout that has none */
    const int64_t *kept_strides; /* what stands where strides are kept, whatever the layout */
    size_t dimensions;
    unsigned type;
};

/* The tensor that gives the sizes. A class of the program is not asked: what the tensor was made with counts. */
static inline const char *tp_torch_sized(const struct tp_torch_inputs *at, const char *tensor)
{
    for (int depth = 0; depth < 8 && at->functional && tp_torch_pointer(tensor, 0) == at->functional; depth++) {
        const char *value = tp_torch_pointer(tensor, at->functional_value);
        if (!value || value == at->undefined)
            break;
        tensor = value;
    }
    return tensor;
}

/* False: it has no sizes that could be told, as torch.profiler sees it too (undefined, nested, symbolic sizes). */
static inline bool tp_torch_tensor(const struct tp_torch_inputs *at, const char *value, struct tp_torch_tensor *ret)
{
    const char *tensor = tp_torch_pointer(value, 0);
    if (tensor == at->undefined || !tensor)
        return false;
    uint64_t keys = tp_torch_u64(tensor, at->keys);
    uint8_t flags = (uint8_t)tensor[at->flags];
    if (TP_UNLIKELY(keys & at->nested_keys || flags & at->symbolic))
        return false;
    uint16_t type;
    memcpy(&type, tensor + at->type, sizeof type);
    ret->type = type;
    if (TP_UNLIKELY(flags & at->answers_itself))
        tensor = tp_torch_sized(at, tensor);
    ret->dimensions = tp_torch_u64(tensor, at->sizes);
    const char *sizes = tensor + at->sizes + 8;
    size_t room = at->inline_dimensions;
    if (TP_UNLIKELY(ret->dimensions > room)) {
        sizes = tp_torch_pointer(sizes, 0);
        room = ret->dimensions;
    }
    ret->sizes = (const int64_t *)sizes;
    ret->kept_strides = ret->sizes + room;
    ret->strides = keys & at->unstrided_keys ? NULL : ret->kept_strides;
    return true;
}

struct tp_torch_list {
    const char *values;
    size_t count;
    bool tensors; /* declared as a list of tensors */
};

static inline void tp_torch_list(const struct tp_torch_inputs *at, const char *value, struct tp_torch_list *ret)
{
    const void *list = tp_torch_pointer(value, 0);
    ret->values = tp_torch_pointer(list, at->list_values);
    const char *end = tp_torch_pointer(list, (size_t)at->list_values + 8);
    ret->count = (size_t)(end - ret->values) / TP_TORCH_VALUE_BYTES;
    ret->tensors = tp_torch_pointer(list, at->list_type) == at->tensor_type;
}

#endif
