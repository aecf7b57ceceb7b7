#include "../../output/segment.h"
#include "suites.h"

/* Shuffled indices in [0, count) times a stride: close together, or far apart up to what an index can be. */
START_TEST(events_stand_in_the_order_of_their_index)
{
    static const uint64_t strides[] = {1, 2, 3, 1000, UINT64_C(1) << 37};
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    struct tp_segment segment;
    ck_assert_int_eq(tp_segment_init(&segment, &arena), 0);
    ck_assert_uint_eq(segment.capacity, 8192);
    for (size_t count = 1; count <= segment.capacity; count = count * 3 + 1) {
        segment.count = 0;
        for (size_t i = 0; i < count; i++) {
            struct tp_event *event = tp_segment_add(&segment);
            *event = (struct tp_event){.index = 77 + i * strides[_i], .id = i};
        }
        uint32_t random = (uint32_t)count;
        for (size_t i = count; i-- > 1;) {
            random = random * 1664525u + 1013904223u;
            size_t other = (random >> 8) % (i + 1);
            struct tp_event event = segment.events[i];
            segment.events[i] = segment.events[other];
            segment.events[other] = event;
        }
        tp_segment_sort(&segment);
        for (size_t i = 0; i < count; i++) {
            ck_assert_uint_eq(segment.events[i].id, i);
            ck_assert_uint_eq(segment.events[i].index, 77 + i * strides[_i]);
        }
    }
    tp_arena_free(&arena);
}
END_TEST

START_TEST(a_small_limit_makes_a_small_segment)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 1 << 20);
    struct tp_segment segment;
    ck_assert_int_eq(tp_segment_init(&segment, &arena), 0);
    ck_assert_uint_ge(segment.capacity, 1024);
    ck_assert_uint_le(arena.mapped, 512 * 1024);
    tp_arena_free(&arena);
}
END_TEST

Suite *segment_suite(void)
{
    Suite *suite = suite_create("segment");
    TCase *tcase = tcase_create("segment");
    tcase_add_loop_test(tcase, events_stand_in_the_order_of_their_index, 0, 5);
    tcase_add_test(tcase, a_small_limit_makes_a_small_segment);
    suite_add_tcase(suite, tcase);
    return suite;
}
