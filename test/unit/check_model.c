#include "suites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../output/model.h"

/* Streams of blocks, built by hand: a tick is a nanosecond. */
#define THREADS 8
#define MAX_BLOCKS 512
#define BLOCK_WORDS 8000

struct stream {
    struct tp_block *blocks[MAX_BLOCKS];
    size_t count, given, fill;
};

static struct stream streams[THREADS + 1]; /* by serial */
static size_t block_limit;                 /* words after which a new block begins */

static void reset(size_t limit)
{
    for (size_t s = 0; s <= THREADS; s++) {
        for (size_t i = 0; i < streams[s].count; i++)
            free(streams[s].blocks[i]);
        streams[s] = (struct stream){0};
    }
    block_limit = limit;
}

static uint64_t *put(uint64_t serial, unsigned words, uint64_t time)
{
    struct stream *stream = &streams[serial];
    if (stream->count == 0 || stream->fill + words > block_limit) {
        ck_assert_uint_lt(stream->count, MAX_BLOCKS);
        struct tp_block *block = calloc(1, sizeof *block + BLOCK_WORDS * 8);
        block->magic = TP_BLOCK_MAGIC;
        block->thread.serial = block->thread.logical_id = serial;
        block->thread.os_id = (uint32_t)(100 + serial);
        block->first_time = time;
        stream->blocks[stream->count++] = block;
        stream->fill = 0;
    }
    struct tp_block *block = stream->blocks[stream->count - 1];
    uint64_t *at = (uint64_t *)(block + 1) + stream->fill;
    stream->fill += words;
    block->bytes = (uint32_t)(stream->fill * 8);
    block->last_time = time;
    return at;
}

static struct tp_begin *put_begin(uint64_t serial, uint64_t time, uint64_t key)
{
    struct tp_begin *begin = (struct tp_begin *)put(serial, TP_BEGIN_WORDS, time);
    *begin = (struct tp_begin){.head = tp_record_head(TP_RECORD_BEGIN, TP_BEGIN_WORDS, key),
                               .time = time,
                               .name = 1,
                               .sequence = -1,
                               .id = key};
    return begin;
}

static void put_end(uint64_t serial, uint64_t time, uint64_t key)
{
    uint64_t *at = put(serial, TP_END_WORDS, time);
    at[0] = tp_record_head(TP_RECORD_END, TP_END_WORDS, key);
    at[1] = time;
}

static void put_loss(uint64_t serial, uint64_t time, uint64_t count)
{
    struct tp_loss *loss = (struct tp_loss *)put(serial, TP_LOSS_WORDS, time);
    *loss = (struct tp_loss){.head = tp_record_head(TP_RECORD_LOSS, TP_LOSS_WORDS, 0), .time = time, .count = count};
}

static size_t threads(void *context, uint64_t *ret_threads, size_t capacity)
{
    (void)context;
    size_t count = 0;
    for (uint64_t s = 1; s <= THREADS; s++)
        if (streams[s].count && count++ < capacity)
            ret_threads[count - 1] = s;
    return count;
}

static const struct tp_block *next(void *context, uint64_t serial)
{
    (void)context;
    struct stream *stream = &streams[serial];
    return stream->given < stream->count ? stream->blocks[stream->given++] : NULL;
}

static const char *const names[] = {"", "aten::add", "autograd::engine::evaluate_function: AddBackward0", "AddBackward0"};

static const char *name(void *context, uint32_t id, size_t *ret_bytes)
{
    (void)context;
    *ret_bytes = strlen(names[id]);
    return names[id];
}

static uint64_t nanoseconds(void *context, uint64_t ticks)
{
    return context ? *(uint64_t *)context : ticks; /* a context is a clock that stands still */
}

/* What came out, names copied. */
static struct tp_event *events;
static char (*event_names)[64];
static size_t event_count, event_capacity;
static uint64_t last_index_in_segment;

static int collect(void *context, const struct tp_event *segment, size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            ck_assert_uint_gt(segment[i].index, last_index_in_segment);
        last_index_in_segment = segment[i].index;
        if (event_count == event_capacity) {
            event_capacity = event_capacity ? event_capacity * 2 : 1024;
            events = realloc(events, event_capacity * sizeof *events);
            event_names = realloc(event_names, event_capacity * sizeof *event_names);
        }
        snprintf(event_names[event_count], sizeof event_names[0], "%.*s", (int)segment[i].name_bytes, segment[i].name);
        events[event_count++] = segment[i];
    }
    return 0;
}

static struct tp_arena keep;

static struct tp_model_counts run(uint64_t begin, uint64_t end, uint64_t *stopped_clock)
{
    struct tp_model_options options = {.source = {stopped_clock, threads, next, name, nanoseconds},
                                       .window = {begin, end},
                                       .memory_limit = 64 << 20,
                                       .keep = &keep,
                                       .segment = collect};
    struct tp_model_counts counts;
    event_count = 0;
    tp_arena_free(&keep);
    ck_assert_int_eq(tp_model_run(&options, &counts), 0);
    ck_assert_uint_eq(counts.kept, event_count);
    return counts;
}

static const struct tp_event *event_of(uint64_t id)
{
    for (size_t i = 0; i < event_count; i++)
        if (events[i].id == id)
            return &events[i];
    ck_abort_msg("no event with id %lu", (unsigned long)id);
    return NULL;
}

START_TEST(nested_ranges_have_depth_parent_and_self_time)
{
    reset(20); /* across blocks */
    put_begin(1, 10, 1);
    put_begin(1, 20, 2);
    put_begin(1, 30, 3);
    put_end(1, 40, 3);
    put_end(1, 60, 2);
    put_begin(1, 70, 4);
    put_end(1, 80, 4);
    put_end(1, 100, 1);
    struct tp_model_counts counts = run(0, 1000, NULL);
    ck_assert_uint_eq(counts.kept, 4);
    ck_assert_uint_eq(counts.unfinished, 0);
    ck_assert_uint_eq(event_of(1)->self_ns, 90 - 40 - 10);
    ck_assert_uint_eq(event_of(2)->self_ns, 30);
    ck_assert_uint_eq(event_of(3)->depth, 2);
    ck_assert_uint_eq(event_of(3)->parent, event_of(2)->index);
    ck_assert_uint_eq(event_of(4)->parent, event_of(1)->index);
    ck_assert_uint_eq(event_of(1)->parent, UINT64_MAX);
    ck_assert_uint_eq(event_of(1)->thread->os_id, 101);
}
END_TEST

START_TEST(indices_follow_the_begins_of_all_threads)
{
    reset(BLOCK_WORDS);
    put_begin(2, 10, 1);
    put_begin(1, 11, 2);
    put_begin(2, 12, 3);
    put_end(2, 13, 3);
    put_end(1, 14, 2);
    put_end(2, 15, 1);
    run(0, 1000, NULL);
    for (uint64_t id = 1; id <= 3; id++)
        ck_assert_uint_eq(event_of(id)->index, id - 1);
}
END_TEST

START_TEST(a_clock_that_stands_still_gives_no_ties)
{
    reset(BLOCK_WORDS);
    uint64_t stopped = 5000;
    put_begin(1, 10, 1);
    put_begin(1, 10, 2);
    put_end(1, 10, 2);
    put_end(1, 10, 1);
    run(0, 1000, &stopped);
    const struct tp_event *outer = event_of(1), *inner = event_of(2);
    ck_assert(outer->start_ns < inner->start_ns && inner->start_ns < inner->end_ns && inner->end_ns < outer->end_ns);
}
END_TEST

START_TEST(only_begins_inside_the_window_count)
{
    reset(BLOCK_WORDS);
    put_begin(1, 5, 1); /* before */
    put_begin(1, 10, 2);
    put_end(1, 12, 2);
    put_end(1, 14, 1); /* of the one before: ignored */
    put_begin(1, 15, 3);
    put_end(1, 25, 3); /* after the end: unfinished */
    put_begin(1, 30, 4);
    put_end(1, 31, 4);
    struct tp_model_counts counts = run(10, 20, NULL);
    ck_assert_uint_eq(counts.kept, 2);
    ck_assert_uint_eq(counts.unfinished, 1);
    ck_assert_uint_eq(event_of(3)->end_ns, 20);
    ck_assert_uint_eq(event_of(3)->flags, TP_EVENT_UNFINISHED);
}
END_TEST

START_TEST(a_lost_end_is_closed_by_the_range_around_it)
{
    reset(BLOCK_WORDS);
    put_begin(1, 10, 1);
    put_begin(1, 20, 2);
    put_end(1, 50, 1);
    struct tp_model_counts counts = run(0, 1000, NULL);
    ck_assert_uint_eq(counts.unfinished, 1);
    ck_assert_uint_eq(event_of(2)->flags, TP_EVENT_UNFINISHED);
    ck_assert_uint_lt(event_of(2)->end_ns, event_of(1)->end_ns);
}
END_TEST

START_TEST(a_range_that_ends_on_another_thread)
{
    reset(BLOCK_WORDS);
    put_begin(1, 10, 1);
    put_begin(1, 20, 2); /* the one that moves */
    put_begin(1, 30, 3);
    put_end(2, 40, 2);
    put_end(1, 50, 3);
    put_end(1, 60, 1);
    struct tp_model_counts counts = run(0, 1000, NULL);
    ck_assert_uint_eq(counts.kept, 3);
    ck_assert_uint_eq(counts.unfinished, 0);
    ck_assert_uint_eq(event_of(2)->flags, TP_EVENT_ASYNC);
    ck_assert_uint_eq(event_of(2)->end_ns, 40);
    ck_assert_uint_eq(event_of(2)->end_thread, 2);
    ck_assert_uint_eq(event_of(2)->self_ns, 0);
    ck_assert_uint_eq(event_of(3)->end_ns, 50);
    /* Its child's time is taken from the range around both, which has no other children. */
    ck_assert_uint_eq(event_of(1)->self_ns, 50 - 20);
}
END_TEST

START_TEST(a_range_that_says_it_is_asynchronous)
{
    reset(BLOCK_WORDS);
    put_begin(1, 10, 1);
    put_begin(1, 20, 2)->flags = TP_BEGIN_ASYNC;
    put_begin(1, 30, 3);
    put_end(1, 40, 3);
    put_end(1, 50, 2);
    put_end(1, 60, 1);
    run(0, 1000, NULL);
    ck_assert_uint_eq(event_of(2)->flags, TP_EVENT_ASYNC);
    ck_assert_uint_eq(event_of(2)->depth, UINT32_MAX);
    ck_assert_uint_eq(event_of(2)->parent, UINT64_MAX);
    ck_assert_uint_eq(event_of(2)->self_ns, 0);
    ck_assert_uint_eq(event_of(1)->self_ns, 50 - 10);
}
END_TEST

START_TEST(losses_are_counted_by_their_first_time)
{
    reset(BLOCK_WORDS);
    put_loss(1, 5, 100);
    put_begin(1, 12, 1);
    put_loss(1, 15, 7);
    put_end(1, 16, 1);
    put_loss(1, 25, 100);
    struct tp_model_counts counts = run(10, 20, NULL);
    ck_assert_uint_eq(counts.lost, 7);
    ck_assert_uint_eq(counts.unfinished, 0);
}
END_TEST

START_TEST(the_engines_wrapper_takes_the_numbers_of_the_next_range)
{
    reset(BLOCK_WORDS);
    put_begin(1, 10, 1)->name = 2;
    struct tp_begin *inner = (struct tp_begin *)put(1, TP_BEGIN_WORDS + 1, 11);
    *inner = (struct tp_begin){.head = tp_record_head(TP_RECORD_BEGIN, TP_BEGIN_WORDS + 1, 2),
                               .time = 11,
                               .name = 3,
                               .id = 2,
                               .scope = TP_SCOPE_BACKWARD_FUNCTION,
                               .flags = TP_BEGIN_FORWARD_THREAD,
                               .sequence = 77};
    ((uint64_t *)inner)[TP_BEGIN_WORDS] = 4;
    put_end(1, 12, 2);
    put_end(1, 13, 1);
    put_begin(1, 20, 3)->name = 2; /* the next range is no backward function */
    put_begin(1, 21, 4);
    put_end(1, 22, 4);
    put_end(1, 23, 3);
    run(0, 1000, NULL);
    ck_assert_int_eq(event_of(1)->sequence, 77);
    ck_assert_uint_eq(event_of(1)->forward_thread, 4);
    ck_assert_int_eq(event_of(3)->sequence, -1);
}
END_TEST

START_TEST(names_that_come_with_the_record)
{
    reset(60);
    for (uint64_t i = 0; i < 6000; i++) { /* more than a segment: texts are used again */
        char text[40];
        snprintf(text, sizeof text, "dynamic name %lu", (unsigned long)i);
        size_t bytes = strlen(text), words = TP_BEGIN_WORDS + (bytes + 7) / 8;
        if (streams[1].count == MAX_BLOCKS - 1)
            block_limit = BLOCK_WORDS;
        if (i == 100)
            block_limit = BLOCK_WORDS;
        struct tp_begin *begin = (struct tp_begin *)put(1, (unsigned)words, i * 10);
        *begin = (struct tp_begin){.head = tp_record_head(TP_RECORD_BEGIN, (unsigned)words, i + 1),
                                   .time = i * 10,
                                   .flags = i == 7 ? TP_BEGIN_TEXT | TP_BEGIN_TEXT_CUT : TP_BEGIN_TEXT,
                                   .text_bytes = (uint16_t)bytes,
                                   .id = i + 1};
        memcpy(begin + 1, text, bytes);
        put_end(1, i * 10 + 5, i + 1);
    }
    struct tp_model_counts counts = run(0, 1000000, NULL);
    ck_assert_uint_eq(counts.names_cut, 1);
    for (size_t i = 0; i < event_count; i++) {
        char text[40];
        snprintf(text, sizeof text, "dynamic name %lu", (unsigned long)events[i].id - 1);
        ck_assert_str_eq(event_names[i], text);
    }
}
END_TEST

START_TEST(a_hundred_thousand_deep)
{
    enum { DEPTH = 100000 };
    reset(BLOCK_WORDS);
    for (uint64_t i = 1; i <= DEPTH; i++)
        put_begin(1, i, i);
    for (uint64_t i = DEPTH; i >= 1; i--)
        put_end(1, 2 * DEPTH - i + 1, i);
    struct tp_model_counts counts = run(0, UINT64_C(1) << 40, NULL);
    ck_assert_uint_eq(counts.kept, DEPTH);
    ck_assert_uint_eq(counts.unfinished, 0);
    ck_assert_uint_eq(event_of(DEPTH)->depth, DEPTH - 1);
}
END_TEST

START_TEST(memory_that_runs_out_is_said)
{
    reset(BLOCK_WORDS);
    for (uint64_t i = 1; i <= 100000; i++)
        put_begin(1, i, i);
    struct tp_model_options options = {.source = {NULL, threads, next, name, nanoseconds},
                                       .window = {0, UINT64_C(1) << 40},
                                       .memory_limit = 2 << 20,
                                       .segment = collect};
    struct tp_model_counts counts;
    ck_assert_int_eq(tp_model_run(&options, &counts), -ENOMEM);
}
END_TEST

START_TEST(damaged_blocks_are_passed_over)
{
    for (int damage = 0; damage < 6; damage++) {
        reset(TP_BEGIN_WORDS + TP_END_WORDS);
        for (uint64_t i = 1; i <= 3; i++) {
            put_begin(1, i * 10, i);
            put_end(1, i * 10 + 5, i);
        }
        struct tp_block *block = streams[1].blocks[1];
        uint64_t *words = (uint64_t *)(block + 1);
        switch (damage) {
        case 0: block->magic = 0; break;
        case 1: block->bytes -= 3; break;
        case 2: words[0] = tp_record_head(TP_RECORD_BEGIN, 0, 1); break;   /* would never advance */
        case 3: words[0] = tp_record_head(TP_RECORD_BEGIN, 200, 1); break; /* beyond the block */
        case 4: ((struct tp_begin *)words)->flags = TP_BEGIN_TEXT, ((struct tp_begin *)words)->text_bytes = 500; break;
        case 5: block->bytes = 0; break;
        }
        struct tp_model_counts counts = run(0, 1000, NULL);
        ck_assert_uint_eq(counts.damaged, 1);
        ck_assert_uint_eq(counts.kept, 2);
    }
}
END_TEST

START_TEST(unknown_kinds_are_passed_over_by_their_size)
{
    reset(BLOCK_WORDS);
    put_begin(1, 10, 1);
    uint64_t *at = put(1, 9, 11);
    at[0] = tp_record_head((enum tp_record_kind)200, 9, 1);
    at[1] = 11;
    put_end(1, 12, 1);
    struct tp_model_counts counts = run(0, 1000, NULL);
    ck_assert_uint_eq(counts.kept, 1);
    ck_assert_uint_eq(counts.damaged, 0);
}
END_TEST

/* Random programs on several threads against what the program itself knows of each range. */
struct known {
    uint64_t begin, end, parent;
    bool moved;
};

START_TEST(random_programs_come_out_as_they_went_in)
{
    srand((unsigned)_i + 1);
    reset(20 + (size_t)(rand() % 200));
    enum { RANGES = 3000 };
    static struct known known[RANGES + 1];
    static uint64_t stacks[THREADS + 1][RANGES];
    size_t depth[THREADS + 1] = {0};
    uint64_t time = 100, made = 0, open = 0;
    while (made < RANGES || open > 0) {
        uint64_t serial = 1 + (uint64_t)(rand() % 4);
        time += 1 + (uint64_t)(rand() % 5);
        if (made < RANGES && depth[serial] < 30 && rand() % 2) {
            uint64_t id = ++made;
            known[id] = (struct known){.begin = time, .parent = depth[serial] ? stacks[serial][depth[serial] - 1] : 0};
            stacks[serial][depth[serial]++] = id;
            put_begin(serial, time, id);
            open++;
        } else if (depth[serial] > 0) {
            uint64_t id = stacks[serial][--depth[serial]], ender = serial;
            if (rand() % 50 == 0) {
                ender = serial % 4 + 1;
                known[id].moved = true;
            }
            known[id].end = time;
            put_end(ender, time, id);
            open--;
        }
    }
    struct tp_model_counts counts = run(0, UINT64_C(1) << 40, NULL);
    ck_assert_uint_eq(counts.kept, RANGES);
    ck_assert_uint_eq(counts.unfinished, 0);
    for (size_t i = 0; i < event_count; i++) {
        const struct known *k = &known[events[i].id];
        ck_assert_uint_eq(events[i].index + 1, events[i].id);
        ck_assert_uint_eq(events[i].start_ns, k->begin);
        ck_assert_uint_eq(events[i].end_ns, k->end);
        ck_assert_uint_eq((events[i].flags & TP_EVENT_ASYNC) != 0, k->moved);
        if (!k->moved)
            ck_assert_uint_eq(events[i].parent + 1, k->parent);
    }
}
END_TEST

Suite *model_suite(void)
{
    Suite *suite = suite_create("model");
    TCase *tcase = tcase_create("model");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, nested_ranges_have_depth_parent_and_self_time);
    tcase_add_test(tcase, indices_follow_the_begins_of_all_threads);
    tcase_add_test(tcase, a_clock_that_stands_still_gives_no_ties);
    tcase_add_test(tcase, only_begins_inside_the_window_count);
    tcase_add_test(tcase, a_lost_end_is_closed_by_the_range_around_it);
    tcase_add_test(tcase, a_range_that_ends_on_another_thread);
    tcase_add_test(tcase, a_range_that_says_it_is_asynchronous);
    tcase_add_test(tcase, losses_are_counted_by_their_first_time);
    tcase_add_test(tcase, the_engines_wrapper_takes_the_numbers_of_the_next_range);
    tcase_add_test(tcase, names_that_come_with_the_record);
    tcase_add_test(tcase, a_hundred_thousand_deep);
    tcase_add_test(tcase, memory_that_runs_out_is_said);
    tcase_add_test(tcase, damaged_blocks_are_passed_over);
    tcase_add_test(tcase, unknown_kinds_are_passed_over_by_their_size);
    tcase_add_loop_test(tcase, random_programs_come_out_as_they_went_in, 0, 40);
    suite_add_tcase(suite, tcase);
    return suite;
}
