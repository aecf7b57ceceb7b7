#include "cycle_source.h"

#include <errno.h>
#include <string.h>

static uint32_t *slot_of(const struct tp_cycle_source *source, uint64_t serial)
{
    size_t at = (size_t)(serial * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (source->slot_count - 1);
    while (source->slots[at] && source->threads[source->slots[at] - 1].info.serial != serial)
        at = (at + 1) & (source->slot_count - 1);
    return &source->slots[at];
}

/* Doubling leaves the old table in the arena: the sum stays below twice the last one. */
static bool more_threads(struct tp_cycle_source *source)
{
    size_t capacity = source->thread_capacity ? source->thread_capacity * 2 : 64;
    struct tp_cycle_thread *threads = tp_arena_alloc(source->arena, capacity * sizeof *threads);
    uint32_t *slots = tp_arena_alloc(source->arena, capacity * 2 * sizeof *slots);
    if (!threads || !slots)
        return false;
    if (source->thread_count)
        memcpy(threads, source->threads, source->thread_count * sizeof *threads);
    source->threads = threads;
    source->thread_capacity = capacity;
    source->slots = slots;
    source->slot_count = capacity * 2;
    for (size_t i = 0; i < source->thread_count; i++)
        *slot_of(source, threads[i].info.serial) = (uint32_t)i + 1;
    return true;
}

static int add(struct tp_cycle_source *source, struct tp_block *block, uint64_t position)
{
    if (source->thread_count == source->thread_capacity && !more_threads(source))
        return -ENOMEM;
    block->link = 0;
    uint32_t *slot = slot_of(source, block->thread.serial);
    if (!*slot) {
        struct tp_cycle_thread fresh = {.next = position + 1};
        source->threads[source->thread_count] = fresh;
        *slot = (uint32_t)++source->thread_count;
    } else {
        uint64_t last = source->threads[*slot - 1].last;
        tp_log_at(source->log, &last)->link = position + 1;
    }
    struct tp_cycle_thread *thread = &source->threads[*slot - 1];
    thread->info = block->thread; /* the newest name */
    thread->last = position;
    return 0;
}

static struct tp_block *block_at(struct tp_cycle_source *source, const struct tp_cycle *cycle, uint64_t *position)
{
    struct tp_block *block = tp_log_at(source->log, position);
    return block && *position < cycle->log_end ? block : NULL;
}

int tp_cycle_source_open(struct tp_cycle_source *source, struct tp_log *log, const struct tp_intern *names,
                         const struct tp_cycle *cycle, struct tp_arena *arena)
{
    *source = (struct tp_cycle_source){.log = log, .names = names, .arena = arena};
    source->map = tp_clock_map_between(&cycle->clock_begin, &cycle->clock_end);
    uint64_t position = cycle->log_begin;
    struct tp_block *block;
    while ((block = block_at(source, cycle, &position))) {
        if (block->last_time >= cycle->begin && block->first_time < cycle->end) {
            int failed = add(source, block, position);
            if (failed)
                return failed;
        }
        position = tp_log_after(position, block);
    }
    return 0;
}

uint64_t tp_cycle_source_begins(struct tp_cycle_source *source, const struct tp_cycle *cycle, uint64_t from, uint64_t until)
{
    uint64_t begins = 0, position = cycle->log_begin;
    struct tp_block *block;
    while ((block = block_at(source, cycle, &position))) {
        const uint64_t *words = (const uint64_t *)(block + 1);
        if (block->first_time < until && block->last_time >= from)
            for (size_t at = 0; at < block->bytes / 8; at += tp_record_words(words[at]))
                if (words[at + 1] >= from && words[at + 1] < until)
                    begins += tp_record_begins(&words[at]);
        position = tp_log_after(position, block);
    }
    return begins;
}

const struct tp_thread_info *tp_cycle_source_thread(const struct tp_cycle_source *source, uint64_t serial)
{
    if (!source->slot_count)
        return NULL;
    uint32_t index = *slot_of(source, serial);
    return index ? &source->threads[index - 1].info : NULL;
}

const struct tp_thread_info *tp_cycle_source_os_thread(const struct tp_cycle_source *source, uint32_t os_id)
{
    for (size_t i = 0; i < source->thread_count; i++)
        if (source->threads[i].info.os_id == os_id)
            return &source->threads[i].info;
    return NULL;
}

static size_t threads(void *context, uint64_t *ret_threads, size_t capacity)
{
    const struct tp_cycle_source *source = context;
    for (size_t i = 0; i < source->thread_count && i < capacity; i++)
        ret_threads[i] = source->threads[i].info.serial;
    return source->thread_count;
}

static const struct tp_block *next(void *context, uint64_t serial)
{
    struct tp_cycle_source *source = context;
    uint32_t index = source->slot_count ? *slot_of(source, serial) : 0;
    struct tp_cycle_thread *thread = index ? &source->threads[index - 1] : NULL;
    if (!thread || !thread->next)
        return NULL;
    uint64_t position = thread->next - 1;
    struct tp_block *block = tp_log_at(source->log, &position);
    thread->next = block ? block->link : 0;
    return block;
}

static const char *name(void *context, uint32_t id, size_t *ret_bytes)
{
    const struct tp_cycle_source *source = context;
    return tp_intern_text(source->names, id, ret_bytes);
}

static uint64_t nanoseconds(void *context, uint64_t ticks)
{
    const struct tp_cycle_source *source = context;
    return tp_clock_ns(&source->map, ticks);
}

struct tp_source tp_cycle_source_as_source(struct tp_cycle_source *source)
{
    return (struct tp_source){
        .context = source, .threads = threads, .next = next, .name = name, .nanoseconds = nanoseconds};
}
