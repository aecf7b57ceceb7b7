/* fuzz_model.c: any bytes as the blocks of three threads. What comes out must keep the promises of model.h. */
#include <stdlib.h>
#include <string.h>

#include "../../output/inputs.h"
#include "../../output/model.h"
#include "../../output/values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define THREADS 3

static bool are_sound(const struct tp_event_values *values)
{
    return !values || tp_values_sound(values->items, values->words, values->count, true);
}

/* The input is cut into pieces, each with one byte before it: the thread (two bits), whether the head of its block
 * comes from the input too, and its length in words. */
struct feed {
    const uint8_t *data;
    size_t size;
    size_t at[THREADS];
    struct tp_block *block[THREADS];
    uint64_t events, ends, index_end;
};

static const struct tp_block *make_block(struct feed *feed, unsigned thread, const uint8_t *piece, size_t bytes,
                                         bool raw_head)
{
    free(feed->block[thread]);
    struct tp_block *block = feed->block[thread] = malloc(sizeof *block + bytes);
    *block = (struct tp_block){.magic = TP_BLOCK_MAGIC, .bytes = (uint32_t)bytes, .thread.serial = thread + 1};
    if (bytes)
        memcpy(block + 1, piece, bytes);
    if (raw_head && bytes >= 4) {
        block->magic ^= piece[0] & 1;
        block->bytes -= piece[1] & 7;
        block->thread.serial += piece[2] & 1;
        memset(block->thread.name, piece[3], sizeof block->thread.name);
    }
    return block;
}

static const struct tp_block *next(void *context, uint64_t serial)
{
    struct feed *feed = context;
    unsigned thread = (unsigned)serial - 1;
    while (feed->at[thread] < feed->size) {
        uint8_t head = feed->data[feed->at[thread]++];
        size_t left = feed->size - feed->at[thread], bytes = (size_t)(head >> 3) * 8;
        bytes = bytes < left ? bytes : left / 8 * 8;
        const uint8_t *piece = feed->data + feed->at[thread];
        feed->at[thread] += bytes;
        if ((head & 3) % THREADS == thread)
            return make_block(feed, thread, piece, bytes, head & 4);
    }
    return NULL;
}

static size_t threads(void *context, uint64_t *ret_threads, size_t capacity)
{
    (void)context;
    for (size_t i = 0; i < THREADS && i < capacity; i++)
        ret_threads[i] = i + 1;
    return THREADS;
}

static const char *name(void *context, uint32_t id, size_t *ret_bytes)
{
    static const char text[] = "autograd::engine::evaluate_function: X";
    (void)context;
    *ret_bytes = id % sizeof text;
    return text;
}

static uint64_t nanoseconds(void *context, uint64_t ticks)
{
    (void)context;
    return ticks / 4;
}

static size_t newlines;

static int segment(void *context, const struct tp_event *events, size_t count)
{
    struct feed *feed = context;
    uint64_t places = 0; /* by the order of their ends: each once */
    for (size_t i = 0; i < count; i++) {
        const struct tp_event *event = &events[i];
        if (memchr(event->name, '\n', event->name_bytes)) /* reads all of it */
            newlines++;
        if ((event->inputs != NULL) != (event->input_count > 0 || event->input_words > 0) ||
            (event->inputs && !tp_inputs_sound(event->inputs, event->input_words, event->input_count)))
            abort();
        if (!are_sound(event->given) || !are_sound(event->returned) || event->end_index - feed->ends >= count)
            abort();
        places += event->end_index - feed->ends;
        bool async = event->flags & TP_EVENT_ASYNC;
        if (event->end_ns <= event->start_ns || event->self_ns > event->end_ns - event->start_ns ||
            event->thread->serial - 1 >= THREADS || strlen(event->thread->name) > 15 ||
            (i && events[i - 1].index >= event->index) || async != (event->depth == UINT32_MAX) ||
            (event->parent != UINT64_MAX && event->parent >= event->index))
            abort();
        if (event->index >= feed->index_end)
            feed->index_end = event->index + 1;
    }
    if (places != count * (count - 1) / 2)
        abort();
    feed->ends += count;
    feed->events += count;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {.data = data, .size = size};
    struct tp_model_options options = {
        .source = {.context = &feed, .threads = threads, .next = next, .name = name, .nanoseconds = nanoseconds},
        .window = {16, UINT64_C(1) << 60},
        .memory_limit = 1 << 20,
        .segment = segment,
        .context = &feed,
    };
    struct tp_model_counts counts;
    int failed = tp_model_run(&options, &counts);
    if (counts.kept != feed.events || (!failed && feed.events != feed.index_end))
        abort();
    for (unsigned thread = 0; thread < THREADS; thread++)
        free(feed.block[thread]);
    return 0;
}
