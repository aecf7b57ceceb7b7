/*
 * json.h: a streaming JSON writer that knows its open forms (commas, nesting) and makes any bytes a valid string.
 *
 * Strings: quote, backslash and control characters below 0x20 and 0x7f are escaped; valid UTF-8 is kept as it is; a
 * byte that is not part of valid UTF-8 becomes U+FFFD (overlong forms, surrogates and values above U+10FFFF are not
 * valid); NUL bytes are escaped like the rest. Numbers are exact: integers in decimal, nanoseconds as microseconds
 * with three decimals by integer arithmetic.
 */
#ifndef TP_JSON_H
#define TP_JSON_H

#include "../agent/base.h"
#include "sink.h"

#define TP_JSON_MAX_DEPTH 32

struct tp_json {
    struct tp_sink *sink;
    uint8_t depth;
    bool compact;                    /* no newlines between array items of the outermost forms */
    bool item[TP_JSON_MAX_DEPTH + 1]; /* an item was written at this depth: a comma comes first */
    bool after_key;
};

void tp_json_init(struct tp_json *json, struct tp_sink *sink);
void tp_json_open_object(struct tp_json *json);
void tp_json_close_object(struct tp_json *json);
void tp_json_open_array(struct tp_json *json);
void tp_json_close_array(struct tp_json *json);
void tp_json_key(struct tp_json *json, const char *key);
void tp_json_key_bytes(struct tp_json *json, const char *key, size_t bytes);
void tp_json_string(struct tp_json *json, const char *text, size_t bytes);
void tp_json_text(struct tp_json *json, const char *text); /* NUL-terminated */
void tp_json_u64(struct tp_json *json, uint64_t value);
void tp_json_i64(struct tp_json *json, int64_t value);
void tp_json_double(struct tp_json *json, double value); /* shortest form that reads back equal; not finite: null */
void tp_json_bool(struct tp_json *json, bool value);
void tp_json_null(struct tp_json *json);
void tp_json_us(struct tp_json *json, uint64_t nanoseconds); /* 12005 -> 12.005 */
void tp_json_raw(struct tp_json *json, const char *text, size_t bytes); /* text that is valid JSON already */

/* A key and its value at once. */
void tp_json_text_member(struct tp_json *json, const char *key, const char *value);
void tp_json_u64_member(struct tp_json *json, const char *key, uint64_t value);

/* The escaped form of a string without its quotes, for a writer's inner loop: at most TP_JSON_ESCAPE_MAX bytes out per
 * byte in. Returns the bytes written to ret. */
#define TP_JSON_ESCAPE_MAX 6
size_t tp_json_escape(char *ret, const char *text, size_t bytes);

#endif
