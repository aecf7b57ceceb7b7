#include "suites.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/intern.h"

static struct tp_intern *table;
static char *text_memory;

static void new_table(size_t text_bytes, size_t usable)
{
    table = calloc(1, tp_intern_size());
    text_memory = calloc(1, text_bytes);
    tp_intern_init(table, text_memory, text_bytes);
    tp_intern_prepare(table, usable);
}

static void free_table(void)
{
    free(table);
    free(text_memory);
}

static void check_text(uint32_t id, const char *expected)
{
    size_t bytes;
    const char *text = tp_intern_text(table, id, &bytes);
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(bytes, strlen(expected));
}

START_TEST(same_text_same_id)
{
    new_table(1 << 20, 1 << 20);
    char name[64];
    uint32_t ids[1000];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "aten::op_%d", i); /* one address, a thousand names */
        ids[i] = tp_intern(table, name, strlen(name));
        ck_assert_uint_ne(ids[i], 0);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "aten::op_%d", i);
        ck_assert_uint_eq(tp_intern(table, name, strlen(name)), ids[i]);
        check_text(ids[i], name);
    }
    ck_assert_uint_ne(tp_intern(table, "", 0), 0);
    check_text(tp_intern(table, "", 0), "");
}
END_TEST

START_TEST(full_text_gives_zero_and_loses_nothing)
{
    new_table(4096, 1024);
    char name[64];
    int last = 0;
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "name %d", i);
        if (tp_intern(table, name, strlen(name)))
            last = i;
    }
    ck_assert_int_lt(last, 100);
    ck_assert_uint_ne(tp_intern(table, "name 0", 6), 0);
    tp_intern_prepare(table, 4096); /* the background thread brought more */
    ck_assert_uint_ne(tp_intern(table, "name 199", 8), 0);
    char *long_name = calloc(1, 1 << 20);
    memset(long_name, 'x', (1 << 20) - 1);
    ck_assert_uint_eq(tp_intern(table, long_name, (1 << 20) - 1), 0);
    free(long_name);
}
END_TEST

START_TEST(full_slots_give_zero)
{
    new_table(8 << 20, 8 << 20);
    char name[64];
    uint32_t refused = 0;
    for (uint32_t i = 0; i < TP_INTERN_MAX_NAMES + 1000; i++) {
        snprintf(name, sizeof name, "%u", i);
        refused += tp_intern(table, name, strlen(name)) == 0;
    }
    ck_assert_uint_eq(refused, 1000);
}
END_TEST

START_TEST(a_name_of_a_megabyte)
{
    new_table(4 << 20, 4 << 20);
    char *name = malloc(1 << 20);
    memset(name, 'n', 1 << 20);
    uint32_t id = tp_intern(table, name, 1 << 20);
    size_t bytes;
    ck_assert_uint_ne(id, 0);
    tp_intern_text(table, id, &bytes);
    ck_assert_uint_eq(bytes, 1 << 20);
    free(name);
}
END_TEST

#define THREADS 4
#define NAMES 5000

struct racer {
    uint32_t ids[NAMES];
};

static void *race(void *argument)
{
    struct racer *racer = argument;
    char name[64];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "shared name %d", i);
        racer->ids[i] = tp_intern(table, name, strlen(name));
    }
    return NULL;
}

START_TEST(threads_agree_on_ids)
{
    static struct racer racers[THREADS];
    pthread_t threads[THREADS];
    new_table(4 << 20, 4 << 20);
    for (int t = 0; t < THREADS; t++) {
        pthread_create(&threads[t], NULL, race, &racers[t]);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    char name[64];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "shared name %d", i);
        check_text(racers[0].ids[i], name);
        for (int t = 1; t < THREADS; t++)
            ck_assert_uint_eq(racers[t].ids[i], racers[0].ids[i]);
    }
}
END_TEST

START_TEST(unknown_ids_read_as_empty)
{
    new_table(4096, 4096);
    check_text(0, "");
    check_text(12345, "");
}
END_TEST

Suite *intern_suite(void)
{
    Suite *suite = suite_create("intern");
    TCase *tcase = tcase_create("intern");
    tcase_add_checked_fixture(tcase, NULL, free_table);
    tcase_add_test(tcase, same_text_same_id);
    tcase_add_test(tcase, full_text_gives_zero_and_loses_nothing);
    tcase_add_test(tcase, full_slots_give_zero);
    tcase_add_test(tcase, a_name_of_a_megabyte);
    tcase_add_test(tcase, threads_agree_on_ids);
    tcase_add_test(tcase, unknown_ids_read_as_empty);
    suite_add_tcase(suite, tcase);
    return suite;
}
