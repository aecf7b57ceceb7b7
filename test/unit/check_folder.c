#include "suites.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../output/folder.h"

static char top[64];

static void enter(void)
{
    snprintf(top, sizeof top, "/tmp/check_folder.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    ck_assert_int_eq(chdir(top), 0);
}

static void leave(void)
{
    char command[128];
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", top);
    ck_assert_int_eq(system(command), 0);
}

static struct tp_identity identity = {.host = "node7", .pid = 42, .rank = 3, .world_size = 8, .rank_set = true};

static int open_folder(const char *pattern, const char *chdir_to, char *path, struct tp_error *error)
{
    char absolute[TP_FOLDER_PATH];
    struct tp_name_values values = {.identity = &identity, .time_ns = 5, .step = 6, .cycle = 7};
    tp_folder_absolute(pattern, absolute);
    if (chdir_to)
        ck_assert_int_eq(chdir(chdir_to), 0);
    return tp_folder_open(absolute, &values, path, error);
}

START_TEST(relative_means_where_the_program_began)
{
    enter();
    char path[TP_FOLDER_PATH], expected[TP_FOLDER_PATH];
    int fd = open_folder("./a/b-%r/c", "/", path, NULL);
    ck_assert_int_ge(fd, 0);
    snprintf(expected, sizeof expected, "%s/a/b-3/c", top);
    ck_assert_str_eq(path, expected);
    ck_assert_int_eq(access(expected, W_OK), 0);
    close(fd);
    leave();
}
END_TEST

START_TEST(percent_in_the_working_directory_is_no_escape)
{
    enter();
    ck_assert_int_eq(mkdir("100%p", 0777), 0);
    ck_assert_int_eq(chdir("100%p"), 0);
    char path[TP_FOLDER_PATH];
    int fd = open_folder("out", NULL, path, NULL);
    ck_assert_int_ge(fd, 0);
    ck_assert_ptr_nonnull(strstr(path, "/100%p/out"));
    close(fd);
    leave();
}
END_TEST

START_TEST(what_cannot_be_made_is_said)
{
    enter();
    struct tp_error error = {0};
    char path[TP_FOLDER_PATH];
    close(open("file", O_CREAT | O_WRONLY, 0600));
    ck_assert_int_lt(open_folder("file/inside", NULL, path, &error), 0);
    ck_assert_ptr_nonnull(strstr(error.what, "file/inside"));
    error.set = false;
    ck_assert_int_lt(open_folder("%q", NULL, path, &error), 0);
    ck_assert(error.set);
    leave();
}
END_TEST

Suite *folder_suite(void)
{
    Suite *suite = suite_create("folder");
    TCase *tcase = tcase_create("folder");
    tcase_add_test(tcase, relative_means_where_the_program_began);
    tcase_add_test(tcase, percent_in_the_working_directory_is_no_escape);
    tcase_add_test(tcase, what_cannot_be_made_is_said);
    suite_add_tcase(suite, tcase);
    return suite;
}
