#include "suites.h"

#include "simgpu.h"

START_TEST(virtual_time_passes_by_calls_and_waits_alone)
{
    sim_clock_virtual(1000);
    ck_assert_uint_eq(sim_clock_now(), 1000);
    ck_assert_uint_eq(sim_clock_now(), 1000);
    sim_clock_tick();
    ck_assert_uint_eq(sim_clock_now(), 1100);
    sim_clock_wait(5000);
    ck_assert_uint_eq(sim_clock_now(), 5000);
    sim_clock_wait(10);
    ck_assert_uint_eq(sim_clock_now(), 5000);
}
END_TEST

START_TEST(real_time_is_waited_for)
{
    uint64_t until = sim_clock_now() + 3000000;
    sim_clock_wait(until);
    ck_assert_uint_ge(sim_clock_now(), until);
}
END_TEST

static uint64_t triple(void)
{
    return 3 * sim_clock_now() + 7;
}

START_TEST(times_are_told_in_the_readers_clock)
{
    sim_clock_virtual(1000000);
    ck_assert_uint_eq(sim_timebase_of(1234), 1234);
    sim_timebase(triple);
    ck_assert_uint_eq(sim_timebase_now(), 3 * sim_clock_now() + 7);
    uint64_t now = sim_clock_now();
    ck_assert_uint_eq(sim_timebase_of(now + 5000), 3 * (now + 5000) + 7);
    ck_assert_uint_eq(sim_timebase_of(now - 5000), 3 * (now - 5000) + 7);
    sim_clock_wait(now + UINT64_C(10000000000)); /* long enough to be measured again */
    ck_assert_uint_eq(sim_timebase_of(now), 3 * now + 7);
    sim_timebase(NULL);
    ck_assert_uint_eq(sim_timebase_of(1234), 1234);
}
END_TEST

Suite *clock_suite(void)
{
    Suite *suite = suite_create("clock");
    TCase *all = tcase_create("clock");
    tcase_add_test(all, virtual_time_passes_by_calls_and_waits_alone);
    tcase_add_test(all, real_time_is_waited_for);
    tcase_add_test(all, times_are_told_in_the_readers_clock);
    suite_add_tcase(suite, all);
    return suite;
}
