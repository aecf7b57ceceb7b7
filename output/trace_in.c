#include "trace_in.h"

#include <errno.h>
#include <string.h>

#define TOP_MEMBERS 256 /* of which a second one is noticed */
#define PATH 256

struct reader {
    struct tp_json_in *json;
    const struct tp_trace_in_options *options;
    struct tp_trace_in_result *result;
    struct tp_trace_event *event;
    struct tp_trace_text phase, bind; /* of the event */
    int status; /* what a callback for an argument gave */
    uint64_t members[TOP_MEMBERS];
    size_t member_count;
    char path[PATH];
};

/* The usual number: digits and perhaps a point, with few digits behind it, and no exponent. */
static bool scaled_plain(const char *text, size_t bytes, unsigned scale, int64_t *ret)
{
    uint64_t value = 0;
    size_t at = 0;
    if (bytes > 18)
        return false;
    for (; at < bytes && text[at] != '.'; at++) {
        unsigned digit = (unsigned char)text[at] - (unsigned)'0';
        if (digit > 9)
            return false;
        value = value * 10 + digit;
    }
    size_t behind = at < bytes ? bytes - at - 1 : 0;
    if (behind > scale)
        return false;
    for (at++; at < bytes; at++) {
        unsigned digit = (unsigned char)text[at] - (unsigned)'0';
        if (digit > 9)
            return false;
        value = value * 10 + digit;
    }
    for (; behind < scale; behind++)
        if (value > (uint64_t)INT64_MAX / 10)
            return false;
        else
            value *= 10;
    *ret = (int64_t)value;
    return true;
}

/* The number times 10^scale, rounded half away from zero. */
static bool scaled(const char *text, size_t bytes, int scale, int64_t *ret, bool *ret_exact)
{
    const char *end = text + bytes;
    bool negative = text < end && *text == '-';
    text += negative;
    /* The exponent first, which stands last: it says where the point is. */
    int64_t exponent = scale;
    const char *e = text;
    while (e < end && *e != 'e' && *e != 'E')
        e++;
    if (e < end) {
        const char *digit = e + 1;
        bool minus = *digit == '-';
        int64_t value = 0;
        for (digit += minus || *digit == '+'; digit < end; digit++)
            if (value < 1000000)
                value = value * 10 + *digit - '0';
        exponent += minus ? -value : value;
    }
    const char *point = memchr(text, '.', (size_t)(e - text));
    exponent += (point ? point : e) - text; /* digits before the point, as it is moved */
    uint64_t value = 0;
    int next = 0; /* the first digit that is left out */
    bool exact = true;
    int64_t digits = 0;
    for (const char *at = text; at < e || digits < exponent; at += at < e) {
        if (at < e && *at == '.')
            continue;
        unsigned digit = at < e ? (unsigned)(*at - '0') : 0;
        if (digits < exponent) {
            if (at == e && value == 0)
                break; /* zero, however large the exponent */
            if (value > (uint64_t)(INT64_MAX - digit) / 10)
                return false;
            value = value * 10 + digit;
        } else {
            if (digits == exponent)
                next = (int)digit;
            exact &= digit == 0;
        }
        digits++;
    }
    if (exponent < 0)
        next = 0; /* less than a tenth of one */
    value += next >= 5;
    if (value > INT64_MAX)
        return false;
    *ret = negative ? -(int64_t)value : (int64_t)value;
    *ret_exact = exact;
    return true;
}

bool tp_trace_nanoseconds(const char *text, size_t bytes, int64_t *ret)
{
    bool exact;
    return scaled_plain(text, bytes, 3, ret) || scaled(text, bytes, 3, ret, &exact);
}

bool tp_trace_integer(const char *text, size_t bytes, int64_t *ret)
{
    bool exact;
    return scaled_plain(text, bytes, 0, ret) || (scaled(text, bytes, 0, ret, &exact) && exact);
}

/* One event. */

/* Reads the value of a member that a text is wanted of. */
static bool read_text(struct reader *reader, struct tp_trace_text *text, bool number_too, unsigned flaw)
{
    struct tp_json_in *json = reader->json;
    enum tp_json_token token = tp_json_in_next(json);
    if (text->there)
        reader->event->flaws |= TP_TRACE_TWICE;
    if (token == TP_JSON_STRING || (token == TP_JSON_NUMBER && number_too)) {
        text->there = true;
        text->is_string = token == TP_JSON_STRING;
        text->hash = tp_json_in_hash(json) + !text->is_string;
        text->bytes = json->full_bytes;
        text->kept = (uint32_t)(json->text_bytes < TP_TRACE_TEXT ? json->text_bytes : TP_TRACE_TEXT);
        memcpy(text->text, json->text, text->kept);
        text->text[text->kept] = 0;
        return true;
    }
    reader->event->flaws |= flaw;
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json);
    return token != TP_JSON_FAILED;
}

static bool read_time(struct reader *reader, bool *has, int64_t *ns)
{
    struct tp_json_in *json = reader->json;
    enum tp_json_token token = tp_json_in_next(json);
    if (*has)
        reader->event->flaws |= TP_TRACE_TWICE;
    if (token == TP_JSON_NUMBER) {
        *has = tp_trace_nanoseconds(json->text, json->text_bytes, ns);
        /* Sums of two such numbers do not overflow. */
        if (*has && (*ns > INT64_MAX / 2 || *ns < -INT64_MAX / 2))
            *has = false;
        if (!*has)
            reader->event->flaws |= TP_TRACE_FAR_TIME;
        return true;
    }
    reader->event->flaws |= TP_TRACE_BAD_TIME;
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json);
    return token != TP_JSON_FAILED;
}

static bool is(const struct tp_json_in *json, const char *name)
{
    return json->text_bytes == strlen(name) && memcmp(json->text, name, json->text_bytes) == 0;
}

static bool read_integer(struct tp_json_in *json, bool *has, int64_t *value)
{
    enum tp_json_token token = tp_json_in_next(json);
    if (token == TP_JSON_NUMBER)
        *has = tp_trace_integer(json->text, json->text_bytes, value);
    else if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json);
    return token != TP_JSON_FAILED;
}

static bool read_args(struct reader *reader)
{
    struct tp_json_in *json = reader->json;
    struct tp_trace_event *event = reader->event;
    enum tp_json_token token = tp_json_in_next(json);
    if (token == TP_JSON_ARRAY)
        return tp_json_in_skip(json);
    if (token != TP_JSON_OBJECT)
        return token != TP_JSON_FAILED;
    event->has_args = true;
    while ((token = tp_json_in_next(json)) == TP_JSON_KEY) {
        bool fine;
        if (is(json, "correlation")) {
            fine = read_integer(json, &event->has_correlation, &event->correlation);
        } else if (is(json, "Ev Idx")) {
            fine = read_integer(json, &event->has_index, &event->index);
        } else if (is(json, "Sequence number")) {
            fine = read_integer(json, &event->has_sequence, &event->sequence);
        } else if (is(json, "Fwd thread id")) {
            fine = read_integer(json, &event->has_forward_thread, &event->forward_thread);
        } else if (is(json, "finished")) {
            token = tp_json_in_next(json);
            event->unfinished = token == TP_JSON_FALSE;
            fine = token == TP_JSON_OBJECT || token == TP_JSON_ARRAY ? tp_json_in_skip(json) : token != TP_JSON_FAILED;
        } else if (reader->options->arg) {
            reader->status = reader->options->arg(reader->options->context, event, json);
            fine = reader->status >= 0;
        } else {
            fine = tp_json_in_pass(json);
        }
        if (!fine)
            return false;
    }
    return token == TP_JSON_OBJECT_END;
}

/* {"local": ID} or {"global": ID} */
static bool read_id2(struct reader *reader)
{
    struct tp_json_in *json = reader->json;
    enum tp_json_token token = tp_json_in_next(json);
    if (token != TP_JSON_OBJECT) {
        reader->event->flaws |= TP_TRACE_BAD_PLACE;
        return token == TP_JSON_ARRAY ? tp_json_in_skip(json) : token != TP_JSON_FAILED;
    }
    while ((token = tp_json_in_next(json)) == TP_JSON_KEY) {
        bool is_local = is(json, "local");
        if (!is_local && !is(json, "global")) {
            if (!tp_json_in_pass(json))
                return false;
            continue;
        }
        if (!read_text(reader, &reader->event->id, true, TP_TRACE_BAD_PLACE))
            return false;
        reader->event->id_is_local = is_local;
    }
    return token == TP_JSON_OBJECT_END;
}

static bool read_member(struct reader *reader)
{
    struct tp_json_in *json = reader->json;
    struct tp_trace_event *event = reader->event;
    if (is(json, "ph"))
        return read_text(reader, &reader->phase, false, TP_TRACE_BAD_PHASE);
    if (is(json, "name"))
        return read_text(reader, &event->name, false, TP_TRACE_BAD_TEXT);
    if (is(json, "cat"))
        return read_text(reader, &event->cat, false, TP_TRACE_BAD_TEXT);
    if (is(json, "pid"))
        return read_text(reader, &event->pid, true, TP_TRACE_BAD_PLACE);
    if (is(json, "tid"))
        return read_text(reader, &event->tid, true, TP_TRACE_BAD_PLACE);
    if (is(json, "id"))
        return read_text(reader, &event->id, true, TP_TRACE_BAD_PLACE);
    if (is(json, "id2"))
        return read_id2(reader);
    if (is(json, "bp"))
        return read_text(reader, &reader->bind, true, 0);
    if (is(json, "ts"))
        return read_time(reader, &event->has_ts, &event->ts_ns);
    if (is(json, "dur"))
        return read_time(reader, &event->has_dur, &event->dur_ns);
    if (is(json, "args"))
        return read_args(reader);
    return tp_json_in_pass(json);
}

static void forget_text(struct tp_trace_text *text)
{
    text->there = text->is_string = false;
    text->hash = text->bytes = text->kept = 0;
    text->text[0] = 0;
}

/* Its first token was read. */
static int read_event(struct reader *reader, enum tp_json_token token)
{
    struct tp_json_in *json = reader->json;
    struct tp_trace_event *event = reader->event;
    struct tp_trace_text *phase = &reader->phase, *bind = &reader->bind;
    event->number = reader->result->events;
    event->offset = json->offset;
    event->flaws = 0;
    event->phase = 0;
    event->has_ts = event->has_dur = event->encloses = false;
    event->has_index = event->has_sequence = event->has_forward_thread = event->unfinished = false;
    event->id_is_local = event->has_args = event->has_correlation = false;
    event->ts_ns = event->dur_ns = 0;
    struct tp_trace_text *texts[] = {&event->name, &event->cat, &event->pid, &event->tid, &event->id, phase, bind};
    for (size_t i = 0; i < TP_COUNT(texts); i++)
        forget_text(texts[i]);
    if (token == TP_JSON_OBJECT) {
        while ((token = tp_json_in_next(json)) == TP_JSON_KEY)
            if (!read_member(reader))
                return reader->status < 0 ? reader->status : -EINVAL;
        if (token == TP_JSON_FAILED)
            return -EINVAL;
        if (phase->there && phase->bytes == 1)
            event->phase = phase->text[0];
        else
            event->flaws |= TP_TRACE_BAD_PHASE;
        event->encloses = bind->bytes == 1 && bind->text[0] == 'e';
    } else {
        event->flaws = TP_TRACE_NOT_OBJECT;
        if (token == TP_JSON_ARRAY && !tp_json_in_skip(json))
            return -EINVAL;
    }
    reader->result->events++;
    return reader->options->event ? reader->options->event(reader->options->context, event) : 0;
}

static int read_events(struct reader *reader, bool may_end_open)
{
    reader->result->found_events = true;
    enum tp_json_token token;
    while ((token = tp_json_in_next(reader->json)) != TP_JSON_ARRAY_END) {
        if (token == TP_JSON_FAILED && may_end_open && reader->json->ends_between && reader->json->status == -EINVAL) {
            reader->result->is_open = true;
            return 0;
        }
        if (token == TP_JSON_FAILED)
            return -EINVAL;
        int status = read_event(reader, token);
        if (status < 0)
            return status;
    }
    return 0;
}

/* What stands around the events. */

static int see_member(struct reader *reader, uint64_t hash, uint64_t offset)
{
    for (size_t i = 0; i < reader->member_count; i++)
        if (reader->members[i] == hash)
            return reader->options->twice ? reader->options->twice(reader->options->context, reader->path, offset) : 0;
    if (reader->member_count < TOP_MEMBERS)
        reader->members[reader->member_count++] = hash;
    return 0;
}

/* Members of the outermost object and of those in it, to any depth, without recursion: the path says where we are. */
static int read_members(struct reader *reader)
{
    struct tp_json_in *json = reader->json;
    size_t ends[TP_JSON_IN_DEPTH], depth = 0, length = 0; /* of the path, at each depth */
    ends[0] = 0;
    for (;;) {
        enum tp_json_token token = tp_json_in_next(json);
        if (token == TP_JSON_OBJECT_END) {
            if (depth == 0)
                return 0;
            depth--;
            continue;
        }
        if (token != TP_JSON_KEY)
            return -EINVAL;
        length = ends[depth];
        size_t room = length < PATH - 2 ? PATH - 2 - length : 0,
               key = json->text_bytes < room ? json->text_bytes : room;
        if (depth > 0 && key > 0)
            reader->path[length++] = '/';
        memcpy(reader->path + length, json->text, key);
        length += key;
        reader->path[length] = 0;
        bool events = depth == 0 && is(json, "traceEvents");
        int status = depth == 0 ? see_member(reader, tp_json_in_hash(json), json->offset) : 0;
        token = status < 0 ? TP_JSON_NULL : tp_json_in_next(json);
        if (status < 0)
            return status;
        if (token == TP_JSON_FAILED)
            return -EINVAL;
        if (token == TP_JSON_ARRAY) {
            status = events ? read_events(reader, false) : tp_json_in_skip(json) ? 0 : -EINVAL;
        } else if (token == TP_JSON_OBJECT) {
            ends[++depth] = length;
        } else if (reader->options->member) {
            status = reader->options->member(reader->options->context, reader->path, token, json);
        }
        if (status < 0)
            return status;
    }
}

static int read_trace(struct reader *reader)
{
    enum tp_json_token token = tp_json_in_next(reader->json);
    int status = 0;
    if (token == TP_JSON_ARRAY)
        status = read_events(reader, true);
    else if (token == TP_JSON_OBJECT)
        status = read_members(reader);
    if (status < 0 || reader->result->is_open)
        return status;
    return token != TP_JSON_FAILED && tp_json_in_next(reader->json) == TP_JSON_END ? 0 : -EINVAL;
}

int tp_trace_in_read(const struct tp_trace_in_options *options, struct tp_arena *arena, struct tp_trace_in_result *ret)
{
    *ret = (struct tp_trace_in_result){0};
    struct reader *reader = tp_arena_alloc(arena, sizeof *reader);
    struct tp_trace_event *event = tp_arena_alloc(arena, sizeof *event);
    struct tp_json_in *json = tp_json_in_new(options->source, arena);
    if (!reader || !event || !json)
        return -ENOMEM;
    *reader = (struct reader){.json = json, .options = options, .result = ret, .event = event};
    int status = read_trace(reader);
    if (json->flaw && !ret->is_open) {
        ret->flaw = json->flaw;
        ret->offset = json->flaw_offset;
        ret->line = json->flaw_line;
        ret->column = json->flaw_column;
        return json->status;
    }
    return status;
}
