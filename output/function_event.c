#include "function_event.h"

#include "json.h"
#include "put.h"

#define ROOM 1024
#define PIECE 4096 /* of a text that is escaped at a time */

static char *put_i64(char *out, int64_t value)
{
    if (value < 0)
        *out++ = '-';
    return tp_put_u64(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static char *put_signed_us(char *out, int64_t ns)
{
    if (ns < 0)
        *out++ = '-';
    return tp_put_us(out, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns);
}

static char *put_flag(char *out, bool on)
{
    return on ? TP_PUT(out, "true") : TP_PUT(out, "false");
}

static void raw(const struct tp_function_out *out, const char *text, size_t bytes)
{
    for (size_t some; bytes > 0; text += some, bytes -= some) {
        some = bytes < PIECE ? bytes : PIECE;
        memcpy(out->reserve(out->context, some), text, some);
        out->advance(out->context, some);
    }
}

/* A sequence of UTF-8 is not cut in two. */
static size_t piece_of(const char *text, size_t bytes)
{
    if (bytes <= PIECE)
        return bytes;
    size_t length = PIECE;
    while (length > PIECE - 4 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return length;
}

static void string(const struct tp_function_out *out, const char *text, size_t bytes)
{
    raw(out, "\"", 1);
    for (size_t some; bytes > 0; text += some, bytes -= some) {
        some = piece_of(text, bytes);
        char *room = out->reserve(out->context, some * TP_JSON_ESCAPE_MAX);
        out->advance(out->context, tp_json_escape(room, text, some));
    }
    raw(out, "\"", 1);
}

static void write_children(const struct tp_function_event *event, const struct tp_function_out *out)
{
    struct tp_ids_cursor cursor = event->children ? tp_ids_begin(event->children) : (struct tp_ids_cursor){0};
    bool first = true;
    raw(out, ",\"children\":[", 13);
    for (uint64_t id; tp_ids_next(&cursor, &id); first = false) {
        char *begin = out->reserve(out->context, ROOM), *end = tp_put_u64(first ? begin : TP_PUT(begin, ","), id);
        out->advance(out->context, (size_t)(end - begin));
    }
    raw(out, "]", 1);
}

static void write_stack(const struct tp_function_event *event, const struct tp_function_out *out)
{
    raw(out, ",\"stack\":[", 10);
    for (size_t at = 0; at < event->stack_bytes;) {
        const char *frame = event->stack + at, *end = memchr(frame, ';', event->stack_bytes - at);
        size_t bytes = end ? (size_t)(end - frame) : event->stack_bytes - at;
        if (at > 0)
            raw(out, ",", 1);
        string(out, frame, bytes);
        at += bytes + 1;
    }
    raw(out, "]", 1);
}

static char *put_place(char *at, const struct tp_function_event *event)
{
    at = TP_PUT(at, ",\"start_us\":");
    at = put_signed_us(at, event->start_ns);
    at = TP_PUT(at, ",\"end_us\":");
    at = put_signed_us(at, event->end_ns);
    if (event->thread) {
        at = TP_PUT(at, ",\"thread\":");
        at = tp_put_u64(at, event->thread);
    }
    return TP_PUT(at, ",\"tid\":");
}

static char *put_rest(char *at, const struct tp_function_event *event)
{
    at = TP_PUT(at, ",\"is_async\":");
    at = put_flag(at, event->is_async);
    at = TP_PUT(at, ",\"is_user_annotation\":");
    at = put_flag(at, event->is_annotation);
    at = TP_PUT(at, ",\"is_python_function\":");
    at = put_flag(at, event->is_python);
    at = TP_PUT(at, ",\"sequence_nr\":");
    at = put_i64(at, event->sequence);
    at = TP_PUT(at, ",\"fwd_thread\":");
    at = tp_put_u64(at, event->forward_thread);
    if (event->scope >= 0) {
        at = TP_PUT(at, ",\"scope\":");
        at = tp_put_u64(at, (uint64_t)event->scope);
    }
    if (event->has_link) {
        at = TP_PUT(at, ",\"linked_correlation_id\":");
        at = tp_put_u64(at, event->link);
    }
    if (event->has_flops) {
        at = TP_PUT(at, ",\"flops\":");
        at = tp_put_u64(at, event->flops);
    }
    if (event->has_memory) {
        at = TP_PUT(at, ",\"cpu_memory_usage\":");
        at = put_i64(at, event->cpu_memory);
        at = TP_PUT(at, ",\"device_memory_usage\":");
        at = put_i64(at, event->device_memory);
    }
    return at;
}

void tp_function_event_write(const struct tp_function_event *event, const struct tp_function_out *out)
{
    char *begin = out->reserve(out->context, ROOM), *at = TP_PUT(begin, "{\"id\":");
    at = tp_put_u64(at, event->id);
    at = TP_PUT(at, ",\"external_id\":");
    at = tp_put_u64(at, event->external_id);
    if (event->has_cycle) {
        at = TP_PUT(at, ",\"cycle\":");
        at = tp_put_u64(at, event->cycle);
    }
    at = TP_PUT(at, ",\"name\":");
    out->advance(out->context, (size_t)(at - begin));
    string(out, event->name, event->name_bytes);
    if (event->trace_name) {
        raw(out, ",\"trace_name\":", 14);
        string(out, event->trace_name, event->trace_name_bytes);
    }
    begin = out->reserve(out->context, ROOM);
    out->advance(out->context, (size_t)(put_place(begin, event) - begin));
    raw(out, event->tid, event->tid_bytes);
    begin = at = out->reserve(out->context, ROOM);
    at = TP_PUT(at, ",\"device_type\":\"");
    at = tp_put_text(at, event->device, strlen(event->device));
    at = TP_PUT(at, "\",\"parent\":");
    at = event->has_parent ? tp_put_u64(at, event->parent) : TP_PUT(at, "null");
    out->advance(out->context, (size_t)(at - begin));
    write_children(event, out);
    begin = out->reserve(out->context, ROOM);
    out->advance(out->context, (size_t)(put_rest(begin, event) - begin));
    if (event->shapes) {
        raw(out, ",\"input_shapes\":", 16);
        raw(out, event->shapes, event->shapes_bytes);
    }
    if (event->stack)
        write_stack(event, out);
    raw(out, "}", 1);
}
