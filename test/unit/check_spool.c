#include "suites.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../agent/spool.h"

static struct tp_spool spool;
static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/check_spool.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    ck_assert_int_eq(rmdir(folder), 0); /* also: nothing was left in it */
}

static void open_spool(const char *where, size_t budget)
{
    struct tp_error note = {0}, error = {0};
    struct tp_spool_options options = {.folder = where, .budget = budget};
    ck_assert_int_eq(tp_spool_open(&spool, &options, &note, &error), 0);
}

/* A block whose words all hold one number. */
static int append(uint64_t number, uint32_t bytes)
{
    static uint64_t words[TP_CHUNK_BYTES / 8];
    for (size_t i = 0; i < bytes / 8; i++)
        words[i] = number;
    struct tp_block header = {.magic = TP_BLOCK_MAGIC, .bytes = bytes, .begins = number};
    return tp_log_append(&spool, &header, words);
}

static void check_block(const struct tp_block *block, uint64_t number)
{
    ck_assert_uint_eq(block->begins, number);
    const uint64_t *words = (const uint64_t *)(block + 1);
    size_t alike = 0;
    while (alike < block->bytes / 8 && words[alike] == number)
        alike++;
    ck_assert_uint_eq(alike, block->bytes / 8);
}

static void write_and_read(void)
{
    uint64_t position = tp_log_tail(&spool.log), number = 0;
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(append(i, (uint32_t)(8 * (1 + i * 37 % 4000))), 0);
    struct tp_block *block;
    while ((block = tp_log_at(&spool.log, &position))) {
        check_block(block, number++);
        position = tp_log_after(position, block);
    }
    ck_assert_uint_eq(number, 100);
}

START_TEST(every_kind_keeps_blocks)
{
    open_spool(NULL, 16 << 20); /* /dev/shm where there is one */
    write_and_read();
    tp_spool_close(&spool);
    make_folder();
    open_spool(folder, 16 << 20);
    ck_assert_int_ne(spool.kind, TP_SPOOL_MEMORY);
    ck_assert_int_eq(access(spool.path, F_OK), 0);
    struct stat made;
    ck_assert_int_eq(stat(spool.path, &made), 0);
    ck_assert_uint_eq(made.st_mode & 0777, 0600);
    write_and_read();
    tp_spool_close(&spool);
    remove_folder();
    open_spool("/nowhere/at/all", 16 << 20);
    ck_assert_int_eq(spool.kind, TP_SPOOL_MEMORY);
    write_and_read();
    tp_spool_close(&spool);
}
END_TEST

START_TEST(the_ring_goes_round)
{
    open_spool("/nowhere/at/all", 8 << 20);
    uint64_t oldest = 0, dropped = 0;
    for (uint64_t i = 0; i < 3000; i++) {
        uint32_t bytes = (uint32_t)(8 * (1 + i * 7919 % 7000));
        int failed;
        while ((failed = append(i, bytes)) == -ENOSPC) {
            uint64_t position = tp_log_tail(&spool.log);
            struct tp_block *block = tp_log_at(&spool.log, &position);
            ck_assert_ptr_nonnull(block);
            check_block(block, oldest++);
            tp_log_release(&spool, tp_log_after(position, block));
            dropped++;
        }
        ck_assert_int_eq(failed, 0);
    }
    ck_assert_uint_gt(dropped, 1000);
    uint64_t position = 0;
    struct tp_block *block;
    while ((block = tp_log_at(&spool.log, &position))) {
        check_block(block, oldest++);
        position = tp_log_after(position, block);
    }
    ck_assert_uint_eq(oldest, 3000);
    tp_spool_close(&spool);
}
END_TEST

START_TEST(an_empty_log_holds_no_memory_and_goes_on)
{
    open_spool("/nowhere/at/all", 32 << 20);
    size_t before = tp_spool_held(&spool);
    for (int round = 0; round < 5; round++) {
        uint64_t begin = tp_log_head(&spool.log);
        for (uint64_t i = 0; i < 200; i++)
            ck_assert_int_eq(append(i, 60000), 0);
        ck_assert_uint_ge(tp_spool_held(&spool), before + 200 * 60000 - (1 << 20));
        uint64_t position = begin;
        for (uint64_t i = 0; i < 200; i++) {
            struct tp_block *block = tp_log_at(&spool.log, &position);
            check_block(block, i);
            position = tp_log_after(position, block);
        }
        tp_log_release(&spool, tp_log_head(&spool.log));
        ck_assert_uint_eq(tp_spool_held(&spool), before);
    }
    tp_spool_close(&spool);
}
END_TEST

START_TEST(a_file_system_that_fills_up_makes_a_smaller_ring)
{
    make_folder();
    if (mount("tmpfs", folder, "tmpfs", 0, "size=10m") != 0) {
        rmdir(folder);
        return; /* only root may; end-to-end tests bring about the same */
    }
    open_spool(folder, 32 << 20);
    ck_assert_int_eq(spool.kind, TP_SPOOL_SHARED);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < 500; i++) {
        int failed = append(i, 60000);
        if (failed == -EFBIG)
            break;
        if (failed == -ENOSPC) {
            uint64_t position = tp_log_tail(&spool.log);
            struct tp_block *block = tp_log_at(&spool.log, &position);
            tp_log_release(&spool, tp_log_after(position, block));
            i--;
            continue;
        }
        kept++;
    }
    ck_assert_uint_gt(kept, 400);
    ck_assert_uint_lt(spool.log.capacity, spool.log.full_capacity);
    tp_spool_close(&spool);
    ck_assert_int_eq(umount(folder), 0);
    remove_folder();
}
END_TEST

START_TEST(a_child_has_no_part_in_it)
{
    make_folder();
    open_spool(folder, 16 << 20);
    pid_t child = fork();
    if (child == 0) {
        unsigned char resident;
        bool mapped = mincore(spool.work, 4096, &resident) == 0;
        tp_spool_forget(&spool);
        _exit(mapped || spool.file != -1);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    write_and_read();
    tp_spool_close(&spool);
    remove_folder();
}
END_TEST

START_TEST(a_reused_descriptor_is_left_alone)
{
    make_folder();
    open_spool(folder, 16 << 20);
    char path[128];
    snprintf(path, sizeof path, "%s/other", folder);
    FILE *other = fopen(path, "w+");
    ck_assert_int_eq(spool.file, -1); /* none is kept where the program attached */
    append(0, 60000);
    int number = spool.file;
    ck_assert_int_ge(number, 0);
    dup2(fileno(other), number); /* the program closed every number and opened its own files */
    for (uint64_t i = 1; i < 200; i++)
        ck_assert_int_eq(append(i, 60000), 0);
    ck_assert_int_ne(spool.file, number);
    ck_assert_uint_gt(spool.log.backed, 200 * 60000);
    ck_assert_uint_eq(spool.log.capacity, spool.log.full_capacity);
    close(spool.file);
    dup2(fileno(other), spool.file);
    number = spool.file;
    tp_spool_close(&spool);
    struct stat size;
    ck_assert_int_eq(fstat(number, &size), 0);
    ck_assert_int_eq(size.st_size, 0);
    fclose(other);
    unlink(path);
    remove_folder();
}
END_TEST

Suite *spool_suite(void)
{
    Suite *suite = suite_create("spool");
    TCase *tcase = tcase_create("spool");
    tcase_add_test(tcase, every_kind_keeps_blocks);
    tcase_add_test(tcase, the_ring_goes_round);
    tcase_add_test(tcase, an_empty_log_holds_no_memory_and_goes_on);
    tcase_add_test(tcase, a_file_system_that_fills_up_makes_a_smaller_ring);
    tcase_add_test(tcase, a_child_has_no_part_in_it);
    tcase_add_test(tcase, a_reused_descriptor_is_left_alone);
    suite_add_tcase(suite, tcase);
    return suite;
}
