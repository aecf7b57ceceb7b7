/* What execution traces tell of operators: how it is read, and how the model joins it to its range. */
#include <stdlib.h>
#include <string.h>

#include "../../output/values.h"
#include "model_world.h"
#include "suites.h"

#define KEY 0xa0

static struct world *world;

static void setup(void)
{
    world = world_new(2);
}

static void teardown(void)
{
    world_free(world);
}

static struct tp_value first_of(const uint64_t *words, size_t count)
{
    struct tp_input_cursor cursor = {words, words + count};
    struct tp_value value;
    ck_assert(tp_value_next(&cursor, &value));
    return value;
}

START_TEST(a_tensor)
{
    const uint64_t words[] = {tp_input_word(TP_VALUE_TENSOR, 7, 2, TP_VALUE_STORED, tp_value_device(1, 3)),
                              0x1000, 0x2000, 11, 2 | UINT64_C(3) << 32, 1 | UINT64_C(2) << 32};
    struct tp_value value = first_of(words, TP_COUNT(words));
    int64_t sizes[TP_INPUT_DIMENSIONS_MAX], strides[TP_INPUT_DIMENSIONS_MAX];
    ck_assert_uint_eq(value.address, 0x1000);
    ck_assert_uint_eq(value.data, 0x2000);
    ck_assert_uint_eq(value.offset, 11);
    ck_assert_uint_eq(value.device, 0x301);
    ck_assert_uint_eq(tp_input_sizes(&value.shape, sizes), 2);
    ck_assert_uint_eq(tp_input_strides(&value.shape, strides), 2);
    ck_assert(sizes[0] == 2 && sizes[1] == 3 && strides[0] == 1 && strides[1] == 2);
    for (size_t count = 0; count <= TP_COUNT(words); count++)
        ck_assert_int_eq(tp_values_sound(words, count, 1, false), count == TP_COUNT(words));
    const uint64_t bare[] = {tp_input_word(TP_VALUE_TENSOR, 7, 1, TP_INPUT_CONTIGUOUS, 0), 0x1000, 5};
    value = first_of(bare, TP_COUNT(bare));
    ck_assert(value.address == 0x1000 && value.data == 0 && value.offset == 0);
    ck_assert(tp_values_sound(bare, TP_COUNT(bare), 1, false));
}
END_TEST

START_TEST(what_is_sound)
{
    /* ["ab", [1], (2^40)], None */
    uint64_t words[] = {tp_input_word(TP_VALUE_LIST, 0, 0, 0, 3),
                        tp_input_word(TP_VALUE_STRING, 0, 0, 0, 2),
                        0x6261,
                        tp_input_word(TP_VALUE_LIST, 0, 0, 0, 1),
                        tp_input_word(TP_VALUE_INT, 0, 0, 0, 1),
                        tp_input_word(TP_VALUE_TUPLE, 0, 0, 0, 1),
                        tp_input_word(TP_VALUE_INT, 0, 0, TP_INPUT_WIDE, 0),
                        UINT64_C(1) << 40,
                        TP_VALUE_NONE};
    ck_assert(tp_values_sound(words, TP_COUNT(words), 2, false));
    ck_assert(!tp_values_sound(words, TP_COUNT(words), 1, false));
    ck_assert(!tp_values_sound(words, TP_COUNT(words), 3, false));
    ck_assert(!tp_values_sound(words, TP_COUNT(words) - 2, 2, false));
    /* The second one cut. */
    ck_assert(tp_values_sound(words, TP_COUNT(words), 1, true));
    words[8] = TP_VALUE_KINDS;
    ck_assert(!tp_values_sound(words, TP_COUNT(words), 2, false));
    words[8] = TP_VALUE_END;
    ck_assert(!tp_values_sound(words, TP_COUNT(words), 2, false));
    words[1] = tp_input_word(TP_VALUE_STRING, 0, 0, 0, UINT32_MAX);
    ck_assert(!tp_values_sound(words, TP_COUNT(words), 2, false));
}
END_TEST

START_TEST(how_deep_lists_go)
{
    uint64_t words[TP_VALUE_DEPTH_MAX + 2];
    for (size_t i = 0; i < TP_COUNT(words); i++)
        words[i] = tp_input_word(TP_VALUE_LIST, 0, 0, 0, i + 1 < TP_COUNT(words));
    ck_assert(!tp_values_sound(words, TP_COUNT(words), 1, false));
    ck_assert(tp_values_sound(words + 1, TP_COUNT(words) - 1, 1, false));
}
END_TEST

/* Ints offset, offset + 1, ... as one record. */
static void put_part(uint64_t time, uint64_t key, struct tp_values like, unsigned words)
{
    like.head = tp_record_head(TP_RECORD_VALUES, TP_VALUES_WORDS + words, key);
    like.time = time;
    uint64_t head[TP_VALUES_WORDS];
    memcpy(head, &like, sizeof head);
    for (size_t i = 0; i < TP_VALUES_WORDS; i++)
        put_word(world, 1, head[i]);
    for (unsigned i = 0; i < words; i++)
        put_word(world, 1, tp_input_word(TP_VALUE_INT, 0, 0, 0, like.offset + i));
}

static void check_ints(const struct tp_event_values *values, uint32_t count)
{
    ck_assert_ptr_nonnull(values);
    ck_assert_uint_eq(values->count, count);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_uint_eq(values->items[i] >> 32, i);
}

static void run(size_t events, uint64_t damaged)
{
    ck_assert_int_eq(world_run(world), 0);
    ck_assert_uint_eq(world->event_count, events);
    ck_assert_uint_eq(world->counts.damaged, damaged);
}

START_TEST(each_range_has_its_own)
{
    begin_range(world, 1, 10, KEY);
    put_part(10, KEY, (struct tp_values){.count = 3, .schema = NAME_TWO}, 3);
    begin_range(world, 1, 20, 0xb0);
    put_part(25, 0xb0, (struct tp_values){.count = 1, .flags = TP_VALUES_OUTPUTS}, 1);
    end_range(world, 1, 30, 0xb0);
    put_part(55, KEY, (struct tp_values){.count = 2, .flags = TP_VALUES_OUTPUTS}, 2);
    end_range(world, 1, 60, KEY);
    run(2, 0);
    const struct tp_event *outer = world_event(world, 0), *inner = world_event(world, 1);
    check_ints(outer->given, 3);
    check_ints(outer->returned, 2);
    ck_assert_str_eq(outer->schema, "two");
    ck_assert_ptr_null(inner->given);
    check_ints(inner->returned, 1);
    ck_assert_str_eq(inner->schema, "");
    ck_assert_uint_eq(inner->end_index, 0);
    ck_assert_uint_eq(outer->end_index, 1);
    ck_assert_uint_eq(world->counts.inputs_cut, 0);
}
END_TEST

/* As many words as there can be, which takes many records. */
START_TEST(parts_are_joined)
{
    enum { PART = TP_RECORD_MAX_WORDS - TP_VALUES_WORDS };
    begin_range(world, 1, 10, KEY);
    struct tp_values like = {.count = TP_VALUES_ITEMS_MAX};
    for (unsigned words; like.offset < TP_VALUES_ITEMS_MAX; like.offset += words) {
        words = TP_VALUES_ITEMS_MAX - like.offset < PART ? TP_VALUES_ITEMS_MAX - like.offset : PART;
        like.flags = like.offset + words < TP_VALUES_ITEMS_MAX ? TP_VALUES_MORE : 0;
        put_part(10, KEY, like, words);
    }
    end_range(world, 1, 60, KEY);
    run(1, 0);
    check_ints(world_event(world, 0)->given, TP_VALUES_ITEMS_MAX);
}
END_TEST

START_TEST(without_the_last_part_there_are_none)
{
    begin_range(world, 1, 10, KEY)->flags = TP_BEGIN_VALUES;
    put_part(10, KEY, (struct tp_values){.count = 3, .flags = TP_VALUES_MORE}, 3);
    end_range(world, 1, 60, KEY);
    begin_range(world, 1, 70, KEY);
    put_part(70, KEY, (struct tp_values){.count = 3}, 3);
    end_range(world, 1, 80, KEY);
    run(2, 0);
    ck_assert_ptr_null(world_event(world, 0)->given);
    ck_assert(world_event(world, 0)->flags & TP_EVENT_INPUTS_CUT);
    check_ints(world_event(world, 1)->given, 3);
    ck_assert_uint_eq(world->counts.inputs_cut, 1);
}
END_TEST

/* Announced by the begin: what it was given, and, if it ends, what it gave back. Empty ones are there. */
START_TEST(what_found_no_room_is_counted)
{
    begin_range(world, 1, 10, KEY)->flags = TP_BEGIN_VALUES;
    put_part(10, KEY, (struct tp_values){.count = 0}, 0);
    if (_i & 1) {
        begin_range(world, 1, 20, 0xb0)->flags = TP_BEGIN_VALUES;
        end_range(world, 1, 30, 0xb0);
    }
    if (_i & 2) {
        begin_range(world, 1, 40, 0xc0)->flags = TP_BEGIN_VALUES;
        put_part(40, 0xc0, (struct tp_values){.count = 1}, 1);
        end_range(world, 1, 50, 0xc0);
    }
    if (_i & 4)
        put_part(60, KEY, (struct tp_values){.count = 0, .flags = TP_VALUES_OUTPUTS}, 0);
    end_range(world, 1, 60, KEY);
    begin_range(world, 1, 70, 0xd0)->flags = TP_BEGIN_VALUES; /* stays open */
    put_part(70, 0xd0, (struct tp_values){.count = 1}, 1);
    uint64_t missing = (_i & 1 ? 1 : 0) + (_i & 2 ? 1 : 0) + (_i & 4 ? 0 : 1);
    run(2 + (_i & 1 ? 1 : 0) + (_i & 2 ? 1 : 0), 0);
    ck_assert_uint_eq(world->counts.inputs_cut, missing);
    ck_assert_int_eq(world_event(world, 0)->flags & TP_EVENT_INPUTS_CUT, _i & 4 ? 0 : TP_EVENT_INPUTS_CUT);
    check_ints(world_event(world, 0)->given, 0);
}
END_TEST

START_TEST(cut_ones_are_the_first)
{
    begin_range(world, 1, 10, KEY);
    put_part(10, KEY, (struct tp_values){.count = 2, .flags = TP_VALUES_CUT}, 3);
    end_range(world, 1, 60, KEY);
    run(1, 0);
    check_ints(world_event(world, 0)->given, 2);
    ck_assert_uint_eq(world->counts.inputs_cut, 1);
}
END_TEST

static const struct {
    struct tp_values values;
    unsigned words;
} damaged[] = {
    {{.count = 3, .offset = 1}, 3},                       /* the first part is missing */
    {{.count = 2}, 3},                                    /* more words than values */
    {{.count = 4}, 3},                                    /* fewer */
    {{.count = 4, .flags = TP_VALUES_CUT}, 3},
    {{.count = 3, .offset = TP_VALUES_ITEMS_MAX - 1}, 3}, /* more than there can be */
};

START_TEST(damaged_ones_end_their_block)
{
    begin_range(world, 1, 10, KEY);
    put_part(10, KEY, damaged[_i].values, damaged[_i].words);
    begin_range(world, 1, 20, 0xb0);
    cut(world, 1);
    end_range(world, 1, 60, KEY);
    run(1, 1);
    ck_assert_ptr_null(world_event(world, 0)->given);
}
END_TEST

START_TEST(of_a_range_before_the_window_they_are_passed_over)
{
    world->options.window.begin = 15;
    begin_range(world, 1, 10, KEY);
    put_part(10, KEY, (struct tp_values){.count = 3}, 3);
    begin_range(world, 1, 20, 0xb0);
    end_range(world, 1, 30, 0xb0);
    put_part(60, KEY, (struct tp_values){.count = 3, .flags = TP_VALUES_OUTPUTS}, 3);
    end_range(world, 1, 60, KEY);
    run(1, 0);
    ck_assert_ptr_null(world_event(world, 0)->given);
    ck_assert_ptr_null(world_event(world, 0)->returned);
}
END_TEST

/* More than a small model can hold of ranges that stay open: those come without, and none is lost. */
START_TEST(without_memory_the_events_stay)
{
    enum { RANGES = 900, WORDS = 130, PARTS = 3 };
    world->options.memory_limit = 1 << 20;
    for (uint64_t i = 0; i < RANGES; i++) {
        begin_range(world, 1, 10 + i, KEY + i)->flags = TP_BEGIN_VALUES;
        for (uint32_t part = 0; part < PARTS; part++)
            put_part(10 + i, KEY + i,
                     (struct tp_values){.count = (part + 1) * WORDS,
                                        .offset = part * WORDS,
                                        .flags = part + 1 < PARTS ? TP_VALUES_MORE : 0},
                     WORDS);
        put_part(10 + i, KEY + i, (struct tp_values){.flags = TP_VALUES_OUTPUTS}, 0);
    }
    for (uint64_t i = RANGES; i-- > 0;)
        end_range(world, 1, 10 + 2 * RANGES - i, KEY + i);
    run(RANGES, 0);
    size_t whole = 0;
    for (size_t i = 0; i < RANGES; i++)
        whole += world->events[i].given != NULL && world->events[i].given->count == PARTS * WORDS &&
                 world->events[i].returned != NULL;
    ck_assert_uint_gt(whole, 50);
    ck_assert_uint_eq(world->counts.inputs_cut, RANGES - whole);
    ck_assert_uint_gt(world->counts.inputs_cut, 0);
}
END_TEST

/* What is open on the forward thread when a backward function begins; a wrapper's own numbers are told apart. */
START_TEST(forward_parents)
{
    struct tp_begin wrapper = {.name = NAME_WRAPPER, .scope = TP_SCOPE_FUNCTION, .sequence = -1};
    struct tp_begin backward = {.name = NAME_BACKWARD, .scope = TP_SCOPE_BACKWARD_FUNCTION, .sequence = 7};
    begin_range(world, 1, 10, KEY);
    begin_as(world, 2, 20, 0xb0, wrapper, 0);
    begin_as(world, 2, 21, 0xc0, backward, 1);
    end_range(world, 2, 22, 0xc0);
    end_range(world, 2, 23, 0xb0);
    end_range(world, 1, 30, KEY);
    begin_as(world, 2, 40, 0xc0, backward, 1);
    begin_as(world, 2, 41, 0xd0, backward, 9); /* a thread that was never seen */
    end_range(world, 2, 42, 0xd0);
    end_range(world, 2, 43, 0xc0);
    run(5, 0);
    static const uint64_t parents[] = {UINT64_MAX, UINT64_MAX, 0, UINT64_MAX, UINT64_MAX};
    static const uint64_t ends[] = {2, 1, 0, 4, 3};
    for (uint64_t i = 0; i < TP_COUNT(parents); i++) {
        ck_assert_uint_eq(world_event(world, i)->forward_parent, parents[i]);
        ck_assert_uint_eq(world_event(world, i)->end_index, ends[i]);
        ck_assert_int_eq((world_event(world, i)->flags & TP_EVENT_WRAPS) != 0, i == 1);
    }
}
END_TEST

Suite *values_suite(void)
{
    Suite *suite = suite_create("values");
    TCase *tcase = tcase_create("values");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_tensor);
    tcase_add_test(tcase, what_is_sound);
    tcase_add_test(tcase, how_deep_lists_go);
    tcase_add_test(tcase, each_range_has_its_own);
    tcase_add_test(tcase, parts_are_joined);
    tcase_add_test(tcase, without_the_last_part_there_are_none);
    tcase_add_loop_test(tcase, what_found_no_room_is_counted, 0, 8);
    tcase_add_test(tcase, cut_ones_are_the_first);
    tcase_add_loop_test(tcase, damaged_ones_end_their_block, 0, (int)TP_COUNT(damaged));
    tcase_add_test(tcase, of_a_range_before_the_window_they_are_passed_over);
    tcase_add_test(tcase, without_memory_the_events_stay);
    tcase_add_test(tcase, forward_parents);
    suite_add_tcase(suite, tcase);
    return suite;
}
