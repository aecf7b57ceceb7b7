#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "../../agent/bell.h"
#include "suites.h"

static struct tp_bell bell;

static void *ring_soon(void *unused)
{
    struct timespec t = {.tv_nsec = 20000000};
    nanosleep(&t, NULL);
    tp_bell_ring(&bell);
    return unused;
}

START_TEST(a_ring_before_the_wait_counts)
{
    uint32_t seen = tp_bell_rings(&bell);
    tp_bell_ring(&bell);
    ck_assert(tp_bell_wait(&bell, seen, TP_BELL_FOREVER));
    ck_assert(!tp_bell_wait(&bell, tp_bell_rings(&bell), 0));
}
END_TEST

START_TEST(the_time_is_over)
{
    ck_assert(!tp_bell_wait(&bell, tp_bell_rings(&bell), 5));
}
END_TEST

START_TEST(a_ring_wakes)
{
    static const uint64_t limits[] = {60000, TP_BELL_FOREVER};
    for (size_t i = 0; i < TP_COUNT(limits); i++) {
        uint32_t seen = tp_bell_rings(&bell);
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, ring_soon, NULL), 0);
        ck_assert(tp_bell_wait(&bell, seen, limits[i]));
        pthread_join(thread, NULL);
    }
}
END_TEST

static void nothing(int number)
{
    (void)number;
}

START_TEST(a_signal_ends_no_wait)
{
    struct sigaction action = {.sa_handler = nothing}, before;
    sigaction(SIGALRM, &action, &before);
    timer_t timer;
    ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
    struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    timer_settime(timer, 0, &every, NULL);
    uint32_t seen = tp_bell_rings(&bell);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, ring_soon, NULL), 0);
    ck_assert(tp_bell_wait(&bell, seen, TP_BELL_FOREVER));
    ck_assert_uint_eq(tp_bell_rings(&bell), seen + 1);
    timer_delete(timer);
    pthread_join(thread, NULL);
    sigaction(SIGALRM, &before, NULL);
}
END_TEST

Suite *bell_suite(void)
{
    Suite *suite = suite_create("bell");
    TCase *tcase = tcase_create("bell");
    tcase_add_test(tcase, a_ring_before_the_wait_counts);
    tcase_add_test(tcase, the_time_is_over);
    tcase_add_test(tcase, a_ring_wakes);
    tcase_add_test(tcase, a_signal_ends_no_wait);
    suite_add_tcase(suite, tcase);
    return suite;
}
