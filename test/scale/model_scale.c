/*
 * model_scale.c: the model at length. Ranges of several threads are made while they are read: operator trees, one range
 * that stays open over all others of its thread, a recursion 100,000 deep, names that come with the record, losses. All
 * of them must come out or be counted as lost, in at most 64 MiB of the whole process.
 *
 * usage: model_scale [ranges]     default 100,000,000. Prints what it took. exit 0: all is well
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../output/model.h"

#define MAKERS 8
#define BLOCK_BYTES (64 * 1024)
#define DEEP 100000
#define PEAK_KIB_MAX (64 * 1024)

/* One thread's records. Keys are as of objects on a stack. */
struct maker {
    uint64_t serial, time;
    uint64_t to_begin, lost;
    uint64_t depth, depth_max;
    uint64_t floor; /* ranges that stay open until the last one has begun */
    bool straight; /* at first goes all the way down, then all the way up */
    bool rising;
    uint32_t random_state, records;
    uint64_t block[BLOCK_BYTES / 8];
};

static struct maker makers[MAKERS];

static uint32_t any(struct maker *maker)
{
    if (maker->records++ % 5000 == 0) /* programs repeat themselves */
        maker->random_state = (uint32_t)maker->serial;
    maker->random_state = maker->random_state * 1664525u + 1013904223u;
    return maker->random_state >> 8;
}

static uint64_t key_at(const struct maker *maker, uint64_t depth)
{
    return UINT64_C(0x7f0000000000) + maker->serial * UINT64_C(0x10000000) - depth * 288;
}

static uint64_t *put_loss(struct maker *maker, uint64_t *at)
{
    uint64_t count = maker->to_begin < 3 ? maker->to_begin : 3;
    maker->lost += count;
    maker->to_begin -= count;
    *(struct tp_loss *)at =
        (struct tp_loss){tp_record_head(TP_RECORD_LOSS, TP_LOSS_WORDS, 0), maker->time, count, maker->time + 1};
    return at + TP_LOSS_WORDS;
}

static uint64_t *put_begin(struct maker *maker, uint64_t *at, uint32_t random)
{
    static const char text[] = "a name that comes with the record";
    struct tp_begin *begin = (struct tp_begin *)at;
    unsigned words = TP_BEGIN_WORDS;
    *begin = (struct tp_begin){.time = maker->time, .name = 1 + random % 200, .sequence = -1, .id = maker->to_begin};
    if (random % 64 == 0) {
        begin->name = 0;
        begin->flags = TP_BEGIN_TEXT;
        begin->text_bytes = sizeof text - 1;
        memset(begin + 1, 0, tp_round_up(sizeof text, 8));
        memcpy(begin + 1, text, sizeof text - 1);
        words += (sizeof text - 1 + 7) / 8;
    }
    begin->head = tp_record_head(TP_RECORD_BEGIN, words, key_at(maker, maker->depth++));
    maker->to_begin--;
    return at + words;
}

static bool goes_down(struct maker *maker, uint32_t random)
{
    if (maker->straight && maker->rising && maker->depth == 0) {
        maker->straight = false;
        maker->depth_max = 8;
    }
    if (maker->depth == maker->depth_max)
        maker->rising = true;
    if (!maker->to_begin || maker->depth == maker->depth_max)
        return false;
    return maker->depth <= maker->floor || (maker->straight ? !maker->rising : random & 1);
}

static const struct tp_block *next(void *context, uint64_t serial)
{
    (void)context;
    struct maker *maker = &makers[serial - 1];
    struct tp_block *block = (struct tp_block *)maker->block;
    uint64_t *first = (uint64_t *)(block + 1), *at = first, *end = maker->block + BLOCK_BYTES / 8 - TP_RECORD_MAX_WORDS;
    while (at < end && (maker->to_begin || maker->depth)) {
        uint32_t random = any(maker);
        maker->time += 20 + random / 16 % 64;
        if (maker->to_begin && random % 4096 == 7)
            at = put_loss(maker, at);
        else if (goes_down(maker, random / 1024))
            at = put_begin(maker, at, random);
        else {
            at[0] = tp_record_head(TP_RECORD_END, TP_END_WORDS, key_at(maker, --maker->depth));
            at[1] = maker->time;
            at += TP_END_WORDS;
        }
    }
    *block = (struct tp_block){.magic = TP_BLOCK_MAGIC,
                               .bytes = (uint32_t)((at - first) * 8),
                               .thread = {.serial = serial, .logical_id = serial, .os_id = 1000 + (uint32_t)serial}};
    return at > first ? block : NULL;
}

static void start_makers(uint64_t ranges)
{
    for (uint64_t i = 0; i < MAKERS; i++) {
        makers[i] = (struct maker){.serial = i + 1,
                                   .to_begin = ranges / MAKERS + (i < ranges % MAKERS),
                                   .depth_max = i == 1 ? DEEP : 6 + i,
                                   .floor = i == 0,
                                   .straight = i == 1};
    }
}

static size_t threads(void *context, uint64_t *ret_threads, size_t capacity)
{
    (void)context;
    for (size_t i = 0; i < MAKERS && i < capacity; i++)
        ret_threads[i] = i + 1;
    return MAKERS;
}

static const char *name(void *context, uint32_t id, size_t *ret_bytes)
{
    static const char text[] = "aten::something_of_medium_length";
    (void)context;
    *ret_bytes = sizeof text - 1 - id % 16;
    return text;
}

static uint64_t nanoseconds(void *context, uint64_t ticks)
{
    (void)context;
    return UINT64_C(1700000000000000000) + (uint64_t)((unsigned __int128)ticks * 7036874417766 >> 44);
}

struct seen {
    uint64_t events, index_sum, unsorted, deepest, longest_ns;
};

static int segment(void *context, const struct tp_event *events, size_t count)
{
    struct seen *seen = context;
    for (size_t i = 0; i < count; i++) {
        uint64_t duration = events[i].end_ns - events[i].start_ns;
        seen->index_sum += events[i].index;
        seen->unsorted += i && events[i - 1].index >= events[i].index;
        seen->deepest = events[i].depth > seen->deepest ? events[i].depth : seen->deepest;
        seen->longest_ns = duration > seen->longest_ns ? duration : seen->longest_ns;
    }
    seen->events += count;
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static long peak_kib(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;
    while (status && kib < 0 && fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (status)
        fclose(status);
    return kib;
}

static int failures;

static void expect(bool holds, const char *what)
{
    if (holds)
        return;
    failures++;
    printf("model_scale: not so: %s\n", what);
}

int main(int argc, char **argv)
{
    uint64_t ranges = argc > 1 ? strtoull(argv[1], NULL, 10) : UINT64_C(100000000);
    start_makers(ranges);
    uint64_t began = now_ns();
    for (uint64_t serial = 1; serial <= MAKERS; serial++)
        while (next(NULL, serial))
            continue;
    uint64_t making_ns = now_ns() - began;

    start_makers(ranges);
    struct seen seen = {0};
    struct tp_model_options options = {
        .source = {.threads = threads, .next = next, .name = name, .nanoseconds = nanoseconds},
        .window = {0, UINT64_MAX / 4},
        .memory_limit = 48 << 20,
        .segment = segment,
        .context = &seen,
    };
    struct tp_model_counts counts;
    began = now_ns();
    int failed = tp_model_run(&options, &counts);
    uint64_t run_ns = now_ns() - began;

    uint64_t lost = 0, longest = 0;
    for (size_t i = 0; i < MAKERS; i++)
        lost += makers[i].lost;
    longest = makers[0].time * 4 / 10; /* a tick is 0.4 ns */
    long peak = peak_kib();
    printf("%" PRIu64 " ranges: %" PRIu64 " kept, %" PRIu64 " lost, %" PRIu64 " segments; "
           "%.1f ns a range (and %.1f to make it); peak %ld KiB\n",
           ranges, counts.kept, counts.lost, counts.segments, (double)(run_ns - making_ns) / (double)ranges,
           (double)making_ns / (double)ranges, peak);
    expect(failed == 0, "the run ended without an error");
    expect(counts.kept + counts.lost == ranges, "kept and lost are all that was made");
    expect(counts.lost == lost, "lost is what was lost");
    expect(counts.kept == seen.events, "what is counted as kept was delivered");
    uint64_t half = counts.kept / 2;
    expect(seen.index_sum == (counts.kept % 2 ? counts.kept * half : half * (counts.kept - 1)), "each index came once");
    expect(seen.unsorted == 0, "segments are in order");
    expect(counts.unfinished == 0 && counts.damaged == 0, "all ranges ended, all blocks were read");
    expect(ranges < 1000000 || seen.deepest == DEEP - 1, "the recursion was as deep as it was made");
    expect(ranges < 1000000 || seen.longest_ns > longest - longest / 100, "one range was open all the time");
    expect(peak > 0 && peak <= PEAK_KIB_MAX, "the peak is within 64 MiB");
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
