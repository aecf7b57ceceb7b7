#include "model_world.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    [NAME_ONE] = "one",
    [NAME_TWO] = "two",
    [NAME_WRAPPER] = "autograd::engine::evaluate_function: MulBackward0",
    [NAME_OTHER_WRAPPER] = "autograd::engine::evaluate_function",
    [NAME_BACKWARD] = "MulBackward0",
};

static size_t threads(void *context, uint64_t *ret_threads, size_t capacity)
{
    const struct world *world = context;
    for (size_t i = 0; i < world->stream_count && i < capacity; i++)
        ret_threads[i] = world->streams[i].info.serial;
    return world->stream_count;
}

/* Every block in a piece of its own, which is gone when the next one is asked for: a sanitizer sees late reads. */
static const struct tp_block *next(void *context, uint64_t serial)
{
    struct world *world = context;
    struct stream *stream = &world->streams[serial - 1];
    free(stream->block);
    stream->block = NULL;
    if (stream->given > stream->cut_count)
        return NULL;
    size_t from = stream->given ? stream->cuts[stream->given - 1] : 0;
    size_t to = stream->given < stream->cut_count ? stream->cuts[stream->given] : stream->count;
    stream->given++;
    stream->block = malloc(sizeof *stream->block + (to - from) * 8);
    *stream->block = (struct tp_block){
        .magic = stream->magic, .bytes = (uint32_t)((to - from) * 8) + stream->extra_bytes, .thread = stream->info};
    if (to > from)
        memcpy(stream->block + 1, stream->words + from, (to - from) * 8);
    return stream->block;
}

static const char *name(void *context, uint32_t id, size_t *ret_bytes)
{
    (void)context;
    const char *text = id < TP_COUNT(names) && names[id] ? names[id] : "";
    *ret_bytes = strlen(text);
    return text;
}

static uint64_t nanoseconds(void *context, uint64_t ticks)
{
    const struct world *world = context;
    return ticks / world->ns_divisor;
}

static const struct tp_event_values *copy_values(const struct tp_event_values *values)
{
    size_t bytes = values ? sizeof *values + values->words * sizeof *values->items : 0;
    return values ? memcpy(malloc(bytes), values, bytes) : NULL;
}

static int segment(void *context, const struct tp_event *events, size_t count)
{
    struct world *world = context;
    world->segment_count++;
    world->largest_segment = count > world->largest_segment ? count : world->largest_segment;
    for (size_t i = 1; i < count; i++)
        world->unsorted += events[i - 1].index >= events[i].index;
    if (world->segment_count == world->stop_at_segment)
        return -EIO;
    if (world->discard)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (world->event_count == world->event_capacity) {
            world->event_capacity = world->event_capacity ? world->event_capacity * 2 : 64;
            world->events = realloc(world->events, world->event_capacity * sizeof *world->events);
        }
        struct tp_event *event = &world->events[world->event_count++];
        *event = events[i];
        struct tp_thread_info *info = malloc(sizeof *info);
        *info = *events[i].thread;
        event->thread = info;
        event->name = strndup(events[i].name, events[i].name_bytes);
        if (events[i].inputs)
            event->inputs = memcpy(malloc(events[i].input_words * 8 + 1), events[i].inputs, events[i].input_words * 8);
        event->given = copy_values(events[i].given);
        event->returned = copy_values(events[i].returned);
        event->schema = strndup(events[i].schema, events[i].schema_bytes);
    }
    return 0;
}

struct world *world_new(size_t streams)
{
    struct world *world = calloc(1, sizeof *world);
    world->streams = calloc(streams, sizeof *world->streams);
    world->stream_count = streams;
    world->ns_divisor = 1;
    for (size_t i = 0; i < streams; i++) {
        world->streams[i].magic = TP_BLOCK_MAGIC;
        world->streams[i].info =
            (struct tp_thread_info){.serial = i + 1, .logical_id = i + 1, .os_id = 100 + (uint32_t)i};
    }
    world->options = (struct tp_model_options){
        .source = {.context = world, .threads = threads, .next = next, .name = name, .nanoseconds = nanoseconds},
        .window = {0, UINT64_MAX / 2},
        .memory_limit = 64 << 20,
        .segment = segment,
        .context = world,
    };
    return world;
}

void world_free(struct world *world)
{
    for (size_t i = 0; i < world->event_count; i++) {
        free((void *)world->events[i].name);
        free((void *)world->events[i].inputs);
        free((void *)world->events[i].given);
        free((void *)world->events[i].returned);
        free((void *)world->events[i].schema);
        free((void *)world->events[i].thread);
    }
    free(world->events);
    for (size_t i = 0; i < world->stream_count; i++) {
        free(world->streams[i].words);
        free(world->streams[i].cuts);
        free(world->streams[i].block);
    }
    free(world->streams);
    free(world);
}

int world_run(struct world *world)
{
    memset(&world->counts, 0xff, sizeof world->counts);
    return tp_model_run(&world->options, &world->counts);
}

const struct tp_event *world_event(const struct world *world, uint64_t index)
{
    const struct tp_event *found = NULL;
    for (size_t i = 0; i < world->event_count; i++)
        if (world->events[i].index == index) {
            ck_assert_msg(!found, "event %lu is there twice", (unsigned long)index);
            found = &world->events[i];
        }
    ck_assert_msg(found != NULL, "no event %lu", (unsigned long)index);
    return found;
}

static uint64_t *put(struct world *world, unsigned thread, size_t words)
{
    struct stream *stream = &world->streams[thread - 1];
    if (stream->count + words > stream->capacity) {
        stream->capacity = (stream->count + words) * 2;
        stream->words = realloc(stream->words, stream->capacity * 8);
    }
    uint64_t *at = stream->words + stream->count;
    memset(at, 0, words * 8);
    stream->count += words;
    return at;
}

struct tp_begin *begin_range(struct world *world, unsigned thread, uint64_t time, uint64_t key)
{
    struct tp_begin *begin = (struct tp_begin *)put(world, thread, TP_BEGIN_WORDS);
    *begin = (struct tp_begin){
        .head = tp_record_head(TP_RECORD_BEGIN, TP_BEGIN_WORDS, key), .time = time, .name = NAME_ONE, .sequence = -1};
    return begin;
}

void begin_as(struct world *world, unsigned thread, uint64_t time, uint64_t key, struct tp_begin like,
              uint64_t forward_thread)
{
    unsigned words = TP_BEGIN_WORDS + (forward_thread ? 1 : 0);
    uint64_t *at = put(world, thread, words);
    like.head = tp_record_head(TP_RECORD_BEGIN, words, key);
    like.time = time;
    if (forward_thread) {
        like.flags |= TP_BEGIN_FORWARD_THREAD;
        at[TP_BEGIN_WORDS] = forward_thread;
    }
    memcpy(at, &like, sizeof like);
}

void begin_text(struct world *world, unsigned thread, uint64_t time, uint64_t key, const char *text, uint8_t flags)
{
    size_t bytes = strlen(text);
    unsigned words = TP_BEGIN_WORDS + (unsigned)(bytes + 7) / 8;
    struct tp_begin *begin = (struct tp_begin *)put(world, thread, words);
    *begin = (struct tp_begin){
        .head = tp_record_head(TP_RECORD_BEGIN, words, key),
        .time = time,
        .flags = TP_BEGIN_TEXT | flags,
        .text_bytes = (uint16_t)bytes,
        .sequence = -1,
    };
    memcpy(begin + 1, text, bytes);
}

void end_range(struct world *world, unsigned thread, uint64_t time, uint64_t key)
{
    uint64_t *at = put(world, thread, TP_END_WORDS);
    at[0] = tp_record_head(TP_RECORD_END, TP_END_WORDS, key);
    at[1] = time;
}

void lose(struct world *world, unsigned thread, uint64_t time, uint64_t count)
{
    struct tp_loss *loss = (struct tp_loss *)put(world, thread, TP_LOSS_WORDS);
    *loss = (struct tp_loss){tp_record_head(TP_RECORD_LOSS, TP_LOSS_WORDS, 0), time, count, time + count};
}

void put_word(struct world *world, unsigned thread, uint64_t word)
{
    *put(world, thread, 1) = word;
}

void cut(struct world *world, unsigned thread)
{
    struct stream *stream = &world->streams[thread - 1];
    if (stream->cut_count == stream->cut_capacity) {
        stream->cut_capacity = stream->cut_capacity ? stream->cut_capacity * 2 : 16;
        stream->cuts = realloc(stream->cuts, stream->cut_capacity * sizeof *stream->cuts);
    }
    stream->cuts[stream->cut_count++] = stream->count;
}
