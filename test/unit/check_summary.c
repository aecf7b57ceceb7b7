#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../output/summary.h"
#include "run_sample.h"
#include "scratch.h"
#include "suites.h"

static struct run_sample sample;

static void setup(void)
{
    scratch_setup();
    sample_init(&sample);
}

static void teardown(void)
{
    sample_free(&sample);
    scratch_teardown();
}

static json_t *written(void)
{
    struct tp_sink *sink =
        tp_sink_open(&(struct tp_sink_options){.folder = scratch_folder, .name = "s.json"}, &sample.arena, NULL);
    ck_assert_ptr_nonnull(sink);
    ck_assert_int_eq(tp_summary_write(sink, &sample.run, &sample.arena), 0);
    ck_assert_int_eq(tp_sink_close(sink, NULL, NULL), 0);
    char *text = scratch_read("s.json", NULL);
    json_error_t error;
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(value != NULL, "%s at %d", error.text, error.position);
    free(text);
    return value;
}

static json_int_t number(json_t *object, const char *key)
{
    ck_assert_msg(json_is_integer(json_object_get(object, key)), "%s", key);
    return json_integer_value(json_object_get(object, key));
}

static void assert_text(json_t *object, const char *key, const char *value)
{
    ck_assert_msg(json_is_string(json_object_get(object, key)), "%s", key);
    ck_assert_str_eq(json_string_value(json_object_get(object, key)), value);
}

START_TEST(all_that_the_report_holds)
{
    static const struct tp_report_setting given[] = {{"TPROF_ROW_LIMIT", "7"}, {"TPROF_WORKER_NAME", "a \"b\"\\"}};
    static const char *const notes[] = {"one", "two\n"};
    sample.identity.rank_set = true;
    sample.identity.rank = 1;
    sample.identity.world_size = 2;
    strcpy(sample.identity.boot_id, "b-1");
    sample.run.settings_given = given;
    sample.run.settings_given_count = 2;
    sample.run.notes = notes;
    sample.run.note_count = 2;
    sample.run.pytorch = "2.13.0+cpu";
    sample.cycles[0].counts.lost = 5;
    sample.cycles[0].lost_before = 7;
    sample.cycles[0].partial = true;
    sample.cycles[0].partial_why = "ended";
    sample.files[1].failure = "disk full";
    json_t *root = written();
    ck_assert_int_eq(number(root, "schema"), TP_SUMMARY_SCHEMA);
    assert_text(root, "version", TP_VERSION);
    assert_text(root, "host", "node1");
    assert_text(root, "boot_id", "b-1");
    assert_text(root, "pytorch", "2.13.0+cpu");
    ck_assert(json_is_null(json_object_get(root, "command")));
    ck_assert_int_eq(number(root, "pid"), 4000);
    ck_assert_int_eq(number(root, "rank"), 1);
    ck_assert_int_eq(number(root, "world_size"), 2);
    ck_assert_int_eq(number(root, "start_ns"), 1000);
    assert_text(json_object_get(root, "settings"), "TPROF_WORKER_NAME", "a \"b\"\\");
    ck_assert_int_eq(number(root, "kept"), 2);
    ck_assert_int_eq(number(root, "lost"), 12);
    ck_assert_int_eq(number(json_object_get(root, "lost_why"), "buffer_full"), 7);
    ck_assert_int_eq(number(json_object_get(root, "lost_why"), "no_room"), 5);
    json_t *cycle = json_array_get(json_object_get(root, "cycles"), 0);
    assert_text(cycle, "why", "ended");
    ck_assert_int_eq(number(cycle, "first_step"), 2);
    ck_assert_int_eq(number(cycle, "lost"), 12);
    json_t *files = json_object_get(cycle, "files");
    ck_assert_int_eq(number(json_array_get(files, 0), "bytes"), 1234567);
    assert_text(json_array_get(files, 1), "failure", "disk full");
    ck_assert_ptr_null(json_object_get(json_array_get(files, 1), "bytes"));
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(root, "notes"), 1)), "two\n");
    json_decref(root);
}
END_TEST

START_TEST(steps_and_operators)
{
    json_t *root = written(), *steps = json_object_get(root, "steps"), *rows = json_object_get(root, "operators");
    ck_assert_int_eq(number(root, "step_count"), 10);
    ck_assert_int_eq(number(root, "steps_kept"), 10);
    ck_assert_uint_eq(json_array_size(steps), 10);
    for (size_t i = 0; i < 10; i++) {
        json_t *step = json_array_get(steps, i);
        ck_assert_int_eq(number(step, "number"), (json_int_t)i);
        assert_text(step, "kind", "training");
        ck_assert_double_eq(json_number_value(json_object_get(step, "duration_us")), 9999);
        ck_assert_int_eq(number(step, "start_ns"), (json_int_t)i * 10000000);
        ck_assert_int_eq(json_is_true(json_object_get(step, "recorded")), i >= 2 && i <= 4);
    }
    json_t *statistics = json_array_get(json_object_get(root, "step_statistics"), 0);
    ck_assert_int_eq(number(statistics, "count"), 10);
    ck_assert_double_eq(json_number_value(json_object_get(statistics, "median_us")), 9999);
    ck_assert(json_is_false(json_object_get(statistics, "estimated")));
    ck_assert_uint_eq(json_array_size(rows), 2);
    assert_text(json_array_get(rows, 0), "name", "aten::addmm"); /* in the order of the table */
    ck_assert_int_eq(number(json_array_get(rows, 0), "self_cpu_ns"), 2000000);
    ck_assert_int_eq(number(json_array_get(rows, 1), "cpu_total_ns"), 3000000);
    ck_assert_int_eq(number(json_array_get(rows, 1), "count"), 1);
    ck_assert_int_eq(number(root, "operators_unnamed"), 0);
    json_decref(root);
}
END_TEST

/* Steps beyond the bound are counted, not listed; cycles that the report does not list are in the sums. */
START_TEST(what_is_left_out_is_said)
{
    sample.steps.max = sample.steps.kept;
    for (uint64_t i = 10; i < 20; i++)
        tp_step_times_add(&sample.steps, i, i * 10000000, (i + 1) * 10000000, TP_STEP_KIND_TRAINING);
    sample.run.cycles_left_out = 3;
    sample.run.left_out = (struct tp_model_counts){.kept = 100, .lost = 10};
    sample.run.left_out_lost_before = 1;
    sample.run.averages = NULL;
    json_t *root = written();
    ck_assert_int_eq(number(root, "step_count"), 20);
    ck_assert_int_eq(number(root, "steps_kept"), 10);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "steps")), 10);
    ck_assert(json_is_true(json_object_get(json_array_get(json_object_get(root, "step_statistics"), 0), "estimated")));
    ck_assert_int_eq(number(root, "cycle_count"), 4);
    ck_assert_int_eq(number(root, "kept"), 102);
    ck_assert_int_eq(number(root, "lost"), 11);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "operators")), 0);
    json_decref(root);
}
END_TEST

Suite *summary_suite(void)
{
    Suite *suite = suite_create("summary");
    TCase *tcase = tcase_create("summary");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, all_that_the_report_holds);
    tcase_add_test(tcase, steps_and_operators);
    tcase_add_test(tcase, what_is_left_out_is_said);
    suite_add_tcase(suite, tcase);
    return suite;
}
