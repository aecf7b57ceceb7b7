#include "step_times.h"

#include <string.h>

#define CHUNK 4096
#define LENGTH_MAX ((UINT64_C(1) << 56) - 1)
/* The histogram: each octave of lengths in 32 equal parts. */
#define PARTS_LOG 5
#define PARTS (1u << PARTS_LOG)
#define BUCKETS ((64 - PARTS_LOG + 1) * PARTS)

struct step {
    uint64_t begin;
    uint64_t length_and_kind; /* kind in the upper 8 bits */
};

/* The numbers of a chunk's steps follow each other. */
struct tp_step_chunk {
    struct tp_step_chunk *next;
    uint64_t first_number;
    size_t count;
    struct step steps[CHUNK];
};

void tp_step_times_init(struct tp_step_times *times, struct tp_arena *arena, uint64_t max)
{
    *times = (struct tp_step_times){.arena = arena, .max = max ? max : TP_STEP_TIMES_MAX};
}

static size_t bucket_of(uint64_t length)
{
    if (length < PARTS)
        return length;
    unsigned octave = 63u - (unsigned)__builtin_clzll(length);
    return (octave - PARTS_LOG + 1) * PARTS + (length >> (octave - PARTS_LOG) & (PARTS - 1));
}

/* The middle of the bucket. */
static uint64_t bucket_length(size_t bucket)
{
    if (bucket < PARTS)
        return bucket;
    unsigned shift = (unsigned)(bucket / PARTS) - 1;
    return ((uint64_t)(PARTS + bucket % PARTS) << shift) + (UINT64_C(1) << shift) / 2;
}

static bool keep(struct tp_step_times *times, uint64_t number, const struct step *step)
{
    if (times->kept >= times->max)
        return false;
    struct tp_step_chunk *chunk = times->last;
    if (!chunk || chunk->count == CHUNK || number != chunk->first_number + chunk->count) {
        chunk = tp_arena_alloc(times->arena, sizeof *chunk);
        if (!chunk) {
            times->max = times->kept; /* what is kept are the first steps, without holes */
            return false;
        }
        chunk->first_number = number;
        if (times->last)
            times->last->next = chunk;
        else
            times->chunks = chunk;
        times->last = chunk;
    }
    chunk->steps[chunk->count++] = *step;
    times->kept++;
    return true;
}

void tp_step_times_add(struct tp_step_times *times, uint64_t number, uint64_t begin, uint64_t end,
                       enum tp_step_kind kind)
{
    if ((unsigned)kind >= TP_STEP_KIND_COUNT)
        return;
    uint64_t length = end > begin ? end - begin : 0;
    if (length > LENGTH_MAX)
        length = LENGTH_MAX;
    struct tp_step_sums *sums = &times->kinds[kind];
    if (sums->count == 0) {
        sums->first = sums->least = length;
        sums->histogram = tp_arena_alloc(times->arena, BUCKETS * sizeof *sums->histogram);
    }
    times->count++;
    sums->count++;
    sums->total += length;
    if (sums->least > length)
        sums->least = length;
    if (sums->most < length)
        sums->most = length;
    if (sums->histogram)
        sums->histogram[bucket_of(length)]++;
    if (keep(times, number, &(struct step){begin, length | (uint64_t)kind << 56}))
        sums->kept++;
}

bool tp_step_times_next(const struct tp_step_times *times, struct tp_step_cursor *cursor, struct tp_step_time *ret)
{
    if (!cursor->begun) {
        cursor->begun = true;
        cursor->chunk = times->chunks;
    }
    if (cursor->chunk && cursor->at == cursor->chunk->count) {
        cursor->chunk = cursor->chunk->next;
        cursor->at = 0;
    }
    if (!cursor->chunk)
        return false;
    const struct step *step = &cursor->chunk->steps[cursor->at];
    *ret = (struct tp_step_time){
        .number = cursor->chunk->first_number + cursor->at,
        .begin = step->begin,
        .end = step->begin + (step->length_and_kind & LENGTH_MAX),
        .kind = (enum tp_step_kind)(step->length_and_kind >> 56),
    };
    cursor->at++;
    return true;
}

/* Statistics. */

/* The k-th smallest (from 0); values before it are not larger, values behind it not smaller afterwards. The C library's
 * qsort may use the heap. */
static uint64_t select_kth(uint64_t *values, size_t count, size_t k)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t a = values[low], b = values[middle], c = values[high];
        uint64_t pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        size_t i = low, j = high;
        for (;;) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i >= j)
                break;
            uint64_t value = values[i];
            values[i++] = values[j];
            values[j--] = value;
        }
        /* values[low..j] <= pivot <= values[j+1..high] */
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    return values[k];
}

static uint64_t histogram_kth(const struct tp_step_sums *sums, uint64_t k)
{
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
        seen += sums->histogram[bucket];
        if (seen > k) {
            uint64_t length = bucket_length(bucket);
            return length < sums->least ? sums->least : length > sums->most ? sums->most : length;
        }
    }
    return sums->most;
}

static uint64_t *lengths_of(const struct tp_step_times *times, enum tp_step_kind kind, struct tp_arena *scratch)
{
    uint64_t *lengths = tp_arena_alloc(scratch, times->kinds[kind].kept * sizeof *lengths);
    size_t count = 0;
    for (const struct tp_step_chunk *chunk = lengths ? times->chunks : NULL; chunk; chunk = chunk->next)
        for (size_t i = 0; i < chunk->count; i++)
            if (chunk->steps[i].length_and_kind >> 56 == (uint64_t)kind)
                lengths[count++] = chunk->steps[i].length_and_kind & LENGTH_MAX;
    return lengths;
}

static uint64_t to_ns(const struct tp_clock_map *map, uint64_t ticks)
{
    return map ? (uint64_t)((unsigned __int128)ticks * map->ns_per_tick >> TP_CLOCK_SHIFT) : ticks;
}

bool tp_step_times_statistics(const struct tp_step_times *times, enum tp_step_kind kind, const struct tp_clock_map *map,
                              struct tp_arena *scratch, struct tp_step_statistics *ret)
{
    const struct tp_step_sums *sums = &times->kinds[kind];
    if (sums->count == 0)
        return false;
    uint64_t count = sums->count, median = 0, p95 = 0;
    uint64_t lower = (count - 1) / 2, upper = count / 2, rank95 = count - 1 - count / 20; /* ceil(0.95 count) - 1 */
    uint64_t *lengths = sums->kept == count ? lengths_of(times, kind, scratch) : NULL;
    if (lengths) {
        p95 = select_kth(lengths, count, rank95);
        uint64_t a = select_kth(lengths, count, lower), b = select_kth(lengths, count, upper);
        median = a + (b - a) / 2;
    } else if (sums->histogram) {
        p95 = histogram_kth(sums, rank95);
        median = histogram_kth(sums, upper);
    }
    *ret = (struct tp_step_statistics){
        .count = count,
        .first_ns = to_ns(map, sums->first),
        .mean_ns = to_ns(map, sums->total / count),
        .median_ns = to_ns(map, median),
        .p95_ns = to_ns(map, p95),
        .min_ns = to_ns(map, sums->least),
        .max_ns = to_ns(map, sums->most),
        .estimated = !lengths && sums->histogram,
        .unknown = !lengths && !sums->histogram,
    };
    return true;
}

const char *tp_step_kind_name(enum tp_step_kind kind)
{
    static const char *const names[TP_STEP_KIND_COUNT] = {
        [TP_STEP_KIND_TRAINING] = "training",
        [TP_STEP_KIND_BATCH] = "batch",
        [TP_STEP_KIND_TIME] = "time",
        [TP_STEP_KIND_WHOLE] = "whole",
    };
    return (unsigned)kind < TP_STEP_KIND_COUNT ? names[kind] : "unknown";
}
