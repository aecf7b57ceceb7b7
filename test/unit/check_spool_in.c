#include "suites.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../agent/spool_in.h"

static char folder[64], name[128];
static int folder_fd;
static struct tp_arena arena;
static struct tp_spool_in in;

/* In a memory file system if there is one: what chunks hold is in the file only there. */
static void make_folder(void)
{
    snprintf(folder, sizeof folder, "%s/check_spool_in.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tp_arena_init(&arena, 0);
}

static void remove_folder(void)
{
    close(folder_fd);
    ck_assert_int_eq(rmdir(folder), 0); /* also: nothing was left in it */
    tp_arena_free(&arena);
}

static void open_spool(struct tp_spool *spool)
{
    struct tp_error note = {0}, error = {0};
    struct tp_spool_options options = {.folder = folder, .budget = 8 << 20};
    ck_assert_int_eq(tp_spool_open(spool, &options, &note, &error), 0);
    snprintf(spool->state->process.folder, TP_SPOOL_TEXT, "/nowhere");
    spool->state->process.is_described = true;
}

/* Pairs of begin and end at these times, `count` of them. */
static size_t pairs(uint64_t *words, size_t count, uint64_t time)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        struct tp_begin begin = {.head = tp_record_head(TP_RECORD_BEGIN, TP_BEGIN_WORDS, i + 1), .time = time++, .sequence = -1};
        memcpy(&words[at], &begin, sizeof begin);
        at += TP_BEGIN_WORDS;
        words[at++] = tp_record_head(TP_RECORD_END, TP_END_WORDS, i + 1);
        words[at++] = time++;
    }
    return at;
}

static void append(struct tp_spool *spool, uint64_t thread, const uint64_t *words, size_t count)
{
    struct tp_block block = {.magic = TP_BLOCK_MAGIC,
                             .bytes = (uint32_t)(count * 8),
                             .first_time = words[1],
                             .last_time = words[count - 1],
                             .begins = count / 7,
                             .thread = {.serial = thread, .name = "one"}};
    ck_assert_int_eq(tp_log_append(spool, &block, words), 0);
}

/* A chunk as its thread left it: `taken` words of it are in the log. */
static struct tp_chunk *fill_chunk(struct tp_spool *spool, uint64_t thread, uint64_t sequence, size_t count, uint64_t time)
{
    struct tp_chunk *chunk = tp_pool_take(&spool->pool);
    ck_assert_ptr_nonnull(chunk);
    chunk->thread = (struct tp_thread_info){.serial = thread, .name = "one"};
    chunk->taken = 0;
    atomic_store(&chunk->sequence, sequence);
    atomic_store(&chunk->used, (uint32_t)(pairs(chunk->data, count, time) * 8));
    return chunk;
}

static void add_step(struct tp_spool *spool, uint64_t number, uint64_t begin, uint64_t end)
{
    tp_spool_add_step(spool, &(struct tp_spool_step){.begin = begin, .end = end, .number = number, .thread = 1});
}

/* Runs in a child, which then dies as if killed. */
static void die_with(void (*body)(struct tp_spool *spool))
{
    int told[2];
    ck_assert_int_eq(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        static struct tp_spool spool;
        open_spool(&spool);
        body(&spool);
        if (spool.kind == TP_SPOOL_DISK)
            tp_spool_tend(&spool);
        const char *slash = strrchr(spool.path, '/');
        _exit(write(told[1], slash + 1, strlen(slash)) > 0 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert_int_gt(read(told[0], name, sizeof name), 0); /* with its NUL */
    close(told[0]);
    close(told[1]);
}

static int open_dead(void)
{
    struct tp_error error = {0};
    int failed = tp_spool_in_open(&in, folder_fd, name, &arena, &error);
    ck_assert(!failed == !error.set);
    return failed;
}

/* Begins of a thread in the log, which must come in the order of their times. */
static uint64_t begins_of(uint64_t thread)
{
    uint64_t position = in.spool.log.tail, begins = 0, last = 0;
    struct tp_block *block;
    while ((block = tp_log_at(&in.spool.log, &position))) {
        position = tp_log_after(position, block);
        if (block->thread.serial != thread)
            continue;
        ck_assert_uint_ge(block->first_time, last);
        last = block->last_time;
        begins += block->begins;
    }
    return begins;
}

#define LATE_NAME "interned after the background thread's last look"

static void write_a_run(struct tp_spool *spool)
{
    uint64_t words[700];
    tp_cycles_use(spool->state->cycles, TP_SPOOL_CYCLES);
    struct tp_cycle *written = tp_cycle_open(10);
    tp_cycle_close(written, 50, true);
    tp_cycle_set_state(written, TP_CYCLE_WRITTEN);
    struct tp_cycle *whole = tp_cycle_open(100);
    whole->first_step = 1;
    tp_cycle_close(whole, 300, true);
    struct tp_cycle *let_go = tp_cycle_open(100);
    tp_cycle_close(let_go, 300, false);
    struct tp_cycle *provisional = tp_cycle_open(120);
    provisional->provisional = true;
    tp_cycle_open(1000);
    append(spool, 1, words, pairs(words, 50, 100));
    append(spool, 2, words, pairs(words, 30, 150));
    add_step(spool, 0, 0, 100);
    add_step(spool, 1, 100, 200);
    add_step(spool, 2, 200, 300);
    add_step(spool, 3, 300, 1000);
    add_step(spool, 4, 1000, 1010);
    /* Thread 1: one chunk that the log has (the process was killed before that was noted), two that it does not. */
    struct tp_chunk *in_log = fill_chunk(spool, 1, 0, 20, 1000);
    append(spool, 1, in_log->data, 20 * 7);
    fill_chunk(spool, 1, 2, 7, 1300);
    fill_chunk(spool, 1, 1, 5, 1200);
    fill_chunk(spool, 3, 0, 1, 1400);
    tp_spool_tend(spool);
    ck_assert_uint_eq(tp_intern(spool->names, LATE_NAME, strlen(LATE_NAME)), 1);
}

START_TEST(what_a_dead_process_had_is_read)
{
    make_folder();
    die_with(write_a_run);
    ck_assert_int_eq(open_dead(), 0);
    ck_assert_uint_eq(in.damaged, 0);
    ck_assert_uint_eq(in.cycle_count, 2);
    ck_assert_uint_eq(in.cycles[0].begin, 100);
    ck_assert(!in.cycles[0].partial);
    ck_assert_uint_eq(in.cycles[0].edge_count, 2);
    ck_assert_uint_eq(in.cycles[0].edges[0].number, 1);
    ck_assert_uint_eq(in.cycles[1].begin, 1000);
    ck_assert(in.cycles[1].partial);
    ck_assert_uint_eq(in.cycles[1].edge_count, 1);
    ck_assert_uint_eq(in.cycles[1].first_step, 4);
    ck_assert_uint_eq(begins_of(2), 30);
    if (!in.chunks_lost) {
        ck_assert_uint_eq(begins_of(1), 50 + 20 + 5 + 7);
        ck_assert_uint_eq(begins_of(3), 1);
        ck_assert_uint_eq(in.from_chunks, 5 + 7 + 1);
        ck_assert_uint_eq(in.cycles[1].end, 1402);
        size_t bytes;
        ck_assert_str_eq(tp_intern_text(in.spool.names, 1, &bytes), LATE_NAME);
    }
    tp_spool_in_close(&in, folder_fd, name, true);
    remove_folder();
}
END_TEST

START_TEST(a_living_process_keeps_its_spool)
{
    make_folder();
    static struct tp_spool spool;
    open_spool(&spool);
    snprintf(name, sizeof name, "%s", strrchr(spool.path, '/') + 1);
    ck_assert_int_eq(spool.file, -1); /* so that a program which closes every number does not unlock it */
    ck_assert_int_eq(open_dead(), -EBUSY);
    tp_spool_close(&spool);
    remove_folder();
}
END_TEST

START_TEST(two_do_not_read_the_same)
{
    make_folder();
    die_with(write_a_run);
    ck_assert_int_eq(open_dead(), 0);
    struct tp_spool_in first = in;
    ck_assert_int_eq(open_dead(), -EBUSY);
    tp_spool_in_close(&first, folder_fd, name, true);
    ck_assert_int_eq(open_dead(), -ENOENT);
    remove_folder();
}
END_TEST

static void make_file(const void *bytes, size_t count)
{
    snprintf(name, sizeof name, "tprof.1.x.spool");
    int fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, bytes, count), (ssize_t)count);
    close(fd);
}

START_TEST(other_files_are_told_apart)
{
    static char nothing[sizeof(struct tp_spool_state) + TP_PAGE];
    make_folder();
    make_file(nothing, 0);
    int maker = openat(folder_fd, name, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(open_dead(), -EBUSY); /* it is just being made */
    close(maker);
    make_file("text", 4);
    ck_assert_int_eq(open_dead(), -EINVAL);
    struct tp_spool_header *header = (struct tp_spool_header *)nothing;
    header->magic = 1;
    make_file(nothing, sizeof nothing);
    ck_assert_int_eq(open_dead(), -EINVAL);
    header->magic = TP_SPOOL_MAGIC;
    make_file(nothing, sizeof nothing);
    ck_assert_int_eq(open_dead(), -EINVAL);
    unlinkat(folder_fd, name, 0);
    snprintf(name, sizeof name, "link");
    ck_assert_int_eq(symlinkat("/etc/passwd", folder_fd, name), 0);
    ck_assert_int_eq(open_dead(), -ELOOP);
    unlinkat(folder_fd, name, 0);
    ck_assert(tp_spool_in_is_name("tprof.12.af.spool"));
    ck_assert(!tp_spool_in_is_name("tprof.spool"));
    ck_assert(!tp_spool_in_is_name("other.12.spool"));
    remove_folder();
}
END_TEST

/* Reading appends to the log: it may not lie over what says where things are, or over the chunks that are appended. */
START_TEST(a_log_over_something_else_is_refused)
{
    make_folder();
    die_with(write_a_run);
    struct tp_spool_header header;
    int fd = openat(folder_fd, name, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, &header, sizeof header, 0), (ssize_t)sizeof header);
    const uint64_t offsets[] = {0, TP_PAGE, header.names_offset, header.pool_offset, header.log_offset};
    for (size_t i = 0; i < TP_COUNT(offsets); i++) {
        off_t place = offsetof(struct tp_spool_header, log_offset);
        ck_assert_int_eq(pwrite(fd, &offsets[i], sizeof offsets[i], place), (ssize_t)sizeof offsets[i]);
        close(fd); /* a file that is open for writing is in use */
        ck_assert_int_eq(open_dead(), offsets[i] == header.log_offset ? 0 : -EINVAL);
        fd = openat(folder_fd, name, O_RDWR | O_CLOEXEC);
    }
    close(fd);
    tp_spool_in_close(&in, folder_fd, name, true);
    remove_folder();
}
END_TEST

static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * UINT64_C(0x2545f4914f6cdd1d) >> 33) % n;
}

/* Where blocks, chunks and the state lie. */
static off_t random_place(const struct tp_spool_header *h)
{
    switch (random_below(4)) {
    case 0:
        return (off_t)random_below(sizeof *h + 64);
    case 1:
        return (off_t)(offsetof(struct tp_spool_state, cycles) + random_below(sizeof(struct tp_cycle) * 6));
    case 2:
        return (off_t)(h->pool_offset + random_below(5) * TP_CHUNK_BYTES + random_below(800));
    default:
        return (off_t)(h->log_offset + random_below(9000));
    }
}

/* Whatever a byte says: read, or refused. */
START_TEST(damage_is_passed_over)
{
    make_folder();
    die_with(write_a_run);
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    struct tp_spool_header header;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, &header, sizeof header, 0), (ssize_t)sizeof header);
    unsigned damaged = 0, refused = 0;
    for (random_state = 1; damaged + refused < 3000;) {
        off_t place[8];
        unsigned char was[8], now;
        unsigned count = 1 + (unsigned)random_below(8);
        for (unsigned i = 0; i < count; i++) {
            place[i] = random_place(&header);
            ck_assert_int_eq(pread(fd, &was[i], 1, place[i]), 1);
            now = (unsigned char)random_below(256);
            ck_assert_int_eq(pwrite(fd, &now, 1, place[i]), 1);
        }
        close(fd);
        if (open_dead() == 0) {
            for (uint64_t thread = 0; thread < 5; thread++) {
                uint64_t position = in.spool.log.tail;
                while (tp_log_at(&in.spool.log, &position))
                    position = tp_log_after(position, tp_log_at(&in.spool.log, &position));
            }
            size_t bytes;
            for (uint32_t id = 0; id < 100; id++)
                tp_intern_text(in.spool.names, id, &bytes);
            tp_spool_in_close(&in, folder_fd, name, false);
            damaged++;
        } else {
            refused++;
        }
        tp_arena_free(&arena);
        tp_arena_init(&arena, 0);
        fd = open(path, O_RDWR | O_CLOEXEC);
        for (unsigned i = count; i > 0; i--)
            ck_assert_int_eq(pwrite(fd, &was[i - 1], 1, place[i - 1]), 1);
    }
    close(fd);
    ck_assert_uint_gt(damaged, 500);
    ck_assert_uint_gt(refused, 100);
    unlink(path);
    remove_folder();
}
END_TEST

Suite *spool_in_suite(void)
{
    Suite *suite = suite_create("spool_in");
    TCase *tcase = tcase_create("spool_in");
    tcase_add_test(tcase, what_a_dead_process_had_is_read);
    tcase_add_test(tcase, a_living_process_keeps_its_spool);
    tcase_add_test(tcase, two_do_not_read_the_same);
    tcase_add_test(tcase, other_files_are_told_apart);
    tcase_add_test(tcase, a_log_over_something_else_is_refused);
    tcase_add_test(tcase, damage_is_passed_over);
    suite_add_tcase(suite, tcase);
    return suite;
}
