#include "suites.h"

#include "simgpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RECORD = 16, MOST = 4096 };

/* What came back. */
static struct {
    pthread_mutex_t lock;
    uint64_t records[MOST];
    size_t count, buffers, asked;
    bool other_thread;
    pthread_t us;
} got;
static size_t buffer_bytes, buffer_records;

static void request(uint8_t **buffer, size_t *bytes, size_t *records)
{
    got.asked++;
    *buffer = malloc(buffer_bytes);
    *bytes = buffer_bytes;
    *records = buffer_records;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    ck_assert_ptr_null(context);
    ck_assert_uint_eq(stream, 0);
    ck_assert_uint_eq(bytes, buffer_bytes);
    pthread_mutex_lock(&got.lock);
    got.buffers++;
    got.other_thread |= !pthread_equal(pthread_self(), got.us);
    for (size_t at = 0; at < valid; at += RECORD)
        memcpy(&got.records[got.count++], buffer + at, sizeof *got.records);
    pthread_mutex_unlock(&got.lock);
    free(buffer);
}

static struct sim_buffers *start(size_t bytes, size_t records, const char *faults)
{
    pthread_mutex_init(&got.lock, NULL);
    got.us = pthread_self();
    buffer_bytes = bytes;
    buffer_records = records;
    sim_clock_virtual(1000);
    sim_faults_set(faults);
    struct sim_buffers *buffers = sim_buffers_new();
    sim_buffers_callbacks(buffers, request, complete);
    return buffers;
}

static void put(struct sim_buffers *buffers, uint64_t number, uint64_t ready)
{
    uint64_t record[RECORD / 8] = {number};
    sim_buffers_put(buffers, record, RECORD, ready);
}

START_TEST(records_come_when_they_are_over)
{
    struct sim_buffers *buffers = start(1024, 0, "");
    put(buffers, 3, 3000);
    put(buffers, 2, 2000);
    put(buffers, 1, 500);
    ck_assert_uint_eq(got.asked, 1); /* at the first, before any is over */
    sim_buffers_flush(buffers, false);
    ck_assert_uint_eq(got.count, 0); /* a buffer that is not full is kept */
    sim_clock_wait(2500);
    put(buffers, 0, 2500);
    sim_buffers_flush(buffers, true);
    ck_assert_uint_eq(got.buffers, 1);
    ck_assert_uint_eq(got.count, 4);
    static const uint64_t wanted[] = {1, 2, 0, 3};
    ck_assert_mem_eq(got.records, wanted, sizeof wanted);
    sim_buffers_end(buffers);
}
END_TEST

START_TEST(a_thread_hands_full_buffers_over)
{
    struct sim_buffers *buffers = start(4 * RECORD, 0, "");
    for (uint64_t i = 0; i < 9; i++)
        put(buffers, i, 0);
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&got.lock);
        bool all = got.count == 8;
        pthread_mutex_unlock(&got.lock);
        if (all)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    pthread_mutex_lock(&got.lock);
    ck_assert_uint_eq(got.count, 8);
    ck_assert_uint_eq(got.buffers, 2);
    ck_assert(got.other_thread);
    pthread_mutex_unlock(&got.lock);
    sim_buffers_flush(buffers, true);
    ck_assert_uint_eq(got.count, 9);
    for (uint64_t i = 0; i < 9; i++)
        ck_assert_uint_eq(got.records[i], i);
    ck_assert_uint_eq(sim_buffers_dropped(buffers), 0);
    sim_buffers_end(buffers);
}
END_TEST

START_TEST(no_buffer_has_more_records_than_its_owner_said)
{
    struct sim_buffers *buffers = start(1024, 2, "");
    for (uint64_t i = 0; i < 5; i++)
        put(buffers, i, 0);
    sim_buffers_flush(buffers, true);
    ck_assert_uint_eq(got.buffers, 3);
    ck_assert_uint_eq(got.count, 5);
    sim_buffers_end(buffers);
}
END_TEST

START_TEST(dropped_records_are_counted_once)
{
    struct sim_buffers *buffers = start(1024, 0, "drop=3");
    for (uint64_t i = 1; i <= 9; i++)
        put(buffers, i, 0);
    sim_buffers_flush(buffers, true);
    static const uint64_t wanted[] = {1, 2, 4, 5, 7, 8};
    ck_assert_uint_eq(got.count, 6);
    ck_assert_mem_eq(got.records, wanted, sizeof wanted);
    ck_assert_uint_eq(sim_buffers_dropped(buffers), 3);
    ck_assert_uint_eq(sim_buffers_dropped(buffers), 0);
    sim_buffers_end(buffers);
}
END_TEST

START_TEST(late_records_come_later)
{
    struct sim_buffers *buffers = start(RECORD, 0, "late=500");
    put(buffers, 1, 1000);
    sim_clock_wait(1499);
    put(buffers, 2, 1499);
    sim_buffers_flush(buffers, false);
    ck_assert_uint_eq(got.count, 0);
    sim_clock_wait(1999);
    sim_buffers_flush(buffers, false);
    sim_buffers_flush(buffers, true);
    ck_assert_uint_eq(got.count, 2);
    sim_buffers_end(buffers);
}
END_TEST

START_TEST(shuffled_records_are_all_there_out_of_order)
{
    struct sim_buffers *buffers = start(65536, 0, "shuffle=100000");
    bool seen[500] = {false};
    for (uint64_t i = 0; i < 500; i++)
        put(buffers, i, 1000 + i);
    sim_buffers_flush(buffers, true);
    ck_assert_uint_eq(got.count, 500);
    unsigned turned = 0;
    for (size_t i = 0; i < 500; i++) {
        ck_assert(got.records[i] < 500 && !seen[got.records[i]]);
        seen[got.records[i]] = true;
        turned += i && got.records[i] < got.records[i - 1];
    }
    ck_assert_uint_ge(turned, 100);
    sim_buffers_end(buffers);
}
END_TEST

START_TEST(without_a_buffer_records_are_dropped)
{
    struct sim_buffers *buffers = start(1024, 0, "refuse=1");
    for (uint64_t i = 0; i < 5; i++)
        put(buffers, i, 0);
    sim_buffers_flush(buffers, true);
    ck_assert_uint_eq(got.count, 0);
    ck_assert_uint_eq(sim_buffers_dropped(buffers), 5);
    sim_buffers_end(buffers);
}
END_TEST

START_TEST(a_record_that_fits_no_buffer_is_dropped)
{
    struct sim_buffers *buffers = start(RECORD / 2, 0, "");
    put(buffers, 1, 0);
    sim_buffers_flush(buffers, true);
    ck_assert_uint_eq(got.count, 0);
    ck_assert_uint_eq(sim_buffers_dropped(buffers), 1);
    sim_buffers_end(buffers);
}
END_TEST

Suite *buffers_suite(void)
{
    Suite *suite = suite_create("buffers");
    TCase *all = tcase_create("buffers");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, records_come_when_they_are_over);
    tcase_add_test(all, a_thread_hands_full_buffers_over);
    tcase_add_test(all, no_buffer_has_more_records_than_its_owner_said);
    tcase_add_test(all, dropped_records_are_counted_once);
    tcase_add_test(all, late_records_come_later);
    tcase_add_test(all, shuffled_records_are_all_there_out_of_order);
    tcase_add_test(all, without_a_buffer_records_are_dropped);
    tcase_add_test(all, a_record_that_fits_no_buffer_is_dropped);
    suite_add_tcase(suite, all);
    return suite;
}
