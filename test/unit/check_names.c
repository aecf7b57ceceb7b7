#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../output/names.h"
#include "suites.h"

static struct tp_identity identity;
static struct tp_name_values values;

static void setup(void)
{
    identity = (struct tp_identity){.host = "node.a-1", .pid = 42, .rank = 3};
    values = (struct tp_name_values){.identity = &identity, .time_ns = 17, .step = 5, .cycle = 2};
}

START_TEST(escapes_are_expanded)
{
    char text[128];
    ck_assert_int_eq(tp_names_expand("/a/%h_%p-%r.%t+%s,%c%%", &values, text, sizeof text, NULL), 0);
    ck_assert_str_eq(text, "/a/node.a-1_42-3.17+5,2%");
    ck_assert_int_eq(tp_names_expand("", &values, text, sizeof text, NULL), 0);
    ck_assert_str_eq(text, "");
}
END_TEST

static const char *const bad[] = {"%x", "a%", "%%%", "% p"};

START_TEST(unknown_escape_is_an_error)
{
    char text[128];
    struct tp_error error = {0};
    ck_assert_int_eq(tp_names_expand(bad[_i], &values, text, sizeof text, &error), -EINVAL);
    ck_assert(error.set);
    ck_assert_ptr_nonnull(strstr(error.accepted, "%h"));
}
END_TEST

START_TEST(too_long_is_an_error)
{
    char text[9];
    ck_assert_int_eq(tp_names_expand("12345678", &values, text, sizeof text, NULL), 0);
    ck_assert_str_eq(text, "12345678");
    struct tp_error error = {0};
    ck_assert_int_eq(tp_names_expand("123456789", &values, text, sizeof text, &error), -ENAMETOOLONG);
    ck_assert(error.set);
    ck_assert_int_eq(tp_names_expand("1%h", &values, text, sizeof text, NULL), -ENAMETOOLONG);
}
END_TEST

/* C37: what a host or a user may give; the name stays one component and keeps its dots. */
static const struct {
    const char *setting, *host, *name;
} workers[] = {
    {NULL, "node.a-1", "node.a-1_42"},
    {"", "my host.example.org", "my host.example.org_42"},
    {"%h-%r", "h", "h-3"},
    {"../../etc/passwd", "h", "_._.._etc_passwd"},
    {"..", "h", "_."},
    {".hidden", "h", "_hidden"},
    {"/", "h", "_"},
    {"a\nb\x7f\x01", "h", "a_b__"},
    {"bad%z", "h", "h_42"},
    {NULL, "", "localhost_42"},
    {NULL, "a/../b", "a_.._b_42"},
};

START_TEST(worker_is_one_component)
{
    char text[NAME_MAX + 1];
    memset(identity.host, 0, sizeof identity.host);
    strcpy(identity.host, workers[_i].host);
    tp_names_worker(workers[_i].setting, &values, text, sizeof text);
    ck_assert_str_eq(text, workers[_i].name);
}
END_TEST

START_TEST(rank_is_in_the_default)
{
    char text[NAME_MAX + 1];
    identity.rank_set = true;
    tp_names_worker(NULL, &values, text, sizeof text);
    ck_assert_str_eq(text, "node.a-1_42_rank3");
}
END_TEST

START_TEST(long_names_fit_and_keep_their_end)
{
    memset(identity.host, 'h', 64);
    char worker[NAME_MAX + 1], file[NAME_MAX + 1], longest[1000];
    tp_names_worker(NULL, &values, worker, sizeof worker);
    ck_assert_uint_eq(strlen(worker), 64 + 3);
    for (size_t i = 0; i < sizeof longest - 1; i++)
        longest[i] = i % 2 ? '\xa9' : '\xc3';
    longest[sizeof longest - 1] = '\0';
    tp_names_worker(longest, &values, worker, sizeof worker);
    tp_names_file(worker, UINT64_MAX, "memory_snapshot.pickle", true, file, sizeof file);
    ck_assert_uint_le(strlen(file), NAME_MAX);
    ck_assert_ptr_nonnull(strstr(file, "\xc3\xa9.18446744073709551615.memory_snapshot.pickle.gz"));
    tp_names_file(longest, 1, "pt.trace.json", false, file, sizeof file);
    ck_assert_uint_le(strlen(file), NAME_MAX);
    ck_assert_ptr_nonnull(strstr(file, "\xc3\xa9.1.pt.trace.json"));
    memset(longest, '\xbf', sizeof longest - 1); /* no UTF-8 at all */
    tp_names_worker(longest, &values, worker, sizeof worker);
    ck_assert_uint_gt(strlen(worker), 100);
    memset(longest, '7', sizeof longest - 1);
    longest[100] = '.'; /* what is left of a cut name is not taken for a time either */
    tp_names_worker(longest, &values, worker, sizeof worker);
    ck_assert_ptr_null(strchr(worker, '.'));
    char small[8];
    tp_names_worker("abcdefghij", &values, small, sizeof small);
    ck_assert_str_eq(small, "abcdefg");
}
END_TEST

START_TEST(file_names_are_tensorboard_s)
{
    char file[NAME_MAX + 1];
    tp_names_file("w.x", 99, "pt.trace.json", true, file, sizeof file);
    ck_assert_str_eq(file, "w.x.99.pt.trace.json.gz");
    tp_names_file("w", 99, "table.txt", false, file, sizeof file);
    ck_assert_str_eq(file, "w.99.table.txt");
}
END_TEST

#define TIMES 20000
static uint64_t times[4][TIMES];

static void *take_times(void *to)
{
    uint64_t *list = to;
    for (size_t i = 0; i < TIMES; i++)
        list[i] = tp_names_time(1000); /* a clock that stands still */
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* C34: names made from time are never equal, whatever the clock does and however many threads ask. */
START_TEST(times_never_repeat)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, take_times, times[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        for (size_t k = 1; k < TIMES; k++)
            ck_assert_uint_gt(times[i][k], times[i][k - 1]);
    qsort(times, 4 * TIMES, sizeof(uint64_t), by_value);
    const uint64_t *all = times[0];
    for (size_t i = 1; i < 4 * TIMES; i++)
        ck_assert_uint_gt(all[i], all[i - 1]);
    uint64_t later = tp_names_time(UINT64_C(1) << 60);
    ck_assert_uint_eq(later, UINT64_C(1) << 60);
    ck_assert_uint_eq(tp_names_time(5), later + 1);
}
END_TEST

Suite *names_suite(void)
{
    Suite *suite = suite_create("names");
    TCase *tcase = tcase_create("names");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, escapes_are_expanded);
    tcase_add_loop_test(tcase, unknown_escape_is_an_error, 0, (int)TP_COUNT(bad));
    tcase_add_test(tcase, too_long_is_an_error);
    tcase_add_loop_test(tcase, worker_is_one_component, 0, (int)TP_COUNT(workers));
    tcase_add_test(tcase, rank_is_in_the_default);
    tcase_add_test(tcase, long_names_fit_and_keep_their_end);
    tcase_add_test(tcase, file_names_are_tensorboard_s);
    tcase_add_test(tcase, times_never_repeat);
    suite_add_tcase(suite, tcase);
    return suite;
}
