#include <errno.h>
#include <stdlib.h>

#include "../../output/ids.h"
#include "suites.h"

static void check_list(const struct tp_ids *ids, const uint64_t *numbers, size_t count)
{
    struct tp_ids_cursor cursor = tp_ids_begin(ids);
    uint64_t number;
    ck_assert_uint_eq(ids->count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert(tp_ids_next(&cursor, &number));
        ck_assert_uint_eq(number, numbers[i]);
    }
    ck_assert(!tp_ids_next(&cursor, &number));
}

/* Rising, falling, equal, as far apart as can be. */
START_TEST(numbers_come_back)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    struct tp_ids_pool pool = {.arena = &arena};
    struct tp_ids ids = {0};
    uint64_t numbers[3000], random = 1;
    for (size_t i = 0; i < TP_COUNT(numbers); i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        numbers[i] = i % 7 == 0 ? UINT64_MAX - i : i % 7 == 1 ? 0 : i % 7 == 2 ? UINT64_C(1) << 63 : random >> random % 64;
        ck_assert_int_eq(tp_ids_add(&pool, &ids, numbers[i]), 0);
    }
    check_list(&ids, numbers, TP_COUNT(numbers));
    tp_arena_free(&arena);
}
END_TEST

START_TEST(lists_move_and_pieces_come_again)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    struct tp_ids_pool pool = {.arena = &arena};
    struct tp_ids a = {0}, b = {0}, empty = {0};
    size_t held = 0;
    for (unsigned turn = 0; turn < 200; turn++) {
        uint64_t numbers[400];
        for (size_t i = 0; i < 400; i++) {
            numbers[i] = i * turn;
            ck_assert_int_eq(tp_ids_add(&pool, i < 200 ? &a : &b, numbers[i]), 0);
        }
        ck_assert_int_eq(tp_ids_move(&pool, &empty, &a), 0);
        ck_assert_int_eq(tp_ids_move(&pool, &empty, &b), 0);
        check_list(&empty, numbers, 400);
        check_list(&a, NULL, 0);
        check_list(&b, NULL, 0);
        tp_ids_clear(&pool, &empty);
        check_list(&empty, NULL, 0);
        held = turn == 100 ? arena.mapped : held;
    }
    ck_assert_uint_eq(arena.mapped, held);
    tp_arena_free(&arena);
}
END_TEST

/* Neighbours take a byte each. */
START_TEST(lists_are_small)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 3u << 20);
    struct tp_ids_pool pool = {.arena = &arena};
    struct tp_ids ids = {0};
    int status = 0;
    uint64_t count = 0;
    for (; status == 0; count++)
        status = tp_ids_add(&pool, &ids, 5 + count * 3);
    ck_assert_int_eq(status, -ENOMEM);
    ck_assert_uint_gt(count, 1500000);
    tp_arena_free(&arena);
}
END_TEST

Suite *ids_suite(void)
{
    Suite *suite = suite_create("ids");
    TCase *tcase = tcase_create("ids");
    tcase_add_test(tcase, numbers_come_back);
    tcase_add_test(tcase, lists_move_and_pieces_come_again);
    tcase_add_test(tcase, lists_are_small);
    suite_add_tcase(suite, tcase);
    return suite;
}
