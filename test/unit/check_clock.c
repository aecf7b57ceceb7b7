#include "suites.h"

#include <stdlib.h>
#include <time.h>

#include "../../agent/clock.h"

START_TEST(ticks_rise_and_map_to_wall_time)
{
    tp_clock_init();
    struct tp_clock_pair begin = tp_clock_pair_now();
    struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
    struct tp_clock_pair end = tp_clock_pair_now();
    ck_assert_uint_gt(end.ticks, begin.ticks);
    struct tp_clock_map map = tp_clock_map_between(&begin, &end);
    uint64_t at_begin = tp_clock_ns(&map, begin.ticks), at_end = tp_clock_ns(&map, end.ticks);
    ck_assert_uint_eq(at_begin, begin.realtime_ns);
    ck_assert_int_le(llabs((long long)(at_end - at_begin) - (long long)(end.monotonic_ns - begin.monotonic_ns)), 2);
    /* Before the first pair the line goes on. */
    ck_assert_uint_lt(tp_clock_ns(&map, begin.ticks - 1000000), at_begin);
}
END_TEST

START_TEST(map_is_exact_over_days)
{
    tp_clock_is_tsc = true;
    struct tp_clock_pair begin = {.ticks = 1000, .monotonic_ns = 5, .realtime_ns = 1700000000000000000};
    struct tp_clock_pair end = begin;
    end.ticks += UINT64_C(2600000000) * 86400 * 30;
    end.monotonic_ns += UINT64_C(1000000000) * 86400 * 30;
    struct tp_clock_map map = tp_clock_map_between(&begin, &end);
    ck_assert_int_le(llabs((long long)(tp_clock_ns(&map, end.ticks) - begin.realtime_ns) -
                           (long long)(end.monotonic_ns - begin.monotonic_ns)),
                     1000);
    ck_assert_double_eq_tol(tp_clock_ticks_per_ns(&map), 2.6, 1e-9);
    tp_clock_init();
}
END_TEST

START_TEST(without_a_trusted_counter_a_tick_is_a_nanosecond)
{
    tp_clock_is_tsc = false;
    struct tp_clock_pair begin = tp_clock_pair_now();
    struct tp_clock_pair end = begin;
    struct tp_clock_map map = tp_clock_map_between(&begin, &end);
    ck_assert_uint_eq(tp_clock_ns(&map, begin.ticks + 1234567), begin.realtime_ns + 1234567);
    tp_clock_init();
}
END_TEST

Suite *clock_suite(void)
{
    Suite *suite = suite_create("clock");
    TCase *tcase = tcase_create("clock");
    tcase_add_test(tcase, ticks_rise_and_map_to_wall_time);
    tcase_add_test(tcase, map_is_exact_over_days);
    tcase_add_test(tcase, without_a_trusted_counter_a_tick_is_a_nanosecond);
    suite_add_tcase(suite, tcase);
    return suite;
}
