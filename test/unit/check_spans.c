#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../output/spans.h"
#include "../../output/strings.h"
#include "suites.h"

static struct tp_arena arena;

static void setup(void)
{
    tp_arena_init(&arena, 0);
}

static void teardown(void)
{
    tp_arena_free(&arena);
}

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % limit;
}

static int in_order(const void *a, const void *b)
{
    const struct tp_span *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

#define THREADS 3
#define SPANS 60000 /* more than wait to be sorted, several times */

enum order { IN_ORDER, TWO_PASSES, BACKWARDS, AT_RANDOM, ORDERS };

static int64_t start_of(enum order order, unsigned at)
{
    switch (order) {
    case TWO_PASSES:
        return at < SPANS / 2 ? (int64_t)at * 20 : (int64_t)(at - SPANS / 2) * 20 + 7;
    case BACKWARDS:
        return -(int64_t)at * 3;
    case AT_RANDOM:
        return (int64_t)random_below(1000000);
    default:
        return (int64_t)at / 2 * 10; /* pairs of equal begins */
    }
}

/* What goes in comes out sorted, each field as it was, whatever the order in which it came. */
START_TEST(spans_come_out_in_order)
{
    struct tp_spans *spans = tp_spans_new(&arena);
    struct tp_span *given[THREADS];
    size_t counts[THREADS] = {0};
    for (size_t i = 0; i < THREADS; i++)
        given[i] = calloc(SPANS, sizeof **given);
    random_state = (uint64_t)_i;
    for (unsigned i = 0; i < SPANS; i++) {
        int64_t start = start_of((enum order)_i, i);
        struct tp_span span = {.start_ns = start,
                               .end_ns = start + (int64_t)random_below(5),
                               .serial = i,
                               .label = (uint32_t)random_below(300),
                               .id = random_below(2) ? i : 0};
        if (random_below(10) == 0) {
            span.flops = random_below(1u << 30) << 20;
            span.bytes = -(int64_t)random_below(1u << 30);
            span.device_bytes = INT64_MIN;
            span.stack = UINT32_MAX;
            span.sequence = UINT64_MAX;
            span.forward_thread = 1;
        }
        uint32_t thread = (uint32_t)random_below(THREADS);
        given[thread][counts[thread]++] = span;
        ck_assert_int_eq(tp_spans_add(spans, thread, &span), 0);
    }
    ck_assert_int_eq(tp_spans_end(spans), 0);
    ck_assert_uint_eq(tp_spans_count(spans), SPANS);
    ck_assert_uint_eq(tp_spans_threads(spans), THREADS);
    struct tp_spans_reader *reader = tp_spans_reader_new(&arena);
    for (uint32_t thread = 0; thread < THREADS; thread++) {
        qsort(given[thread], counts[thread], sizeof **given, in_order);
        ck_assert_int_eq(tp_spans_open(reader, spans, thread), 0);
        struct tp_span span;
        for (size_t i = 0; i < counts[thread]; i++) {
            const struct tp_span *expected = &given[thread][i];
            ck_assert(tp_spans_next(reader, &span));
            ck_assert_msg(span.start_ns == expected->start_ns && span.end_ns == expected->end_ns &&
                              span.serial == expected->serial && span.label == expected->label &&
                              span.id == expected->id && span.flops == expected->flops &&
                              span.bytes == expected->bytes && span.device_bytes == expected->device_bytes &&
                              span.stack == expected->stack && span.sequence == expected->sequence &&
                              span.forward_thread == expected->forward_thread,
                          "thread %u, span %zu", thread, i);
        }
        ck_assert(!tp_spans_next(reader, &span));
        free(given[thread]);
    }
}
END_TEST

START_TEST(edges_of_numbers)
{
    static const int64_t edges[] = {INT64_MIN, INT64_MIN / 2, -1, 0, 1, INT64_MAX / 2, INT64_MAX};
    struct tp_spans *spans = tp_spans_new(&arena);
    for (size_t i = 0; i < TP_COUNT(edges); i++)
        for (size_t k = i; k < TP_COUNT(edges); k++)
            ck_assert_int_eq(tp_spans_add(spans, 0, &(struct tp_span){.start_ns = edges[i], .end_ns = edges[k],
                                                                      .serial = UINT64_MAX - i, .id = (uint64_t)edges[k],
                                                                      .label = UINT32_MAX}), 0);
    ck_assert_int_eq(tp_spans_end(spans), 0);
    struct tp_spans_reader *reader = tp_spans_reader_new(&arena);
    ck_assert_int_eq(tp_spans_open(reader, spans, 0), 0);
    for (size_t i = 0; i < TP_COUNT(edges); i++)
        for (size_t k = TP_COUNT(edges); k-- > i;) {
            struct tp_span span;
            ck_assert(tp_spans_next(reader, &span));
            ck_assert(span.start_ns == edges[i] && span.end_ns == edges[k] && span.serial == UINT64_MAX - i &&
                      span.id == (uint64_t)edges[k] && span.label == UINT32_MAX);
        }
}
END_TEST

/* What the files of profilers hold takes few bytes. */
START_TEST(usual_spans_are_small)
{
    struct tp_spans *spans = tp_spans_new(&arena);
    size_t before = arena.mapped;
    int64_t now = INT64_C(5245421550931400);
    for (unsigned i = 0; i < 1000000; i++, now += 1 + (int64_t)random_below(10000))
        ck_assert_int_eq(tp_spans_add(spans, 0, &(struct tp_span){.start_ns = now,
                                                                  .end_ns = now + (int64_t)random_below(100000),
                                                                  .serial = i, .label = i % 100, .id = i + 1}), 0);
    ck_assert_uint_lt(arena.mapped - before, 1000000u * 11);
}
END_TEST

START_TEST(memory_that_is_out)
{
    struct tp_arena small;
    tp_arena_init(&small, 4u << 20);
    struct tp_spans *spans = tp_spans_new(&small);
    ck_assert_ptr_nonnull(spans);
    int status = 0;
    for (unsigned i = 0; i < 10000000 && status == 0; i++)
        status = tp_spans_add(spans, i % 100, &(struct tp_span){.start_ns = i, .end_ns = i, .serial = i});
    ck_assert_int_eq(status, -12);
    tp_arena_free(&small);
}
END_TEST

START_TEST(strings_are_kept_once)
{
    struct tp_strings *strings = tp_strings_new(&arena);
    char text[32];
    size_t bytes;
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < 5000; i++) {
            int length = snprintf(text, sizeof text, "text %u", i);
            ck_assert_int_eq(tp_strings_of(strings, text, (size_t)length), i);
        }
    ck_assert_int_eq(tp_strings_of(strings, "", 0), 5000);
    ck_assert_int_eq(tp_strings_of(strings, "a\0b", 3), 5001);
    ck_assert_int_eq(tp_strings_of(strings, "a", 1), 5002);
    ck_assert_str_eq(tp_strings_text(strings, 4999, &bytes), "text 4999");
    ck_assert_uint_eq(bytes, 9);
}
END_TEST

Suite *spans_suite(void)
{
    Suite *suite = suite_create("spans");
    TCase *tcase = tcase_create("spans");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, spans_come_out_in_order, 0, ORDERS);
    tcase_add_test(tcase, edges_of_numbers);
    tcase_add_test(tcase, usual_spans_are_small);
    tcase_add_test(tcase, memory_that_is_out);
    tcase_add_test(tcase, strings_are_kept_once);
    suite_add_tcase(suite, tcase);
    return suite;
}
