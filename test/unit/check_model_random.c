/* The model against a plain one, which holds everything and searches it from end to end, on random streams. */
#include <stdlib.h>
#include <string.h>

#include "model_world.h"
#include "suites.h"

#define THREADS 3
#define RECORDS 400

/* What was put into the world, in plain form. */
struct plain_record {
    enum tp_record_kind kind;
    unsigned thread;
    uint64_t time, key, count;
    struct tp_begin begin;
    uint64_t forward_thread;
};

struct plain_range {
    struct tp_event event;
    unsigned thread;
    uint64_t key, clock_ns, inside_ns;
    bool open, apart;
};

struct plain {
    struct plain_range ranges[THREADS * RECORDS];
    size_t count;
    uint64_t last_ns[THREADS + 1];
    struct plain_range *newest[THREADS + 1];
    uint64_t lost, unfinished;
};

static uint32_t random_state;

static unsigned any(unsigned below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

static uint64_t plain_stamp(struct plain *plain, unsigned thread, uint64_t ns)
{
    uint64_t last = plain->last_ns[thread];
    return plain->last_ns[thread] = ns > last ? ns : last + 1;
}

/* The innermost open range of the thread that nests and began before this one. */
static struct plain_range *outer(struct plain *plain, unsigned thread, const struct plain_range *before)
{
    for (struct plain_range *range = plain->ranges + (before - plain->ranges); range-- > plain->ranges;)
        if (range->open && range->thread == thread && !range->apart)
            return range;
    return NULL;
}

static void plain_begin(struct plain *plain, const struct plain_record *record, const struct world *world)
{
    struct plain_range *range = &plain->ranges[plain->count];
    struct plain_range *around = outer(plain, record->thread, range);
    struct plain_range *newest = plain->newest[record->thread];
    *range = (struct plain_range){.thread = record->thread, .key = record->key, .open = true};
    range->apart = record->begin.flags & TP_BEGIN_ASYNC;
    range->clock_ns = record->time / world->ns_divisor;
    range->event = (struct tp_event){
        .index = plain->count++,
        .name_id = record->begin.name,
        .scope = record->begin.scope,
        .sequence = record->begin.sequence,
        .forward_thread = record->forward_thread,
        .parent = around ? around->event.index : UINT64_MAX,
        .depth = around ? around->event.depth + 1 : 0,
    };
    if (!range->apart)
        range->event.start_ns = plain_stamp(plain, record->thread, range->clock_ns);
    if (newest && newest->open && newest->event.scope == TP_SCOPE_FUNCTION && newest->event.name_id == NAME_WRAPPER &&
        record->begin.scope == TP_SCOPE_BACKWARD_FUNCTION) {
        newest->event.sequence = record->begin.sequence;
        newest->event.forward_thread = record->forward_thread;
        newest->event.flags = TP_EVENT_WRAPS;
    }
    plain->newest[record->thread] = range;
}

static void plain_close(struct plain *plain, struct plain_range *range, uint64_t ns, unsigned thread, uint8_t flags)
{
    struct plain_range *around = outer(plain, range->thread, range);
    range->open = false;
    range->event.flags |= flags;
    range->event.end_thread = thread;
    plain->unfinished += (flags & TP_EVENT_UNFINISHED) != 0;
    if (flags & TP_EVENT_ASYNC) {
        if (!range->apart && around)
            around->inside_ns += range->inside_ns;
        range->event.start_ns = range->clock_ns;
        range->event.end_ns = ns > range->clock_ns ? ns : range->clock_ns + 1;
        range->event.depth = UINT32_MAX;
        range->event.parent = UINT64_MAX;
        return;
    }
    range->event.end_ns = plain_stamp(plain, thread, ns);
    uint64_t duration = range->event.end_ns - range->event.start_ns;
    range->event.self_ns = duration - range->inside_ns;
    if (around)
        around->inside_ns += duration;
}

static void plain_close_inside(struct plain *plain, unsigned thread, const struct plain_range *range, uint64_t ns)
{
    uint64_t count = 0;
    for (const struct plain_range *r = range ? range + 1 : plain->ranges; r < plain->ranges + plain->count; r++)
        count += r->open && r->thread == thread && !r->apart;
    ns = ns > count ? ns - count : 0;
    for (struct plain_range *r; (r = outer(plain, thread, plain->ranges + plain->count)) && r != range;)
        plain_close(plain, r, ns++, thread, TP_EVENT_UNFINISHED);
}

static void plain_end(struct plain *plain, const struct plain_record *record, const struct world *world)
{
    uint64_t ns = record->time / world->ns_divisor;
    struct plain_range *range = outer(plain, record->thread, plain->ranges + plain->count), *own = NULL, *other = NULL;
    if (!range || range->key != record->key) {
        for (struct plain_range *r = plain->ranges; r < plain->ranges + plain->count; r++)
            if (r->open && r->key == record->key)
                *(r->thread == record->thread ? &own : &other) = r;
        range = own ? own : other;
    }
    if (!range)
        return;
    if (range->thread != record->thread || range->apart) {
        plain_close(plain, range, ns, record->thread, TP_EVENT_ASYNC);
        return;
    }
    plain_close_inside(plain, record->thread, range, ns);
    plain_close(plain, range, ns, record->thread, 0);
}

/* records: each thread's RECORDS one behind the other, with times that do not fall. */
static void plain_run(struct plain *plain, const struct plain_record *records, const struct world *world)
{
    size_t at[THREADS] = {0};
    struct tp_window window = world->options.window;
    for (;;) {
        const struct plain_record *first = NULL;
        for (unsigned t = 0; t < THREADS; t++)
            if (at[t] < RECORDS && (!first || records[t * RECORDS + at[t]].time < first->time))
                first = &records[t * RECORDS + at[t]];
        if (!first)
            break;
        at[first->thread - 1]++;
        bool inside = first->time >= window.begin && first->time < window.end;
        if (first->kind == TP_RECORD_LOSS)
            plain->newest[first->thread] = NULL;
        if (first->kind == TP_RECORD_LOSS && inside)
            plain->lost += first->count;
        else if (first->kind == TP_RECORD_BEGIN && inside)
            plain_begin(plain, first, world);
        else if (first->kind == TP_RECORD_END && first->time < window.end)
            plain_end(plain, first, world);
    }
    uint64_t end_ns = window.end / world->ns_divisor;
    for (unsigned thread = 1; thread <= THREADS; thread++)
        plain_close_inside(plain, thread, NULL, end_ns + 1);
    for (struct plain_range *range = plain->ranges; range < plain->ranges + plain->count; range++)
        if (range->open)
            plain_close(plain, range, end_ns, range->thread, TP_EVENT_UNFINISHED | TP_EVENT_ASYNC);
}

static struct plain_record any_begin(struct plain_record record)
{
    static const uint32_t some_names[] = {NAME_ONE, NAME_WRAPPER, NAME_BACKWARD};
    record.kind = TP_RECORD_BEGIN;
    record.begin.name = some_names[any(3)];
    record.begin.scope = (uint8_t)any(2);
    record.begin.flags = any(12) ? 0 : TP_BEGIN_ASYNC;
    record.begin.sequence = (int64_t)any(100) - 1;
    record.forward_thread = any(3);
    return record;
}

/* Mostly well nested; some ends are missing, on another thread, or of nothing. Keys are few, so that they meet. */
static void make_streams(struct plain_record *records, struct world *world, unsigned step)
{
    uint64_t keys[RECORDS];
    for (unsigned thread = 1; thread <= THREADS; thread++) {
        uint64_t time = any(100);
        size_t depth = 0;
        for (size_t i = 0; i < RECORDS; i++) {
            struct plain_record record = {.thread = thread, .time = time += any(step)};
            if (any(40) == 0)
                cut(world, thread);
            unsigned what = any(100);
            if (what < 48) {
                record.key = 64 * (1 + any(what < 30 ? 1000 : 6));
                keys[depth++] = record.key;
                record = any_begin(record);
                begin_as(world, thread, time, record.key, record.begin, record.forward_thread);
            } else if (what < 97) {
                record.kind = TP_RECORD_END;
                record.key = 64 * (1 + any(6));
                if (depth && what < 90)
                    record.key = keys[--depth];
                else if (depth)
                    depth -= any(2);
                end_range(world, thread, time, record.key);
            } else {
                record.kind = TP_RECORD_LOSS;
                record.count = any(50);
                lose(world, thread, time, record.count);
            }
            records[(thread - 1) * RECORDS + i] = record;
        }
    }
}

static void check_same(const struct tp_event *event, const struct plain_range *range)
{
    const struct tp_event *expected = &range->event;
    ck_assert_uint_eq(event->start_ns, expected->start_ns);
    ck_assert_uint_eq(event->end_ns, expected->end_ns);
    ck_assert_uint_eq(event->self_ns, expected->self_ns);
    ck_assert_uint_eq(event->parent, expected->parent);
    ck_assert_uint_eq(event->depth, expected->depth);
    ck_assert_uint_eq(event->name_id, expected->name_id);
    ck_assert_uint_eq(event->scope, expected->scope);
    ck_assert_uint_eq(event->flags, expected->flags);
    ck_assert_int_eq(event->sequence, expected->sequence);
    ck_assert_uint_eq(event->forward_thread, expected->forward_thread);
    ck_assert_uint_eq(event->end_thread, expected->end_thread);
    ck_assert_uint_eq(event->thread->serial, range->thread);
}

/* Slices of a thread that nest: between any two, one lies in the other or they are apart. */
static void check_nesting(const struct plain *plain)
{
    for (const struct plain_range *a = plain->ranges; a < plain->ranges + plain->count; a++)
        for (const struct plain_range *b = plain->ranges; b < a; b++) {
            if (a->thread != b->thread || (a->event.flags | b->event.flags) & TP_EVENT_ASYNC)
                continue;
            bool apart = b->event.end_ns < a->event.start_ns;
            bool within = b->event.start_ns < a->event.start_ns && a->event.end_ns < b->event.end_ns;
            ck_assert(apart || within);
        }
}

START_TEST(agrees_with_a_plain_model)
{
    struct plain_record *records = calloc(THREADS * RECORDS, sizeof *records);
    struct plain *plain = calloc(1, sizeof *plain);
    for (unsigned round = 0; round < 40; round++) {
        random_state = (uint32_t)_i * 1000 + round;
        memset(plain, 0, sizeof *plain);
        struct world *world = world_new(THREADS);
        world->ns_divisor = round % 2 ? 1 : 10;
        world->options.window = (struct tp_window){any(800), 1000 + any(round % 3 ? 2000 : 20000)};
        world->options.memory_limit = round % 5 ? 4 << 20 : 1 << 20;
        make_streams(records, world, 1 + round % 20);
        plain_run(plain, records, world);
        check_nesting(plain);
        ck_assert_int_eq(world_run(world), 0);
        ck_assert_uint_eq(world->event_count, plain->count);
        for (size_t i = 0; i < plain->count; i++)
            check_same(world_event(world, i), &plain->ranges[i]);
        ck_assert_uint_eq(world->unsorted, 0);
        ck_assert_uint_eq(world->counts.kept, plain->count);
        ck_assert_uint_eq(world->counts.lost, plain->lost);
        ck_assert_uint_eq(world->counts.unfinished, plain->unfinished);
        ck_assert_uint_eq(world->counts.damaged, 0);
        world_free(world);
    }
    free(plain);
    free(records);
}
END_TEST

Suite *model_random_suite(void)
{
    Suite *suite = suite_create("model_random");
    TCase *tcase = tcase_create("model_random");
    tcase_add_loop_test(tcase, agrees_with_a_plain_model, 0, 5);
    suite_add_tcase(suite, tcase);
    return suite;
}
