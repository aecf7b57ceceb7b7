#include <stdio.h>
#include <string.h>

#include "../../output/averages.h"
#include "scratch.h"
#include "suites.h"
#include "trace_feed.h"

static struct tp_arena arena;
static struct trace_feed feed;
static const struct tp_thread_info trainer = {.serial = 1, .os_id = 10};
static const struct tp_thread_info other = {.serial = 2, .os_id = 11};

static void setup(void)
{
    tp_arena_init(&arena, 0);
    feed_init(&feed, 1000);
}

static void teardown(void)
{
    feed_free(&feed);
    tp_arena_free(&arena);
}

static struct tp_event *range(const struct tp_thread_info *thread, const char *name, uint64_t start, uint64_t end,
                              uint64_t self)
{
    struct tp_event *event = feed_range(&feed, thread, name, start, end);
    event->self_ns = self;
    return event;
}

static struct tp_averages *summed(void)
{
    struct tp_averages *averages = tp_averages_begin(&feed.report, &arena);
    ck_assert_ptr_nonnull(averages);
    for (size_t at = 0; at < feed.count; at += feed.segment) {
        size_t count = feed.count - at < feed.segment ? feed.count - at : feed.segment;
        ck_assert_int_eq(tp_averages_segment(averages, feed.events + at, count), 0);
        if (feed.segment == SIZE_MAX)
            break;
    }
    ck_assert_int_eq(tp_averages_end(averages), 0);
    return averages;
}

static const struct tp_average *find(const struct tp_averages *averages, const char *name)
{
    const struct tp_average *found = NULL;
    for (size_t i = 0; i < tp_averages_count(averages); i++) {
        const struct tp_average *row = tp_averages_row(averages, i);
        if (strcmp(row->name, name) == 0) {
            ck_assert_msg(found == NULL, "%s has two rows", name);
            found = row;
        }
    }
    return found;
}

static void assert_row(const struct tp_averages *averages, const char *name, uint64_t count, uint64_t total,
                       uint64_t self)
{
    const struct tp_average *row = find(averages, name);
    ck_assert_msg(row != NULL, "no row %s", name);
    ck_assert_uint_eq(row->count, count);
    ck_assert_uint_eq(row->total_ns, total);
    ck_assert_uint_eq(row->self_ns, self);
}

START_TEST(rows_are_sums_by_name)
{
    range(&trainer, "aten::linear", 1000, 1100, 40);
    range(&trainer, "aten::addmm", 1010, 1070, 60);
    range(&other, "aten::addmm", 1020, 1025, 5);
    struct tp_averages *averages = summed();
    ck_assert_uint_eq(tp_averages_count(averages), 2);
    ck_assert_str_eq(tp_averages_row(averages, 0)->name, "aten::linear");
    assert_row(averages, "aten::linear", 1, 100, 40);
    assert_row(averages, "aten::addmm", 2, 65, 65);
}
END_TEST

/* Two names that share a place of the cache of ids, and one name with two ids, as an intern table that was full gives.
 */
START_TEST(ids_do_not_mix_names)
{
    for (unsigned i = 0; i < 300; i++) {
        range(&trainer, i % 2 ? "a" : "b", 1000 + i * 10, 1001 + i * 10, 1)->name_id = i % 2 ? 5 : 5 + 1024;
        range(&trainer, "a", 1003 + i * 10, 1004 + i * 10, 1)->name_id = i % 3 ? 0 : 7;
    }
    struct tp_averages *averages = summed();
    assert_row(averages, "a", 450, 450, 450);
    assert_row(averages, "b", 150, 150, 150);
}
END_TEST

START_TEST(annotation_and_operator_are_two_rows)
{
    range(&trainer, "mine", 1000, 1010, 10)->name_id = 3;
    struct tp_event *event = range(&trainer, "mine", 1010, 1040, 30);
    event->name_id = 3;
    event->scope = TP_SCOPE_USER_SCOPE;
    struct tp_averages *averages = summed();
    ck_assert_uint_eq(tp_averages_count(averages), 2);
    ck_assert_uint_eq(tp_averages_row(averages, 0)->total_ns, 10);
    ck_assert_uint_eq(tp_averages_row(averages, 1)->total_ns, 30);
    ck_assert(tp_averages_row(averages, 1)->annotation);
}
END_TEST

START_TEST(program_steps_are_one_row)
{
    char names[20][32];
    for (unsigned i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "ProfilerStep#%u", i);
        struct tp_event *event = range(&trainer, names[i], 1000 + i * 100, 1090 + i * 100, 90);
        event->name_id = i + 1;
        event->scope = TP_SCOPE_USER_SCOPE;
    }
    feed.report.steps_by_program = true;
    struct tp_averages *averages = summed();
    ck_assert_uint_eq(tp_averages_count(averages), 1);
    assert_row(averages, "ProfilerStep*", 20, 1800, 1800);
}
END_TEST

/* torch drops these events before it builds the tree: their time is their parent's own. _i: events a segment. */
START_TEST(names_that_torch_leaves_out)
{
    static const char *const names[] = {"profiler::_record_function_enter", "profiler::_record_function_enter_new",
                                        "profiler::_record_function_exit",  "aten::is_leaf",
                                        "aten::output_nr",                  "aten::_version"};
    size_t parent = feed_begin(&feed, &trainer, "outer", 1000);
    for (unsigned i = 0; i < 6; i++)
        range(&trainer, names[i], 1010 + i * 10, 1015 + i * 10, 5)->parent = parent;
    feed_end(&feed, parent, 1100)->self_ns = 70;
    range(&trainer, "aten::is_leaf2", 1200, 1210, 10);
    struct tp_event events[8];
    memcpy(events, feed.events, sizeof events);
    if (_i == 1) { /* the parent in a later segment than its children, as a long range comes */
        struct tp_event outer = events[0];
        memmove(events, events + 1, 6 * sizeof *events);
        events[6] = outer;
    }
    struct tp_averages *averages = tp_averages_new(&arena, 0);
    ck_assert_int_eq(tp_averages_segment(averages, events, _i == 1 ? 6 : 8), 0);
    if (_i == 1)
        ck_assert_int_eq(tp_averages_segment(averages, events + 6, 2), 0);
    ck_assert_uint_eq(tp_averages_count(averages), 2);
    assert_row(averages, "outer", 1, 100, 100);
    assert_row(averages, "aten::is_leaf2", 1, 10, 10);
}
END_TEST

/* Two ranges named a, with what stands in `inside` inside the first, as "start end self name" would be; _i: whether the
 * outer one comes in a later segment. */
START_TEST(only_child_of_the_same_name)
{
    size_t outer = feed_begin(&feed, &trainer, "a", 1000), middle = feed_begin(&feed, &trainer, "a", 1010);
    struct tp_event *inner = range(&trainer, "a", 1020, 1030, 10);
    inner->parent = middle;
    struct tp_event *left_out = range(&trainer, "aten::is_leaf", 1040, 1045, 5);
    left_out->parent = middle;
    feed_end(&feed, middle, 1050)->self_ns = 25;
    feed.events[middle].parent = outer;
    feed_end(&feed, outer, 1100)->self_ns = 60;
    size_t mine = feed_begin(&feed, &trainer, "b", 1200);
    feed_end(&feed, mine, 1300)->self_ns = 20;
    feed.events[mine].scope = TP_SCOPE_USER_SCOPE;
    range(&trainer, "b", 1210, 1290, 80)->parent = mine; /* an operator: its row has no other event */
    size_t two = feed_begin(&feed, &trainer, "c", 1300);
    feed_end(&feed, two, 1400)->self_ns = 80;
    range(&trainer, "c", 1310, 1320, 10)->parent = two;
    range(&trainer, "c", 1330, 1340, 10)->parent = two;
    size_t async = feed_begin(&feed, &trainer, "d", 1500);
    feed_end(&feed, async, 1600)->flags = TP_EVENT_ASYNC;
    range(&trainer, "d", 1510, 1520, 10)->parent = async;
    size_t other_name = feed_begin(&feed, &trainer, "e", 1700);
    feed_end(&feed, other_name, 1800)->self_ns = 90;
    range(&trainer, "f", 1710, 1720, 10)->parent = other_name;
    feed.segment = _i == 0 ? SIZE_MAX : (size_t)_i;
    struct tp_averages *averages = tp_averages_begin(&feed.report, &arena);
    if (_i == 0) {
        ck_assert_int_eq(tp_averages_segment(averages, feed.events, feed.count), 0);
    } else { /* inner ones first, as where the outer ones stay open for long */
        for (size_t at = feed.count; at-- > 0;)
            ck_assert_int_eq(tp_averages_segment(averages, &feed.events[at], 1), 0);
    }
    ck_assert_int_eq(tp_averages_end(averages), 0);
    assert_row(averages, "a", 1, 100, 100);
    assert_row(averages, "b", 1, 100, 100);
    ck_assert(find(averages, "b")->annotation);
    assert_row(averages, "c", 3, 120, 100);
    assert_row(averages, "d", 2, 110, 10);
    assert_row(averages, "e", 1, 100, 90);
    assert_row(averages, "f", 1, 10, 10);
    ck_assert_uint_eq(tp_averages_count(averages), 6);
}
END_TEST

/* As many ranges that wait as are open, whatever was in them. */
START_TEST(ranges_that_wait)
{
    struct tp_averages *averages = tp_averages_new(&arena, 0);
    struct tp_event event = {.name = "a", .name_bytes = 1, .thread = &trainer, .self_ns = 1, .end_ns = 1};
    for (uint64_t i = 0; i < 3000; i++) {
        event.index = 3000 + i;
        event.parent = i;
        ck_assert_int_eq(tp_averages_segment(averages, &event, 1), 0);
    }
    size_t held = arena.mapped;
    for (uint64_t i = 0; i < 3000; i++) {
        event.index = i;
        event.parent = UINT64_MAX;
        ck_assert_int_eq(tp_averages_segment(averages, &event, 1), 0);
    }
    ck_assert_uint_eq(tp_averages_row(averages, 0)->count, 3000);
    for (uint64_t i = 10000; i < 100000; i++) {
        event.index = i + 1;
        event.parent = i;
        ck_assert_int_eq(tp_averages_segment(averages, &event, 1), 0);
        event.index = i;
        event.parent = UINT64_MAX;
        ck_assert_int_eq(tp_averages_segment(averages, &event, 1), 0);
    }
    ck_assert_uint_eq(tp_averages_row(averages, 0)->count, 93000);
    ck_assert_uint_eq(arena.mapped, held);
}
END_TEST

static void give_steps(struct tp_step_span *steps, size_t count, uint64_t start, uint64_t length)
{
    for (size_t i = 0; i < count; i++)
        steps[i] = (struct tp_step_span){
            .number = i, .start_ns = start + i * length, .end_ns = start + (i + 1) * length, .thread = trainer};
    feed.report.steps = steps;
    feed.report.step_count = count;
}

/* 3 steps of 1000 ns; each has a tree of 600 ns on its thread, one range that ends a little behind the edge, and work
 * on another thread, which takes nothing from the step. */
START_TEST(steps_are_a_row)
{
    struct tp_step_span steps[3];
    give_steps(steps, 3, 1000, 1000);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t at = 1000 + i * 1000;
        range(&trainer, "outer", at + 100, at + 700, 200);
        range(&trainer, "inner", at + 200, at + 600, 400);
        range(&other, "elsewhere", at + 100, at + 900, 800);
        range(&trainer, "async", at + 100, at + 900, 0)->flags = TP_EVENT_ASYNC;
        range(&trainer, "Optimizer.step#SGD.step", at + 800, at + 1003, 203);
    }
    assert_row(summed(), "ProfilerStep*", 3, 3000, 3 * (1000 - 600 - 203));
}
END_TEST

/* A range around the whole loop: its own time is not that of the steps in it. */
START_TEST(range_around_steps)
{
    struct tp_step_span steps[4];
    give_steps(steps, 4, 2000, 100);
    size_t outermost = feed_begin(&feed, &trainer, "main", 1500), around = feed_begin(&feed, &trainer, "loop", 1900);
    for (unsigned i = 0; i < 4; i++)
        range(&trainer, "op", 2010 + i * 100, 2070 + i * 100, 60);
    struct tp_event *event = feed_end(&feed, around, 2500);
    event->self_ns = 600 - 240;
    feed_end(&feed, outermost, 2600)->self_ns = 500;
    struct tp_averages *averages = summed();
    assert_row(averages, "ProfilerStep*", 4, 400, 160);
    assert_row(averages, "loop", 1, 600, 200);
    assert_row(averages, "main", 1, 1100, 500);
    assert_row(averages, "op", 4, 240, 240);
}
END_TEST

START_TEST(steps_are_clipped_to_the_window)
{
    struct tp_step_span steps[3];
    give_steps(steps, 3, 500, 1000);
    feed.report.window_end_ns = 3000;
    assert_row(summed(), "ProfilerStep*", 3, 2000, 2000);
}
END_TEST

START_TEST(rows_are_bounded)
{
    struct tp_averages *averages = tp_averages_new(&arena, 100);
    char name[32];
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 1000; i++) {
            struct tp_event event = {.start_ns = 1, .end_ns = 11, .self_ns = 10, .name = name, .parent = UINT64_MAX};
            event.name_bytes = (uint32_t)snprintf(name, sizeof name, "op%u", i);
            ck_assert_int_eq(tp_averages_segment(averages, &event, 1), 0);
        }
    ck_assert_uint_eq(tp_averages_count(averages), 101);
    assert_row(averages, "op99", 2, 20, 20);
    assert_row(averages, TP_AVERAGES_OTHERS, 1800, 18000, 18000);
    ck_assert_uint_eq(tp_averages_others(averages), 1800);

    /* Merged: the others stay others, also beside a program's own range of that name. */
    struct tp_averages *whole = tp_averages_new(&arena, 0);
    struct tp_event own = {.start_ns = 1, .end_ns = 2, .self_ns = 1, .name = TP_AVERAGES_OTHERS,
                           .name_bytes = sizeof TP_AVERAGES_OTHERS - 1, .parent = UINT64_MAX};
    ck_assert_int_eq(tp_averages_segment(whole, &own, 1), 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(tp_averages_merge(whole, averages), 0);
    ck_assert_uint_eq(tp_averages_count(whole), 102);
    assert_row(whole, "op99", 6, 60, 60);
    ck_assert_uint_eq(tp_averages_others(whole), 5400);
    ck_assert_uint_eq(tp_averages_row(whole, 0)->count, 1);
}
END_TEST

START_TEST(bytes_of_names_are_bounded)
{
    static char name[1 << 20];
    memset(name, 'x', sizeof name);
    struct tp_averages *averages = tp_averages_new(&arena, 0);
    for (unsigned i = 0; i < 10; i++) {
        name[0] = (char)('a' + i);
        struct tp_event event = {.start_ns = 1, .end_ns = 2, .name = name, .name_bytes = sizeof name - 1,
                                 .parent = UINT64_MAX};
        ck_assert_int_eq(tp_averages_segment(averages, &event, 1), 0);
    }
    ck_assert_uint_eq(tp_averages_others(averages), 6);
}
END_TEST

START_TEST(no_memory_is_told)
{
    struct tp_arena small;
    tp_arena_init(&small, 128 * 1024);
    struct tp_averages *averages = tp_averages_new(&small, 0);
    ck_assert_ptr_nonnull(averages);
    char name[32];
    int status = 0;
    for (unsigned i = 0; i < 10000 && status == 0; i++) {
        struct tp_event event = {.start_ns = 1, .end_ns = 2, .name = name, .parent = UINT64_MAX};
        event.name_bytes = (uint32_t)snprintf(name, sizeof name, "op%u", i);
        status = tp_averages_segment(averages, &event, 1);
    }
    ck_assert_int_lt(status, 0);
    tp_arena_free(&small);
}
END_TEST

Suite *averages_suite(void)
{
    Suite *suite = suite_create("averages");
    TCase *tcase = tcase_create("averages");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, rows_are_sums_by_name);
    tcase_add_test(tcase, ids_do_not_mix_names);
    tcase_add_test(tcase, annotation_and_operator_are_two_rows);
    tcase_add_test(tcase, program_steps_are_one_row);
    tcase_add_loop_test(tcase, names_that_torch_leaves_out, 0, 2);
    tcase_add_loop_test(tcase, only_child_of_the_same_name, 0, 2);
    tcase_add_test(tcase, ranges_that_wait);
    tcase_add_test(tcase, steps_are_a_row);
    tcase_add_test(tcase, range_around_steps);
    tcase_add_test(tcase, steps_are_clipped_to_the_window);
    tcase_add_test(tcase, rows_are_bounded);
    tcase_add_test(tcase, bytes_of_names_are_bounded);
    tcase_add_test(tcase, no_memory_is_told);
    suite_add_tcase(suite, tcase);
    return suite;
}
