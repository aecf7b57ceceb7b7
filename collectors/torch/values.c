#include "values.h"

#include "../../agent/log.h"
#include "../../agent/ring.h"
#include "abi.h"
#include "comms.h"
#include "schema.h"
#include "tensor.h"

#define PART (TP_RECORD_MAX_WORDS - TP_VALUES_WORDS)
#define TUPLE_INLINE 3 /* c10::ivalue::TupleElements: how many lie in it; 0: they are a vector */

bool tp_values_attach(struct tp_torch_abi *abi)
{
    struct tp_error error = {0};
    if (tp_torch_calibrate_values(abi, &error) == 0) {
        if (!tp_comms_attach(abi->library))
            tp_log(TP_LOG_INFO, "PyTorch %s: execution traces tell no parameters of communication", abi->version);
        return true;
    }
    char line[400];
    tp_error_line(&error, line, sizeof line);
    tp_log(TP_LOG_WARN, "%s; they tell of no inputs and outputs", line);
    return false;
}

/* Words on their way into records, of which each is written when it is full. */
struct values {
    const struct tp_torch_abi *abi;
    struct tp_thread *thread;
    struct tp_values like;
    const void *record_function;
    unsigned used;
    bool full, lost;
    uint64_t words[PART];
};

static void flush(struct values *values, unsigned more)
{
    unsigned words = TP_VALUES_WORDS + values->used;
    uint64_t *at = tp_ring_reserve_more(values->thread, words);
    if (!at) {
        values->lost = true; /* the record that says that it is the last is missing, then */
        return;
    }
    struct tp_values head = values->like;
    head.head = tp_record_head(TP_RECORD_VALUES, words, (uintptr_t)values->record_function);
    head.flags |= more;
    memcpy(at, &head, sizeof head);
    memcpy(at + TP_VALUES_WORDS, values->words, values->used * sizeof *at);
    tp_ring_commit(values->thread, at + words);
    values->like.offset += values->used;
    values->used = 0;
}

static inline void put(struct values *values, uint64_t word)
{
    if (TP_UNLIKELY(values->used == PART) && !values->lost)
        flush(values, TP_VALUES_MORE);
    if (TP_UNLIKELY(values->like.offset + values->used == TP_VALUES_ITEMS_MAX))
        values->full = true;
    if (TP_LIKELY(!values->full && !values->lost))
        values->words[values->used++] = word;
}

static void put_numbers(struct values *values, const int64_t *numbers, size_t count, bool wide)
{
    for (size_t i = 0; i < count; i += wide ? 1 : 2) {
        uint64_t second = !wide && i + 1 < count ? (uint64_t)numbers[i + 1] << 32 : 0;
        put(values, wide ? (uint64_t)numbers[i] : (uint32_t)numbers[i] | second);
    }
}

static void put_tensor(struct values *values, const char *value)
{
    const struct tp_torch_inputs *inputs = &values->abi->inputs;
    const struct tp_torch_value_places *at = &values->abi->values;
    const char *object = tp_torch_pointer(value, 0);
    struct tp_torch_tensor tensor = {0};
    bool sized = tp_torch_tensor(inputs, value, &tensor) && tensor.dimensions <= UINT8_MAX && tensor.type <= UINT8_MAX;
    if (!object || object == inputs->undefined) {
        put(values, tp_input_word(TP_VALUE_TENSOR, 0, 0, TP_VALUE_UNTYPED, 0));
        put(values, (uintptr_t)object);
        return;
    }
    if (!sized) {
        uint16_t type;
        memcpy(&type, object + inputs->type, sizeof type);
        put(values, tp_input_word(TP_VALUE_TENSOR, type <= UINT8_MAX ? type : UINT8_MAX, 0, TP_INPUT_CONTIGUOUS, 0));
        put(values, (uintptr_t)object);
        return;
    }
    const char *storage = tp_torch_pointer(object, at->storage);
    unsigned flags = tp_tensor_flags(tensor.sizes, tensor.kept_strides, tensor.dimensions);
    uint32_t device = tp_value_device((uint8_t)object[at->device], (uint8_t)object[at->device + 1]);
    put(values, tp_input_word(TP_VALUE_TENSOR, tensor.type, (unsigned)tensor.dimensions,
                              flags | (storage ? TP_VALUE_STORED : 0u), device));
    put(values, (uintptr_t)object);
    if (storage) {
        put(values, tp_torch_u64(storage, at->data));
        put(values, tp_torch_u64(object, at->offset));
    }
    put_numbers(values, tensor.sizes, tensor.dimensions, flags & TP_INPUT_WIDE);
    if (!(flags & TP_INPUT_CONTIGUOUS))
        put_numbers(values, tensor.kept_strides, tensor.dimensions, flags & TP_INPUT_WIDE);
}

static void put_int(struct values *values, int64_t value)
{
    if (value == (int32_t)value) {
        put(values, tp_input_word(TP_VALUE_INT, 0, 0, 0, (uint32_t)value));
    } else {
        put(values, tp_input_word(TP_VALUE_INT, 0, 0, TP_INPUT_WIDE, 0));
        put(values, (uint64_t)value);
    }
}

static void put_text(struct values *values, const char *text, size_t bytes)
{
    if (bytes > TP_VALUES_ITEMS_MAX * 8)
        bytes = TP_VALUES_ITEMS_MAX * 8; /* does not fit, and is cut */
    put(values, tp_input_word(TP_VALUE_STRING, 0, 0, 0, (uint32_t)bytes));
    for (size_t i = 0; i < bytes && !values->full; i += 8) {
        uint64_t word = 0;
        memcpy(&word, text + i, bytes - i < 8 ? bytes - i : 8);
        put(values, word);
    }
}

static void put_string(struct values *values, const char *value)
{
    const char *holder = tp_torch_pointer(value, 0);
    size_t bytes;
    const char *text = tp_torch_string(&values->abi->values, holder + values->abi->values.held, &bytes);
    put_text(values, text, bytes);
}

static void put_value(struct values *values, const char *value, unsigned depth);

static void put_elements(struct values *values, enum tp_value_kind kind, const char *elements, size_t count,
                         unsigned depth)
{
    if (depth == TP_VALUE_DEPTH_MAX)
        count = 0;
    if (kind == TP_VALUE_LIST && count > TP_VALUE_LIST_MAX)
        count = TP_VALUE_LIST_MAX;
    put(values, tp_input_word(kind, 0, 0, 0, (uint32_t)count));
    for (size_t i = 0; i < count && !values->full && !values->lost; i++)
        put_value(values, elements + i * TP_TORCH_VALUE_BYTES, depth + 1);
}

static void put_tuple(struct values *values, const char *value, unsigned depth)
{
    const char *held = (const char *)tp_torch_pointer(value, 0) + values->abi->values.held;
    size_t count = tp_torch_u64(held, 0);
    const char *elements = held + 8;
    if (count == 0 || count > TUPLE_INLINE) {
        elements = tp_torch_pointer(held, 8);
        count = (size_t)((const char *)tp_torch_pointer(held, 16) - elements) / TP_TORCH_VALUE_BYTES;
    }
    put_elements(values, TP_VALUE_TUPLE, elements, count, depth);
}

static void put_value(struct values *values, const char *value, unsigned depth)
{
    unsigned kind = tp_torch_value_kind(&values->abi->inputs, &values->abi->values, value);
    uint64_t payload = tp_torch_u64(value, 0);
    switch (kind) {
    case TP_VALUE_TENSOR:
        put_tensor(values, value);
        return;
    case TP_VALUE_DOUBLE:
        put(values, TP_VALUE_DOUBLE);
        put(values, payload);
        return;
    case TP_VALUE_INT:
        put_int(values, (int64_t)payload);
        return;
    case TP_VALUE_BOOL:
        put(values, tp_input_word(TP_VALUE_BOOL, 0, 0, 0, (uint8_t)payload != 0));
        return;
    case TP_VALUE_DEVICE: /* c10::Device: type, index */
        put(values,
            tp_input_word(TP_VALUE_DEVICE, 0, 0, 0, tp_value_device((uint8_t)payload, (uint8_t)(payload >> 8))));
        return;
    case TP_VALUE_STRING:
        put_string(values, value);
        return;
    case TP_VALUE_TUPLE:
        put_tuple(values, value, depth);
        return;
    case TP_VALUE_LIST: {
        struct tp_torch_list list;
        tp_torch_list(&values->abi->inputs, value, &list);
        put_elements(values, TP_VALUE_LIST, list.values, list.count, depth);
        return;
    }
    default:
        put(values, kind > TP_VALUE_END && kind < TP_VALUE_KINDS ? kind : TP_VALUE_OBJECT);
    }
}

static void put_sizes(struct values *values, const int64_t *sizes, size_t count)
{
    put(values, tp_input_word(TP_VALUE_LIST, 0, 0, 0, (uint32_t)count));
    for (size_t i = 0; i < count && !values->full && !values->lost; i++)
        put_int(values, sizes[i]);
}

/* In the order of enum tp_values_comms. */
static void put_comms(struct values *values, const struct tp_comms *comms)
{
    put(values, tp_input_word(TP_VALUE_TUPLE, 0, 0, 0, TP_VALUES_COMMS_COUNT));
    put_text(values, comms->collective.text, comms->collective.bytes);
    put_int(values, comms->type);
    put_int(values, comms->in_elements);
    put_int(values, comms->out_elements);
    put_sizes(values, comms->in_split.sizes, comms->in_split.count);
    put_sizes(values, comms->out_split.sizes, comms->out_split.count);
    put_int(values, comms->rank_start);
    put_int(values, comms->rank_stride);
    put_text(values, comms->group_name.text, comms->group_name.bytes);
    put_text(values, comms->group_description.text, comms->group_description.bytes);
    put_int(values, comms->group_size);
    put_int(values, comms->is_async);
}

/* comms: NULL, or what is told behind the values. */
static void put_all(struct values *values, struct tp_torch_values all, const struct tp_comms *comms)
{
    for (size_t i = 0; i < all.count && !values->full && !values->lost; i++) {
        put_value(values, all.at + i * TP_TORCH_VALUE_BYTES, 0);
        values->like.count += !values->full;
    }
    if (comms)
        put_comms(values, comms);
    if (values->full)
        values->like.flags |= TP_VALUES_CUT;
    else if (comms)
        values->like.flags |= TP_VALUES_COMMS;
    values->like.count += comms && !values->full;
    if (!values->lost)
        flush(values, 0);
}

static void begin(struct values *values, const struct tp_torch_abi *abi, struct tp_thread *thread,
                  const void *record_function, uint64_t time)
{
    values->abi = abi;
    values->thread = thread;
    values->record_function = record_function;
    values->like = (struct tp_values){.time = time};
    values->used = 0;
    values->full = false;
    values->lost = !thread || thread->lost_depth > 0;
}

void tp_values_given(const struct tp_torch_abi *abi, struct tp_thread *thread, const void *record_function,
                     uint64_t time)
{
    struct values values;
    begin(&values, abi, thread, record_function, time);
    struct tp_torch_values all = tp_torch_values(&abi->inputs, record_function);
    const void *schema = tp_torch_schema(&abi->values, record_function);
    if (schema && !values.lost) {
        all = tp_torch_last(all, abi->values.input_count(record_function));
        if (abi->values.schemas_are_texts)
            values.like.schema = tp_schema_id(schema, abi->name(record_function), tp_torch_overload(&abi->values, schema));
    }
    struct tp_comms comms;
    bool communicates = !schema && tp_comms_is_name(abi->name(record_function)) && tp_comms_now(&comms);
    put_all(&values, all, communicates ? &comms : NULL);
}

void tp_values_returned(const struct tp_torch_abi *abi, struct tp_thread *thread, const void *record_function,
                        uint64_t time)
{
    struct values values;
    begin(&values, abi, thread, record_function, time);
    values.like.flags = TP_VALUES_OUTPUTS;
    put_all(&values, tp_torch_outputs(&abi->values, record_function), NULL);
}
