#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../../output/json_in.h"
#include "bytes_from.h"
#include "suites.h"

static struct tp_arena arena;
static struct bytes_from bytes;

static void setup(void)
{
    tp_arena_init(&arena, 0);
}

static void teardown(void)
{
    tp_arena_free(&arena);
}

static struct tp_json_in *reader(const char *text, size_t length, size_t piece)
{
    struct tp_json_in *in = tp_json_in_new(bytes_from(&bytes, text, length, piece), &arena);
    ck_assert_ptr_nonnull(in);
    return in;
}

/* Every token in one letter, texts behind it. */
static void tokens_of(const char *text, size_t length, size_t piece, char *ret)
{
    static const char letters[] = {[TP_JSON_FAILED] = '!', [TP_JSON_END] = '.', [TP_JSON_OBJECT] = '{',
                                   [TP_JSON_OBJECT_END] = '}', [TP_JSON_ARRAY] = '[', [TP_JSON_ARRAY_END] = ']',
                                   [TP_JSON_KEY] = 'k', [TP_JSON_STRING] = 's', [TP_JSON_NUMBER] = 'n',
                                   [TP_JSON_TRUE] = 't', [TP_JSON_FALSE] = 'f', [TP_JSON_NULL] = '0'};
    struct tp_json_in *in = reader(text, length, piece);
    enum tp_json_token token;
    do {
        token = tp_json_in_next(in);
        *ret++ = letters[token];
        if (token == TP_JSON_KEY || token == TP_JSON_STRING || token == TP_JSON_NUMBER)
            ret += sprintf(ret, "(%s)", in->text);
    } while (token != TP_JSON_END && token != TP_JSON_FAILED);
    *ret = 0;
}

START_TEST(tokens)
{
    static const struct {
        const char *text, *tokens;
    } rows[] = {
        {"{}", "{}."},
        {" [ ] ", "[]."},
        {"null", "0."},
        {"-0.5e+3", "n(-0.5e+3)."},
        {"{\"a\":[1,true,{\"b\":null}],\"c\":false}", "{k(a)[n(1)t{k(b)0}]k(c)f}."},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "s(\"\\/\b\f\n\r\t)."},
        {"\"\\u00e9\\u20AC\\ud83d\\ude00\"", "s(\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80)."},
        {"\"\xc3\xa9\xf0\x9f\x98\x80\"", "s(\xc3\xa9\xf0\x9f\x98\x80)."},
    };
    char got[256];
    for (size_t i = 0; i < TP_COUNT(rows); i++)
        for (size_t piece = 1; piece < 10; piece++) { /* however the bytes come */
            tokens_of(rows[i].text, strlen(rows[i].text), piece, got);
            ck_assert_str_eq(got, rows[i].tokens);
        }
}
END_TEST

START_TEST(flaws_and_their_places)
{
    static const struct {
        const char *text;
        uint64_t offset, line, column;
        const char *flaw;
    } rows[] = {
        {"", 0, 1, 1, "ends early"},
        {"  ", 2, 1, 3, "ends early"},
        {"[1,]", 3, 1, 4, "no JSON value"},
        {"[1 2]", 3, 1, 4, "comma or ]"},
        {"{\"a\":1,}", 7, 1, 8, "name in quotes"},
        {"{\"a\" 1}", 5, 1, 6, "colon"},
        {"{\"a\":1]", 6, 1, 7, "comma or }"},
        {"{a:1}", 1, 1, 2, "name in quotes"},
        {"[1]\n x", 5, 2, 2, "behind the end"},
        {"{\n\n  \"a\": nul}", 13, 3, 11, "no JSON value"},
        {"[01]", 2, 1, 3, "begin with 0"},
        {"[-]", 2, 1, 3, "needs a digit"},
        {"[1.]", 3, 1, 4, "behind its point"},
        {"[1e]", 3, 1, 4, "exponent"},
        {"[.5]", 1, 1, 2, "no JSON value"},
        {"[+1]", 1, 1, 2, "no JSON value"},
        {"[NaN]", 1, 1, 2, "no JSON value"},
        {"[\"a\nb\"]", 3, 1, 4, "control character"},
        {"[\"a\\x\"]", 4, 1, 5, "no such escape"},
        {"[\"\\u12g4\"]", 6, 1, 7, "hexadecimal"},
        {"[\"\\ud800\"]", 2, 1, 3, "surrogate"},
        {"[\"\\udc00\"]", 2, 1, 3, "surrogate"},
        {"[\"\\ud800\\u0041\"]", 2, 1, 3, "surrogate"},
        {"[\"abc", 5, 1, 6, "inside a string"},
        {"[\"\xff\"]", 2, 1, 3, "UTF-8"},
        {"[\"\xc0\x80\"]", 2, 1, 3, "UTF-8"},
        {"[\"\xed\xa0\x80\"]", 2, 1, 3, "UTF-8"},
        {"[\"a\xc3\"]", 3, 1, 4, "UTF-8"},
        {"\xef\xbb\xbf{}", 0, 1, 1, "no JSON value"},
    };
    for (size_t i = 0; i < TP_COUNT(rows); i++)
        for (size_t piece = 1; piece < 10; piece += 4) {
            struct tp_json_in *in = reader(rows[i].text, strlen(rows[i].text), piece);
            enum tp_json_token token;
            while ((token = tp_json_in_next(in)) != TP_JSON_FAILED)
                ck_assert_msg(token != TP_JSON_END, "%s is taken for valid", rows[i].text);
            ck_assert_int_eq(in->status, -EINVAL);
            ck_assert_msg(strstr(in->flaw, rows[i].flaw) != NULL, "%s: %s", rows[i].text, in->flaw);
            ck_assert_msg(in->flaw_offset == rows[i].offset, "%s: at %d", rows[i].text, (int)in->flaw_offset);
            ck_assert_uint_eq(in->flaw_line, rows[i].line);
            ck_assert_uint_eq(in->flaw_column, rows[i].column);
            ck_assert_int_eq(tp_json_in_next(in), TP_JSON_FAILED);
        }
}
END_TEST

START_TEST(depth_is_bounded)
{
    char text[2 * TP_JSON_IN_DEPTH + 3], got[sizeof text + 8];
    for (size_t depth = TP_JSON_IN_DEPTH; depth <= TP_JSON_IN_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        tokens_of(text, 2 * depth, 1000, got);
        ck_assert_int_eq(got[strlen(got) - 1], depth == TP_JSON_IN_DEPTH ? '.' : '!');
    }
}
END_TEST

/* A text of 10 MB: read to its end in fixed memory, its beginning given, its hash that of the whole. */
START_TEST(long_text)
{
    size_t length = 10 << 20, mapped;
    char *text = malloc(length);
    memset(text, 'x', length);
    text[0] = text[length - 1] = '"';
    struct tp_json_in *in = reader(text, length, 1 << 20);
    mapped = arena.mapped;
    ck_assert_int_eq(tp_json_in_next(in), TP_JSON_STRING);
    ck_assert_uint_eq(in->full_bytes, length - 2);
    ck_assert_uint_eq(in->text_bytes, TP_JSON_IN_TEXT - 1);
    uint64_t hash = tp_json_in_hash(in);
    ck_assert_int_eq(tp_json_in_next(in), TP_JSON_END);
    ck_assert_uint_eq(arena.mapped, mapped);
    text[length - 2] = 'y';
    in = reader(text, length, 4093);
    ck_assert_int_eq(tp_json_in_next(in), TP_JSON_STRING);
    ck_assert_uint_ne(tp_json_in_hash(in), hash);
    free(text);
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Random texts over the alphabet of JSON, and valid ones with a byte changed: valid here if jansson takes them. */
START_TEST(against_jansson)
{
    static const char alphabet[] = "{}[],:\"\\ \n0123456789-+.eEtruefalsnu\x01\x7f\xc3\xa9\xed\xa0\x80/b",
                      seed[] = "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":12.005e3,\"n\":"
                               "\"\\u00e9\\ud83d\\ude00\xc3\xa9\"},true,null,[-0.1,[]]],\"a\":{}}";
    uint64_t state = (uint64_t)_i + 1;
    unsigned valid = 0;
    for (unsigned round = 0; round < 3000; round++) {
        char text[160], got[2048];
        size_t length;
        if (round % 2) {
            length = 1 + next_random(&state) % 12;
            for (size_t i = 0; i < length; i++)
                text[i] = alphabet[next_random(&state) % (sizeof alphabet - 1)];
        } else {
            length = sizeof seed - 1;
            memcpy(text, seed, length);
            for (unsigned changes = (unsigned)next_random(&state) % 3; changes > 0; changes--)
                text[next_random(&state) % length] = alphabet[next_random(&state) % (sizeof alphabet - 1)];
        }
        json_error_t error;
        json_t *value = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        tokens_of(text, length, 1 + round % 20, got);
        bool taken = got[strlen(got) - 1] == '.';
        /* jansson's own bounds are of numbers. */
        if (value || !strstr(error.text, "too big"))
            ck_assert_msg(taken == (value != NULL), "jansson: %s; here: %s; text: %.*s", value ? "valid" : error.text,
                          got, (int)length, text);
        valid += taken;
        json_decref(value);
    }
    ck_assert_uint_gt(valid, 100);
}
END_TEST

static char *compress_text(const char *text, size_t length, size_t *ret_length)
{
    z_stream stream = {0};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    size_t room = deflateBound(&stream, length);
    char *out = malloc(room);
    stream.next_in = (Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)length;
    stream.next_out = (Bytef *)out;
    stream.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    *ret_length = room - stream.avail_out;
    deflateEnd(&stream);
    return out;
}

static ssize_t read_all(struct tp_gzip_in *in, char *out, size_t room, size_t piece)
{
    struct tp_bytes_in source = tp_gzip_in_bytes(in);
    size_t used = 0;
    for (;;) {
        ssize_t n = source.read(source.context, out + used, piece < room - used ? piece : room - used);
        if (n <= 0)
            return n < 0 ? n : (ssize_t)used;
        used += (size_t)n;
    }
}

START_TEST(gzip_members_and_flaws)
{
    size_t length = 300000, packed_length, both;
    char *text = malloc(length), *out = malloc(2 * length + 1000);
    uint64_t state = 3;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)next_random(&state);
    text[0] = 'p'; /* not by chance the magic bytes */
    char *packed = compress_text(text, length, &packed_length);
    char *two = malloc(2 * packed_length + 1);
    memcpy(two, packed, packed_length);
    memcpy(two + packed_length, packed, packed_length);
    both = 2 * packed_length;
    for (size_t piece = 1; piece < 200000; piece = piece * 7 + 3) {
        ssize_t got =
            read_all(tp_gzip_in_new(bytes_from(&bytes, text, length, piece), &arena), out, 2 * length + 1, 5000);
        ck_assert_int_eq(got, (ssize_t)length); /* plain */
        ck_assert_mem_eq(out, text, length);
        got = read_all(tp_gzip_in_new(bytes_from(&bytes, two, both, piece), &arena), out, 2 * length + 1, piece);
        ck_assert_int_eq(got, 2 * (ssize_t)length);
        ck_assert_mem_eq(out, text, length);
        ck_assert_mem_eq(out + length, text, length);
    }
    struct tp_gzip_in *in = tp_gzip_in_new(bytes_from(&bytes, two, both - 5, 1000), &arena);
    ck_assert_int_eq(read_all(in, out, 2 * length + 1, 5000), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(tp_gzip_in_flaw(in), "early"));
    two[both] = 'x';
    in = tp_gzip_in_new(bytes_from(&bytes, two, both + 1, 1000), &arena);
    ck_assert_int_eq(read_all(in, out, 2 * length + 1, 5000), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(tp_gzip_in_flaw(in), "behind"));
    two[both - 6] ^= 1; /* of the checksum */
    in = tp_gzip_in_new(bytes_from(&bytes, two, both, 1000), &arena);
    ck_assert_int_eq(read_all(in, out, 2 * length + 1, 5000), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(tp_gzip_in_flaw(in), "damaged"));
    in = tp_gzip_in_new(bytes_from(&bytes, "", 0, 1), &arena);
    ck_assert_int_eq(read_all(in, out, 10, 10), 0);
    free(two);
    free(packed);
    free(out);
    free(text);
}
END_TEST

static ssize_t broken_read(void *context, void *room, size_t count)
{
    int *calls = context;
    if (++*calls > 1 || count < 3)
        return -EIO;
    memcpy(room, "[1,", 3);
    return 3;
}

START_TEST(source_fails)
{
    int calls = 0;
    struct tp_json_in *in = tp_json_in_new((struct tp_bytes_in){broken_read, &calls}, &arena);
    ck_assert_int_eq(tp_json_in_next(in), TP_JSON_ARRAY);
    ck_assert_int_eq(tp_json_in_next(in), TP_JSON_NUMBER);
    ck_assert_int_eq(tp_json_in_next(in), TP_JSON_FAILED);
    ck_assert_int_eq(in->status, -EIO);
    ck_assert_uint_eq(in->flaw_offset, 3);
}
END_TEST

Suite *json_in_suite(void)
{
    Suite *suite = suite_create("json_in");
    TCase *tcase = tcase_create("json_in");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, tokens);
    tcase_add_test(tcase, flaws_and_their_places);
    tcase_add_test(tcase, depth_is_bounded);
    tcase_add_test(tcase, long_text);
    tcase_add_loop_test(tcase, against_jansson, 0, 20);
    tcase_add_test(tcase, gzip_members_and_flaws);
    tcase_add_test(tcase, source_fails);
    suite_add_tcase(suite, tcase);
    return suite;
}
