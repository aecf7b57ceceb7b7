#include "../../output/identities.h"
#include "suites.h"

#define A 0x7f0000001000
#define B 0x7f0000002000

static struct tp_arena arena;
static uint64_t next_id;
static struct tp_identities identities;

static void setup(void)
{
    tp_arena_init(&arena, 64 << 20);
    next_id = 3;
    identities = (struct tp_identities){.arena = &arena, .next_id = &next_id};
}

static void teardown(void)
{
    tp_arena_free(&arena);
}

static uint64_t given(uint64_t address, uint64_t begin)
{
    return tp_identity_given(&identities, TP_IDENTITY_TENSOR, address, begin);
}

static uint64_t made(uint64_t address, uint64_t begin)
{
    return tp_identity_returned(&identities, TP_IDENTITY_TENSOR, address, begin, true);
}

static uint64_t returned(uint64_t address, uint64_t begin)
{
    return tp_identity_returned(&identities, TP_IDENTITY_TENSOR, address, begin, false);
}

START_TEST(an_address_that_stays)
{
    ck_assert_uint_eq(given(A, 0), 3);
    ck_assert_uint_eq(given(B, 0), 5);
    ck_assert_uint_eq(returned(A, 0), 3);
    ck_assert_uint_eq(returned(A, 7), 3);
    ck_assert_uint_eq(given(A, 8), 3);
    ck_assert_uint_eq(tp_identity_given(&identities, TP_IDENTITY_STORAGE, A, 8), 7);
    ck_assert_uint_eq(next_id, 9);
}
END_TEST

START_TEST(what_is_made_at_it_is_another)
{
    uint64_t first = made(A, 4);
    ck_assert_uint_eq(given(A, 5), first);
    uint64_t second = made(A, 6);
    ck_assert_uint_ne(second, first);
    ck_assert_uint_eq(given(A, 7), second);
    ck_assert_uint_ne(made(A, 8), second);
}
END_TEST

/* An operator says that its result is new, and it is one of its inputs, or what an operator inside it made. */
START_TEST(what_was_shown_meanwhile_is_the_same)
{
    uint64_t input = given(A, 4);
    ck_assert_uint_eq(made(A, 4), input);
    uint64_t inside = made(B, 6);
    ck_assert_uint_eq(made(B, 5), inside);
    ck_assert_uint_eq(made(B, 4), inside);
    ck_assert_uint_ne(made(B, 7), inside);
}
END_TEST

/* The operator around ends later, and was given what was there before. */
START_TEST(inputs_are_those_of_the_begin)
{
    uint64_t input = made(A, 1), inside = made(A, 3);
    ck_assert_uint_eq(given(A, 2), input);
    ck_assert_uint_eq(given(A, 4), inside);
    ck_assert_uint_eq(returned(A, 2), inside);
    /* One that nothing has shown yet. */
    inside = made(B, 6);
    input = given(B, 5);
    ck_assert_uint_ne(input, inside);
    ck_assert_uint_eq(given(B, 5), input);
    ck_assert_uint_eq(given(B, 7), inside);
}
END_TEST

START_TEST(what_was_shown)
{
    ck_assert(!tp_identity_was_shown(&identities, TP_IDENTITY_TENSOR, A, 0));
    given(A, 4);
    ck_assert(tp_identity_was_shown(&identities, TP_IDENTITY_TENSOR, A, 4));
    ck_assert(tp_identity_was_shown(&identities, TP_IDENTITY_TENSOR, A, 3));
    ck_assert(!tp_identity_was_shown(&identities, TP_IDENTITY_TENSOR, A, 5));
    ck_assert(!tp_identity_was_shown(&identities, TP_IDENTITY_STORAGE, A, 4));
    ck_assert(!tp_identity_was_shown(&identities, TP_IDENTITY_TENSOR, B, 4));
}
END_TEST

START_TEST(without_memory_there_is_no_id)
{
    arena.limit = 1;
    ck_assert_uint_eq(given(A, 1), 0);
    ck_assert_uint_eq(made(A, 1), 0);
    arena.limit = 0;
    ck_assert_uint_eq(given(A, 1), 3);
}
END_TEST

Suite *identities_suite(void)
{
    Suite *suite = suite_create("identities");
    TCase *tcase = tcase_create("identities");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_address_that_stays);
    tcase_add_test(tcase, what_is_made_at_it_is_another);
    tcase_add_test(tcase, what_was_shown_meanwhile_is_the_same);
    tcase_add_test(tcase, inputs_are_those_of_the_begin);
    tcase_add_test(tcase, what_was_shown);
    tcase_add_test(tcase, without_memory_there_is_no_id);
    suite_add_tcase(suite, tcase);
    return suite;
}
