#include "suites.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/ring.h"

static struct tp_pool pool;
static struct tp_thread thread;
static _Atomic uint64_t chunkless;

static void setup_with(uint32_t chunks)
{
    char *memory = aligned_alloc(4096, (size_t)TP_CHUNK_BYTES * 8);
    memset(memory, 0, (size_t)TP_CHUNK_BYTES * 8);
    tp_pool_init(&pool, memory, (size_t)TP_CHUNK_BYTES * 8, &chunkless);
    tp_pool_grow(&pool, chunks);
    memset(&thread, 0, sizeof thread);
    thread.info.serial = 7;
    chunkless = 0;
    tp_ring_init(&pool);
}

static uint64_t now = 1000;

static bool put_begin(uint64_t key)
{
    uint64_t *at = tp_ring_reserve_begin(&thread, TP_BEGIN_WORDS, ++now);
    if (!at)
        return false;
    memset(at, 0, TP_BEGIN_WORDS * 8);
    at[0] = tp_record_head(TP_RECORD_BEGIN, TP_BEGIN_WORDS, key);
    at[1] = now;
    tp_ring_commit(&thread, at + TP_BEGIN_WORDS);
    return true;
}

static bool put_end(uint64_t key)
{
    uint64_t *at = tp_ring_reserve_end(&thread);
    if (!at)
        return false;
    at[0] = tp_record_head(TP_RECORD_END, TP_END_WORDS, key);
    at[1] = ++now;
    tp_ring_commit(&thread, at + TP_END_WORDS);
    return true;
}

/* Walks every sealed chunk and the open one; counts by kind and checks that ends close the newest open key. */
struct tally {
    uint64_t begins, ends, lost, open;
};

static void walk(const struct tp_chunk *chunk, struct tally *tally)
{
    static uint64_t stack[100000];
    uint32_t used = atomic_load(&chunk->used);
    for (const uint64_t *at = chunk->data; (const char *)at < (const char *)chunk->data + used; at += tp_record_words(*at)) {
        ck_assert_uint_gt(tp_record_words(*at), 0);
        switch (tp_record_kind(*at)) {
        case TP_RECORD_BEGIN:
            tally->begins++;
            stack[tally->open++] = tp_record_key(*at);
            break;
        case TP_RECORD_END:
            tally->ends++;
            ck_assert_uint_gt(tally->open, 0);
            ck_assert_uint_eq(stack[--tally->open], tp_record_key(*at));
            break;
        case TP_RECORD_LOSS:
            tally->lost += ((const struct tp_loss *)at)->count;
            break;
        default:
            ck_abort_msg("unknown kind");
        }
    }
}

static struct tally tally_all(void)
{
    struct tally tally = {0};
    for (struct tp_chunk *c = tp_pool_sealed(&pool), *next; c; c = next) {
        next = tp_pool_next(&pool, c);
        walk(c, &tally);
        tp_pool_give(&pool, c);
    }
    struct tp_chunk *open = atomic_load(&thread.chunk);
    if (open)
        walk(open, &tally);
    return tally;
}

START_TEST(balanced_records_come_out_as_they_went_in)
{
    setup_with(8);
    for (int i = 0; i < 3000; i++) {
        ck_assert(put_begin(1));
        ck_assert(put_begin(2));
        ck_assert(put_end(2));
        ck_assert(put_end(1));
    }
    struct tally tally = tally_all();
    ck_assert_uint_eq(tally.begins, 6000);
    ck_assert_uint_eq(tally.ends, 6000);
    ck_assert_uint_eq(tally.open, 0);
    ck_assert_uint_eq(tally.lost, 0);
}
END_TEST

START_TEST(without_room_begins_are_lost_but_ends_are_not)
{
    setup_with(1);
    uint64_t accepted = 0, refused = 0;
    /* Deep nesting into the only chunk until it is full. */
    while (put_begin(100 + accepted))
        accepted++;
    refused++;
    ck_assert(!put_begin(9)); /* inside a lost range: lost too */
    refused++;
    ck_assert(!put_end(9));
    ck_assert(!put_end(8)); /* the end of the first lost one */
    for (uint64_t i = accepted; i-- > 0;)
        ck_assert_msg(put_end(100 + i), "end of %lu found no room", (unsigned long)i);
    ck_assert_uint_eq(atomic_load(&thread.lost), refused);
    ck_assert_uint_eq(atomic_load(&atomic_load(&thread.chunk)->untold), refused); /* for whoever reads a dead process's spool */
    /* The drain brings a chunk: the loss is told before the next begin. */
    struct tp_chunk *full = atomic_load(&thread.chunk);
    tp_pool_grow(&pool, 1);
    ck_assert(put_begin(5));
    ck_assert(put_end(5));
    ck_assert_ptr_ne(full, atomic_load(&thread.chunk));
    struct tally tally = tally_all();
    ck_assert_uint_eq(tally.begins, accepted + 1);
    ck_assert_uint_eq(tally.ends, accepted + 1);
    ck_assert_uint_eq(tally.lost, refused);
}
END_TEST

START_TEST(recursion_deeper_than_a_chunk_holds)
{
    setup_with(8);
    uint64_t depth = 0;
    while (depth < TP_RING_OPEN_MAX + 500 && put_begin(1000 + depth))
        depth++;
    ck_assert_uint_ge(depth, TP_RING_OPEN_MAX);
    for (uint64_t i = depth; i-- > 0;)
        ck_assert(put_end(1000 + i));
    struct tally tally = tally_all();
    ck_assert_uint_eq(tally.begins, depth);
    ck_assert_uint_eq(tally.open, 0);
}
END_TEST

START_TEST(no_pool_means_every_begin_is_lost)
{
    setup_with(0);
    tp_ring_init(NULL);
    ck_assert(!put_begin(1));
    ck_assert(!put_end(1));
    ck_assert_uint_eq(atomic_load(&thread.lost), 1);
    ck_assert(!put_end(77)); /* began before recording: no room and nothing to lose */
}
END_TEST

START_TEST(a_new_epoch_forgets_what_was_open)
{
    setup_with(1);
    while (put_begin(1))
        ;
    tp_ring_restart(&thread, 2);
    ck_assert_uint_eq(thread.open, 0);
    ck_assert_uint_eq(thread.lost_depth, 0);
    ck_assert(put_end(1)); /* its begin is of the old epoch; an end needs no room of its own */
}
END_TEST

START_TEST(leaving_seals_and_tells_losses)
{
    setup_with(1);
    ck_assert(put_begin(1));
    while (put_begin(2))
        ;
    tp_ring_leave(&thread);
    ck_assert_ptr_null(atomic_load(&thread.chunk));
    struct tally tally = tally_all();
    ck_assert_uint_eq(tally.lost, atomic_load(&thread.lost));
    ck_assert_uint_eq(tp_pool_free_count(&pool), 1);
}
END_TEST

/* Threads take and seal, one thread gives back: every chunk is always in exactly one place. */
#define CHUNKS 8
static _Atomic uint64_t owners[CHUNKS];
static _Atomic bool stop;
static _Atomic uint64_t taken_total;

static void *take_and_seal(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        struct tp_chunk *chunk = tp_pool_take(&pool);
        if (!chunk)
            continue;
        if (atomic_fetch_add(&owners[chunk->index], 1) != 0)
            return (void *)1;
        atomic_fetch_add(&taken_total, 1);
        atomic_fetch_sub(&owners[chunk->index], 1);
        tp_pool_seal(&pool, chunk);
    }
    return NULL;
}

START_TEST(chunks_are_owned_by_one_at_a_time)
{
    setup_with(CHUNKS);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, take_and_seal, NULL);
    uint64_t given = 0;
    while (given < 200000)
        for (struct tp_chunk *c = tp_pool_sealed(&pool), *next; c; c = next) {
            next = tp_pool_next(&pool, c);
            if (atomic_fetch_add(&owners[c->index], 1) != 0)
                ck_abort_msg("a sealed chunk is owned");
            atomic_fetch_sub(&owners[c->index], 1);
            tp_pool_give(&pool, c);
            given++;
        }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    for (struct tp_chunk *c = tp_pool_sealed(&pool), *next; c; c = next) {
        next = tp_pool_next(&pool, c);
        tp_pool_give(&pool, c);
    }
    ck_assert_uint_eq(tp_pool_free_count(&pool), CHUNKS);
}
END_TEST

START_TEST(hot_words_share_no_line)
{
    struct tp_thread *pair = aligned_alloc(_Alignof(struct tp_thread), 2 * sizeof(struct tp_thread));
    uintptr_t end_of_first = (uintptr_t)&pair[0].lost_told + sizeof pair[0].lost_told - 1;
    ck_assert_uint_ne(end_of_first / (2 * TP_CACHE_LINE), (uintptr_t)&pair[0].info / (2 * TP_CACHE_LINE));
    ck_assert_uint_ne(end_of_first / (2 * TP_CACHE_LINE), (uintptr_t)&pair[1].next / (2 * TP_CACHE_LINE));
    ck_assert_uint_ne(offsetof(struct tp_chunk, used) / TP_CACHE_LINE, offsetof(struct tp_chunk, taken) / TP_CACHE_LINE);
    free(pair);
}
END_TEST

Suite *ring_suite(void)
{
    Suite *suite = suite_create("ring");
    TCase *tcase = tcase_create("ring");
    tcase_add_test(tcase, balanced_records_come_out_as_they_went_in);
    tcase_add_test(tcase, without_room_begins_are_lost_but_ends_are_not);
    tcase_add_test(tcase, recursion_deeper_than_a_chunk_holds);
    tcase_add_test(tcase, no_pool_means_every_begin_is_lost);
    tcase_add_test(tcase, a_new_epoch_forgets_what_was_open);
    tcase_add_test(tcase, leaving_seals_and_tells_losses);
    tcase_add_test(tcase, chunks_are_owned_by_one_at_a_time);
    tcase_add_test(tcase, hot_words_share_no_line);
    suite_add_tcase(suite, tcase);
    return suite;
}
