#include "spans.h"

#include <errno.h>
#include <string.h>

#include "../agent/heap_sort.h"

#define BLOCK 4096
#define WAITING 8192
#define RUNS_TRIED 8   /* the newest runs of a thread that a range may go on */
#define SPAN_MOST 120  /* bytes of one that is written: 11 numbers of at most 10 */

struct block {
    struct block *next;
    uint32_t used;
    unsigned char bytes[BLOCK - sizeof(struct block *) - sizeof(uint32_t)];
};

struct run {
    struct run *older;
    struct block *first, *last;
    struct tp_span newest; /* that was written */
};

struct thread {
    struct run *runs; /* the newest first */
    uint64_t run_count;
};

struct waiting {
    struct tp_span span;
    uint32_t thread;
};
_Static_assert(sizeof(struct waiting) <= TP_HEAP_ITEM_MAX, "it is sorted");

struct tp_spans {
    struct tp_arena *arena;
    struct thread *threads;
    uint32_t thread_count, thread_capacity;
    uint64_t count;
    struct waiting *waiting; /* those that came out of order */
    size_t waiting_count;
};

/* Where the reading of a run stands. */
struct cursor {
    const struct block *block;
    uint32_t at;
    struct tp_span span;
};

struct tp_spans_reader {
    struct tp_arena *arena;
    struct cursor *cursors; /* a heap: the one whose span comes first is the first */
    size_t count, capacity;
};

static bool before(const struct tp_span *a, const struct tp_span *b)
{
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns;
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns;
    return a->serial < b->serial;
}

/* Numbers: seven bits a byte, the last one without the top bit. */

static unsigned char *put_number(unsigned char *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at++ = (unsigned char)value;
    return at;
}

static unsigned char *put_signed(unsigned char *at, int64_t value)
{
    return put_number(at, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

static uint64_t take_number(const unsigned char **at)
{
    uint64_t value = 0;
    unsigned shift = 0;
    unsigned char byte;
    do {
        byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

static int64_t take_signed(const unsigned char **at)
{
    uint64_t value = take_number(at);
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static bool has_rare(const struct tp_span *span)
{
    return span->flops || span->bytes || span->device_bytes || span->stack || span->sequence || span->forward_thread;
}

/* Differences wrap, so any value can be written. */
static size_t write_span(unsigned char *bytes, const struct tp_span *span, const struct tp_span *last)
{
    bool rare = has_rare(span);
    unsigned char *at = put_number(bytes, (uint64_t)span->start_ns - (uint64_t)last->start_ns);
    at = put_number(at, (uint64_t)span->end_ns - (uint64_t)span->start_ns);
    at = put_number(at, (uint64_t)span->label << 1 | rare);
    at = put_signed(at, (int64_t)(span->serial - last->serial));
    at = put_signed(at, (int64_t)(span->id - last->id));
    if (rare) {
        at = put_number(at, span->flops);
        at = put_signed(at, span->bytes);
        at = put_signed(at, span->device_bytes);
        at = put_number(at, span->stack);
        at = put_number(at, span->sequence);
        at = put_number(at, span->forward_thread);
    }
    return (size_t)(at - bytes);
}

static void read_span(const unsigned char **at, struct tp_span *span)
{
    span->start_ns = (int64_t)((uint64_t)span->start_ns + take_number(at));
    span->end_ns = (int64_t)((uint64_t)span->start_ns + take_number(at));
    uint64_t label = take_number(at);
    span->label = (uint32_t)(label >> 1);
    span->serial += (uint64_t)take_signed(at);
    span->id += (uint64_t)take_signed(at);
    bool rare = label & 1;
    span->flops = rare ? take_number(at) : 0;
    span->bytes = rare ? take_signed(at) : 0;
    span->device_bytes = rare ? take_signed(at) : 0;
    span->stack = rare ? (uint32_t)take_number(at) : 0;
    span->sequence = rare ? take_number(at) : 0;
    span->forward_thread = rare ? take_number(at) : 0;
}

/* Adding. */

static int append(struct tp_spans *spans, struct run *run, const struct tp_span *span)
{
    unsigned char bytes[SPAN_MOST];
    size_t count = write_span(bytes, span, &run->newest);
    if (!run->last || count > sizeof run->last->bytes - run->last->used) {
        struct block *block = tp_arena_alloc(spans->arena, sizeof *block);
        if (!block)
            return -ENOMEM;
        if (run->last)
            run->last->next = block;
        else
            run->first = block;
        run->last = block;
    }
    memcpy(run->last->bytes + run->last->used, bytes, count);
    run->last->used += (uint32_t)count;
    run->newest = *span;
    return 0;
}

static struct run *add_run(struct tp_spans *spans, struct thread *thread)
{
    struct run *run = tp_arena_alloc(spans->arena, sizeof *run);
    if (!run)
        return NULL;
    run->older = thread->runs;
    run->newest.start_ns = INT64_MIN;
    thread->runs = run;
    thread->run_count++;
    return run;
}

/* One of the newest runs that the span can go on, or NULL. */
static struct run *run_for(const struct thread *thread, const struct tp_span *span)
{
    struct run *run = thread->runs;
    for (int i = 0; run && i < RUNS_TRIED; i++, run = run->older)
        if (!before(span, &run->newest))
            return run;
    return NULL;
}

static bool waits_before(const void *one, const void *other)
{
    const struct waiting *a = one, *b = other;
    return a->thread != b->thread ? a->thread < b->thread : before(&a->span, &b->span);
}

static void sort_waiting(struct waiting *waiting, size_t count)
{
    size_t sorted = 1;
    while (sorted < count && !waits_before(&waiting[sorted], &waiting[sorted - 1]))
        sorted++;
    if (sorted < count)
        tp_heap_sort(waiting, count, sizeof *waiting, waits_before);
}

static int write_waiting(struct tp_spans *spans)
{
    sort_waiting(spans->waiting, spans->waiting_count);
    struct run *run = NULL;
    for (size_t i = 0; i < spans->waiting_count; i++) {
        const struct waiting *waiting = &spans->waiting[i];
        struct thread *thread = &spans->threads[waiting->thread];
        if (i == 0 || waiting->thread != waiting[-1].thread) {
            run = run_for(thread, &waiting->span);
            if (!run && !(run = add_run(spans, thread)))
                return -ENOMEM;
        }
        if (append(spans, run, &waiting->span) < 0)
            return -ENOMEM;
    }
    spans->waiting_count = 0;
    return 0;
}

static int make_thread(struct tp_spans *spans, uint32_t thread)
{
    if (thread >= spans->thread_capacity) {
        uint32_t capacity = spans->thread_capacity ? spans->thread_capacity * 2 : 64;
        while (capacity <= thread)
            capacity *= 2;
        struct thread *threads = tp_arena_alloc(spans->arena, capacity * sizeof *threads);
        if (!threads)
            return -ENOMEM;
        if (spans->thread_count)
            memcpy(threads, spans->threads, spans->thread_count * sizeof *threads);
        spans->threads = threads;
        spans->thread_capacity = capacity;
    }
    spans->thread_count = thread + 1;
    return add_run(spans, &spans->threads[thread]) ? 0 : -ENOMEM;
}

struct tp_spans *tp_spans_new(struct tp_arena *arena)
{
    struct tp_spans *spans = tp_arena_alloc(arena, sizeof *spans);
    if (!spans)
        return NULL;
    spans->arena = arena;
    spans->waiting = tp_arena_alloc(arena, WAITING * sizeof *spans->waiting);
    return spans->waiting ? spans : NULL;
}

int tp_spans_add(struct tp_spans *spans, uint32_t thread, const struct tp_span *span)
{
    while (thread >= spans->thread_count)
        if (make_thread(spans, spans->thread_count) < 0)
            return -ENOMEM;
    spans->count++;
    struct run *run = spans->threads[thread].runs;
    if (!before(span, &run->newest))
        return append(spans, run, span);
    spans->waiting[spans->waiting_count++] = (struct waiting){*span, thread};
    return spans->waiting_count == WAITING ? write_waiting(spans) : 0;
}

int tp_spans_end(struct tp_spans *spans)
{
    return write_waiting(spans);
}

uint32_t tp_spans_threads(const struct tp_spans *spans)
{
    return spans->thread_count;
}

uint64_t tp_spans_count(const struct tp_spans *spans)
{
    return spans->count;
}

/* Reading. */

/* False: the run is over. */
static bool move_on(struct cursor *cursor)
{
    while (cursor->block && cursor->at == cursor->block->used) {
        cursor->block = cursor->block->next;
        cursor->at = 0;
    }
    if (!cursor->block)
        return false;
    const unsigned char *at = cursor->block->bytes + cursor->at;
    read_span(&at, &cursor->span);
    cursor->at = (uint32_t)(at - cursor->block->bytes);
    return true;
}

static void sink(struct cursor *cursors, size_t count, size_t at)
{
    if (2 * at + 1 >= count)
        return;
    struct cursor moved = cursors[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(&cursors[child + 1].span, &cursors[child].span))
            child++;
        if (!before(&cursors[child].span, &moved.span))
            break;
        cursors[at] = cursors[child];
    }
    cursors[at] = moved;
}

struct tp_spans_reader *tp_spans_reader_new(struct tp_arena *arena)
{
    struct tp_spans_reader *reader = tp_arena_alloc(arena, sizeof *reader);
    if (reader)
        reader->arena = arena;
    return reader;
}

int tp_spans_open(struct tp_spans_reader *reader, const struct tp_spans *spans, uint32_t at)
{
    const struct thread *thread = &spans->threads[at];
    if (thread->run_count > reader->capacity) {
        reader->cursors = tp_arena_alloc(reader->arena, thread->run_count * 2 * sizeof *reader->cursors);
        if (!reader->cursors)
            return -ENOMEM;
        reader->capacity = thread->run_count * 2;
    }
    reader->count = 0;
    for (const struct run *run = thread->runs; run; run = run->older) {
        struct cursor *cursor = &reader->cursors[reader->count];
        *cursor = (struct cursor){.block = run->first, .span = {.start_ns = INT64_MIN}};
        reader->count += move_on(cursor);
    }
    for (size_t i = reader->count / 2; i-- > 0;)
        sink(reader->cursors, reader->count, i);
    return 0;
}

bool tp_spans_next(struct tp_spans_reader *reader, struct tp_span *ret)
{
    if (reader->count == 0)
        return false;
    *ret = reader->cursors[0].span;
    if (!move_on(&reader->cursors[0]))
        reader->cursors[0] = reader->cursors[--reader->count];
    sink(reader->cursors, reader->count, 0);
    return true;
}

