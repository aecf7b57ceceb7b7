/* Names of kinds: c10::IValue::tagKind() of PyTorch 2.13 and 2.14 (ATen/core/ivalue.h). */
#include "values.h"

#include <string.h>

static const char *const kind_names[TP_VALUE_KINDS] = {
    [TP_VALUE_NONE] = "None",
    [TP_VALUE_TENSOR] = "Tensor",
    [TP_VALUE_STORAGE] = "Storage",
    [TP_VALUE_DOUBLE] = "Double",
    [TP_VALUE_COMPLEX_DOUBLE] = "ComplexDouble",
    [TP_VALUE_INT] = "Int",
    [TP_VALUE_UINT] = "UInt",
    [TP_VALUE_SYM_INT] = "SymInt",
    [TP_VALUE_SYM_FLOAT] = "SymFloat",
    [TP_VALUE_SYM_BOOL] = "SymBool",
    [TP_VALUE_BOOL] = "Bool",
    [TP_VALUE_TUPLE] = "Tuple",
    [TP_VALUE_STRING] = "String",
    [TP_VALUE_BLOB] = "Blob",
    [TP_VALUE_LIST] = "GenericList",
    [TP_VALUE_DICT] = "GenericDict",
    [TP_VALUE_FUTURE] = "Future",
    [TP_VALUE_AWAIT] = "Await",
    [TP_VALUE_DEVICE] = "Device",
    [TP_VALUE_STREAM] = "Stream",
    [TP_VALUE_OBJECT] = "Object",
    [TP_VALUE_PY_OBJECT] = "PyObject",
    [TP_VALUE_UNINITIALIZED] = "Uninitialized",
    [TP_VALUE_CAPSULE] = "Capsule",
    [TP_VALUE_RREF] = "RRef",
    [TP_VALUE_QUANTIZER] = "Quantizer",
    [TP_VALUE_GENERATOR] = "Generator",
    [TP_VALUE_ENUM] = "Enum",
};

const char *tp_value_kind_name(unsigned kind)
{
    return kind < TP_VALUE_KINDS && kind_names[kind] ? kind_names[kind] : "";
}

/* Words of a tensor before its sizes. */
static size_t places_of(unsigned flags)
{
    return flags & TP_VALUE_STORED ? 3 : 1;
}

/* Words behind the first one, without a list's elements. */
static uint64_t tail_of(const struct tp_value *value)
{
    switch (value->kind) {
    case TP_VALUE_TENSOR:
        return places_of(value->flags) + tp_input_shape_words(&value->shape);
    case TP_VALUE_DOUBLE:
        return 1;
    case TP_VALUE_INT:
        return value->flags & TP_INPUT_WIDE ? 1 : 0;
    case TP_VALUE_STRING:
        return ((uint64_t)value->count + 7) / 8;
    default:
        return 0;
    }
}

bool tp_value_next(struct tp_input_cursor *cursor, struct tp_value *ret)
{
    if (cursor->at >= cursor->end)
        return false;
    uint64_t word = *cursor->at;
    const uint64_t *words = cursor->at + 1;
    uint32_t small = (uint32_t)(word >> 32);
    uint8_t kind = (uint8_t)word, flags = (uint8_t)(word >> 24);
    *ret = (struct tp_value){
        .kind = kind,
        .flags = flags,
        .count = small,
        .device = small,
        .integer = (int32_t)small,
        .text = (const char *)words,
        .shape = {.kind = TP_INPUT_TENSOR,
                  .type = (uint8_t)(word >> 8),
                  .flags = flags,
                  .dimensions = (uint8_t)(word >> 16)},
    };
    uint64_t tail = tail_of(ret);
    if (kind == TP_VALUE_END || kind >= TP_VALUE_KINDS || tail >= (uint64_t)(cursor->end - cursor->at))
        return false;
    if (kind == TP_VALUE_INT && tail)
        ret->integer = (int64_t)words[0];
    if (kind == TP_VALUE_DOUBLE)
        memcpy(&ret->number, words, sizeof ret->number);
    if (kind == TP_VALUE_TENSOR) {
        ret->address = words[0];
        ret->data = flags & TP_VALUE_STORED ? words[1] : 0;
        ret->offset = flags & TP_VALUE_STORED ? words[2] : 0;
        ret->shape.words = words + places_of(flags);
    }
    cursor->at += 1 + tail;
    return true;
}

static bool sound(struct tp_input_cursor *cursor, unsigned depth)
{
    struct tp_value value;
    if (depth > TP_VALUE_DEPTH_MAX || !tp_value_next(cursor, &value))
        return false;
    for (uint32_t i = 0, elements = tp_value_elements(&value); i < elements; i++)
        if (!sound(cursor, depth + 1))
            return false;
    return true;
}

bool tp_values_sound(const uint64_t *words, size_t word_count, size_t count, bool cut)
{
    struct tp_input_cursor cursor = {words, words + word_count};
    for (size_t i = 0; i < count; i++)
        if (!sound(&cursor, 0))
            return false;
    return cut || cursor.at == cursor.end;
}
