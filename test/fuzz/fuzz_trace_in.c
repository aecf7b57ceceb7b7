/* The reader of Chrome traces, gzip included, on any bytes. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../output/trace_in.h"
#include "../unit/bytes_from.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take_event(void *context, const struct tp_trace_event *event)
{
    uint64_t *last = context;
    /* What a caller relies on: events are counted, lie behind each other, and texts end. */
    if (event->number > 0 && event->offset <= *last)
        abort();
    *last = event->offset;
    if (event->name.kept > TP_TRACE_TEXT || event->name.text[event->name.kept] != 0)
        abort();
    if (event->has_ts && (event->ts_ns > INT64_MAX / 2 || event->ts_ns < -(INT64_MAX / 2)))
        abort();
    return 0;
}

static int take_member(void *context, const char *path, enum tp_json_token token, const struct tp_json_in *json)
{
    int64_t value;
    (void)context;
    if (json->text[json->text_bytes] != 0 || json->text_bytes > json->full_bytes || strlen(path) > 255)
        abort();
    if (token == TP_JSON_NUMBER)
        tp_trace_integer(json->text, json->text_bytes, &value);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tp_arena arena;
    struct bytes_from bytes;
    struct tp_trace_in_result result;
    uint64_t last = 0;
    tp_arena_init(&arena, 16u << 20);
    struct tp_gzip_in *gzip =
        tp_gzip_in_new(bytes_from(&bytes, (const char *)data, size, size % 61 + 1), &arena);
    struct tp_trace_in_options options = {.source = tp_gzip_in_bytes(gzip), .context = &last, .event = take_event,
                                          .member = take_member};
    int status = tp_trace_in_read(&options, &arena, &result);
    if ((status == -EINVAL || status == -EBADMSG) != (result.flaw != NULL))
        abort();
    tp_arena_free(&arena);
    return 0;
}
