#include <inttypes.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../output/json.h"
#include "scratch.h"
#include "suites.h"

static struct tp_arena arena;
static struct tp_sink *sink;
static struct tp_json json;

static void setup(void)
{
    scratch_setup();
    tp_arena_init(&arena, 0);
    sink = tp_sink_open(&(struct tp_sink_options){.folder = scratch_folder, .name = "a.json"}, &arena, NULL);
    ck_assert_ptr_nonnull(sink);
    tp_json_init(&json, sink);
}

static void teardown(void)
{
    tp_arena_free(&arena);
    scratch_teardown();
}

static char *text_written(void)
{
    ck_assert_int_eq(tp_sink_close(sink, NULL, NULL), 0);
    return scratch_read("a.json", NULL);
}

static json_t *value_written(void)
{
    char *text = text_written();
    json_error_t error;
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(value != NULL, "%s at %d: %.80s", error.text, error.position, text);
    free(text);
    return value;
}

START_TEST(forms_and_commas)
{
    tp_json_open_object(&json);
    tp_json_u64_member(&json, "a", UINT64_MAX);
    tp_json_key(&json, "b");
    tp_json_open_array(&json);
    tp_json_close_array(&json);
    tp_json_key(&json, "c");
    tp_json_open_array(&json);
    tp_json_i64(&json, INT64_MIN);
    tp_json_i64(&json, 0);
    tp_json_bool(&json, true);
    tp_json_bool(&json, false);
    tp_json_null(&json);
    tp_json_open_object(&json);
    tp_json_text_member(&json, "x", "y");
    tp_json_key(&json, "z");
    tp_json_raw(&json, "[1]", 3);
    tp_json_close_object(&json);
    tp_json_close_array(&json);
    tp_json_close_object(&json);
    char *text = text_written();
    ck_assert_str_eq(text, "{\"a\":18446744073709551615,\n\"b\":[],\n\"c\":[-9223372036854775808,\n0,\ntrue,\nfalse,\n"
                           "null,\n{\"x\":\"y\",\"z\":[1]}]}");
    free(text);
}
END_TEST

START_TEST(compact_has_no_newline)
{
    json.compact = true;
    tp_json_open_array(&json);
    tp_json_u64(&json, 1);
    tp_json_u64(&json, 2);
    tp_json_close_array(&json);
    char *text = text_written();
    ck_assert_str_eq(text, "[1,2]");
    free(text);
}
END_TEST

/* More forms than the writer can keep account of must not write outside of it. */
START_TEST(deep_nesting_is_harmless)
{
    for (int i = 0; i < 4 * TP_JSON_MAX_DEPTH; i++)
        tp_json_open_array(&json);
    for (int i = 0; i < 4 * TP_JSON_MAX_DEPTH; i++)
        tp_json_close_array(&json);
    ck_assert_ptr_eq(json.sink, sink);
    ck_assert_uint_eq(json.depth, 0);
}
END_TEST

static const struct {
    const char *in, *out;
} sequences[] = {
    {"caf\xc3\xa9", NULL},                                        /* two bytes */
    {"\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", NULL}, /* edges of two and three; U+FFFF */
    {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\xf0\x9f\x94\xa5", NULL},   /* edges of four; an emoji */
    {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},                     /* overlong NUL */
    {"\xc1\xbf", "\xef\xbf\xbd\xef\xbf\xbd"},                     /* overlong two */
    {"\xe0\x9f\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},     /* overlong three */
    {"\xf0\x8f\xbf\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* overlong four */
    {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},     /* half a surrogate */
    {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* above U+10FFFF */
    {"\xf5\x80\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"a\x80z", "a\xef\xbf\xbdz"},                                 /* a tail without its lead */
    {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},                     /* cut at the end */
    {"\xe2\x82z\xe2\x82\xac", "\xef\xbf\xbd\xef\xbf\xbdz\xe2\x82\xac"}, /* cut in the middle, then whole */
    {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"we\\ird", NULL},
    {"\\u12", NULL},
    {"trailing\\", NULL},
    {"\"quoted\"\\\"", NULL},
    {"12345678\"0123456\\\x7f", NULL},                            /* behind a whole word */
};

START_TEST(sequences_are_kept_or_replaced)
{
    const char *in = sequences[_i].in, *out = sequences[_i].out ? sequences[_i].out : in;
    tp_json_text(&json, in);
    json_t *value = value_written();
    ck_assert_str_eq(json_string_value(value), out);
    json_decref(value);
}
END_TEST

/* C03: each byte at each place of a word reads back, or is U+FFFD if it cannot. */
START_TEST(every_byte_reads_back)
{
    tp_json_open_array(&json);
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 17; at++) {
            char text[17];
            memset(text, 'x', sizeof text);
            text[at] = (char)byte;
            tp_json_string(&json, text, sizeof text);
        }
    }
    tp_json_close_array(&json);
    json_t *value = value_written();
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 17; at++) {
            const json_t *item = json_array_get(value, (size_t)byte * 17 + at);
            const char *text = json_string_value(item);
            ck_assert_uint_eq(json_string_length(item), byte < 0x80 ? 17 : 19);
            for (size_t i = 0; i < 17; i++)
                if (i != at)
                    ck_assert_int_eq(text[i < at || byte < 0x80 ? i : i + 2], 'x');
            if (byte < 0x80)
                ck_assert_int_eq(text[at], byte);
            else
                ck_assert_int_eq(memcmp(text + at, "\xef\xbf\xbd", 3), 0);
        }
    }
    json_decref(value);
}
END_TEST

/* 1 MB, so that the pieces in which it is escaped end inside sequences of every length. */
START_TEST(long_string_reads_back)
{
    static const char *const parts[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x94\xa5", "\\", "\n"};
    size_t used = 0, size = 1 << 20;
    char *text = malloc(size + 8);
    for (unsigned n = 1; used < size; n = n * 1103515245 + 12345)
        used = (size_t)(stpcpy(text + used, parts[(n >> 16) % TP_COUNT(parts)]) - text);
    tp_json_string(&json, text, used);
    json_t *value = value_written();
    ck_assert_uint_eq(json_string_length(value), used);
    ck_assert_int_eq(memcmp(json_string_value(value), text, used), 0);
    json_decref(value);
    free(text);
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* C07: 12005 is 12.005. Text back to nanoseconds is equal, for the edges and a million values of every size. */
START_TEST(nanoseconds_read_back)
{
    static const uint64_t edges[] = {0, 1, 9, 10, 99, 100, 999, 1000, 1001, 12005, UINT64_C(1) << 53,
                                     (UINT64_C(1) << 53) + 1, INT64_MAX, UINT64_MAX};
    const size_t count = 1000000;
    tp_json_open_array(&json);
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++)
        tp_json_us(&json, i < TP_COUNT(edges) ? edges[i] : next_random(&state) >> (i % 60));
    tp_json_close_array(&json);
    char *text = text_written(), *at = text + 1;
    state = 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t expected = i < TP_COUNT(edges) ? edges[i] : next_random(&state) >> (i % 60);
        char *point, *end;
        uint64_t whole = strtoull(at, &point, 10);
        ck_assert_int_eq(*point, '.');
        uint64_t rest = strtoull(point + 1, &end, 10);
        ck_assert_int_eq(end - point, 4);
        ck_assert_uint_eq(whole * 1000 + rest, expected);
        at = end + (*end == ',') + 1;
    }
    ck_assert_uint_eq(*at, '\0');
    free(text);
}
END_TEST

START_TEST(doubles_read_back)
{
    static const double edges[] = {0.0, -0.0, 1.0, 0.1, -1.5, 1e300, 5e-324,
                                   1.7976931348623157e308, 123456789.125, 1e20};
    const size_t count = 20000;
    /* A program may have set a locale whose decimal point is a comma. */
    setlocale(LC_NUMERIC, "de_DE.UTF-8");
    tp_json_open_array(&json);
    uint64_t state = 7;
    double *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = next_random(&state);
        memcpy(&values[i], &bits, sizeof bits);
        if (i < TP_COUNT(edges))
            values[i] = edges[i];
        tp_json_double(&json, values[i]);
    }
    tp_json_double(&json, NAN);
    tp_json_double(&json, -INFINITY);
    tp_json_close_array(&json);
    setlocale(LC_NUMERIC, "C");
    json_t *array = value_written();
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            ck_assert_double_eq(json_number_value(json_array_get(array, i)), values[i]);
        else
            ck_assert(json_is_null(json_array_get(array, i)));
    ck_assert(json_is_null(json_array_get(array, count)) && json_is_null(json_array_get(array, count + 1)));
    json_decref(array);
    free(values);
}
END_TEST

START_TEST(double_text_is_the_shortest)
{
    tp_json_open_array(&json);
    tp_json_double(&json, 0.1);
    tp_json_double(&json, 2.0);
    tp_json_double(&json, 1.0 / 3);
    tp_json_close_array(&json);
    char *text = text_written();
    ck_assert_str_eq(text, "[0.1,\n2,\n0.3333333333333333]");
    free(text);
}
END_TEST

Suite *json_suite(void)
{
    Suite *suite = suite_create("json");
    TCase *tcase = tcase_create("json");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, forms_and_commas);
    tcase_add_test(tcase, compact_has_no_newline);
    tcase_add_test(tcase, deep_nesting_is_harmless);
    tcase_add_loop_test(tcase, sequences_are_kept_or_replaced, 0, (int)TP_COUNT(sequences));
    tcase_add_test(tcase, every_byte_reads_back);
    tcase_add_test(tcase, long_string_reads_back);
    tcase_add_test(tcase, nanoseconds_read_back);
    tcase_add_test(tcase, doubles_read_back);
    tcase_add_test(tcase, double_text_is_the_shortest);
    suite_add_tcase(suite, tcase);
    return suite;
}
