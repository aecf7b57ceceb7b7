#include "delivery.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "../agent/descriptors.h"
#include "../agent/log.h"
#include "averages.h"
#include "cycle_source.h"
#include "events.h"
#include "folder.h"
#include "lineage.h"
#include "log_report.h"
#include "model.h"
#include "names.h"
#include "sink.h"
#include "summary.h"
#include "table.h"
#include "text.h"

#define MAX_CYCLES 1024 /* told one by one in the summary; later ones are summed */
#define WRITERS 4

/* One row a format, and the outputs of TPROF_ON_TRACE_READY that ask for it. */
static const struct {
    const struct tp_writer *writer;
    uint32_t outputs;
} writers[WRITERS] = {
    {&tp_chrome_writer, 1u << TP_OUTPUT_TENSORBOARD | 1u << TP_OUTPUT_CHROME},
    {&tp_table_writer, 1u << TP_OUTPUT_TABLE},
    {&tp_execution_trace_writer, 1u << TP_OUTPUT_EXECUTION_TRACE},
    {&tp_events_writer, 1u << TP_OUTPUT_EVENTS},
};

/* Outputs that tell of one cycle, unless events are kept. */
#define CLEARED (1u << TP_OUTPUT_TABLE | 1u << TP_OUTPUT_EVENTS)

/* The run, over all cycles. */
struct tp_delivery {
    struct tp_delivery_process process;
    struct tp_arena arena, step_arena;
    struct tp_step_times steps;
    struct tp_averages *averages;
    bool averages_missed; /* there was no memory for those of a cycle */
    struct tp_report_cycle *cycles;
    size_t cycle_count;
    uint64_t cycles_left_out, left_out_lost_before;
    struct tp_model_counts left_out;
    struct tp_delivery_totals totals;
    uint64_t told[4]; /* a bit an errno: causes of failure that a line was said about */
    size_t held_most;
    bool opened; /* a file of a process that died */
    char events_path[TP_FOLDER_PATH]; /* of the newest events.json; empty: none */
};

struct folder {
    int descriptor;
    struct tp_file_id id;
};

/* One output while its cycle is written. */
struct output {
    const struct tp_writer *writer;
    uint32_t bit; /* in cycle->written */
    struct tp_sink *sink;
    struct folder folder; /* open as long as the sink */
    void *state;
    struct tp_cycle_report report; /* the cycle's, with this file's name */
    struct tp_report_file *file;
    int failed;
};

struct writing {
    const struct tp_delivery *run;
    uint64_t deadline_ns; /* of the monotonic clock; UINT64_MAX: none */
    struct output outputs[WRITERS];
    size_t count;
    struct tp_averages *averages;
};

struct tp_delivery *tp_delivery_new(const struct tp_delivery_process *process)
{
    struct tp_arena arena;
    tp_arena_init(&arena, process->settings->buffer_bytes / 16);
    struct tp_delivery *run = tp_arena_alloc(&arena, sizeof *run);
    if (!run)
        return NULL;
    *run = (struct tp_delivery){.process = *process, .arena = arena};
    tp_arena_init(&run->step_arena, process->settings->buffer_bytes / 16);
    tp_step_times_init(&run->steps, &run->step_arena, TP_STEP_TIMES_MAX);
    run->averages = tp_averages_new(&run->arena, TP_AVERAGES_MAX_ROWS);
    run->cycles = tp_arena_alloc(&run->arena, MAX_CYCLES * sizeof *run->cycles);
    if (run->cycles)
        return run;
    tp_delivery_free(run);
    return NULL;
}

void tp_delivery_free(struct tp_delivery *run)
{
    struct tp_arena arena = run->arena; /* which holds run itself */
    tp_arena_free(&run->step_arena);
    tp_arena_free(&arena);
}

void tp_delivery_step(struct tp_delivery *run, uint64_t number, uint64_t begin, uint64_t end, enum tp_step_kind kind)
{
    tp_step_times_add(&run->steps, number, begin, end, kind);
}

bool tp_delivery_is_wanted(const struct tp_settings *settings, bool is_child, uint64_t edges, bool saw_backward)
{
    return !is_child || settings->children == TP_CHILDREN_ALL || edges > 0 || saw_backward;
}

/* One file: {worker}.{time}.{suffix}. */
struct place {
    const char *suffix;
    bool gzip;
    uint64_t time_ns; /* of a process that died */
    uint64_t cycle, step;
};

/* Opens the file, under a time that no file has yet. NULL with error and errno set; or, without, when a try before
 * wrote it. */
static struct tp_sink *open_file(struct tp_delivery *run, const struct place *place, char *path,
                                 struct folder *ret_folder, struct tp_arena *arena, struct tp_error *error)
{
    const struct tp_settings *settings = run->process.settings;
    bool died = run->process.died;
    struct tp_name_values values = {.identity = run->process.identity,
                                    .time_ns = died ? place->time_ns : tp_names_time(tp_clock_pair_now().realtime_ns),
                                    .step = place->step,
                                    .cycle = place->cycle};
    int folder = tp_folder_open(run->process.folder, &values, path, error);
    if (folder < 0) {
        errno = -folder;
        return NULL;
    }
    struct tp_file_id id = tp_file_id(folder);
    char worker[256], name[256];
    tp_names_worker(settings->worker_name, &values, worker, sizeof worker);
    tp_names_file(worker, values.time_ns, place->suffix, place->gzip, name, sizeof name);
    size_t length = strlen(path);
    snprintf(path + length, TP_FOLDER_PATH - length, "/%s", name);
    struct tp_sink *sink = NULL;
    int failed = 0;
    if (died) {
        /* Where its process id has come again, and is ours, our own files look like those that it left. */
        bool may_be_ours = run->opened && run->process.identity->pid == (uint32_t)getpid();
        tp_folder_remove_temporaries(folder, name, may_be_ours ? NULL : worker, run->process.identity->pid,
                                     run->process.died_at_ns);
        run->opened = true;
    }
    if (!died || faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
        struct tp_sink_options options = {
            .folder = folder, .name = name, .gzip_level = place->gzip ? settings->gzip_level : 0};
        sink = tp_sink_open(&options, arena, error);
        failed = sink ? 0 : errno;
    }
    if (sink)
        *ret_folder = (struct folder){folder, id};
    else
        tp_file_close(folder, &id);
    errno = failed;
    return sink;
}

static bool is_stopped(const struct tp_delivery *run)
{
    return run->process.stop && atomic_load(run->process.stop);
}

/* One line for each cause: a full disk fails every file of every cycle. */
static bool is_news(struct tp_delivery *run, int status)
{
    unsigned number = status < 0 ? (unsigned)-status % 256 : 0;
    uint64_t bit = UINT64_C(1) << number % 64;
    bool news = !(run->told[number / 64] & bit);
    run->told[number / 64] |= bit;
    return news;
}

static void fail(struct tp_delivery *run, struct tp_arena *keep, struct tp_report_file *file, int status,
                 const struct tp_error *error)
{
    char line[800];
    const char *slash = strrchr(file->path, '/');
    if (slash && error->where[0] && strncmp(slash + 1, error->where, strlen(error->where)) == 0)
        snprintf(line, sizeof line, "%s", error->what); /* the path tells it already */
    else
        tp_error_line(error, line, sizeof line);
    if (!is_stopped(run) && is_news(run, status))
        tp_log(TP_LOG_WARN, "%s was not written: %s (files that fail for the same reason are named at the end)",
               file->path, line);
    file->failure = tp_arena_copy(keep, line, strlen(line));
    run->totals.failures++;
}

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t deadline(const struct tp_settings *settings)
{
    double seconds = settings->post_processing_timeout_s;
    return seconds < 0 || seconds > 1e9 ? UINT64_MAX : monotonic_ns() + (uint64_t)(seconds * 1e9);
}

/* Why no more of the cycle is to be written; 0: it is. */
static int halted(const struct tp_delivery *run, uint64_t deadline_ns)
{
    if (is_stopped(run))
        return -ECANCELED;
    return deadline_ns != UINT64_MAX && monotonic_ns() >= deadline_ns ? -ETIMEDOUT : 0;
}

static int segment(void *context, const struct tp_event *events, size_t count)
{
    struct writing *writing = context;
    int why = halted(writing->run, writing->deadline_ns);
    if (why)
        return why;
    if (writing->averages && tp_averages_segment(writing->averages, events, count) < 0)
        writing->averages = NULL; /* no table, not one of a part */
    for (size_t i = 0; i < writing->count; i++) {
        struct output *output = &writing->outputs[i];
        if (!output->failed && output->writer->segment)
            output->failed = output->writer->segment(output->state, events, count);
    }
    return 0;
}

static void random_trace_id(char *text, size_t size)
{
    uint64_t words[2] = {tp_clock_now(), (uint64_t)getpid()};
    if (getrandom(words, sizeof words, GRND_NONBLOCK) != sizeof words)
        words[0] ^= tp_clock_pair_now().realtime_ns;
    snprintf(text, size, "%016llX%016llX", (unsigned long long)words[0], (unsigned long long)words[1]);
}

/* The steps that overlap the window; the last one may go on after it. */
static struct tp_step_span *spans_of(const struct tp_cycle *cycle, const struct tp_cycle_source *source, uint64_t begin,
                                     uint32_t pid, struct tp_arena *arena, size_t *ret_count)
{
    struct tp_step_span *spans = tp_arena_alloc(arena, (cycle->edge_count + 1) * sizeof *spans);
    size_t count = 0;
    uint64_t start = cycle->begin, number = cycle->first_step;
    const struct tp_thread_info *thread = tp_cycle_source_os_thread(source, pid);
    for (size_t i = 0; spans && i <= cycle->edge_count; i++) {
        bool last = i == cycle->edge_count;
        uint64_t end = last ? cycle->end : cycle->edges[i].time;
        if (!last) {
            const struct tp_thread_info *maker = tp_cycle_source_thread(source, cycle->edges[i].thread);
            thread = maker ? maker : thread;
            number = cycle->edges[i].number;
        }
        if (end > start && end > begin && thread)
            spans[count++] = (struct tp_step_span){.number = number,
                                                   .start_ns = tp_clock_ns(&source->map, start),
                                                   .end_ns = tp_clock_ns(&source->map, end),
                                                   .thread = *thread,
                                                   .kind = last ? TP_STEP_KIND_WHOLE : cycle->edges[i].kind};
        start = end;
        number++;
    }
    *ret_count = count;
    return spans;
}

/* A log that was too small has let the oldest blocks go: the window begins with the first step that is whole, if anything was
 * recorded in such a one; else with the oldest record. */
static uint64_t first_whole(const struct tp_cycle *cycle, struct tp_cycle_source *source)
{
    if (cycle->dropped_until < cycle->begin)
        return cycle->begin;
    for (size_t i = 0; i + 1 < cycle->edge_count; i++)
        if (cycle->edges[i].time > cycle->dropped_until &&
            tp_cycle_source_begins(source, cycle, cycle->edges[i].time, cycle->edges[cycle->edge_count - 1].time) > 0)
            return cycle->edges[i].time;
    return cycle->dropped_until + 1;
}

static const char *partial_why(const struct tp_delivery_process *process, const struct tp_cycle *cycle)
{
    if (!cycle->partial)
        return NULL;
    return process->died ? "the process died; what its threads had stored by then is here"
                         : "the program ended before the schedule did";
}

struct tracing {
    const struct tp_delivery *run;
    struct tp_lineage *lineage;
    uint64_t deadline_ns;
};

static int trace_segment(void *context, const struct tp_event *events, size_t count)
{
    struct tracing *tracing = context;
    int why = halted(tracing->run, tracing->deadline_ns);
    return why ? why : tp_lineage_segment(tracing->lineage, events, count);
}

/* A run of its own over the cycle: what events of it are is known only when all are. NULL: no memory. */
static struct tp_lineage *find_lineage(const struct tp_delivery *run, const struct tp_cycle *cycle, uint64_t begin,
                                       uint64_t deadline_ns, const struct tp_cycle_report *report, struct tp_arena *arena)
{
    struct tp_cycle_source source;
    struct tracing tracing = {run, tp_lineage_new(report, arena), deadline_ns};
    if (!tracing.lineage ||
        tp_cycle_source_open(&source, run->process.log, run->process.names, cycle, arena) != 0)
        return NULL;
    struct tp_model_options options = {.source = tp_cycle_source_as_source(&source),
                                       .window = {begin, cycle->end},
                                       .memory_limit = run->process.settings->buffer_bytes / 8,
                                       .segment = trace_segment,
                                       .context = &tracing};
    struct tp_model_counts counts;
    tp_model_run(&options, &counts); /* where it stops, the run that writes does too */
    return tp_lineage_end(tracing.lineage) == 0 ? tracing.lineage : NULL;
}

/* The cycle's go into those of the run. What the cycle's table is of; NULL: there was no memory for it. */
static const struct tp_averages *sum_up(struct tp_delivery *run, struct tp_averages *of_cycle)
{
    if (of_cycle && tp_averages_end(of_cycle) < 0)
        of_cycle = NULL;
    if (!of_cycle || !run->averages || tp_averages_merge(run->averages, of_cycle) < 0)
        run->averages_missed = true;
    if (!run->process.settings->acc_events)
        return of_cycle;
    return run->averages_missed ? NULL : run->averages;
}

static void write_cycle(struct tp_delivery *run, struct tp_cycle *cycle, struct tp_arena *arena,
                        struct tp_report_cycle *told)
{
    const struct tp_delivery_process *process = &run->process;
    const struct tp_settings *settings = process->settings;
    uint64_t deadline_ns = deadline(settings);
    struct tp_cycle_source source;
    if (tp_cycle_source_open(&source, process->log, process->names, cycle, arena) != 0) {
        run->totals.failures++;
        tp_log(TP_LOG_WARN, "no memory to write cycle %llu", (unsigned long long)cycle->number);
        return;
    }
    uint64_t begin = first_whole(cycle, &source);
    uint64_t lost = cycle->dropped;
    if (begin > cycle->begin)
        lost += tp_cycle_source_begins(&source, cycle, cycle->begin, begin);
    char trace_id[256], path[TP_FOLDER_PATH];
    random_trace_id(trace_id, sizeof trace_id);
    struct tp_name_values values = {.identity = process->identity,
                                    .time_ns = tp_clock_ns(&source.map, cycle->end),
                                    .step = cycle->first_step,
                                    .cycle = cycle->number};
    if (settings->trace_id)
        tp_names_expand(settings->trace_id, &values, trace_id, sizeof trace_id, NULL);
    size_t step_count;
    struct tp_step_span *spans = spans_of(cycle, &source, begin, process->identity->pid, arena, &step_count);
    struct tp_cycle_report report = {.settings = settings,
                                     .identity = process->identity,
                                     .cycle = cycle->number,
                                     .window_begin_ns = tp_clock_ns(&source.map, begin),
                                     .window_end_ns = tp_clock_ns(&source.map, cycle->end),
                                     .clock_begin = cycle->clock_begin,
                                     .clock_end = cycle->clock_end,
                                     .ticks_per_ns = tp_clock_ticks_per_ns(&source.map),
                                     .steps = spans,
                                     .step_count = step_count,
                                     .steps_by_program = cycle->steps_by_program,
                                     .partial = cycle->partial,
                                     .partial_why = partial_why(process, cycle),
                                     .lost_before = lost,
                                     .trace_id = trace_id,
                                     .dropped_end_ns = begin > cycle->begin ? tp_clock_ns(&source.map, begin) : 0};
    if (settings->acc_events && run->events_path[0])
        report.earlier_events = run->events_path;
    if (settings->outputs & 1u << TP_OUTPUT_EVENTS)
        report.lineage = find_lineage(run, cycle, begin, deadline_ns, &report, arena);
    struct writing writing = {.run = run, .deadline_ns = deadline_ns, .averages = tp_averages_begin(&report, arena)};
    /* What the report at the end tells one by one is kept until then, and is bounded; the rest goes with this cycle. */
    bool is_told = run->cycle_count < MAX_CYCLES;
    struct tp_report_file *files = is_told ? tp_arena_alloc(&run->arena, WRITERS * sizeof *files) : NULL;
    struct tp_arena *keep = files ? &run->arena : arena;
    if (!files)
        files = tp_arena_alloc(arena, WRITERS * sizeof *files);
    for (size_t i = 0; files && i < WRITERS; i++) {
        if (!(settings->outputs & writers[i].outputs) || cycle->written & 1u << i)
            continue;
        struct output *output = &writing.outputs[writing.count];
        struct tp_error error = {0};
        *output = (struct output){.writer = writers[i].writer, .bit = 1u << i, .file = &files[writing.count]};
        struct place place = {.suffix = output->writer->suffix,
                              .gzip = output->writer->gzip && settings->use_gzip,
                              .time_ns = report.window_end_ns,
                              .cycle = cycle->number,
                              .step = cycle->first_step};
        output->sink = open_file(run, &place, path, &output->folder, arena, &error);
        output->file->path = tp_arena_copy(keep, path, strlen(path));
        writing.count++;
        if (!output->sink) {
            output->failed = -1;
            if (error.set)
                fail(run, keep, output->file, -errno, &error);
            else
                run->totals.files++;
            continue;
        }
        output->report = report;
        output->report.trace_name = output->file->path;
        struct tp_writer_file file = {.sink = output->sink, .arena = arena};
        output->state = output->writer->begin(&output->report, &file);
        output->failed = output->state ? 0 : -ENOMEM;
    }
    struct tp_model_options options = {.source = tp_cycle_source_as_source(&source),
                                       .window = {begin, cycle->end},
                                       .memory_limit = settings->buffer_bytes / 8,
                                       .keep = arena,
                                       .segment = segment,
                                       .context = &writing};
    struct tp_model_counts counts;
    int halt = tp_model_run(&options, &counts);
    if (halt < 0 && halt != -ECANCELED) {
        uint64_t all = tp_cycle_source_begins(&source, cycle, begin, cycle->end), known = counts.kept + counts.lost;
        counts.unwritten = all > known ? all - known : 0;
        report.partial = report.is_cut = true;
        report.partial_why = halt == -ETIMEDOUT
                                 ? "post-processing timed out (TPROF_POST_PROCESSING_TIMEOUT_S); these are partial results"
                                 : "there was no memory to write all of it (TPROF_BUFFER_MB)";
        tp_log(TP_LOG_WARN, "cycle %llu is not complete: %s; %llu of %llu events are written",
               (unsigned long long)cycle->number, report.partial_why, (unsigned long long)counts.kept,
               (unsigned long long)all);
    }
    counts.lost += cycle->untold;
    report.averages = sum_up(run, writing.averages);
    for (size_t i = 0; i < writing.count; i++) {
        struct output *output = &writing.outputs[i];
        struct tp_error error = {0};
        if (!output->sink)
            continue;
        if (is_stopped(run))
            output->failed = -ECANCELED;
        output->report.partial = report.partial;
        output->report.partial_why = report.partial_why;
        output->report.is_cut = report.is_cut;
        output->report.averages = report.averages;
        if (!output->failed)
            output->failed = output->writer->end(output->state, &counts);
        if (output->failed && tp_sink_status(output->sink) == 0) {
            tp_error_set(&error, output->writer->name, NULL, "%s", strerror(output->failed < -1 ? -output->failed : ENOMEM));
            tp_sink_abandon(output->sink);
            fail(run, keep, output->file, output->failed < -1 ? output->failed : -ENOMEM, &error);
        } else if ((output->failed = tp_sink_close(output->sink, &output->file->bytes, &error)) != 0) {
            fail(run, keep, output->file, output->failed, &error);
        } else {
            run->totals.files++;
            cycle->written |= output->bit;
            if (output->writer == &tp_events_writer)
                snprintf(run->events_path, sizeof run->events_path, "%s", output->file->path);
        }
        tp_file_close(output->folder.descriptor, &output->folder.id);
    }
    run->totals.kept += counts.kept;
    *told = (struct tp_report_cycle){.number = cycle->number,
                                     .window_begin_ns = report.window_begin_ns,
                                     .window_end_ns = report.window_end_ns,
                                     .first_step = step_count ? spans[0].number : 0,
                                     .last_step = step_count ? spans[step_count - 1].number : 0,
                                     .has_steps = step_count > 0,
                                     .partial = report.partial,
                                     .partial_why = report.partial_why,
                                     .counts = counts,
                                     .lost_before = lost,
                                     .files = files,
                                     .file_count = keep == &run->arena ? writing.count : 0};
}

static void add_counts(struct tp_model_counts *sum, const struct tp_model_counts *counts)
{
    sum->kept += counts->kept;
    sum->lost += counts->lost;
    sum->unwritten += counts->unwritten;
    sum->unfinished += counts->unfinished;
    sum->names_cut += counts->names_cut;
    sum->inputs_cut += counts->inputs_cut;
    sum->damaged += counts->damaged;
    sum->segments += counts->segments;
}

/* An eighth of the budget; a compressor and the table of flows need their minimum also where that is less. */
static size_t writing_limit(const struct tp_delivery *run)
{
    size_t share = run->process.settings->buffer_bytes / 8;
    return share < (12u << 20) ? 12u << 20 : share;
}

/* As torch, once, when a second cycle begins to take the place of the first. */
static void tell_of_cleared_events(const struct tp_delivery *run)
{
    const struct tp_settings *settings = run->process.settings;
    if (run->cycle_count == 1 && settings->outputs & CLEARED && !settings->acc_events && !run->process.died)
        tp_log(TP_LOG_WARN, "events are cleared at the end of each cycle: files tell of their own cycle alone, the "
                            "table at the end of all. To keep events across cycles, set TPROF_ACC_EVENTS=1");
}

void tp_delivery_cycle(struct tp_delivery *run, struct tp_cycle *cycle, size_t held)
{
    tell_of_cleared_events(run);
    run->held_most = held > run->held_most ? held : run->held_most;
    struct tp_arena arena;
    tp_arena_init(&arena, writing_limit(run));
    struct tp_report_cycle told = {0};
    write_cycle(run, cycle, &arena, &told);
    tp_arena_free(&arena);
    if (run->cycle_count < MAX_CYCLES) {
        run->cycles[run->cycle_count++] = told;
    } else {
        run->cycles_left_out++;
        run->left_out_lost_before += told.lost_before;
        add_counts(&run->left_out, &told.counts);
    }
}

static size_t settings_given(const struct tp_settings *settings, struct tp_report_setting given[TP_SETTINGS_COUNT])
{
    size_t count = 0;
    for (unsigned i = 0; settings->given && i < TP_SETTINGS_COUNT; i++)
        if (settings->given[i])
            given[count++] = (struct tp_report_setting){tp_setting(i)->name, settings->given[i]};
    return count;
}

static void write_summary(struct tp_delivery *run, const struct tp_delivery_end *end, struct tp_run_report *report,
                          struct tp_report_file *file, char path[TP_FOLDER_PATH], struct tp_arena *arena)
{
    struct tp_error error = {0};
    struct place place = {.suffix = TP_SUMMARY_SUFFIX,
                          .time_ns = end->clock.realtime_ns,
                          .cycle = run->cycle_count,
                          .step = end->next_step};
    struct folder folder;
    struct tp_sink *sink = open_file(run, &place, path, &folder, arena, &error);
    int failed = sink ? 0 : -errno;
    file->path = path;
    if (sink) {
        tp_summary_write(sink, report, arena);
        failed = tp_sink_close(sink, &file->bytes, &error);
        tp_file_close(folder.descriptor, &folder.id);
    }
    if (error.set)
        fail(run, arena, file, failed, &error);
    else
        run->totals.files++;
}

void tp_delivery_finish(struct tp_delivery *run, const struct tp_delivery_end *end)
{
    const struct tp_delivery_process *process = &run->process;
    struct tp_arena arena;
    tp_arena_init(&arena, writing_limit(run));
    struct tp_report_setting given[TP_SETTINGS_COUNT];
    struct tp_report_file summary = {0};
    struct tp_run_report report = {.identity = process->identity,
                                   .settings = process->settings,
                                   .settings_given = given,
                                   .settings_given_count = settings_given(process->settings, given),
                                   .pytorch = process->pytorch,
                                   .observed = process->observed,
                                   .command = process->command,
                                   .ended = end->ended,
                                   .clock_begin = process->attached,
                                   .clock_end = end->clock,
                                   .map = tp_clock_map_between(&process->attached, &end->clock),
                                   .averages = run->averages_missed && run->averages && tp_averages_count(run->averages) == 0 ? NULL
                                                                                                              : run->averages,
                                   .steps = &run->steps,
                                   .cycles = run->cycles,
                                   .cycle_count = run->cycle_count,
                                   .cycles_left_out = run->cycles_left_out,
                                   .left_out = run->left_out,
                                   .left_out_lost_before = run->left_out_lost_before,
                                   .files = &summary,
                                   .file_count = 1,
                                   .cost = end->cost};
    report.cost.held_bytes = run->held_most;
    report.cost.budget_bytes = process->settings->buffer_bytes;
    char path[TP_FOLDER_PATH] = "";
    write_summary(run, end, &report, &summary, path, &arena);
    if (run->cycle_count == 0 && !process->died)
        tp_log(TP_LOG_WARN, "no recording window was complete: the program made %llu steps",
               (unsigned long long)end->edges);
    if (end->prints && run->cycle_count > 0) {
        struct tp_text text;
        tp_text_init(&text, &arena, 1 << 20);
        tp_log_report(&text, &report);
        tp_log_text(TP_LOG_WARN, text.bytes, text.used);
    }
    tp_arena_free(&arena);
}

struct tp_delivery_totals tp_delivery_totals(const struct tp_delivery *run)
{
    return run->totals;
}
