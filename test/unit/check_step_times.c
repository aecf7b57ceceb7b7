#include <stdlib.h>
#include <string.h>

#include "../../output/step_times.h"
#include "suites.h"

static struct tp_arena arena;
static struct tp_step_times times;

static void setup(void)
{
    tp_arena_init(&arena, 0);
    tp_step_times_init(&times, &arena, 0);
}

static void teardown(void)
{
    tp_arena_free(&arena);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 11;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void add(uint64_t number, uint64_t length)
{
    tp_step_times_add(&times, number, 1000 * number, 1000 * number + length, TP_STEP_KIND_TRAINING);
}

static struct tp_step_statistics statistics(void)
{
    struct tp_step_statistics ret;
    ck_assert(tp_step_times_statistics(&times, TP_STEP_KIND_TRAINING, NULL, &arena, &ret));
    return ret;
}

START_TEST(none)
{
    struct tp_step_statistics ret;
    struct tp_step_cursor cursor = {0};
    struct tp_step_time step;
    ck_assert(!tp_step_times_statistics(&times, TP_STEP_KIND_TRAINING, NULL, &arena, &ret));
    ck_assert(!tp_step_times_next(&times, &cursor, &step));
}
END_TEST

START_TEST(small_numbers_by_hand)
{
    add(0, 900);
    ck_assert_uint_eq(statistics().median_ns, 900);
    ck_assert_uint_eq(statistics().p95_ns, 900);
    add(1, 10);
    ck_assert_uint_eq(statistics().median_ns, 455);
    ck_assert_uint_eq(statistics().p95_ns, 900);
    for (uint64_t i = 2; i < 21; i++)
        add(i, 10 + i);
    struct tp_step_statistics got = statistics(); /* 10, 12..30, 900 */
    ck_assert_uint_eq(got.count, 21);
    ck_assert_uint_eq(got.first_ns, 900);
    ck_assert_uint_eq(got.min_ns, 10);
    ck_assert_uint_eq(got.max_ns, 900);
    ck_assert_uint_eq(got.median_ns, 21);
    ck_assert_uint_eq(got.p95_ns, 30); /* 20 of 21 are more than 95 % */
    ck_assert(!got.estimated);
}
END_TEST

/* Against a plain sort: random, few different values, rising, falling, all equal. */
START_TEST(selection_against_a_sort)
{
    uint64_t state = (uint64_t)_i + 1;
    size_t count = 1 + next_random(&state) % 20000;
    uint64_t *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        uint64_t random = next_random(&state);
        values[i] = _i % 5 == 0   ? random % 1000000
                    : _i % 5 == 1 ? random % 3
                    : _i % 5 == 2 ? i
                    : _i % 5 == 3 ? count - i
                                  : 7;
        add(i, values[i]);
    }
    qsort(values, count, sizeof *values, by_value);
    struct tp_step_statistics got = statistics();
    uint64_t low = values[(count - 1) / 2], high = values[count / 2];
    ck_assert_uint_eq(got.median_ns, low + (high - low) / 2);
    ck_assert_uint_eq(got.p95_ns, values[(95 * count + 99) / 100 - 1]);
    ck_assert_uint_eq(got.max_ns, values[count - 1]);
    free(values);
}
END_TEST

START_TEST(beyond_the_bound)
{
    tp_step_times_init(&times, &arena, 10000);
    uint64_t state = 5, sum = 0;
    size_t count = 50000;
    uint64_t *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = 1000000 + next_random(&state) % 9000000;
        sum += values[i];
        add(i, values[i]);
    }
    qsort(values, count, sizeof *values, by_value);
    struct tp_step_statistics got = statistics();
    ck_assert(got.estimated);
    ck_assert_uint_eq(times.count, count);
    ck_assert_uint_eq(times.kept, 10000);
    ck_assert_uint_eq(got.count, count);
    ck_assert_uint_eq(got.mean_ns, sum / count);
    ck_assert_uint_eq(got.max_ns, values[count - 1]);
    ck_assert_double_eq_tol((double)got.median_ns, (double)values[count / 2], (double)values[count / 2] * 0.02);
    ck_assert_double_eq_tol((double)got.p95_ns, (double)values[count * 95 / 100],
                            (double)values[count * 95 / 100] * 0.02);
    free(values);
}
END_TEST

/* Any length lands in a bucket whose estimate is within 2 %. */
START_TEST(histogram_over_all_lengths)
{
    for (unsigned bit = 0; bit < 55; bit++)
        for (unsigned part = 0; part < 5; part++) {
            tp_step_times_init(&times, &arena, 1);
            uint64_t length = (UINT64_C(1) << bit) + (UINT64_C(1) << bit) / 5 * part;
            add(0, 0);
            add(1, length);
            add(2, length);
            add(3, UINT64_C(1) << 55);
            struct tp_step_statistics got = statistics();
            ck_assert(got.estimated);
            ck_assert_double_eq_tol((double)got.median_ns, (double)length, (double)length * 0.02);
        }
}
END_TEST

START_TEST(kinds_and_walk)
{
    for (uint64_t i = 0; i < 9000; i++)
        tp_step_times_add(&times, i < 5000 ? i : i + 7, i * 10, i * 10 + i % 10,
                          i % 3 ? TP_STEP_KIND_TRAINING : TP_STEP_KIND_BATCH);
    struct tp_step_cursor cursor = {0};
    struct tp_step_time step;
    for (uint64_t i = 0; i < 9000; i++) {
        ck_assert(tp_step_times_next(&times, &cursor, &step));
        ck_assert_uint_eq(step.number, i < 5000 ? i : i + 7);
        ck_assert_uint_eq(step.begin, i * 10);
        ck_assert_uint_eq(step.end, i * 10 + i % 10);
        ck_assert_uint_eq(step.kind, i % 3 ? TP_STEP_KIND_TRAINING : TP_STEP_KIND_BATCH);
    }
    ck_assert(!tp_step_times_next(&times, &cursor, &step));
    ck_assert(!tp_step_times_next(&times, &cursor, &step));
    struct tp_step_statistics batch;
    ck_assert(tp_step_times_statistics(&times, TP_STEP_KIND_BATCH, NULL, &arena, &batch));
    ck_assert_uint_eq(batch.count, 3000);
    ck_assert_uint_eq(statistics().count, 6000);
}
END_TEST

START_TEST(ticks_become_nanoseconds)
{
    struct tp_clock_map map = {.ns_per_tick = (UINT64_C(1) << TP_CLOCK_SHIFT) / 4};
    add(0, 4000);
    struct tp_step_statistics got;
    ck_assert(tp_step_times_statistics(&times, TP_STEP_KIND_TRAINING, &map, &arena, &got));
    ck_assert_uint_eq(got.median_ns, 1000);
    ck_assert_uint_eq(got.max_ns, 1000);
}
END_TEST

/* No memory: the first steps stay, and counts and statistics go on. */
START_TEST(memory_ends)
{
    struct tp_arena small;
    tp_arena_init(&small, 256 * 1024);
    tp_step_times_init(&times, &small, 0);
    for (uint64_t i = 0; i < 20000; i++)
        add(i, 100 + i % 2);
    ck_assert_uint_lt(times.kept, 20000);
    ck_assert_uint_gt(times.kept, 0);
    struct tp_step_statistics got = statistics();
    ck_assert_uint_eq(got.count, 20000);
    ck_assert(got.estimated);
    ck_assert_uint_eq(got.median_ns / 10, 10);
    struct tp_step_cursor cursor = {0};
    struct tp_step_time step;
    uint64_t walked = 0;
    while (tp_step_times_next(&times, &cursor, &step))
        ck_assert_uint_eq(step.number, walked++);
    ck_assert_uint_eq(walked, times.kept);
    tp_arena_free(&small);
}
END_TEST

Suite *step_times_suite(void)
{
    Suite *suite = suite_create("step_times");
    TCase *tcase = tcase_create("step_times");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, none);
    tcase_add_test(tcase, small_numbers_by_hand);
    tcase_add_loop_test(tcase, selection_against_a_sort, 0, 50);
    tcase_add_test(tcase, beyond_the_bound);
    tcase_add_test(tcase, histogram_over_all_lengths);
    tcase_add_test(tcase, kinds_and_walk);
    tcase_add_test(tcase, ticks_become_nanoseconds);
    tcase_add_test(tcase, memory_ends);
    suite_add_tcase(suite, tcase);
    return suite;
}
