#include "json_in.h"

#include <errno.h>
#include <string.h>

#include "utf8.h"

enum state { VALUE, FIRST_VALUE, FIRST_KEY, NEXT_KEY, AFTER_VALUE, DONE, FAILED };

#define NO_BYTE (-1)
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)
#define ONES UINT64_C(0x0101010101010101)

struct tp_json_in *tp_json_in_new(struct tp_bytes_in source, struct tp_arena *arena)
{
    struct tp_json_in *in = tp_arena_alloc(arena, sizeof *in);
    if (!in)
        return NULL;
    in->source = source;
    in->line = 1;
    in->buffer = tp_arena_alloc(arena, TP_JSON_IN_BUFFER);
    in->text_buffer = tp_arena_alloc(arena, TP_JSON_IN_TEXT);
    in->text = in->text_buffer;
    return in->buffer && in->text_buffer ? in : NULL;
}

static uint64_t offset_of(const struct tp_json_in *in)
{
    return in->buffer_offset + in->at;
}

/* The flaw is in the byte that was read last, or behind the last one. The first flaw stays. */
static enum tp_json_token fail_at(struct tp_json_in *in, uint64_t offset, const char *flaw)
{
    if (in->state != FAILED) {
        in->state = FAILED;
        in->status = -EINVAL;
        in->flaw = flaw;
        in->flaw_offset = offset;
        in->flaw_line = in->line;
        in->flaw_column = offset - in->line_offset + 1;
    }
    return TP_JSON_FAILED;
}

static enum tp_json_token fail(struct tp_json_in *in, const char *flaw)
{
    return fail_at(in, offset_of(in), flaw);
}

/* True if there is a byte at in->at. At least `wanted` of them, fewer only at the end. */
static bool fill(struct tp_json_in *in, size_t wanted)
{
    while (in->end - in->at < wanted) {
        memmove(in->buffer, in->buffer + in->at, in->end - in->at);
        in->buffer_offset += in->at;
        in->end -= in->at;
        in->at = 0;
        ssize_t n = in->source.read(in->source.context, in->buffer + in->end, TP_JSON_IN_BUFFER - in->end);
        if (n < 0) {
            fail(in, "the file cannot be read on");
            in->status = (int)n;
            return false;
        }
        if (n == 0)
            break;
        in->end += (size_t)n;
    }
    return in->at < in->end;
}

static inline int peek(struct tp_json_in *in)
{
    return in->at < in->end || fill(in, 1) ? in->buffer[in->at] : NO_BYTE;
}

/* The next byte that is no white space; a newline counts. */
static int peek_token(struct tp_json_in *in)
{
    do {
        const unsigned char *at = in->buffer + in->at, *end = in->buffer + in->end;
        for (; at < end; at++) {
            if (*at == ' ' || *at == '\t' || *at == '\r')
                continue;
            in->at = (size_t)(at - in->buffer);
            if (*at != '\n')
                return *at;
            in->line++;
            in->line_offset = offset_of(in) + 1;
        }
        in->at = (size_t)(at - in->buffer);
    } while (fill(in, 1));
    return NO_BYTE;
}

static enum tp_json_token unexpected(struct tp_json_in *in, int byte, const char *flaw)
{
    return fail(in, byte == NO_BYTE ? "the text ends early" : flaw);
}

/* Texts. */

static void begin_text(struct tp_json_in *in)
{
    in->text = in->text_buffer;
    in->text_bytes = 0;
    in->full_bytes = 0;
    in->beyond = HASH_BEGIN;
}

static void add_text(struct tp_json_in *in, const unsigned char *bytes, size_t count)
{
    if (in->passing)
        return;
    size_t room = TP_JSON_IN_TEXT - 1 - in->text_bytes, kept = count < room ? count : room;
    memcpy(in->text_buffer + in->text_bytes, bytes, kept);
    in->text_bytes += kept;
    in->full_bytes += count;
    for (size_t i = kept; i < count; i++)
        in->beyond = (in->beyond ^ bytes[i]) * HASH_PRIME;
}

static void end_text(struct tp_json_in *in)
{
    in->text_buffer[in->text_bytes] = 0;
}

static uint64_t mixed(uint64_t hash)
{
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

uint64_t tp_json_in_hash(const struct tp_json_in *in)
{
    uint64_t hash = in->beyond ^ in->full_bytes, rest = 0;
    const char *at = in->text;
    size_t left = in->text_bytes;
    for (; left >= 8; at += 8, left -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = mixed(hash ^ word);
    }
    memcpy(&rest, at, left);
    return mixed(hash ^ rest);
}

/* Four hexadecimal digits at in->at; negative: they are not. */
static int32_t hex4(struct tp_json_in *in)
{
    int32_t value = 0;
    for (unsigned i = 0; i < 4; i++) {
        int byte = peek(in), low = byte | 0x20;
        if (byte >= '0' && byte <= '9')
            value = value * 16 + byte - '0';
        else if (byte != NO_BYTE && low >= 'a' && low <= 'f')
            value = value * 16 + low - 'a' + 10;
        else
            return -1;
        in->at++;
    }
    return value;
}

static void add_code(struct tp_json_in *in, uint32_t code)
{
    unsigned char bytes[4];
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = count - 1; i > 0; i--, code >>= 6)
        bytes[i] = (unsigned char)(0x80 | (code & 0x3f));
    bytes[0] = (unsigned char)(leads[count] | code);
    add_text(in, bytes, count);
}

/* Behind the backslash. */
static bool read_escape(struct tp_json_in *in)
{
    static const char names[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    int byte = peek(in);
    uint64_t start = offset_of(in) - 1;
    const char *name = byte > 0 && byte < 0x80 ? strchr(names, byte) : NULL;
    if (name) {
        add_text(in, (const unsigned char *)&codes[name - names], 1);
        in->at++;
        return true;
    }
    if (byte != 'u') {
        unexpected(in, byte, "there is no such escape in a string");
        return false;
    }
    in->at++;
    int32_t code = hex4(in);
    if (code < 0) {
        unexpected(in, peek(in), "\\u needs four hexadecimal digits");
        return false;
    }
    if (code >= 0xd800 && code < 0xe000) {
        int32_t low = -1;
        if (code < 0xdc00 && fill(in, 6) && in->end - in->at >= 2 && in->buffer[in->at] == '\\' &&
            in->buffer[in->at + 1] == 'u') {
            in->at += 2;
            low = hex4(in);
        }
        if (low < 0xdc00 || low >= 0xe000) {
            fail_at(in, start, "half a surrogate pair is no character");
            return false;
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    add_code(in, (uint32_t)code);
    return true;
}

/* How many bytes from here on stand for themselves: ASCII, no control character, no quote and no backslash. A word at a
 * time: a byte below a bound borrows from its top bit, and XOR turns "equal" into "zero". A borrow may mark a byte
 * above one that is special, never the first. (x86-64 and the other machines that we build for put the first byte
 * lowest.) */
static size_t plain_bytes(const unsigned char *from, const unsigned char *end)
{
    const unsigned char *at = from;
    for (; end - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        uint64_t quote = word ^ ONES * '"', backslash = word ^ ONES * '\\';
        uint64_t special = (word | (word - ONES * 0x20) | (quote - ONES) | (backslash - ONES)) & ONES * 0x80;
        if (special)
            return (size_t)(at - from) + (size_t)__builtin_ctzll(special) / 8;
    }
    while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\')
        at++;
    return (size_t)(at - from);
}

/* The usual string, without an escape and whole in the buffer: it stays there, its closing quote becomes the NUL. */
static bool read_plain_string(struct tp_json_in *in)
{
    size_t plain = plain_bytes(in->buffer + in->at, in->buffer + in->end), end = in->at + plain;
    if (end == in->end || in->buffer[end] != '"' || plain >= TP_JSON_IN_TEXT)
        return false;
    if (!in->passing) {
        in->text = (char *)in->buffer + in->at;
        in->text_bytes = in->full_bytes = plain;
        in->buffer[end] = 0;
    }
    in->at = end + 1;
    return true;
}

/* Behind the opening quote, up to and with the closing one. */
static bool read_string(struct tp_json_in *in)
{
    begin_text(in);
    if (read_plain_string(in))
        return true;
    for (;;) {
        if (peek(in) == NO_BYTE) {
            fail(in, "the text ends inside a string");
            return false;
        }
        size_t plain = plain_bytes(in->buffer + in->at, in->buffer + in->end);
        add_text(in, in->buffer + in->at, plain);
        in->at += plain;
        if (in->at == in->end)
            continue;
        unsigned char byte = in->buffer[in->at];
        if (byte == '"') {
            in->at++;
            end_text(in);
            return true;
        }
        if (byte == '\\') {
            in->at++;
            if (!read_escape(in))
                return false;
        } else if (byte < 0x20) {
            fail(in, "a control character inside a string has to be escaped");
            return false;
        } else {
            fill(in, 4);
            size_t length = tp_utf8_sequence(in->buffer + in->at, in->end - in->at);
            if (length == 0) {
                fail(in, "this byte is not part of valid UTF-8");
                return false;
            }
            add_text(in, in->buffer + in->at, length);
            in->at += length;
        }
    }
}

static unsigned read_digits(struct tp_json_in *in)
{
    unsigned count = 0;
    while (peek(in) >= '0' && peek(in) <= '9') {
        const unsigned char *from = in->buffer + in->at, *end = in->buffer + in->end, *to = from;
        while (to < end && *to >= '0' && *to <= '9')
            to++;
        add_text(in, from, (size_t)(to - from));
        in->at += (size_t)(to - from);
        count = 1;
    }
    return count;
}

static bool take(struct tp_json_in *in, int wanted)
{
    if (peek(in) != wanted)
        return false;
    unsigned char byte = (unsigned char)wanted;
    add_text(in, &byte, 1);
    in->at++;
    return true;
}

/* The usual number, digits and perhaps a point with digits, whole in the buffer. */
static bool read_plain_number(struct tp_json_in *in)
{
    const unsigned char *from = in->buffer + in->at, *end = in->buffer + in->end, *at = from;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    if (at == end || at == from || (*from == '0' && at - from > 1))
        return false;
    if (*at == '.') {
        const unsigned char *point = at++;
        while (at < end && *at >= '0' && *at <= '9')
            at++;
        if (at == end || at == point + 1)
            return false;
    }
    if (*at == 'e' || *at == 'E')
        return false;
    add_text(in, from, (size_t)(at - from));
    in->at += (size_t)(at - from);
    return true;
}

static enum tp_json_token read_number(struct tp_json_in *in)
{
    begin_text(in);
    if (read_plain_number(in)) {
        end_text(in);
        return TP_JSON_NUMBER;
    }
    take(in, '-');
    if (take(in, '0')) {
        int byte = peek(in);
        if (byte >= '0' && byte <= '9')
            return fail(in, "a number does not begin with 0");
    } else if (read_digits(in) == 0) {
        return unexpected(in, peek(in), "a number needs a digit here");
    }
    if (take(in, '.') && read_digits(in) == 0)
        return unexpected(in, peek(in), "a number needs a digit behind its point");
    if (take(in, 'e') || take(in, 'E')) {
        if (!take(in, '+'))
            take(in, '-');
        if (read_digits(in) == 0)
            return unexpected(in, peek(in), "a number needs a digit in its exponent");
    }
    end_text(in);
    return TP_JSON_NUMBER;
}

static enum tp_json_token read_word(struct tp_json_in *in, const char *word, enum tp_json_token token)
{
    begin_text(in);
    end_text(in);
    for (; *word; word++, in->at++)
        if (peek(in) != *word)
            return unexpected(in, peek(in), "this is no JSON value (true, false and null are the only words)");
    return token;
}

/* Forms. */

static bool in_object(const struct tp_json_in *in)
{
    unsigned top = in->depth - 1;
    return in->forms[top / 64] >> top % 64 & 1;
}

static enum tp_json_token open_form(struct tp_json_in *in, bool object)
{
    if (in->depth == TP_JSON_IN_DEPTH)
        return fail(in, "forms are nested more than 512 deep");
    uint64_t bit = UINT64_C(1) << in->depth % 64, *word = &in->forms[in->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    in->depth++;
    in->at++;
    in->state = object ? FIRST_KEY : FIRST_VALUE;
    return object ? TP_JSON_OBJECT : TP_JSON_ARRAY;
}

static enum tp_json_token close_form(struct tp_json_in *in)
{
    enum tp_json_token token = in_object(in) ? TP_JSON_OBJECT_END : TP_JSON_ARRAY_END;
    in->depth--;
    in->at++;
    in->state = in->depth ? AFTER_VALUE : DONE;
    return token;
}

static enum tp_json_token read_value(struct tp_json_in *in, int byte)
{
    if (byte == '{' || byte == '[')
        return open_form(in, byte == '{');
    enum tp_json_token token;
    if (byte == '"') {
        in->at++;
        token = read_string(in) ? TP_JSON_STRING : TP_JSON_FAILED;
    } else if (byte == '-' || (byte >= '0' && byte <= '9')) {
        token = read_number(in);
    } else if (byte == 't') {
        token = read_word(in, "true", TP_JSON_TRUE);
    } else if (byte == 'f') {
        token = read_word(in, "false", TP_JSON_FALSE);
    } else {
        token = read_word(in, "null", TP_JSON_NULL);
    }
    if (in->state != FAILED)
        in->state = in->depth ? AFTER_VALUE : DONE;
    return in->state == FAILED ? TP_JSON_FAILED : token;
}

/* Out of the buffer, which may move before the token is done. */
static void keep_text(struct tp_json_in *in)
{
    memcpy(in->text_buffer, in->text, in->text_bytes + 1);
    in->text = in->text_buffer;
}

static enum tp_json_token read_key(struct tp_json_in *in, int byte)
{
    if (byte != '"')
        return unexpected(in, byte, "a member's name in quotes belongs here");
    in->at++;
    if (!read_string(in))
        return TP_JSON_FAILED;
    if (in->text != in->text_buffer && !(in->at < in->end && in->buffer[in->at] == ':'))
        keep_text(in);
    byte = peek_token(in);
    if (byte != ':')
        return unexpected(in, byte, "a colon belongs here");
    in->at++;
    in->state = VALUE;
    return TP_JSON_KEY;
}

enum tp_json_token tp_json_in_next(struct tp_json_in *in)
{
    if (in->state == FAILED)
        return TP_JSON_FAILED;
    int byte = peek_token(in);
    in->offset = offset_of(in);
    if (in->state == FAILED)
        return TP_JSON_FAILED;
    in->ends_between = byte == NO_BYTE && (in->state == AFTER_VALUE || in->state == FIRST_VALUE);
    if (in->state == AFTER_VALUE) {
        if (byte == (in_object(in) ? '}' : ']'))
            return close_form(in);
        if (byte != ',')
            return unexpected(in, byte, in_object(in) ? "a comma or } belongs here" : "a comma or ] belongs here");
        in->at++;
        in->state = in_object(in) ? NEXT_KEY : VALUE;
        byte = peek_token(in);
        in->offset = offset_of(in);
        in->ends_between = byte == NO_BYTE;
    }
    switch ((enum state)in->state) {
    case FIRST_KEY:
        return byte == '}' ? close_form(in) : read_key(in, byte);
    case NEXT_KEY:
        return read_key(in, byte);
    case FIRST_VALUE:
        return byte == ']' ? close_form(in) : read_value(in, byte);
    case VALUE:
        return read_value(in, byte);
    case DONE:
        return byte == NO_BYTE ? TP_JSON_END : fail(in, "there is something behind the end");
    case AFTER_VALUE:
    case FAILED:
        break;
    }
    return TP_JSON_FAILED;
}

bool tp_json_in_skip(struct tp_json_in *in)
{
    for (unsigned outside = in->depth - 1; in->depth > outside;)
        if (tp_json_in_next(in) == TP_JSON_FAILED)
            return false;
    return true;
}

bool tp_json_in_pass(struct tp_json_in *in)
{
    in->passing = true;
    enum tp_json_token token = tp_json_in_next(in);
    bool fine = token == TP_JSON_OBJECT || token == TP_JSON_ARRAY ? tp_json_in_skip(in) : token != TP_JSON_FAILED;
    in->passing = false;
    return fine;
}
