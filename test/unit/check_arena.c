#include <stdint.h>
#include <string.h>

#include "../../agent/arena.h"
#include "suites.h"

START_TEST(pieces_are_zeroed_aligned_and_apart)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    char *last = NULL;
    for (size_t n = 0; n < 3000; n++) {
        char *piece = tp_arena_alloc(&arena, n);
        ck_assert_ptr_nonnull(piece);
        ck_assert_uint_eq((uintptr_t)piece % 16, 0);
        size_t zero = 0;
        while (zero < n && piece[zero] == 0)
            zero++;
        ck_assert_uint_eq(zero, n);
        memset(piece, 0xff, n);
        ck_assert_ptr_ne(piece, last);
        last = piece;
    }
    tp_arena_free(&arena);
    ck_assert_uint_eq(arena.mapped, 0);
}
END_TEST

START_TEST(limit_is_kept)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 256 * 1024);
    size_t got = 0;
    while (tp_arena_alloc(&arena, 1000))
        got += 1000;
    ck_assert_uint_ge(got, 200 * 1024);
    ck_assert_uint_le(arena.mapped, 256 * 1024);
    ck_assert_ptr_null(tp_arena_alloc(&arena, SIZE_MAX - 100));
    tp_arena_free(&arena);
}
END_TEST

START_TEST(copy_ends_with_nul)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    ck_assert_str_eq(tp_arena_copy(&arena, "abcdef", 3), "abc");
    ck_assert_str_eq(tp_arena_copy(&arena, "", 0), "");
    tp_arena_free(&arena);
}
END_TEST

Suite *arena_suite(void)
{
    Suite *suite = suite_create("arena");
    TCase *tcase = tcase_create("arena");
    tcase_add_test(tcase, pieces_are_zeroed_aligned_and_apart);
    tcase_add_test(tcase, limit_is_kept);
    tcase_add_test(tcase, copy_ends_with_nul);
    suite_add_tcase(suite, tcase);
    return suite;
}
