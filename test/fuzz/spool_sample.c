#include "spool_sample.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "must.h"

static size_t write_range(uint64_t *words, uint32_t name, uint64_t key, uint64_t begin, uint64_t end, int64_t sequence)
{
    struct tp_begin record = {.head = tp_record_head(TP_RECORD_BEGIN, TP_BEGIN_WORDS, key), .time = begin, .name = name,
                              .sequence = sequence};
    memcpy(words, &record, sizeof record);
    words[TP_BEGIN_WORDS] = tp_record_head(TP_RECORD_END, TP_END_WORDS, key);
    words[TP_BEGIN_WORDS + 1] = end;
    return TP_BEGIN_WORDS + TP_END_WORDS;
}

/* An operator with its name in its record, and a loss. */
static size_t write_others(uint64_t *words, uint64_t time)
{
    struct tp_begin begin = {.head = tp_record_head(TP_RECORD_BEGIN, TP_BEGIN_WORDS + 2, 900), .time = time,
                             .flags = TP_BEGIN_TEXT, .text_bytes = 10, .sequence = -1};
    struct tp_loss loss = {.head = tp_record_head(TP_RECORD_LOSS, TP_LOSS_WORDS, 0), .time = time + 1, .count = 3,
                           .last_time = time + 2};
    memset(words, 0, (TP_BEGIN_WORDS + 2) * sizeof *words);
    memcpy(words, &begin, sizeof begin);
    memcpy(words + TP_BEGIN_WORDS, "long_range", 10);
    memcpy(words + TP_BEGIN_WORDS + 2, &loss, sizeof loss);
    return TP_BEGIN_WORDS + 2 + TP_LOSS_WORDS;
}

static size_t write_step(uint64_t *words, const uint32_t *names, uint64_t begin, bool backward)
{
    size_t at = 0;
    for (uint64_t i = 0; i < 6; i++)
        at += write_range(words + at, names[i % 4], 100 + i, begin + i * 1000, begin + i * 1000 + 900,
                          backward ? (int64_t)i : -1);
    return at;
}

static void append(struct tp_spool *spool, uint64_t thread, const uint64_t *words, size_t count, uint64_t last)
{
    struct tp_block block = {.magic = TP_BLOCK_MAGIC, .bytes = (uint32_t)(count * 8), .first_time = words[1],
                             .last_time = last, .begins = 6,
                             .thread = {.serial = thread, .logical_id = thread, .os_id = 4000, .name = "python"}};
    must(tp_log_append(spool, &block, words) == 0);
}

static void fill_chunk(struct tp_spool *spool, uint64_t thread, uint64_t sequence, const uint64_t *words, size_t count)
{
    struct tp_chunk *chunk = tp_pool_take(&spool->pool);
    must(chunk);
    chunk->thread = (struct tp_thread_info){.serial = thread, .logical_id = thread, .os_id = 4000, .name = "python"};
    chunk->taken = 0;
    atomic_store(&chunk->sequence, sequence);
    memcpy(chunk->data, words, count * 8);
    atomic_store(&chunk->used, (uint32_t)(count * 8));
}

static void write_process(struct tp_spool_process *process, const char *files)
{
    process->identity = (struct tp_identity){.host = "node1", .process = "python", .pid = 4000, .world_size = 1};
    process->attached = (struct tp_clock_pair){.ticks = 1000, .realtime_ns = 1000000000};
    process->saw_backward = true;
    strcpy(process->pytorch, "2.13.0");
    strcpy(process->observed, "interpose");
    strcpy(process->command, "python train.py");
    snprintf(process->folder, sizeof process->folder, "%s", files);
}

static void write_run(struct tp_spool *spool, const char *files)
{
    static const char *const texts[] = {"aten::add", "aten::mm", "MmBackward0", "ProfilerStep#7"};
    uint64_t words[200];
    uint32_t names[4];
    for (unsigned i = 0; i < 4; i++)
        names[i] = tp_intern(spool->names, texts[i], strlen(texts[i]));
    write_process(&spool->state->process, files);
    tp_cycles_use(spool->state->cycles, TP_SPOOL_CYCLES);
    struct tp_cycle *whole = tp_cycle_open(10000);
    whole->first_step = 1;
    tp_cycle_close(whole, 30000, true);
    tp_cycle_open(40000);
    for (uint64_t step = 0; step < 4; step++) {
        append(spool, 1, words, write_step(words, names, 10000 * (step + 1), true), 10000 * (step + 1) + 5900);
        append(spool, 2, words, write_step(words, names, 10000 * (step + 1) + 50, false), 10000 * (step + 1) + 5950);
        tp_spool_add_step(spool, &(struct tp_spool_step){.begin = 10000 * (step + 1), .end = 10000 * (step + 2),
                                                         .number = step, .thread = 1, .os_thread = 4000});
    }
    fill_chunk(spool, 1, 1, words, write_step(words, names, 60000, true));
    fill_chunk(spool, 1, 0, words, write_step(words, names, 50000, false));
    fill_chunk(spool, 3, 0, words, write_others(words, 51000));
    spool->state->header.last = (struct tp_clock_pair){.ticks = 70000, .realtime_ns = 1000100000};
    tp_spool_tend(spool);
}

void spool_sample_make(const char *folder, const char *files, char *name, size_t size)
{
    int told[2], status;
    must(pipe(told) == 0);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        static struct tp_spool spool;
        struct tp_error note = {0}, error = {0};
        struct tp_spool_options options = {.folder = folder, .budget = 8 << 20};
        must(tp_spool_open(&spool, &options, &note, &error) == 0 && spool.kind == TP_SPOOL_SHARED);
        write_run(&spool, files);
        const char *base = strrchr(spool.path, '/') + 1;
        must(write(told[1], base, strlen(base) + 1) > 0);
        _exit(0); /* with its spool left, as one that is killed */
    }
    must(read(told[0], name, size) > 0);
    must(waitpid(child, &status, 0) == child && status == 0);
    close(told[0]);
    close(told[1]);
}
