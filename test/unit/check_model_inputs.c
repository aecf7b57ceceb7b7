#include <string.h>

#include "../../output/inputs.h"
#include "model_world.h"
#include "suites.h"

#define KEY 0xa0

static struct world *world;

static void setup(void)
{
    world = world_new(1);
}

static void teardown(void)
{
    world_free(world);
}

/* Ints 0, 1, ... from `offset` on, as one record. */
static void put_part(uint64_t time, uint64_t key, struct tp_inputs like, unsigned words)
{
    like.head = tp_record_head(TP_RECORD_INPUTS, TP_INPUTS_WORDS + words, key);
    like.time = time;
    uint64_t head[TP_INPUTS_WORDS];
    memcpy(head, &like, sizeof head);
    for (size_t i = 0; i < TP_INPUTS_WORDS; i++)
        put_word(world, 1, head[i]);
    for (unsigned i = 0; i < words; i++)
        put_word(world, 1, tp_input_word(TP_INPUT_INT, 0, 0, 0, like.offset + i));
}

static void check_ints(uint64_t index, unsigned count)
{
    const struct tp_event *event = world_event(world, index);
    ck_assert_uint_eq(event->input_count, count);
    ck_assert_uint_eq(event->input_words, count);
    for (unsigned i = 0; i < count; i++)
        ck_assert_uint_eq(event->inputs[i] >> 32, i);
}

static void run(size_t events, uint64_t damaged)
{
    ck_assert_int_eq(world_run(world), 0);
    ck_assert_uint_eq(world->event_count, events);
    ck_assert_uint_eq(world->counts.damaged, damaged);
}

START_TEST(inputs_are_those_of_their_range)
{
    begin_range(world, 1, 10, KEY);
    put_part(10, KEY, (struct tp_inputs){.count = 3, .words = 3}, 3);
    begin_range(world, 1, 20, 0xb0);
    end_range(world, 1, 30, 0xb0);
    begin_range(world, 1, 40, 0xb0);
    put_part(40, 0xb0, (struct tp_inputs){.count = 2, .words = 2}, 2);
    end_range(world, 1, 50, 0xb0);
    end_range(world, 1, 60, KEY);
    run(3, 0);
    check_ints(0, 3);
    check_ints(1, 0);
    check_ints(2, 2);
    ck_assert_ptr_null(world_event(world, 1)->inputs);
    ck_assert_uint_eq(world->counts.inputs_cut, 0);
}
END_TEST

START_TEST(parts_are_joined)
{
    begin_range(world, 1, 10, KEY);
    unsigned part = TP_RECORD_MAX_WORDS - TP_INPUTS_WORDS;
    struct tp_inputs like = {.count = TP_INPUTS_ITEMS_MAX, .words = TP_INPUTS_ITEMS_MAX};
    for (; like.offset < like.words; like.offset = (uint16_t)(like.offset + part))
        put_part(10, KEY, like, part);
    end_range(world, 1, 60, KEY);
    run(1, 0);
    check_ints(0, TP_INPUTS_ITEMS_MAX);
}
END_TEST

START_TEST(a_part_that_is_missing_leaves_none)
{
    begin_range(world, 1, 10, KEY);
    put_part(10, KEY, (struct tp_inputs){.count = 9, .words = 9}, 5);
    end_range(world, 1, 60, KEY);
    run(1, 0);
    check_ints(0, 0);
}
END_TEST

START_TEST(of_a_range_before_the_window_they_are_passed_over)
{
    world->options.window.begin = 15;
    begin_range(world, 1, 10, KEY);
    put_part(10, KEY, (struct tp_inputs){.count = 3, .words = 3}, 3);
    begin_range(world, 1, 20, 0xb0);
    end_range(world, 1, 30, 0xb0);
    end_range(world, 1, 60, KEY);
    run(1, 0);
    check_ints(0, 0);
}
END_TEST

static const struct tp_inputs damaged[] = {
    {.count = 3, .words = 2},                                   /* more words than are said to come */
    {.count = 3, .words = 3, .offset = 1},                      /* the first part is missing */
    {.count = 2, .words = 3},                                   /* more items than inputs */
    {.count = 3, .words = TP_INPUTS_ITEMS_MAX + 1},             /* more than there can be */
    {.count = TP_INPUTS_COUNT_MAX + 1, .words = 3},
    {.words = 3},
};

START_TEST(damaged_ones_end_their_block)
{
    begin_range(world, 1, 10, KEY);
    put_part(10, KEY, damaged[_i], 3);
    begin_range(world, 1, 20, 0xb0);
    cut(world, 1);
    end_range(world, 1, 60, KEY);
    run(1, 1);
    check_ints(0, 0);
}
END_TEST

START_TEST(twice_is_damage)
{
    begin_range(world, 1, 10, KEY);
    put_part(10, KEY, (struct tp_inputs){.count = 3, .words = 3}, 3);
    put_part(10, KEY, (struct tp_inputs){.count = 3, .words = 3}, 3);
    cut(world, 1);
    end_range(world, 1, 60, KEY);
    run(1, 1);
    check_ints(0, 3);
}
END_TEST

START_TEST(what_was_cut_is_counted)
{
    for (uint64_t i = 0; i < 5; i++) {
        begin_range(world, 1, 10 * i + 10, KEY);
        put_part(10 * i + 10, KEY, (struct tp_inputs){.count = 7, .words = 3, .flags = i ? TP_INPUTS_CUT : 0}, 3);
        end_range(world, 1, 10 * i + 15, KEY);
    }
    run(5, 0);
    ck_assert_uint_eq(world->counts.inputs_cut, 4);
    ck_assert_uint_eq(world_event(world, 4)->input_count, 7);
    ck_assert_uint_eq(world_event(world, 4)->input_words, 3);
}
END_TEST

/* More than a small model can hold of ranges that stay open: those come without inputs, and none is lost. */
START_TEST(without_memory_the_events_stay)
{
    enum { RANGES = 600, WORDS = 252 };
    world->options.memory_limit = 1 << 20;
    for (uint64_t i = 0; i < RANGES; i++) {
        begin_range(world, 1, 10 + i, KEY + i);
        put_part(10 + i, KEY + i, (struct tp_inputs){.count = 2 * WORDS, .words = 2 * WORDS}, WORDS);
        put_part(10 + i, KEY + i, (struct tp_inputs){.count = 2 * WORDS, .words = 2 * WORDS, .offset = WORDS}, WORDS);
    }
    for (uint64_t i = RANGES; i-- > 0;)
        end_range(world, 1, 10 + 2 * RANGES - i, KEY + i);
    run(RANGES, 0);
    size_t whole = 0;
    for (size_t i = 0; i < RANGES; i++)
        whole += world->events[i].input_count == 2 * WORDS;
    ck_assert_uint_gt(whole, 50);
    ck_assert_uint_eq(world->counts.inputs_cut, RANGES - whole);
    ck_assert_uint_gt(world->counts.inputs_cut, 0);
}
END_TEST

Suite *model_inputs_suite(void)
{
    Suite *suite = suite_create("model_inputs");
    TCase *tcase = tcase_create("model_inputs");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, inputs_are_those_of_their_range);
    tcase_add_test(tcase, parts_are_joined);
    tcase_add_test(tcase, a_part_that_is_missing_leaves_none);
    tcase_add_test(tcase, of_a_range_before_the_window_they_are_passed_over);
    tcase_add_loop_test(tcase, damaged_ones_end_their_block, 0, (int)TP_COUNT(damaged));
    tcase_add_test(tcase, twice_is_damage);
    tcase_add_test(tcase, what_was_cut_is_counted);
    tcase_add_test(tcase, without_memory_the_events_stay);
    suite_add_tcase(suite, tcase);
    return suite;
}
