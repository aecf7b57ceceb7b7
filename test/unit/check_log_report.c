#include <stdio.h>
#include <string.h>

#include "run_sample.h"
#include "suites.h"

static struct run_sample sample;

static void setup(void)
{
    sample_init(&sample);
}

static void teardown(void)
{
    sample_free(&sample);
}

static const char *printed(void)
{
    struct tp_text text;
    tp_text_init(&text, &sample.arena, 1 << 20);
    ck_assert_int_eq(tp_log_report(&text, &sample.run), 0);
    /* 120 columns; only a line that holds nothing but a size and a path may be longer. */
    for (const char *line = text.bytes; *line;) {
        size_t bytes = strcspn(line, "\n");
        ck_assert_msg(tp_text_columns(line, bytes) <= TP_LOG_REPORT_COLUMNS || memchr(line, '/', bytes),
                      "too long: %.*s", (int)bytes, line);
        ck_assert_msg(bytes == 0 || line[bytes - 1] != ' ', "blank at the end: %.*s", (int)bytes, line);
        line += bytes + (line[bytes] == '\n');
    }
    return text.bytes;
}

static void assert_says(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "does not say \"%s\":\n%s", part, text);
}

static void assert_silent(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "says \"%s\":\n%s", part, text);
}

START_TEST(whole_text)
{
    static const char expected[] =
        "====================================================================================================\n"
        "tprof: steps 2..4 of cycle 0 (node1, process 4000)\n"
        "----------------  ------------  ------------  ------------  ------------  ------------  ------------\n"
        "            Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls\n"
        "----------------  ------------  ------------  ------------  ------------  ------------  ------------\n"
        "     aten::addmm        66.67%       2.000ms        66.67%       2.000ms       2.000ms             1\n"
        "    aten::linear        33.33%       1.000ms       100.00%       3.000ms       3.000ms             1\n"
        "----------------  ------------  ------------  ------------  ------------  ------------  ------------\n"
        "Self CPU time total: 3.000ms\n"
        "steps (ms)       count       first      median         p95         max\n"
        "  training          10       9.999       9.999       9.999       9.999\n"
        "lost: nothing; 2 operators and ranges are kept\n"
        "cost: 12.346ms of CPU time in the background; on the program's threads 1.235ms to attach and 23.456us at "
        "steps, besides\n"
        "      the hooks; 5.0 MiB of memory, of at most 256.0 MiB\n"
        "files:\n"
        "      1.2 MiB  /data/tprof/node1_4000.1.pt.trace.json.gz\n"
        "        999 B  /data/tprof/node1_4000.2.table.txt\n"
        "      2.0 KiB  /data/tprof/node1_4000.3.summary.json\n";
    ck_assert_str_eq(printed(), expected);
}
END_TEST

START_TEST(several_cycles_are_named)
{
    for (unsigned i = 1; i < 8; i++) {
        sample.cycles[i] = sample.cycles[0];
        sample.cycles[i].number = i;
        sample.cycles[i].first_step = sample.cycles[i].last_step = i * 10;
    }
    sample.run.cycle_count = 3;
    assert_says(printed(), "tprof: steps 2..4, 10, 20 of all 3 cycles (");
    sample.run.cycle_count = 8;
    assert_says(printed(), "tprof: steps 2..4, 10, 20, 30, ... of all 8 cycles (");
    sample.run.cycle_count = 1;
    sample.cycles[0].has_steps = false;
    assert_says(printed(), "tprof: cycle 0 (");
}
END_TEST

START_TEST(rank_partial_and_notes)
{
    sample.identity.rank_set = true;
    sample.identity.rank = 3;
    sample.identity.world_size = 8;
    sample.cycles[0].partial = true;
    sample.cycles[0].partial_why = "the program ended in step 4";
    static const char *const notes[] = {
        "with_stack comes in a later version; it was not done, and nothing else was changed "
        "by it, which is said here at such length that the line has to be broken"};
    sample.run.notes = notes;
    sample.run.note_count = 1;
    const char *text = printed();
    assert_says(text, "(node1, process 4000, rank 3 of 8)\n");
    assert_says(text, "cycle 0 is partial: the program ended in step 4\n");
    assert_says(text, "note: with_stack comes");
    assert_says(text, "\n      such length");
}
END_TEST

START_TEST(losses_and_their_reasons)
{
    sample.cycles[0].counts.kept = 750;
    sample.cycles[0].counts.lost = 50;
    sample.cycles[0].lost_before = 200;
    sample.cycles[0].counts.unfinished = 3;
    sample.cycles[0].counts.names_cut = 4;
    sample.cycles[0].counts.inputs_cut = 5;
    sample.cycles[0].counts.damaged = 1;
    const char *text = printed();
    assert_says(text, "lost: 250 of 1000 operators and ranges (25.00 %); 200 let go");
    assert_says(text, "TPROF_BUFFER_MB=256");
    assert_says(text, "50 found no free room");
    assert_says(text, "3 of the kept ones had no end");
    assert_says(text, "4 of the kept ones have a name");
    assert_says(text, "5 of the kept ones had more inputs");
    assert_says(text, "1 blocks of records could not be read");
    assert_silent(text, "nothing");
    sample.cycles[0].lost_before = 0;
    assert_silent(printed(), "let go");
    sample.run.cycles_left_out = 1;
    sample.run.left_out = (struct tp_model_counts){.kept = 100, .lost = 100};
    text = printed();
    assert_says(text, "lost: 150 of 1000 ");
    assert_says(text, "\n               and those of 1 later cycles\n");
}
END_TEST

START_TEST(nothing_recorded)
{
    sample.run.cycle_count = 0;
    const char *text = printed();
    assert_says(text, "tprof: nothing was recorded (node1, process 4000)\n");
    assert_says(text, "training          10");
    tp_step_times_init(&sample.steps, &sample.arena, 0);
    assert_says(printed(), "steps: none was finished\n");
}
END_TEST

START_TEST(no_table)
{
    sample.run.averages = NULL;
    assert_says(printed(), "no memory for the table");
    sample.run.averages = tp_averages_new(&sample.arena, 0);
    assert_says(printed(), "no operator ran");
}
END_TEST

START_TEST(kinds_of_steps_and_estimates)
{
    tp_step_times_add(&sample.steps, 10, 0, 5000000, TP_STEP_KIND_BATCH);
    sample.steps.max = sample.steps.kept;
    tp_step_times_add(&sample.steps, 11, 0, 5000000, TP_STEP_KIND_BATCH);
    const char *text = printed();
    assert_says(text, "  training          10       9.999");
    assert_says(text, "  batch              2       5.000");
    assert_says(text, "only the first 11 steps were kept");
}
END_TEST

/* A long path stays whole on its line; a file that failed is said with its reason; a thousand files are not all listed.
 */
START_TEST(files)
{
    static char path[4000] = "/";
    memset(path + 1, 'p', sizeof path - 2);
    sample.files[0].path = path;
    sample.files[1].failure = "No space left on device";
    const char *text = printed();
    assert_says(text, path);
    assert_says(text, "  not written  /data/tprof/node1_4000.2.table.txt\n               No space left on device\n");

    static struct tp_report_file many[1000];
    for (size_t i = 0; i < 1000; i++)
        many[i] = (struct tp_report_file){.path = "/a", .bytes = 1};
    many[900].failure = "Input/output error";
    sample.cycles[0].files = many;
    sample.cycles[0].file_count = 1000;
    text = printed();
    size_t lines = 0;
    for (const char *at = text; (at = strstr(at, "  /a\n")); at++)
        lines++;
    ck_assert_uint_eq(lines, 41);
    assert_says(text, "Input/output error");
    assert_says(text, "\n               and 959 more, which summary.json lists\n");
    assert_says(text, "summary.json");
}
END_TEST

START_TEST(long_host_and_names)
{
    memset(sample.identity.host, 'h', 64);
    sample.identity.rank_set = true;
    struct tp_event event = {.end_ns = 10, .self_ns = 10, .parent = UINT64_MAX,
                             .name = "a_name_of_more_than_thirty_six_characters_is_cut", .name_bytes = 48};
    struct tp_averages *averages = tp_averages_new(&sample.arena, 0);
    ck_assert_int_eq(tp_averages_segment(averages, &event, 1), 0);
    sample.run.averages = averages;
    assert_says(printed(), "a_name_of_more_than_thirty_six_ch...  ");
}
END_TEST

START_TEST(memory_ends)
{
    struct tp_text text;
    tp_text_init(&text, &sample.arena, 300);
    ck_assert_int_lt(tp_log_report(&text, &sample.run), 0);
    ck_assert_uint_le(text.used, 300);
}
END_TEST

Suite *log_report_suite(void)
{
    Suite *suite = suite_create("log_report");
    TCase *tcase = tcase_create("log_report");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, whole_text);
    tcase_add_test(tcase, several_cycles_are_named);
    tcase_add_test(tcase, rank_partial_and_notes);
    tcase_add_test(tcase, losses_and_their_reasons);
    tcase_add_test(tcase, nothing_recorded);
    tcase_add_test(tcase, no_table);
    tcase_add_test(tcase, kinds_of_steps_and_estimates);
    tcase_add_test(tcase, files);
    tcase_add_test(tcase, long_host_and_names);
    tcase_add_test(tcase, memory_ends);
    suite_add_tcase(suite, tcase);
    return suite;
}
