#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* A string is escaped in pieces of this size straight into the sink, whatever its length. */
#define PIECE 4096

enum { PLAIN, SHORT, UNICODE, MULTIBYTE };

/* What becomes of a byte. Zero, the most frequent, is "as it is". */
static const uint8_t kind_of[256] = {
    [0x00 ... 0x07] = UNICODE, ['\b'] = SHORT, ['\t'] = SHORT, ['\n'] = SHORT, [0x0b] = UNICODE,    ['\f'] = SHORT,
    ['\r'] = SHORT, [0x0e ... 0x1f] = UNICODE, ['"'] = SHORT, ['\\'] = SHORT, [0x7f] = UNICODE,
    [0x80 ... 0xff] = MULTIBYTE,
};

static const char short_of[128] = {
    ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\',
};

#define EACH(byte) ((uint64_t)(byte) * UINT64_C(0x0101010101010101))

/* Nonzero if a byte of the word is not PLAIN: high bit set, below 0x20, or one of the three others. A borrow may mark
 * the byte above a marked one; as only zero or not is asked, that is no matter. */
static uint64_t any_special(uint64_t word)
{
    uint64_t quote = word ^ EACH('"'), backslash = word ^ EACH('\\'), del = word ^ EACH(0x7f);
    return (word | (word - EACH(0x20)) | (quote - EACH(1)) | (backslash - EACH(1)) | (del - EACH(1))) & EACH(0x80);
}

size_t tp_json_escape(char *ret, const char *text, size_t bytes)
{
    const unsigned char *in = (const unsigned char *)text, *end = in + bytes;
    char *out = ret;
    while (in < end) {
        while (end - in >= 8) {
            uint64_t word;
            memcpy(&word, in, 8);
            if (any_special(word))
                break;
            memcpy(out, &word, 8);
            in += 8;
            out += 8;
        }
        /* The rest of the run, or up to a byte of the word that is special. */
        while (in < end && kind_of[*in] == PLAIN)
            *out++ = (char)*in++;
        if (in == end)
            break;
        size_t length;
        /* Perfetto takes the quote behind a last backslash for an escaped one: there it is written by its number. */
        bool last_backslash = *in == '\\' && in + 1 == end;
        switch (last_backslash ? UNICODE : kind_of[*in]) {
        case SHORT:
            *out++ = '\\';
            *out++ = short_of[*in++];
            break;
        case UNICODE:
            memcpy(out, "\\u00", 4);
            out[4] = "0123456789abcdef"[*in >> 4];
            out[5] = "0123456789abcdef"[*in & 15];
            out += 6;
            in++;
            break;
        default:
            length = tp_utf8_sequence(in, (size_t)(end - in));
            memcpy(out, length ? (const char *)in : "\xef\xbf\xbd", length ? length : 3);
            out += length ? length : 3;
            in += length ? length : 1;
        }
    }
    return (size_t)(out - ret);
}

void tp_json_init(struct tp_json *json, struct tp_sink *sink)
{
    *json = (struct tp_json){.sink = sink};
}

/* The comma before an item, and a newline in the outermost forms, where a person may look. */
static void before_value(struct tp_json *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->item[json->depth])
        tp_sink_put(json->sink, ",\n", !json->compact && json->depth <= 2 ? 2 : 1);
    json->item[json->depth] = true;
}

static void open_form(struct tp_json *json, const char *bracket)
{
    before_value(json);
    tp_sink_put(json->sink, bracket, 1);
    if (json->depth < TP_JSON_MAX_DEPTH)
        json->depth++;
    json->item[json->depth] = false;
}

static void close_form(struct tp_json *json, const char *bracket)
{
    tp_sink_put(json->sink, bracket, 1);
    if (json->depth > 0)
        json->depth--;
}

void tp_json_open_object(struct tp_json *json)
{
    open_form(json, "{");
}

void tp_json_close_object(struct tp_json *json)
{
    close_form(json, "}");
}

void tp_json_open_array(struct tp_json *json)
{
    open_form(json, "[");
}

void tp_json_close_array(struct tp_json *json)
{
    close_form(json, "]");
}

static void put_quoted(struct tp_sink *sink, const char *text, size_t bytes)
{
    tp_sink_put(sink, "\"", 1);
    while (bytes > 0) {
        size_t piece = bytes < PIECE ? bytes : PIECE;
        /* A piece does not end inside a sequence: if its last bytes may begin one, they go with the next piece. */
        if (piece < bytes)
            for (size_t back = 1; back <= 3; back++)
                if (((unsigned char)text[piece - back] & 0xc0) == 0xc0) {
                    piece -= back;
                    break;
                }
        char *room = tp_sink_reserve(sink, PIECE * TP_JSON_ESCAPE_MAX);
        tp_sink_advance(sink, tp_json_escape(room, text, piece));
        text += piece;
        bytes -= piece;
    }
    tp_sink_put(sink, "\"", 1);
}

void tp_json_key_bytes(struct tp_json *json, const char *key, size_t bytes)
{
    before_value(json);
    put_quoted(json->sink, key, bytes);
    tp_sink_put(json->sink, ":", 1);
    json->after_key = true;
}

void tp_json_key(struct tp_json *json, const char *key)
{
    tp_json_key_bytes(json, key, strlen(key));
}

void tp_json_string(struct tp_json *json, const char *text, size_t bytes)
{
    before_value(json);
    put_quoted(json->sink, text, bytes);
}

void tp_json_text(struct tp_json *json, const char *text)
{
    tp_json_string(json, text, strlen(text));
}

/* Decimal digits at the end of a buffer; returns where they begin. */
static char *digits_before(char *end, uint64_t value)
{
    do
        *--end = (char)('0' + value % 10);
    while (value /= 10);
    return end;
}

void tp_json_u64(struct tp_json *json, uint64_t value)
{
    char text[20], *end = text + sizeof text, *begin = digits_before(end, value);
    tp_json_raw(json, begin, (size_t)(end - begin));
}

void tp_json_i64(struct tp_json *json, int64_t value)
{
    char text[21], *end = text + sizeof text;
    char *begin = digits_before(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    if (value < 0)
        *--begin = '-';
    tp_json_raw(json, begin, (size_t)(end - begin));
}

void tp_json_double(struct tp_json *json, double value)
{
    if (!isfinite(value)) {
        tp_json_null(json);
        return;
    }
    char text[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    /* The decimal point is that of the program's locale, and may have several bytes. */
    size_t point = strspn(text, "-0123456789"), after = point;
    while (text[after] && !strchr("0123456789e", text[after]))
        after++;
    if (after > point) {
        text[point] = '.';
        memmove(text + point + 1, text + after, strlen(text + after) + 1);
    }
    tp_json_raw(json, text, strlen(text));
}

void tp_json_bool(struct tp_json *json, bool value)
{
    tp_json_raw(json, value ? "true" : "false", value ? 4 : 5);
}

void tp_json_null(struct tp_json *json)
{
    tp_json_raw(json, "null", 4);
}

void tp_json_us(struct tp_json *json, uint64_t nanoseconds)
{
    char text[24], *end = text + sizeof text;
    *--end = (char)('0' + nanoseconds % 10);
    *--end = (char)('0' + nanoseconds / 10 % 10);
    *--end = (char)('0' + nanoseconds / 100 % 10);
    *--end = '.';
    char *begin = digits_before(end, nanoseconds / 1000);
    tp_json_raw(json, begin, (size_t)(text + sizeof text - begin));
}

void tp_json_raw(struct tp_json *json, const char *text, size_t bytes)
{
    before_value(json);
    tp_sink_put(json->sink, text, bytes);
}

void tp_json_text_member(struct tp_json *json, const char *key, const char *value)
{
    tp_json_key(json, key);
    tp_json_text(json, value);
}

void tp_json_u64_member(struct tp_json *json, const char *key, uint64_t value)
{
    tp_json_key(json, key);
    tp_json_u64(json, value);
}
