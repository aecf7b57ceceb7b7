#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../output/sink.h"
#include "scratch.h"
#include "suites.h"

static struct tp_arena arena;

static void setup(void)
{
    scratch_setup();
    tp_arena_init(&arena, 0);
}

static void teardown(void)
{
    tp_arena_free(&arena);
    scratch_teardown();
}

static struct tp_sink *open_named(const char *name, int level, const struct tp_sink_system *system)
{
    struct tp_error error = {0};
    struct tp_sink *sink = tp_sink_open(
        &(struct tp_sink_options){.folder = scratch_folder, .name = name, .gzip_level = level, .system = system},
        &arena, &error);
    ck_assert_msg(sink != NULL, "%s", error.what);
    return sink;
}

/* Bytes that gzip cannot shrink to nothing. */
static char *noise(size_t bytes)
{
    char *text = malloc(bytes);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < bytes; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text[i] = (char)(state >> 32);
    }
    return text;
}

#define NOISE (3 * 1024 * 1024 + 17)

/* Through put in pieces of every size, and through reserve. */
static void put_noise(struct tp_sink *sink, const char *text)
{
    size_t at = 0;
    for (size_t piece = 1; at < NOISE; piece = piece * 2 % 700001 + 1) {
        size_t n = piece < NOISE - at ? piece : NOISE - at;
        if (n <= 64 * 1024) {
            memcpy(tp_sink_reserve(sink, n), text + at, n);
            tp_sink_advance(sink, n);
        } else {
            tp_sink_put(sink, text + at, n);
        }
        at += n;
    }
}

static void check_content(const char *name, const char *text)
{
    size_t bytes;
    char *read = scratch_read(name, &bytes);
    ck_assert_ptr_nonnull(read);
    ck_assert_uint_eq(bytes, NOISE);
    ck_assert_int_eq(memcmp(read, text, NOISE), 0);
    free(read);
}

/* C37: gunzip gives the plain file byte for byte, at every level; only one name is there, and its size is told. */
START_TEST(every_level_reads_back)
{
    char *text = noise(NOISE);
    struct tp_sink *sink = open_named("f", _i, NULL);
    put_noise(sink, text);
    uint64_t bytes = 0;
    ck_assert_int_eq(tp_sink_close(sink, &bytes, NULL), 0);
    check_content("f", text);
    ck_assert_uint_eq(scratch_files(), 1);
    struct stat status;
    ck_assert_int_eq(fstatat(scratch_folder, "f", &status, 0), 0);
    ck_assert_uint_eq(bytes, (uint64_t)status.st_size);
    free(text);
}
END_TEST

START_TEST(gzip_has_no_name_and_no_time)
{
    struct tp_sink *sink = open_named("f.gz", 6, NULL);
    tp_sink_put(sink, "x", 1);
    ck_assert_int_eq(tp_sink_close(sink, NULL, NULL), 0);
    unsigned char head[10];
    int fd = openat(scratch_folder, "f.gz", O_RDONLY);
    ck_assert_int_eq(read(fd, head, sizeof head), sizeof head);
    close(fd);
    ck_assert_int_eq(memcmp(head, "\x1f\x8b\x08\0\0\0\0\0", 8), 0);
}
END_TEST

START_TEST(empty_file_is_a_file)
{
    ck_assert_int_eq(tp_sink_close(open_named("plain", 0, NULL), NULL, NULL), 0);
    ck_assert_int_eq(tp_sink_close(open_named("zip", 1, NULL), NULL, NULL), 0);
    size_t bytes = 1;
    free(scratch_read("plain", &bytes));
    ck_assert_uint_eq(bytes, 0);
    free(scratch_read("zip", &bytes));
    ck_assert_uint_eq(bytes, 0);
}
END_TEST

START_TEST(mode_follows_umask)
{
    umask(027);
    ck_assert_int_eq(tp_sink_close(open_named("f", 0, NULL), NULL, NULL), 0);
    struct stat status;
    ck_assert_int_eq(fstatat(scratch_folder, "f", &status, 0), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0640);
}
END_TEST

/* C36: until it is whole nobody sees the name, nor one that a viewer would open. */
START_TEST(temporary_name_is_hidden)
{
    struct tp_sink *sink = open_named("f.json.gz", 0, NULL);
    ck_assert_int_lt(faccessat(scratch_folder, "f.json.gz", F_OK, 0), 0);
    char command[128], name[256] = "";
    snprintf(command, sizeof command, "ls -A %s", scratch_path);
    FILE *list = popen(command, "r");
    ck_assert_ptr_nonnull(fgets(name, sizeof name, list));
    pclose(list);
    name[strcspn(name, "\n")] = '\0';
    ck_assert_int_eq(strncmp(name, ".f.json.gz.tmp.", 15), 0);
    ck_assert_int_ge(name[strlen(name) - 1], '0');
    ck_assert_int_le(name[strlen(name) - 1], '9');
    tp_sink_abandon(sink);
    ck_assert_uint_eq(scratch_files(), 0);
}
END_TEST

START_TEST(longest_name_works)
{
    char name[257];
    memset(name, 'n', sizeof name - 1);
    name[255] = '\0';
    ck_assert_int_eq(tp_sink_close(open_named(name, 0, NULL), NULL, NULL), 0);
    ck_assert_int_eq(faccessat(scratch_folder, name, F_OK, 0), 0);
    name[255] = 'n';
    name[256] = '\0';
    struct tp_error error = {0};
    ck_assert_ptr_null(tp_sink_open(&(struct tp_sink_options){.folder = scratch_folder, .name = name}, &arena, &error));
    ck_assert_int_eq(errno, ENAMETOOLONG);
    ck_assert(error.set);
}
END_TEST

static const struct tp_sink_options wrong[] = {
    {.name = ""}, {.name = "a/b"}, {.name = "a", .gzip_level = 10}, {.name = "a", .gzip_level = -1}};

START_TEST(wrong_options_are_refused)
{
    struct tp_sink_options options = wrong[_i];
    options.folder = scratch_folder;
    struct tp_error error = {0};
    ck_assert_ptr_null(tp_sink_open(&options, &arena, &error));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert(error.set);
    ck_assert_uint_eq(scratch_files(), 0);
}
END_TEST

static void make_other(const char *text)
{
    int fd = openat(scratch_folder, "f", O_WRONLY | O_CREAT | O_EXCL, 0666);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void check_other(const char *text)
{
    char *read = scratch_read("f", NULL);
    ck_assert_str_eq(read, text);
    free(read);
    ck_assert_uint_eq(scratch_files(), 1);
}

START_TEST(existing_name_is_refused_at_open)
{
    make_other("theirs");
    struct tp_error error = {0};
    ck_assert_ptr_null(tp_sink_open(&(struct tp_sink_options){.folder = scratch_folder, .name = "f"}, &arena, &error));
    ck_assert_int_eq(errno, EEXIST);
    ck_assert_str_eq(error.where, "f");
    ck_assert_ptr_nonnull(strstr(error.what, "exists"));
    check_other("theirs");
}
END_TEST

/* A dangling link is a name too, and nothing is written through it. */
START_TEST(link_is_not_followed)
{
    ck_assert_int_eq(symlinkat("target", scratch_folder, "f"), 0);
    ck_assert_ptr_null(tp_sink_open(&(struct tp_sink_options){.folder = scratch_folder, .name = "f"}, &arena, NULL));
    ck_assert_int_eq(errno, EEXIST);
    ck_assert_uint_eq(scratch_files(), 1);
}
END_TEST

/* Faults. Each call counts down; at zero it fails with that errno. */
static struct {
    int open_after, write_after, close_after, rename_error, link_error, write_error;
    bool short_writes, interrupted;
    unsigned renames, links;
} fault;

static int fault_open(int folder, const char *name, int flags, mode_t mode)
{
    if (fault.open_after && --fault.open_after == 0) {
        errno = EROFS;
        return -1;
    }
    return openat(folder, name, flags, mode);
}

static ssize_t fault_write(int fd, const void *bytes, size_t count)
{
    static unsigned calls;
    if (fault.write_after && --fault.write_after == 0) {
        errno = fault.write_error;
        return fault.write_error ? -1 : 0;
    }
    if (fault.interrupted && calls++ % 2) {
        errno = EINTR;
        return -1;
    }
    return write(fd, bytes, fault.short_writes && count > 1000 ? count / 3 : count);
}

static int fault_close(int fd)
{
    int result = close(fd);
    if (fault.close_after && --fault.close_after == 0) {
        errno = fault.write_error;
        return -1;
    }
    return result;
}

static int fault_rename(int from, const char *old_name, int to, const char *new_name, unsigned flags)
{
    fault.renames++;
    if (fault.rename_error && flags) {
        errno = fault.rename_error;
        return -1;
    }
    return renameat2(from, old_name, to, new_name, flags);
}

static int fault_link(int from, const char *old_name, int to, const char *new_name, int flags)
{
    fault.links++;
    if (fault.link_error) {
        errno = fault.link_error;
        return -1;
    }
    return linkat(from, old_name, to, new_name, flags);
}

static const struct tp_sink_system faulty = {fault_open, fault_write, fault_close, fault_rename, fault_link};

START_TEST(short_and_interrupted_writes_lose_nothing)
{
    fault.short_writes = fault.interrupted = true;
    char *text = noise(NOISE);
    struct tp_sink *sink = open_named("f", _i, &faulty);
    put_noise(sink, text);
    ck_assert_int_eq(tp_sink_close(sink, NULL, NULL), 0);
    check_content("f", text);
    free(text);
}
END_TEST

/* The n-th write fails, for each n: told once, nothing left, later puts do no harm. */
START_TEST(each_write_may_fail)
{
    static const int errors[] = {ENOSPC, EDQUOT, EIO, EFBIG, 0};
    char *text = noise(NOISE);
    fault.write_after = _i / (int)TP_COUNT(errors) + 1;
    fault.write_error = errors[_i % (int)TP_COUNT(errors)];
    int expected = fault.write_error ? -fault.write_error : -EIO; /* 0: a write that makes no progress */
    struct tp_sink *sink = open_named("f", _i % 2, &faulty);
    put_noise(sink, text);
    put_noise(sink, text);
    struct tp_error error = {0};
    ck_assert_int_eq(tp_sink_close(sink, NULL, &error), expected);
    ck_assert_str_eq(error.where, "f");
    ck_assert_ptr_nonnull(strstr(error.what, "writing"));
    ck_assert_uint_eq(scratch_files(), 0);
    free(text);
}
END_TEST

START_TEST(status_tells_the_first_failure)
{
    char *text = noise(NOISE);
    fault.write_after = 1;
    fault.write_error = ENOSPC;
    struct tp_sink *sink = open_named("f", 0, &faulty);
    ck_assert_int_eq(tp_sink_status(sink), 0);
    put_noise(sink, text);
    ck_assert_int_eq(tp_sink_status(sink), -ENOSPC);
    tp_sink_abandon(sink);
    ck_assert_uint_eq(scratch_files(), 0);
    free(text);
}
END_TEST

/* Network file systems tell of a full disk at close. */
START_TEST(close_may_fail)
{
    fault.close_after = 1;
    fault.write_error = EDQUOT;
    struct tp_error error = {0};
    ck_assert_int_eq(tp_sink_close(open_named("f", 0, &faulty), NULL, &error), -EDQUOT);
    ck_assert_ptr_nonnull(strstr(error.what, "closing: disk quota"));
    ck_assert_uint_eq(scratch_files(), 0);
}
END_TEST

START_TEST(open_may_fail)
{
    fault.open_after = 1;
    struct tp_error error = {0};
    ck_assert_ptr_null(tp_sink_open(
        &(struct tp_sink_options){.folder = scratch_folder, .name = "f", .system = &faulty}, &arena, &error));
    ck_assert_int_eq(errno, EROFS);
    ck_assert_ptr_nonnull(strstr(error.what, "read-only"));
}
END_TEST

/* Every way to the final name: RENAME_NOREPLACE, a link where that is not known, a plain rename where neither is. */
static const struct {
    int rename_error, link_error;
    unsigned renames, links;
} ways[] = {{0, 0, 1, 0}, {EINVAL, 0, 1, 1}, {ENOSYS, 0, 1, 1}, {EINVAL, EPERM, 2, 1}, {EINVAL, EOPNOTSUPP, 2, 1}};

START_TEST(every_way_to_the_final_name)
{
    fault.rename_error = ways[_i].rename_error;
    fault.link_error = ways[_i].link_error;
    struct tp_sink *sink = open_named("f", 0, &faulty);
    tp_sink_put(sink, "ours", 4);
    ck_assert_int_eq(tp_sink_close(sink, NULL, NULL), 0);
    check_other("ours");
    ck_assert_uint_eq(fault.renames, ways[_i].renames);
    ck_assert_uint_eq(fault.links, ways[_i].links);
}
END_TEST

/* C34, C36: another process took the name while we wrote: its file stays as it is. */
START_TEST(no_way_overwrites)
{
    fault.rename_error = ways[_i].rename_error;
    fault.link_error = ways[_i].link_error;
    struct tp_sink *sink = open_named("f", 0, &faulty);
    make_other("theirs");
    tp_sink_put(sink, "ours", 4);
    struct tp_error error = {0};
    ck_assert_int_eq(tp_sink_close(sink, NULL, &error), -EEXIST);
    ck_assert_ptr_nonnull(strstr(error.what, "exists"));
    check_other("theirs");
}
END_TEST

START_TEST(file_size_limit)
{
    char *text = noise(NOISE);
    signal(SIGXFSZ, SIG_IGN);
    struct tp_sink *sink = open_named("f", _i, NULL);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000000, 1000000});
    put_noise(sink, text);
    struct tp_error error = {0};
    ck_assert_int_eq(tp_sink_close(sink, NULL, &error), -EFBIG);
    ck_assert_ptr_nonnull(strstr(error.what, "file size limit"));
    ck_assert_uint_eq(scratch_files(), 0);
    free(text);
}
END_TEST

START_TEST(full_disk)
{
    if (mount("tprof-test", scratch_path, "tmpfs", 0, "size=1m") < 0) {
        fprintf(stderr, "sink: full_disk skipped: no tmpfs without root\n");
        return;
    }
    int below = scratch_folder;
    scratch_folder = open(scratch_path, O_RDONLY | O_DIRECTORY);
    char *text = noise(NOISE);
    struct tp_sink *sink = open_named("f", 0, NULL);
    put_noise(sink, text);
    struct tp_error error = {0};
    int result = tp_sink_close(sink, NULL, &error);
    size_t files = scratch_files();
    close(scratch_folder);
    scratch_folder = below;
    umount2(scratch_path, MNT_DETACH);
    ck_assert_int_eq(result, -ENOSPC);
    ck_assert_ptr_nonnull(strstr(error.what, "no space left"));
    ck_assert_uint_eq(files, 0);
    free(text);
}
END_TEST

START_TEST(folder_without_permission)
{
    fchmod(scratch_folder, 0500);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(65534), 0);
    struct tp_error error = {0};
    struct tp_sink *sink =
        tp_sink_open(&(struct tp_sink_options){.folder = scratch_folder, .name = "f"}, &arena, &error);
    int why = errno;
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
    fchmod(scratch_folder, 0700);
    ck_assert_ptr_null(sink);
    ck_assert_int_eq(why, EACCES);
    ck_assert(error.set);
}
END_TEST

START_TEST(removed_folder)
{
    ck_assert_int_eq(rmdir(scratch_path), 0);
    ck_assert_ptr_null(tp_sink_open(&(struct tp_sink_options){.folder = scratch_folder, .name = "f"}, &arena, NULL));
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

/* The program may close descriptors that it does not know. */
START_TEST(closed_descriptor_is_a_failure)
{
    struct tp_sink *sink = open_named("f", 0, NULL);
    for (int fd = 3; fd < 1000; fd++)
        if (fd != scratch_folder)
            close(fd);
    tp_sink_put(sink, "x", 1);
    ck_assert_int_eq(tp_sink_close(sink, NULL, NULL), -EBADF);
    ck_assert_uint_eq(scratch_files(), 0);
}
END_TEST

START_TEST(memory_limit)
{
    struct tp_arena small;
    tp_arena_init(&small, 128 * 1024);
    ck_assert_ptr_null(tp_sink_open(&(struct tp_sink_options){.folder = scratch_folder, .name = "f"}, &small, NULL));
    ck_assert_int_eq(errno, ENOMEM);
    tp_arena_free(&small);
    tp_arena_init(&small, 600 * 1024); /* enough for the buffers, not for zlib */
    ck_assert_ptr_null(tp_sink_open(
        &(struct tp_sink_options){.folder = scratch_folder, .name = "f", .gzip_level = 1}, &small, NULL));
    ck_assert_int_eq(errno, ENOMEM);
    tp_arena_free(&small);
    ck_assert_uint_eq(scratch_files(), 0);
}
END_TEST

Suite *sink_suite(void)
{
    Suite *suite = suite_create("sink");
    TCase *tcase = tcase_create("sink");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, every_level_reads_back, 0, 10);
    tcase_add_test(tcase, gzip_has_no_name_and_no_time);
    tcase_add_test(tcase, empty_file_is_a_file);
    tcase_add_test(tcase, mode_follows_umask);
    tcase_add_test(tcase, temporary_name_is_hidden);
    tcase_add_test(tcase, longest_name_works);
    tcase_add_loop_test(tcase, wrong_options_are_refused, 0, (int)TP_COUNT(wrong));
    tcase_add_test(tcase, existing_name_is_refused_at_open);
    tcase_add_test(tcase, link_is_not_followed);
    tcase_add_loop_test(tcase, short_and_interrupted_writes_lose_nothing, 0, 2);
    tcase_add_loop_test(tcase, each_write_may_fail, 0, 45);
    tcase_add_test(tcase, status_tells_the_first_failure);
    tcase_add_test(tcase, close_may_fail);
    tcase_add_test(tcase, open_may_fail);
    tcase_add_loop_test(tcase, every_way_to_the_final_name, 0, (int)TP_COUNT(ways));
    tcase_add_loop_test(tcase, no_way_overwrites, 0, (int)TP_COUNT(ways));
    tcase_add_loop_test(tcase, file_size_limit, 0, 2);
    tcase_add_test(tcase, full_disk);
    tcase_add_test(tcase, folder_without_permission);
    tcase_add_test(tcase, removed_folder);
    tcase_add_test(tcase, closed_descriptor_is_a_failure);
    tcase_add_test(tcase, memory_limit);
    suite_add_tcase(suite, tcase);
    return suite;
}
