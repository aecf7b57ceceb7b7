#include <string.h>

#include "../../agent/error.h"
#include "suites.h"

START_TEST(first_error_wins_and_makes_one_line)
{
    struct tp_error error = {0};
    tp_error_set(&error, "TPROF_X", "0 or 1", "\"%s\" is not a number", "abc");
    tp_error_set(&error, "TPROF_Y", NULL, "second");
    char line[256];
    size_t n = tp_error_line(&error, line, sizeof line);
    ck_assert_str_eq(line, "TPROF_X: \"abc\" is not a number; accepted: 0 or 1");
    ck_assert_uint_eq(n, strlen(line));
    tp_error_set(NULL, "nobody", NULL, "listens");
}
END_TEST

START_TEST(long_texts_are_cut)
{
    struct tp_error error = {0};
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    tp_error_set(&error, text, text, "%s", text);
    char line[64];
    ck_assert_uint_eq(tp_error_line(&error, line, sizeof line), sizeof line - 1);
    ck_assert_uint_eq(strlen(line), sizeof line - 1);
}
END_TEST

START_TEST(one_line_whatever_a_value_holds)
{
    struct tp_error error = {0};
    tp_error_set(&error, "TPROF_X", NULL, "\"%s\" is not a number", "a\nb\x1b\x7f");
    char line[256];
    tp_error_line(&error, line, sizeof line);
    ck_assert_str_eq(line, "TPROF_X: \"a?b??\" is not a number");
}
END_TEST

Suite *error_suite(void)
{
    Suite *suite = suite_create("error");
    TCase *tcase = tcase_create("error");
    tcase_add_test(tcase, first_error_wins_and_makes_one_line);
    tcase_add_test(tcase, long_texts_are_cut);
    tcase_add_test(tcase, one_line_whatever_a_value_holds);
    suite_add_tcase(suite, tcase);
    return suite;
}
