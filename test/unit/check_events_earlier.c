#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "../../output/events_earlier.h"
#include "scratch.h"
#include "suites.h"

/* What a file of this text gives to the next one, behind `before` events; the result of the copy. */
static int copied(const char *text, bool gzip, uint64_t before, char **ret, uint64_t *ret_count)
{
    char path[128];
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    snprintf(path, sizeof path, "%s/earlier", scratch_path);
    gzFile file = gzopen(path, gzip ? "wb1" : "wbT");
    ck_assert_int_eq(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
    gzclose(file);
    struct tp_sink *sink = tp_sink_open(&(struct tp_sink_options){.folder = scratch_folder, .name = "next"}, &arena, NULL);
    *ret_count = before;
    int status = tp_events_copy(path, sink, ret_count, &arena);
    ck_assert_int_eq(tp_sink_close(sink, NULL, NULL), 0);
    *ret = scratch_read("next", NULL);
    unlinkat(scratch_folder, "next", 0);
    tp_arena_free(&arena);
    return status;
}

START_TEST(lines_of_events_alone)
{
    static const struct {
        const char *text, *copied;
        uint64_t before, count;
        int status;
    } cases[] = {
        {"{\"schema\":1,\n\"events\":[\n{\"id\":1,\"a\":[2,3]},\n{\"id\":2}\n],\n\"count\":2}\n",
         "\n{\"id\":1,\"a\":[2,3]},\n{\"id\":2}", 0, 2, 0},
        {"[\n{\"id\":7},\n{\"id\":8},,\n]\n", ",\n{\"id\":7},\n{\"id\":8},", 3, 5, 0},
        {"{\"schema\":1,\n\"events\":[\n],\n\"count\":0}\n", "", 0, 0, 0},
        {"{\"ix\":1}\n{\"i\n{\n\n{\"id\"\n", "", 0, 0, 0},
        {"", "", 4, 4, 0},
        {"[\n{\"id\":1},\n{\"id\":2,\"na", "", 0, 0, -EBADMSG},
        {"[\n{\"id\":1},\n{\"id\":2,\"na", "", 3, 3, -EBADMSG},
    };
    for (size_t i = 0; i < TP_COUNT(cases); i++)
        for (int gzip = 0; gzip < 2; gzip++) {
            char *text;
            uint64_t count;
            ck_assert_int_eq(copied(cases[i].text, gzip, cases[i].before, &text, &count), cases[i].status);
            ck_assert_str_eq(text, cases[i].copied);
            ck_assert_uint_eq(count, cases[i].count);
            free(text);
        }
}
END_TEST

/* Lines that end anywhere in what is read at a time, among them at a comma. */
START_TEST(lines_of_any_length)
{
    char *long_text = malloc(200000), *expected = malloc(200000), *text;
    size_t at = 0, to = 0;
    uint64_t count;
    for (unsigned i = 0; i < 20; i++) {
        at += (size_t)sprintf(long_text + at, "{\"id\":%u,%0*d},\n", i, (int)(32 * 1024 / 5 + i * 7 - 13), 0);
        to += (size_t)sprintf(expected + to, "%s{\"id\":%u,%0*d}", i ? ",\n" : "\n", i, (int)(32 * 1024 / 5 + i * 7 - 13), 0);
    }
    ck_assert_int_eq(copied(long_text, _i, 0, &text, &count), 0);
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(count, 20);
    free(text);
    free(expected);
    free(long_text);
}
END_TEST

START_TEST(a_file_that_is_not_there)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    uint64_t count = 0;
    ck_assert_int_eq(tp_events_copy("/nonesuch/events.json", NULL, &count, &arena), -ENOENT);
    tp_arena_free(&arena);
}
END_TEST

Suite *events_earlier_suite(void)
{
    Suite *suite = suite_create("events_earlier");
    TCase *tcase = tcase_create("events_earlier");
    tcase_add_checked_fixture(tcase, scratch_setup, scratch_teardown);
    tcase_add_test(tcase, lines_of_events_alone);
    tcase_add_loop_test(tcase, lines_of_any_length, 0, 2);
    tcase_add_test(tcase, a_file_that_is_not_there);
    suite_add_tcase(suite, tcase);
    return suite;
}
