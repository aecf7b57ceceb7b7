#include "trace_table_state.h"

#include <errno.h>
#include <string.h>

static bool is(const struct tp_json_in *json, const char *name)
{
    return json->text_bytes == strlen(name) && memcmp(json->text, name, json->text_bytes) == 0;
}

static int failed(const struct tp_json_in *json)
{
    return json->flaw ? json->status : -EINVAL;
}

static int read_integer(struct tp_json_in *json, bool *has, int64_t *value)
{
    enum tp_json_token token = tp_json_in_next(json);
    *has = token == TP_JSON_NUMBER && tp_trace_integer(json->text, json->text_bytes, value);
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json) ? 0 : failed(json);
    return token == TP_JSON_FAILED ? failed(json) : 0;
}

static void add_shapes(struct arguments *arguments, char *shapes, const char *text, size_t bytes)
{
    if (bytes > SHAPES_TEXT - arguments->shapes_bytes)
        bytes = SHAPES_TEXT - arguments->shapes_bytes;
    memcpy(shapes + arguments->shapes_bytes, text, bytes);
    arguments->shapes_bytes += (uint32_t)bytes;
}

/* The inner list of one input: dimensions, or for a list of tensors lists of them, which torch shows as "[]". */
static int read_dimensions(struct tp_trace_table *table, struct tp_json_in *json, struct tp_flops_input *input)
{
    struct arguments *arguments = &table->arguments;
    enum tp_json_token token;
    input->elements = 1;
    add_shapes(arguments, table->shapes, "[", 1);
    while ((token = tp_json_in_next(json)) != TP_JSON_ARRAY_END) {
        int64_t dim = 0;
        if (token == TP_JSON_FAILED || ((token == TP_JSON_OBJECT || token == TP_JSON_ARRAY) && !tp_json_in_skip(json)))
            return failed(json);
        if (token != TP_JSON_NUMBER || !tp_trace_integer(json->text, json->text_bytes, &dim))
            continue;
        if (input->dims)
            add_shapes(arguments, table->shapes, ", ", 2);
        add_shapes(arguments, table->shapes, json->text, json->text_bytes);
        if (input->dims < TP_FLOPS_DIMS)
            input->dim[input->dims] = dim;
        input->dims++;
        input->elements = (int64_t)((uint64_t)input->elements * (uint64_t)dim);
    }
    add_shapes(arguments, table->shapes, "]", 1);
    return 0;
}

/* An array whose items are taken by number. */
static int read_inputs(struct tp_trace_table *table, struct tp_json_in *json,
                       int (*take)(struct tp_trace_table *, struct tp_json_in *, enum tp_json_token, size_t))
{
    enum tp_json_token token = tp_json_in_next(json);
    if (token != TP_JSON_ARRAY) {
        if (token == TP_JSON_OBJECT)
            return tp_json_in_skip(json) ? 0 : failed(json);
        return token == TP_JSON_FAILED ? failed(json) : 0;
    }
    for (size_t at = 0; (token = tp_json_in_next(json)) != TP_JSON_ARRAY_END; at++) {
        if (token == TP_JSON_FAILED)
            return failed(json);
        int status = take(table, json, token, at);
        if (status < 0)
            return status;
        if (at < TP_FLOPS_INPUTS && at >= table->arguments.inputs)
            table->arguments.inputs = at + 1;
    }
    return 0;
}

static int take_dims(struct tp_trace_table *table, struct tp_json_in *json, enum tp_json_token token, size_t at)
{
    struct tp_flops_input spare = {0};
    table->arguments.has_dims = true;
    add_shapes(&table->arguments, table->shapes, at ? ", " : "[", at ? 2 : 1);
    if (token == TP_JSON_ARRAY)
        return read_dimensions(table, json, at < TP_FLOPS_INPUTS ? &table->arguments.input[at] : &spare);
    add_shapes(&table->arguments, table->shapes, "[]", 2);
    return token != TP_JSON_OBJECT || tp_json_in_skip(json) ? 0 : failed(json);
}

static int take_concrete(struct tp_trace_table *table, struct tp_json_in *json, enum tp_json_token token, size_t at)
{
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json) ? 0 : failed(json);
    if (token == TP_JSON_STRING && at < TP_FLOPS_INPUTS)
        tp_flops_read_value(&table->arguments.input[at], json->text);
    return 0;
}

static int take_type(struct tp_trace_table *table, struct tp_json_in *json, enum tp_json_token token, size_t at)
{
    table->arguments.has_types = true;
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json) ? 0 : failed(json);
    if (token == TP_JSON_STRING && at < TP_FLOPS_INPUTS)
        table->arguments.input[at].tensor = json->text_bytes > 0 && !is(json, "Scalar") && !is(json, "ScalarList") &&
                                            !is(json, "TensorList");
    return 0;
}

static bool contains(const char *text, size_t bytes, const char *part)
{
    return memmem(text, bytes, part, strlen(part)) != NULL;
}

/* Frames that torch leaves out. */
static bool frame_left_out(const char *frame, size_t bytes)
{
    static const char *const names[][2] = {
        {"autograd/__init__", "_make_grads"},          {"autograd/__init__", "backward"},
        {"torch/tensor", "backward"},                  {"_internal/common_utils", "prof_callable"},
        {"_internal/common_utils", "prof_func_call"}, {"_internal/common_utils", "prof_meth_call"},
    };
    for (size_t i = 0; i < TP_COUNT(names); i++)
        if (contains(frame, bytes, names[i][0]) && contains(frame, bytes, names[i][1]))
            return true;
    return false;
}

/* The first frames of a stack, each with a ';' behind it. */
static int read_stack(struct tp_trace_table *table, struct tp_json_in *json)
{
    enum tp_json_token token = tp_json_in_next(json);
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json) ? 0 : failed(json);
    if (token != TP_JSON_STRING)
        return token == TP_JSON_FAILED ? failed(json) : 0;
    if (!table->stack_text && !(table->stack_text = tp_arena_alloc(table->arena, TP_JSON_IN_TEXT + 1)))
        return -ENOMEM;
    size_t used = 0;
    unsigned frames = 0;
    for (size_t at = 0; at < json->text_bytes && frames < table->options.by_stack;) {
        const char *frame = json->text + at, *end = memchr(frame, ';', json->text_bytes - at);
        size_t bytes = end ? (size_t)(end - frame) : json->text_bytes - at;
        if (bytes > 0 && !frame_left_out(frame, bytes)) {
            memcpy(table->stack_text + used, frame, bytes);
            table->stack_text[used + bytes] = ';';
            used += bytes + 1;
            frames++;
        }
        at += bytes + 1;
    }
    int64_t stack = tp_strings_of(table->stacks, table->stack_text, used);
    table->arguments.stack = stack < 0 ? 0 : (uint32_t)stack + 1;
    return stack < 0 ? -ENOMEM : 0;
}

static int read_thread_name(struct tp_trace_table *table, struct tp_json_in *json)
{
    static const char end[] = ") async"; /* chrome.c gives such names */
    enum tp_json_token token = tp_json_in_next(json);
    size_t bytes = json->text_bytes;
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json) ? 0 : failed(json);
    table->arguments.async_thread = token == TP_JSON_STRING && bytes >= sizeof end - 1 &&
                                    memcmp(json->text + bytes - (sizeof end - 1), end, sizeof end - 1) == 0;
    return token == TP_JSON_FAILED ? failed(json) : 0;
}

int tp_trace_table_arg(void *context, const struct tp_trace_event *event, struct tp_json_in *json)
{
    struct tp_trace_table *table = context;
    struct arguments *arguments = &table->arguments;
    int64_t value = 0;
    bool has;
    if (is(json, "External id")) {
        int status = read_integer(json, &has, &value);
        arguments->id = has && value > 0 ? (uint64_t)value : 0;
        return status;
    }
    if (is(json, "Bytes"))
        return read_integer(json, &arguments->has_bytes, &arguments->bytes);
    if (is(json, "Device Type"))
        return read_integer(json, &has, &arguments->device_type);
    if (table->options.by_stack && is(json, "Call stack"))
        return read_stack(table, json);
    if (is(json, "name"))
        return read_thread_name(table, json);
    bool of_flops = tp_trace_table_formulas(table) != TP_FLOPS_NONE &&
                    (!event->name.there || tp_flops_knows(event->name.text, event->name.kept, tp_trace_table_formulas(table)));
    if ((of_flops || table->options.by_shapes) && is(json, "Input Dims")) {
        arguments->shapes_bytes = 0;
        int status = read_inputs(table, json, take_dims);
        add_shapes(arguments, table->shapes, arguments->has_dims ? "]" : "[]", arguments->has_dims ? 1 : 2);
        return status;
    }
    if (of_flops && is(json, "Concrete Inputs"))
        return read_inputs(table, json, take_concrete);
    if (of_flops && is(json, "Input type"))
        return read_inputs(table, json, take_type);
    return tp_json_in_pass(json) ? 0 : failed(json);
}

int tp_trace_table_member(void *context, const char *path, enum tp_json_token token, const struct tp_json_in *json)
{
    struct tp_trace_table *table = context;
    bool on = token == TP_JSON_TRUE || (token == TP_JSON_NUMBER && !is(json, "0"));
    if (strcmp(path, "with_flops") == 0)
        table->with_flops |= on;
    else if (strcmp(path, "profile_memory") == 0)
        table->facts.memory |= on;
    return 0;
}
