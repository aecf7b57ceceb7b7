/*
 * model_scale.c: many ranges through the streamed model in bounded memory. They are made on the fly: four threads, on each
 * one range open from the first to the last, inside it recursion 2000 deep now and then, and a loss record among a
 * thousand ranges.
 *
 * usage: model_scale [ranges]     prints ns per range and the peak of memory; exit 1 if one is missing or memory is not bounded
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../../output/model.h"

#define THREADS 4
#define BLOCK_BYTES (64 * 1024)
#define DEEP 2000
#define MAX_RESIDENT_MB 64

struct maker {
    struct tp_block *block;
    uint64_t left;         /* ranges still to begin */
    uint64_t time, open;   /* the stack holds the keys 1..open */
    uint64_t until_loss;
    bool falling;          /* the recursion returns */
    bool begun;
};

static struct maker makers[THREADS];
static uint64_t lost_made, delivered;

static size_t threads(void *context, uint64_t *ret_threads, size_t capacity)
{
    (void)context;
    for (uint64_t i = 0; i < THREADS && i < capacity; i++)
        ret_threads[i] = i + 1;
    return THREADS;
}

static uint64_t *begin(struct maker *maker, uint64_t *at)
{
    *(struct tp_begin *)at = (struct tp_begin){.head = tp_record_head(TP_RECORD_BEGIN, TP_BEGIN_WORDS, ++maker->open),
                                               .time = maker->time,
                                               .name = 1,
                                               .sequence = -1};
    maker->left--;
    return at + TP_BEGIN_WORDS;
}

static uint64_t *end(struct maker *maker, uint64_t *at)
{
    at[0] = tp_record_head(TP_RECORD_END, TP_END_WORDS, maker->open--);
    at[1] = maker->time;
    return at + TP_END_WORDS;
}

static uint64_t *loss(struct maker *maker, uint64_t *at)
{
    *(struct tp_loss *)at = (struct tp_loss){
        .head = tp_record_head(TP_RECORD_LOSS, TP_LOSS_WORDS, 0), .time = maker->time, .count = 3};
    lost_made += 3;
    return at + TP_LOSS_WORDS;
}

static uint64_t *record(struct maker *maker, uint64_t *at)
{
    maker->time += 7;
    if (!maker->begun) {
        maker->begun = true;
        return begin(maker, at);
    }
    if (maker->left == 0)
        return end(maker, at);
    if (--maker->until_loss == 0) {
        maker->until_loss = 1000;
        return loss(maker, at);
    }
    uint64_t most = maker->left % 100000 < 5000 ? DEEP : 6;
    if (maker->open <= 1)
        maker->falling = false;
    if (maker->open >= most)
        maker->falling = true;
    return maker->falling ? end(maker, at) : begin(maker, at);
}

static const struct tp_block *next(void *context, uint64_t serial)
{
    (void)context;
    struct maker *maker = &makers[serial - 1];
    if (maker->begun && maker->left == 0 && maker->open == 0)
        return NULL;
    struct tp_block *block = maker->block;
    uint64_t *words = (uint64_t *)(block + 1), *at = words;
    while (at + TP_BEGIN_WORDS <= words + BLOCK_BYTES / 8 && !(maker->begun && maker->left == 0 && maker->open == 0))
        at = record(maker, at);
    *block = (struct tp_block){.magic = TP_BLOCK_MAGIC,
                               .bytes = (uint32_t)((char *)at - (char *)words),
                               .first_time = words[1],
                               .last_time = maker->time,
                               .thread = {.serial = serial, .os_id = (uint32_t)serial}};
    return block;
}

static const char *name(void *context, uint32_t id, size_t *ret_bytes)
{
    (void)context, (void)id;
    *ret_bytes = 9;
    return "aten::add";
}

static uint64_t nanoseconds(void *context, uint64_t ticks)
{
    (void)context;
    return ticks;
}

static int count(void *context, const struct tp_event *events, size_t number)
{
    (void)context, (void)events;
    delivered += number;
    return 0;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    uint64_t ranges = argc > 1 ? strtoull(argv[1], NULL, 10) / THREADS * THREADS : 100000000;
    for (size_t i = 0; i < THREADS; i++)
        makers[i] = (struct maker){
            .block = malloc(sizeof(struct tp_block) + BLOCK_BYTES), .left = ranges / THREADS, .until_loss = 1000};
    struct tp_model_options options = {.source = {NULL, threads, next, name, nanoseconds},
                                       .window = {0, UINT64_MAX / 2},
                                       .memory_limit = 32 << 20,
                                       .segment = count};
    struct tp_model_counts counts;
    double begun = seconds_now();
    int failed = tp_model_run(&options, &counts);
    double took = seconds_now() - begun;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%llu ranges in %.2f s: %.1f ns each; %llu kept, %llu lost of %llu, %llu unfinished; %ld MB resident at most\n",
           (unsigned long long)ranges, took, took * 1e9 / (double)ranges, (unsigned long long)counts.kept,
           (unsigned long long)counts.lost, (unsigned long long)(ranges + lost_made),
           (unsigned long long)counts.unfinished, used.ru_maxrss >> 10);
    bool good = !failed && counts.kept == ranges && delivered == ranges && counts.lost == lost_made &&
                counts.unfinished == 0 && counts.damaged == 0 && used.ru_maxrss >> 10 < MAX_RESIDENT_MB;
    if (!good)
        printf("not as it must be\n");
    return !good;
}
