#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../output/table.h"
#include "scratch.h"
#include "suites.h"
#include "trace_feed.h"

static const struct tp_thread_info trainer = {.serial = 1, .os_id = 10};
static struct trace_feed feed;

static void setup(void)
{
    scratch_setup();
    feed_init(&feed, 1000);
    feed.settings.row_limit = 20;
}

static void teardown(void)
{
    feed_free(&feed);
    scratch_teardown();
}

/* As PyTorch 2.13 prints these rows (test_table_format.py compares many more with it). */
static const char expected[] =
    "----------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
    "            Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  \n"
    "----------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
    "     aten::addmm        66.67%       2.000ms        66.67%       2.000ms       1.000ms             2  \n"
    "    aten::linear        33.33%       1.000ms       100.00%       3.000ms       3.000ms             1  \n"
    "----------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
    "Self CPU time total: 3.000ms\n";

static void two_rows(void)
{
    size_t linear = feed_begin(&feed, &trainer, "aten::linear", 1000);
    feed_range(&feed, &trainer, "aten::addmm", 2000, 1002000)->self_ns = 1000000;
    feed_range(&feed, &trainer, "aten::addmm", 1003000, 2003000)->self_ns = 1000000;
    feed_end(&feed, linear, 3001000)->self_ns = 1000000;
}

static char *file_written(void)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    struct tp_averages *averages = tp_averages_begin(&feed.report, &arena);
    ck_assert_int_eq(tp_averages_segment(averages, feed.events, feed.count), 0);
    ck_assert_int_eq(tp_averages_end(averages), 0);
    feed.report.averages = averages;
    ck_assert_int_eq(feed_write(&feed, &tp_table_writer, scratch_folder, "table.txt", 0), 0);
    char *text = scratch_read("table.txt", NULL);
    ck_assert_ptr_nonnull(text);
    tp_arena_free(&arena);
    return text;
}

START_TEST(file_holds_the_table)
{
    two_rows();
    char *text = file_written();
    ck_assert_str_eq(text, expected);
    free(text);
}
END_TEST

START_TEST(no_file_without_memory_for_its_rows)
{
    ck_assert_int_eq(feed_write(&feed, &tp_table_writer, scratch_folder, "table.txt", 0), -ENOMEM);
    ck_assert_ptr_null(scratch_read("table.txt", NULL));
}
END_TEST

START_TEST(locale_of_the_program_is_no_matter)
{
    char command[256], value[32];
    snprintf(command, sizeof command, "localedef --no-archive -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>&1", scratch_path);
    bool made = system(command) == 0 && setenv("LOCPATH", scratch_path, 1) == 0 && setlocale(LC_ALL, "de_DE.UTF-8");
    if (made) {
        snprintf(value, sizeof value, "%.1f", 1.5);
        ck_assert_str_eq(value, "1,5");
    }
    two_rows();
    char *text = file_written();
    setlocale(LC_ALL, "C");
    snprintf(command, sizeof command, "rm -rf %s/de_DE.UTF-8", scratch_path);
    ck_assert_int_eq(system(command), 0);
    ck_assert_str_eq(text, expected);
    free(text);
}
END_TEST

START_TEST(settings_sort_and_limit)
{
    two_rows();
    feed.settings.sort_by = "cpu_time_total";
    feed.settings.row_limit = 1;
    char *text = file_written();
    ck_assert_ptr_nonnull(strstr(text, "aten::linear"));
    ck_assert_ptr_null(strstr(text, "aten::addmm"));
    free(text);
}
END_TEST

/* A line stays a line, a terminal stays as it was, and the text is UTF-8, whatever a name holds. */
START_TEST(odd_names)
{
    feed_range(&feed, &trainer, "a\nb\x1b[31m\x7f\xff\xc3", 2000, 3000)->self_ns = 1000;
    char *text = file_written();
    ck_assert_ptr_nonnull(strstr(text, "    a?b?[31m?\xef\xbf\xbd\xef\xbf\xbd       100.00%"));
    free(text);
}
END_TEST

START_TEST(sorts_that_are_known)
{
    static const char *const known[] = {"self_cpu_time_total", "cpu_time", "count", "cuda_time_total", "device_time",
                                        "self_xpu_memory_usage", "privateuse1_time", "key"};
    static const char *const unknown[] = {"", "cpu", "self_cuda", "cuda_time_totalx", "xcuda_time", "mps_time"};
    for (size_t i = 0; i < TP_COUNT(known); i++)
        ck_assert_msg(tp_table_knows_sort(known[i]), "%s", known[i]);
    for (size_t i = 0; i < TP_COUNT(unknown); i++)
        ck_assert_msg(!tp_table_knows_sort(unknown[i]), "%s", unknown[i]);
    ck_assert(!tp_table_knows_sort(NULL));
}
END_TEST

START_TEST(text_is_bounded)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    struct tp_text text;
    tp_text_init(&text, &arena, 1000);
    ck_assert_str_eq(text.bytes, "");
    for (unsigned i = 0; i < 300; i++)
        tp_text_put(&text, "12345", 5);
    ck_assert(text.cut);
    ck_assert_uint_eq(text.used, 1000);
    ck_assert_uint_eq(strlen(text.bytes), 1000);
    tp_arena_free(&arena);
}
END_TEST

Suite *table_suite(void)
{
    Suite *suite = suite_create("table");
    TCase *tcase = tcase_create("table");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, file_holds_the_table);
    tcase_add_test(tcase, no_file_without_memory_for_its_rows);
    tcase_add_test(tcase, locale_of_the_program_is_no_matter);
    tcase_add_test(tcase, settings_sort_and_limit);
    tcase_add_test(tcase, odd_names);
    tcase_add_test(tcase, sorts_that_are_known);
    tcase_add_test(tcase, text_is_bounded);
    suite_add_tcase(suite, tcase);
    return suite;
}
