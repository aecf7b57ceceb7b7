/*
 * execution_trace.c: the execution trace, as torch.profiler.ExecutionTraceObserver writes it.
 *
 * Facts: torch/csrc/profiler/standalone/execution_trace_observer.cpp, files made with PyTorch 2.13.0 and 2.14.1, and
 * what facebookresearch/param and mlcommons/chakra read.
 *
 * Nodes stand in the order of their ends, as torch's. Ids: 1 is the process; threads have small ones; from FIRST_ID on
 * operators have even ones, by the order of their begins, so that a node can name a parent that is written later, and
 * each one's is smaller than those of what is inside it; tensors and storages have odd ones (identities.h). Where the
 * table of addresses is full, the id is the address itself, behind all others.
 *
 * Where ours differ, and why:
 *   - What is new at an address that was used before has an id of its own, as far as operators' schemas tell.
 *   - Strings and names are valid JSON: torch escapes no name, and each byte of UTF-8 in a value on its own.
 *   - A range that was still open at the end is written, without outputs: its children name it.
 *   - A thread's node stands before the first node of that thread that ends, torch's before the first that begins.
 *   - The time of day is UTC.
 *   - kernel_backend, kernel_file and tensor_range are empty.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "identities.h"
#include "json.h"
#include "put.h"
#include "values.h"
#include "writer.h"

#define FULL_IDS (UINT64_C(1) << 48)
#define PROCESS_ID 1
#define FIRST_ID (UINT64_C(1) << 16) /* there are never so many threads: identities.h would have no room */
#define STRING_PART 8192

struct trace {
    struct tp_sink *sink;
    struct tp_arena *arena;
    const struct tp_cycle_report *report;
    struct tp_identities objects, threads;
    uint64_t next_object, next_thread; /* ids */
    uint32_t *order; /* events of a segment by their end */
    size_t order_capacity;
};

static void put(struct trace *trace, const char *text)
{
    tp_sink_put(trace->sink, text, strlen(text));
}

static void put_u64(struct trace *trace, uint64_t value)
{
    char *begin = tp_sink_reserve(trace->sink, 32);
    tp_sink_advance(trace->sink, (size_t)(tp_put_u64(begin, value) - begin));
}

static void put_i64(struct trace *trace, int64_t value)
{
    if (value < 0)
        put(trace, "-");
    put_u64(trace, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Without quotes. A long text goes in parts, cut where a character of UTF-8 begins. */
static void put_escaped(struct trace *trace, const char *text, size_t bytes)
{
    while (bytes > 0) {
        size_t part = bytes;
        if (part > STRING_PART) {
            part = STRING_PART;
            while (part > STRING_PART - 4 && ((unsigned char)text[part] & 0xc0) == 0x80)
                part--;
        }
        char *begin = tp_sink_reserve(trace->sink, part * TP_JSON_ESCAPE_MAX);
        tp_sink_advance(trace->sink, tp_json_escape(begin, text, part));
        text += part;
        bytes -= part;
    }
}

/* Ids. */

static uint64_t node_id(uint64_t index)
{
    return FIRST_ID + 2 * index;
}

/* Values: four arrays over the same items. */

enum array { VALUES, SHAPES, TYPES, STRIDES };

/* c10::DeviceType (c10/core/DeviceType.h). */
static const char *const devices[] = {"cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
                                      "fpga", "maia", "xla", "vulkan", "metal", "xpu", "mps",
                                      "meta", "hpu", "ve", "lazy", "ipu", "mtia", "privateuseone"};

static void put_device(struct trace *trace, uint32_t device)
{
    unsigned type = device & 0xff;
    int8_t index = (int8_t)(device >> 8);
    put(trace, "\"");
    put(trace, type < TP_COUNT(devices) ? devices[type] : "unknown");
    if (index >= 0) {
        put(trace, ":");
        put_u64(trace, (uint64_t)index);
    }
    put(trace, "\"");
}

/* In bytes, by c10::ScalarType. What is smaller than a byte takes one (c10/core/ScalarType.h). */
static unsigned item_size(unsigned type)
{
    static const uint8_t sizes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2, 1, 1, 1, 1, 1, 1, 2,
                                    1, 1, 1, 1, 2, 4, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4};
    return type < TP_COUNT(sizes) ? sizes[type] : 0;
}

/* What an output is, as the operator's schema says. */
enum output { ANY_OUTPUT, NEW_OUTPUT, VIEW_OUTPUT };

/* "... -> Tensor", "... -> (Tensor(a!) out, Tensor[])": a letter in brackets is what it shares with an input. */
static enum output output_of(const char *schema, size_t bytes, uint32_t number)
{
    const char *end = schema + bytes, *at = end;
    while (at - schema >= 3 && memcmp(at - 3, "-> ", 3) != 0)
        at--;
    if (at - schema < 3)
        return ANY_OUTPUT;
    at += at < end && *at == '(';
    for (unsigned depth = 0; number > 0 && at < end; at++) {
        depth += *at == '(' || *at == '[';
        depth -= depth > 0 && (*at == ')' || *at == ']');
        number -= *at == ',' && depth == 0;
    }
    at += at < end && *at == ' ';
    if (end - at < 6 || memcmp(at, "Tensor", 6) != 0)
        return ANY_OUTPUT;
    if (end - at == 6 || at[6] != '(')
        return NEW_OUTPUT;
    const char *close = memchr(at, ')', (size_t)(end - at));
    return close && !memchr(at, '!', (size_t)(close - at)) ? VIEW_OUTPUT : ANY_OUTPUT;
}

/* Of which operator, and of which of its values, something is written. */
struct place {
    uint64_t begin; /* the operator's index */
    bool is_given;
    enum output output;
};

static uint64_t id_or_address(uint64_t id, enum tp_identity_kind kind, uint64_t address)
{
    return id ? id : FULL_IDS + (address << 1 | (uint64_t)kind);
}

static void put_ids(struct trace *trace, const struct tp_value *tensor, const struct place *place)
{
    struct tp_identities *objects = &trace->objects;
    uint64_t address = tensor->address, data = tensor->data, tensor_id, storage_id = 0;
    bool is_stored = tensor->flags & TP_VALUE_STORED;
    if (place->is_given) {
        tensor_id = tp_identity_given(objects, TP_IDENTITY_TENSOR, address, place->begin);
        if (is_stored)
            storage_id = tp_identity_given(objects, TP_IDENTITY_STORAGE, data, place->begin);
    } else {
        /* A view is a new tensor over what was there. Some operators are called views that give back a tensor which is
         * kept elsewhere, as the values of a sparse one; that has nothing in common with what they were given. */
        bool is_new = place->output == NEW_OUTPUT ||
                      (place->output == VIEW_OUTPUT && is_stored &&
                       tp_identity_was_shown(objects, TP_IDENTITY_STORAGE, data, place->begin));
        tensor_id = tp_identity_returned(objects, TP_IDENTITY_TENSOR, address, place->begin,
                                         is_new && !(tensor->flags & TP_VALUE_UNTYPED));
        if (is_stored)
            storage_id = tp_identity_returned(objects, TP_IDENTITY_STORAGE, data, place->begin,
                                              place->output == NEW_OUTPUT && data != 0);
    }
    put_u64(trace, id_or_address(tensor_id, TP_IDENTITY_TENSOR, address));
    put(trace, ",");
    put_u64(trace, is_stored ? id_or_address(storage_id, TP_IDENTITY_STORAGE, data) : 0);
}

static void put_tensor(struct trace *trace, const struct tp_value *tensor, const struct place *place)
{
    put(trace, "[");
    put_ids(trace, tensor, place);
    put(trace, ",");
    if (!(tensor->flags & TP_VALUE_STORED)) {
        put(trace, "0,0,0,\"\"]");
        return;
    }
    int64_t sizes[TP_INPUT_DIMENSIONS_MAX];
    size_t dimensions = tp_input_sizes(&tensor->shape, sizes);
    uint64_t elements = 1;
    for (size_t i = 0; i < dimensions; i++)
        elements *= (uint64_t)sizes[i];
    put_i64(trace, (int64_t)tensor->offset);
    put(trace, ",");
    put_u64(trace, elements);
    put(trace, ",");
    put_u64(trace, item_size(tensor->shape.type));
    put(trace, ",");
    put_device(trace, tensor->device);
    put(trace, "]");
}

/* As std::to_string writes it, and with a point whatever the program's locale says. */
static void put_double(struct trace *trace, double value)
{
    char text[400];
    int bytes = snprintf(text, sizeof text, "%f", value);
    bool finite = value - value == 0;
    for (char *c = text; finite && *c; c++)
        if (*c != '-' && (*c < '0' || *c > '9'))
            *c = '.';
    if (!finite)
        put(trace, "\"");
    tp_sink_put(trace->sink, text, (size_t)bytes);
    if (!finite)
        put(trace, "\"");
}

static void put_value(struct trace *trace, const struct tp_value *value, const struct place *place)
{
    switch (value->kind) {
    case TP_VALUE_TENSOR:
        put_tensor(trace, value, place);
        return;
    case TP_VALUE_DOUBLE:
        put_double(trace, value->number);
        return;
    case TP_VALUE_INT:
        put_i64(trace, value->integer);
        return;
    case TP_VALUE_BOOL:
        put(trace, value->integer ? "true" : "false");
        return;
    case TP_VALUE_STRING:
        put(trace, "\"");
        put_escaped(trace, value->text, value->count);
        put(trace, "\"");
        return;
    case TP_VALUE_DEVICE:
        put_device(trace, value->device);
        return;
    default:
        put(trace, "\"<");
        put(trace, tp_value_kind_name(value->kind));
        put(trace, ">\"");
    }
}

static void put_numbers(struct trace *trace, const struct tp_value *value, bool strides)
{
    int64_t numbers[TP_INPUT_DIMENSIONS_MAX];
    size_t count = 0;
    if (value->kind == TP_VALUE_TENSOR)
        count = strides ? tp_input_strides(&value->shape, numbers) : tp_input_sizes(&value->shape, numbers);
    put(trace, "[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            put(trace, ",");
        put_i64(trace, numbers[i]);
    }
    put(trace, "]");
}

static void put_type(struct trace *trace, const struct tp_value *value)
{
    put(trace, tp_value_kind_name(value->kind));
    if (value->kind != TP_VALUE_TENSOR)
        return;
    put(trace, "(");
    put(trace, value->flags & TP_VALUE_UNTYPED ? "nullptr (uninitialized)" : tp_input_type_name(value->shape.type));
    put(trace, ")");
}

/* The items are sound, so that what they promise is there. */
static void put_item(struct trace *trace, struct tp_input_cursor *cursor, enum array array, bool outermost,
                     const struct place *place)
{
    struct tp_value value;
    if (!tp_value_next(cursor, &value))
        return;
    bool list = value.kind == TP_VALUE_LIST || value.kind == TP_VALUE_TUPLE;
    if (array == TYPES && outermost)
        put(trace, "\"");
    if (array == TYPES)
        put_type(trace, &value);
    if (list) {
        put(trace, "[");
        for (uint32_t i = 0; i < value.count; i++) {
            if (i > 0)
                put(trace, ",");
            put_item(trace, cursor, array, false, place);
        }
        put(trace, "]");
    } else if (array == VALUES) {
        put_value(trace, &value, place);
    } else if (array != TYPES) {
        put_numbers(trace, &value, array == STRIDES);
    }
    if (array == TYPES && outermost)
        put(trace, "\"");
}

/* Nodes. */

struct node {
    uint64_t id, begin, record_id, parent, forward_parent, scope, thread, forward_thread;
    int64_t sequence;
    const char *name, *schema;
    size_t name_bytes, schema_bytes;
    const struct tp_event_values *given, *returned;
};

static bool tell_of_communication(const struct tp_event_values *values)
{
    return values && values->count > 0 && values->flags & TP_VALUES_COMMS;
}

static uint32_t shown_values(const struct tp_event_values *values)
{
    return values ? values->count - tell_of_communication(values) : 0;
}

static void put_arrays(struct trace *trace, const char *name, const struct node *node, bool is_given)
{
    static const char *const keys[] = {
        [VALUES] = "\"values\": [", [SHAPES] = "], \"shapes\": [", [TYPES] = "], \"types\": [",
        [STRIDES] = "], \"strides\": [",
    };
    const struct tp_event_values *values = is_given ? node->given : node->returned;
    put(trace, name);
    for (unsigned array = VALUES; array <= STRIDES; array++) {
        struct tp_input_cursor cursor = {0};
        if (values)
            cursor = (struct tp_input_cursor){values->items, values->items + values->words};
        put(trace, keys[array]);
        for (uint32_t i = 0; i < shown_values(values); i++) {
            if (i > 0)
                put(trace, ",");
            struct place place = {node->begin, is_given, ANY_OUTPUT};
            if (array == VALUES && !is_given)
                place.output = output_of(node->schema, node->schema_bytes, i);
            put_item(trace, &cursor, (enum array)array, true, &place);
        }
    }
    put(trace, "]},");
}

static void put_attribute(struct trace *trace, const char *name, const char *type)
{
    put(trace, name);
    put(trace, "\", \"type\": \"");
    put(trace, type);
    put(trace, "\", \"value\": ");
}

static void pass_over(struct tp_input_cursor *cursor)
{
    struct tp_value value;
    for (uint64_t left = 1; left > 0 && tp_value_next(cursor, &value); left--)
        left += tp_value_elements(&value);
}

static void put_sizes(struct trace *trace, struct tp_input_cursor *cursor, uint32_t count)
{
    struct tp_value size;
    put(trace, "[");
    for (uint32_t i = 0; i < count && tp_value_next(cursor, &size); i++) {
        if (i > 0)
            put(trace, ", ");
        put_i64(trace, size.integer);
    }
    put(trace, "]");
}

/* By c10::ScalarType (c10/core/ScalarType.h), as c10::toString() writes it. */
static const char *const dtypes[] = {"Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double",
                                     "ComplexHalf", "ComplexFloat", "ComplexDouble", "Bool", "QInt8", "QUInt8",
                                     "QInt32", "BFloat16", "QUInt4x2", "QUInt2x4", "Bits1x8", "Bits2x4", "Bits4x2",
                                     "Bits8", "Bits16", "Float8_e5m2", "Float8_e4m3fn", "Float8_e5m2fnuz",
                                     "Float8_e4m3fnuz", "UInt16", "UInt32", "UInt64"};

static void put_communication(struct trace *trace, const struct tp_event_values *values)
{
    static const struct {
        const char *name, *type;
    } attributes[TP_VALUES_COMMS_COUNT] = {
        [TP_VALUES_COLLECTIVE] = {"collective_name", "string"},
        [TP_VALUES_DTYPE] = {"dtype", "string"},
        [TP_VALUES_IN_ELEMENTS] = {"in_msg_nelems", "uint64"},
        [TP_VALUES_OUT_ELEMENTS] = {"out_msg_nelems", "uint64"},
        [TP_VALUES_IN_SPLIT] = {"in_split_size", "string"},
        [TP_VALUES_OUT_SPLIT] = {"out_split_size", "string"},
        [TP_VALUES_RANK_START] = {"global_rank_start", "uint64"},
        [TP_VALUES_RANK_STRIDE] = {"global_rank_stride", "uint64"},
        [TP_VALUES_GROUP_NAME] = {"pg_name", "string"},
        [TP_VALUES_GROUP_DESCRIPTION] = {"pg_desc", "string"},
        [TP_VALUES_GROUP_SIZE] = {"pg_size", "uint64"},
        [TP_VALUES_IS_ASYNC] = {"is_asynchronized_op", "string"}, /* and yet it is a number */
    };
    if (!tell_of_communication(values)) {
        put(trace, ", \n  {\"name\": \"debug\", \"type\": \"string\", \"value\": \"missing comms info\"}");
        return;
    }
    struct tp_input_cursor cursor = {values->items, values->items + values->words};
    for (uint32_t i = 0; i < shown_values(values); i++)
        pass_over(&cursor);
    struct tp_value tuple, value;
    if (!tp_value_next(&cursor, &tuple))
        return;
    for (uint32_t i = 0; i < TP_VALUES_COMMS_COUNT && i < tp_value_elements(&tuple); i++) {
        if (!tp_value_next(&cursor, &value))
            return;
        put(trace, ", \n  {\"name\": \"");
        put_attribute(trace, attributes[i].name, attributes[i].type);
        if (attributes[i].type[0] != 's' || i == TP_VALUES_IS_ASYNC) {
            put_i64(trace, value.integer);
            put(trace, "}");
            continue;
        }
        put(trace, "\"");
        if (i == TP_VALUES_DTYPE)
            put(trace, (uint64_t)value.integer < TP_COUNT(dtypes) ? dtypes[value.integer] : "UNKNOWN_SCALAR");
        else if (value.kind == TP_VALUE_STRING)
            put_escaped(trace, value.text, value.count);
        else
            put_sizes(trace, &cursor, tp_value_elements(&value));
        put(trace, "\"}");
    }
}

static bool communicates(const struct node *node)
{
    static const char name[] = "record_param_comms";
    return node->name_bytes == sizeof name - 1 && memcmp(node->name, name, sizeof name - 1) == 0 &&
           node->schema_bytes == 0;
}

static void write_node(struct trace *trace, const struct node *node)
{
    put(trace, "\n      {\n        \"id\": ");
    put_u64(trace, node->id);
    put(trace, ", \"name\": \"");
    put_escaped(trace, node->name, node->name_bytes);
    put(trace, "\", \"ctrl_deps\": ");
    put_u64(trace, node->parent);
    put_arrays(trace, ",\n        \"inputs\": {", node, true);
    put_arrays(trace, "\n        \"outputs\": {", node, false);
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"rf_id", node->record_id}, {"fw_parent", node->forward_parent}, {"seq_id", 0},
                   {"scope", node->scope},     {"tid", node->thread},               {"fw_tid", node->forward_thread}};
    put(trace, "\n        \"attrs\": [{\"name\": \"");
    for (size_t i = 0; i < TP_COUNT(numbers); i++) {
        bool is_sequence = strcmp(numbers[i].name, "seq_id") == 0;
        put_attribute(trace, numbers[i].name, is_sequence ? "int64" : "uint64");
        if (is_sequence)
            put_i64(trace, node->sequence);
        else
            put_u64(trace, numbers[i].value);
        put(trace, "},{\"name\": \"");
    }
    put_attribute(trace, "op_schema", "string");
    put(trace, "\"");
    put_escaped(trace, node->schema, node->schema_bytes);
    static const char *const empty[] = {"kernel_backend", "kernel_file", "tensor_range"};
    for (size_t i = 0; i < TP_COUNT(empty); i++) {
        put(trace, "\"},{\"name\": \"");
        put_attribute(trace, empty[i], "string");
        put(trace, "\"");
    }
    put(trace, "\"}");
    if (communicates(node))
        put_communication(trace, node->given);
    put(trace, "]\n      }");
}

static void write_special(struct trace *trace, uint64_t id, const char *name, uint64_t thread)
{
    write_node(trace, &(struct node){.id = id,
                                     .name = name,
                                     .name_bytes = strlen(name),
                                     .parent = PROCESS_ID,
                                     .scope = TP_SCOPE_USER_SCOPE,
                                     .thread = thread,
                                     .sequence = -1,
                                     .schema = ""});
}

/* The thread's node, which is written when the first of its operators is. 0: no memory. */
static uint64_t thread_node(struct trace *trace, uint64_t thread)
{
    uint64_t next = trace->next_thread, id = tp_identity_given(&trace->threads, TP_IDENTITY_TENSOR, thread, 0);
    if (id == next) {
        write_special(trace, id, "[pytorch|profiler|execution_trace|thread]", thread);
        put(trace, ",");
    }
    return id;
}

static int write_event(struct trace *trace, const struct tp_event *event)
{
    uint64_t thread = thread_node(trace, event->thread->logical_id);
    if (!thread)
        return -ENOMEM;
    bool wraps = event->flags & TP_EVENT_WRAPS;
    uint64_t forward_parent = 0;
    if (event->forward_thread && !wraps) {
        forward_parent = event->forward_parent == UINT64_MAX ? thread_node(trace, event->forward_thread)
                                                             : node_id(event->forward_parent);
        if (!forward_parent)
            return -ENOMEM;
    }
    write_node(trace, &(struct node){.id = node_id(event->index),
                                     .begin = event->index,
                                     .record_id = event->id,
                                     .parent = event->parent == UINT64_MAX ? thread : node_id(event->parent),
                                     .forward_parent = forward_parent,
                                     .scope = event->scope,
                                     .thread = event->thread->logical_id,
                                     .forward_thread = wraps ? 0 : event->forward_thread,
                                     .sequence = wraps ? -1 : event->sequence,
                                     .name = event->name,
                                     .name_bytes = event->name_bytes,
                                     .schema = event->schema,
                                     .schema_bytes = event->schema_bytes,
                                     .given = event->given,
                                     .returned = event->returned});
    put(trace, ",");
    return 0;
}

static int et_segment(void *state, const struct tp_event *events, size_t count)
{
    struct trace *trace = state;
    if (count > trace->order_capacity) {
        trace->order = tp_arena_alloc(trace->arena, count * sizeof *trace->order);
        if (!trace->order)
            return -ENOMEM;
        trace->order_capacity = count;
    }
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < count; i++)
        first = events[i].end_index < first ? events[i].end_index : first;
    for (size_t i = 0; i < count; i++)
        trace->order[events[i].end_index - first] = (uint32_t)i;
    int failed = 0;
    for (size_t i = 0; i < count && !failed; i++)
        failed = write_event(trace, &events[trace->order[i]]);
    return failed ? failed : tp_sink_status(trace->sink);
}

/* A day of the Gregorian calendar, counted from 1970-01-01: years that begin in March, in eras of 400. */
static void put_time(char *text, size_t size, uint64_t seconds)
{
    uint64_t day = seconds / 86400 + 719468, second = seconds % 86400;
    uint64_t era = day / 146097, of_era = day % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    year += era * 400 + (month >= 10);
    day = of_year - (153 * month + 2) / 5 + 1;
    month = month < 10 ? month + 3 : month - 9;
    snprintf(text, size, "%04u-%02u-%02u %02u:%02u:%02u", (unsigned)year, (unsigned)month, (unsigned)day,
             (unsigned)(second / 3600), (unsigned)(second / 60 % 60), (unsigned)(second % 60));
}

/* Milliseconds of CLOCK_MONOTONIC at a time of the window. */
static uint64_t monotonic_ms(const struct tp_cycle_report *report, uint64_t ns)
{
    const struct tp_clock_pair *clock = &report->clock_begin;
    int64_t since = (int64_t)(ns - clock->realtime_ns);
    return (uint64_t)((int64_t)clock->monotonic_ns + since) / 1000000;
}

static void *et_begin(const struct tp_cycle_report *report, const struct tp_writer_file *file)
{
    struct trace *trace = tp_arena_alloc(file->arena, sizeof *trace);
    if (!trace)
        return NULL;
    *trace = (struct trace){
        .sink = file->sink,
        .arena = file->arena,
        .report = report,
        .objects = {.arena = file->arena, .next_id = &trace->next_object},
        .threads = {.arena = file->arena, .next_id = &trace->next_thread},
        .next_object = FIRST_ID + 1,
        .next_thread = PROCESS_ID + 1,
    };
    char time[64];
    put_time(time, sizeof time, report->window_begin_ns / 1000000000);
    put(trace, "{\n  \"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": ");
    put_u64(trace, report->identity->pid);
    put(trace, ", \"time\": \"");
    put(trace, time);
    put(trace, "\", \"start_ts\": ");
    put_u64(trace, monotonic_ms(report, report->window_begin_ns));
    put(trace, ",\n  \"nodes\": [");
    return trace;
}

static int et_end(void *state, const struct tp_model_counts *counts)
{
    struct trace *trace = state;
    (void)counts;
    write_special(trace, PROCESS_ID, "[pytorch|profiler|execution_trace|process]", 0);
    put(trace, "\n  ],\n  \"finish_ts\": ");
    put_u64(trace, monotonic_ms(trace->report, trace->report->window_end_ns));
    if (trace->report->is_cut) { /* torch's never is; behind all of its keys, so that its readers go on */
        put(trace, ",\n  \"partial\": \"");
        put_escaped(trace, trace->report->partial_why, strlen(trace->report->partial_why));
        put(trace, "\"");
    }
    put(trace, "\n}");
    return tp_sink_status(trace->sink);
}

const struct tp_writer tp_execution_trace_writer = {
    .name = "execution_trace",
    .suffix = "et.json",
    .gzip = true,
    .begin = et_begin,
    .segment = et_segment,
    .end = et_end,
};
