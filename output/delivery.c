#include "delivery.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../agent/drain.h"
#include "../agent/log.h"
#include "averages.h"
#include "cycle_source.h"
#include "folder.h"
#include "log_report.h"
#include "model.h"
#include "names.h"
#include "sink.h"
#include "summary.h"
#include "table.h"
#include "text.h"

#define MAX_CYCLES 1024 /* told one by one in the summary; later ones are summed */
#define WRITERS 2

/* One row a format, and the outputs of TPROF_ON_TRACE_READY that ask for it. */
static const struct {
    const struct tp_writer *writer;
    uint32_t outputs;
} writers[WRITERS] = {
    {&tp_chrome_writer, 1u << TP_OUTPUT_TENSORBOARD | 1u << TP_OUTPUT_CHROME},
    {&tp_table_writer, 1u << TP_OUTPUT_TABLE},
};

/* The run, over all cycles. */
static struct {
    char folder[TP_FOLDER_PATH];
    struct tp_arena arena, step_arena;
    struct tp_step_times steps;
    struct tp_averages *averages;
    struct tp_report_cycle *cycles;
    size_t cycle_count;
    uint64_t cycles_left_out, left_out_lost_before;
    struct tp_model_counts left_out;
    size_t held_most;
} run;

/* One output while its cycle is written. */
struct output {
    const struct tp_writer *writer;
    struct tp_sink *sink;
    int folder; /* open as long as the sink */
    void *state;
    struct tp_cycle_report report; /* the cycle's, with this file's name */
    struct tp_report_file *file;
    int failed;
};

struct writing {
    struct output outputs[WRITERS];
    size_t count;
    struct tp_averages *averages;
};

static int prepare(void)
{
    tp_folder_absolute(tp_session.settings->dir, run.folder);
    tp_arena_init(&run.arena, tp_session.settings->buffer_bytes / 16);
    tp_arena_init(&run.step_arena, tp_session.settings->buffer_bytes / 16);
    tp_step_times_init(&run.steps, &run.step_arena, TP_STEP_TIMES_MAX);
    run.averages = tp_averages_new(&run.arena, TP_AVERAGES_MAX_ROWS);
    run.cycles = tp_arena_alloc(&run.arena, MAX_CYCLES * sizeof *run.cycles);
    run.cycle_count = 0;
    run.cycles_left_out = run.left_out_lost_before = 0;
    run.left_out = (struct tp_model_counts){0};
    return run.cycles ? 0 : -ENOMEM;
}

static void forget(void)
{
    tp_arena_free(&run.arena);
    tp_arena_free(&run.step_arena);
}

static void step(uint64_t number, uint64_t begin, uint64_t end, enum tp_step_kind kind)
{
    tp_step_times_add(&run.steps, number, begin, end, kind);
}

/* A child process is worth files only if it trained. */
static bool is_wanted(void)
{
    return !tp_session.child || tp_session.settings->children == TP_CHILDREN_ALL || tp_session.edges > 0 ||
           atomic_load(&tp_session.saw_backward);
}

/* Opens {worker}.{time}.{suffix} under a time that no file has yet. */
static struct tp_sink *open_file(const char *suffix, bool gzip, uint64_t cycle, uint64_t step_number, char *path,
                                 int *ret_folder, struct tp_arena *arena, struct tp_error *error)
{
    const struct tp_settings *settings = tp_session.settings;
    struct tp_name_values values = {.identity = &tp_session.identity,
                                    .time_ns = tp_names_time(tp_clock_pair_now().realtime_ns),
                                    .step = step_number,
                                    .cycle = cycle};
    int folder = tp_folder_open(run.folder, &values, path, error);
    if (folder < 0)
        return NULL;
    char worker[256], name[256];
    tp_names_worker(settings->worker_name, &values, worker, sizeof worker);
    tp_names_file(worker, values.time_ns, suffix, gzip, name, sizeof name);
    size_t length = strlen(path);
    snprintf(path + length, TP_FOLDER_PATH - length, "/%s", name);
    struct tp_sink_options options = {.folder = folder, .name = name, .gzip_level = gzip ? settings->gzip_level : 0};
    struct tp_sink *sink = tp_sink_open(&options, arena, error);
    if (sink)
        *ret_folder = folder;
    else
        close(folder);
    return sink;
}

static void fail(struct output *output, const struct tp_error *error)
{
    char line[800];
    tp_error_line(error, line, sizeof line);
    tp_log(TP_LOG_WARN, "%s was not written: %s", output->file->path, line);
    output->file->failure = tp_arena_copy(&run.arena, line, strlen(line));
    output->failed = -1;
}

static int segment(void *context, const struct tp_event *events, size_t count)
{
    struct writing *writing = context;
    if (writing->averages)
        tp_averages_segment(writing->averages, events, count);
    for (size_t i = 0; i < writing->count; i++) {
        struct output *output = &writing->outputs[i];
        if (!output->failed)
            output->failed = output->writer->segment(output->state, events, count);
    }
    return 0;
}

static void random_trace_id(char *text, size_t size)
{
    uint64_t words[2] = {tp_clock_now(), tp_session.pid};
    if (getrandom(words, sizeof words, GRND_NONBLOCK) != sizeof words)
        words[0] ^= tp_clock_pair_now().realtime_ns;
    snprintf(text, size, "%016llX%016llX", (unsigned long long)words[0], (unsigned long long)words[1]);
}

/* The steps that overlap the window; the last one may go on after it. */
static struct tp_step_span *spans_of(const struct tp_cycle *cycle, const struct tp_cycle_source *source, uint64_t begin,
                                     struct tp_arena *arena, size_t *ret_count)
{
    struct tp_step_span *spans = tp_arena_alloc(arena, (cycle->edge_count + 1) * sizeof *spans);
    size_t count = 0;
    uint64_t start = cycle->begin, number = cycle->first_step;
    const struct tp_thread_info *thread = tp_cycle_source_os_thread(source, tp_session.pid);
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

/* A log that was too small has let the oldest blocks go: the window begins with the first step that is whole. */
static uint64_t first_whole(const struct tp_cycle *cycle)
{
    if (cycle->dropped_until < cycle->begin)
        return cycle->begin;
    for (size_t i = 0; i < cycle->edge_count; i++)
        if (cycle->edges[i].time > cycle->dropped_until && cycle->edges[i].time < cycle->end)
            return cycle->edges[i].time;
    return cycle->dropped_until + 1;
}

static void write_cycle(const struct tp_cycle *cycle, struct tp_arena *arena, struct tp_report_cycle *told)
{
    const struct tp_settings *settings = tp_session.settings;
    struct tp_cycle_source source;
    if (tp_cycle_source_open(&source, &tp_session.spool.log, tp_session.spool.names, cycle, arena) != 0) {
        tp_log(TP_LOG_WARN, "no memory to write cycle %llu", (unsigned long long)cycle->number);
        return;
    }
    uint64_t begin = first_whole(cycle);
    uint64_t lost = cycle->dropped;
    if (begin > cycle->begin)
        lost += tp_cycle_source_begins(&source, cycle, cycle->begin, begin);
    char trace_id[256], path[TP_FOLDER_PATH];
    random_trace_id(trace_id, sizeof trace_id);
    struct tp_name_values values = {.identity = &tp_session.identity,
                                    .time_ns = tp_clock_ns(&source.map, cycle->end),
                                    .step = cycle->first_step,
                                    .cycle = cycle->number};
    if (settings->trace_id)
        tp_names_expand(settings->trace_id, &values, trace_id, sizeof trace_id, NULL);
    size_t step_count;
    struct tp_step_span *spans = spans_of(cycle, &source, begin, arena, &step_count);
    struct tp_cycle_report report = {.settings = settings,
                                     .identity = &tp_session.identity,
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
                                     .partial_why = cycle->partial ? "the program ended before the schedule did" : NULL,
                                     .lost_before = lost,
                                     .trace_id = trace_id,
                                     .dropped_end_ns = begin > cycle->begin ? tp_clock_ns(&source.map, begin) : 0};
    struct writing writing = {.averages = tp_averages_begin(&report, arena)};
    struct tp_report_file *files = tp_arena_alloc(&run.arena, WRITERS * sizeof *files);
    for (size_t i = 0; files && i < WRITERS; i++) {
        if (!(settings->outputs & writers[i].outputs))
            continue;
        struct output *output = &writing.outputs[writing.count];
        struct tp_error error = {0};
        *output = (struct output){.writer = writers[i].writer, .file = &files[writing.count]};
        output->sink = open_file(output->writer->suffix, output->writer->gzip && settings->use_gzip, cycle->number,
                                 cycle->first_step, path, &output->folder, arena, &error);
        output->file->path = tp_arena_copy(&run.arena, path, strlen(path));
        writing.count++;
        if (!output->sink) {
            fail(output, &error);
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
    if (tp_model_run(&options, &counts) != 0)
        tp_log(TP_LOG_WARN, "cycle %llu is not complete: out of memory", (unsigned long long)cycle->number);
    counts.lost += cycle->untold;
    for (size_t i = 0; i < writing.count; i++) {
        struct output *output = &writing.outputs[i];
        struct tp_error error = {0};
        if (!output->sink)
            continue;
        if (!output->failed)
            output->failed = output->writer->end(output->state, &counts);
        if (output->failed) {
            tp_error_set(&error, output->writer->name, NULL, "%s", strerror(output->failed < -1 ? -output->failed : ENOMEM));
            tp_sink_abandon(output->sink);
            fail(output, &error);
        } else if (tp_sink_close(output->sink, &output->file->bytes, &error) != 0) {
            fail(output, &error);
        }
        close(output->folder);
    }
    if (writing.averages && tp_averages_end(writing.averages) == 0 && run.averages)
        tp_averages_merge(run.averages, writing.averages);
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
                                     .file_count = files ? writing.count : 0};
}

static void add_counts(struct tp_model_counts *sum, const struct tp_model_counts *counts)
{
    sum->kept += counts->kept;
    sum->lost += counts->lost;
    sum->unfinished += counts->unfinished;
    sum->names_cut += counts->names_cut;
    sum->damaged += counts->damaged;
    sum->segments += counts->segments;
}

/* An eighth of the budget; a compressor and the table of flows need their minimum also where that is less. */
static size_t writing_limit(void)
{
    size_t share = tp_session.settings->buffer_bytes / 8;
    return share < (12u << 20) ? 12u << 20 : share;
}

static void cycle(const struct tp_cycle *finished)
{
    if (!is_wanted())
        return;
    size_t held = tp_spool_held(&tp_session.spool);
    run.held_most = held > run.held_most ? held : run.held_most;
    struct tp_arena arena;
    tp_arena_init(&arena, writing_limit());
    struct tp_report_cycle told = {0};
    write_cycle(finished, &arena, &told);
    tp_arena_free(&arena);
    if (run.cycle_count < MAX_CYCLES) {
        run.cycles[run.cycle_count++] = told;
    } else {
        run.cycles_left_out++;
        run.left_out_lost_before += told.lost_before;
        add_counts(&run.left_out, &told.counts);
    }
}

static bool prints(void)
{
    const struct tp_identity *identity = &tp_session.identity;
    return identity->rank_set ? identity->rank == 0 : !tp_session.child;
}

/* Of this process, separated by blanks. */
static void read_command(char *text, size_t size)
{
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file < 0 ? 0 : read(file, text, size - 1);
    if (file >= 0)
        close(file);
    bytes = bytes < 0 ? 0 : bytes;
    while (bytes > 0 && text[bytes - 1] == '\0')
        bytes--;
    text[bytes] = '\0';
    for (ssize_t i = 0; i < bytes; i++)
        if (text[i] == '\0')
            text[i] = ' ';
}

static size_t settings_given(struct tp_report_setting given[TP_SETTINGS_COUNT])
{
    size_t count = 0;
    for (unsigned i = 0; tp_session.settings->given && i < TP_SETTINGS_COUNT; i++)
        if (tp_session.settings->given[i])
            given[count++] = (struct tp_report_setting){tp_setting(i)->name, tp_session.settings->given[i]};
    return count;
}

static void finish(void)
{
    if (!is_wanted())
        return;
    struct tp_drain_cost spent;
    tp_drain_get_cost(&spent);
    struct tp_arena arena;
    tp_arena_init(&arena, writing_limit());
    struct tp_clock_pair end = tp_clock_pair_now();
    struct tp_clock_map map = tp_clock_map_between(&tp_session.attached, &end);
    struct tp_report_file summary = {0};
    struct tp_report_setting given[TP_SETTINGS_COUNT];
    char command[4096];
    read_command(command, sizeof command);
    const struct tp_collector *observer = tp_session.collectors[0];
    double ticks_per_ns = tp_clock_ticks_per_ns(&map);
    struct tp_run_report report = {
        .identity = &tp_session.identity,
        .settings = tp_session.settings,
        .settings_given = given,
        .settings_given_count = settings_given(given),
        .pytorch = observer->version(),
        .observed = observer->way(),
        .command = command[0] ? command : NULL,
        .ended = tp_session.ended,
        .clock_begin = tp_session.attached,
        .clock_end = end,
        .map = map,
        .averages = run.averages,
        .steps = &run.steps,
        .cycles = run.cycles,
        .cycle_count = run.cycle_count,
        .cycles_left_out = run.cycles_left_out,
        .left_out = run.left_out,
        .left_out_lost_before = run.left_out_lost_before,
        .files = &summary,
        .file_count = 1,
        .cost = {.background_cpu_ns = spent.drain_cpu_ns + spent.worker_cpu_ns,
                 .edge_ns = (uint64_t)((double)tp_session.edge_ns_ticks / ticks_per_ns),
                 .attach_ns = (uint64_t)((double)tp_session.attach_ticks / ticks_per_ns),
                 .held_bytes = run.held_most,
                 .budget_bytes = tp_session.settings->buffer_bytes}};
    char path[TP_FOLDER_PATH] = "";
    struct tp_error error = {0};
    int folder;
    struct tp_sink *sink =
        open_file(TP_SUMMARY_SUFFIX, false, run.cycle_count, tp_session.step, path, &folder, &arena, &error);
    summary.path = path;
    if (sink) {
        tp_summary_write(sink, &report, &arena);
        tp_sink_close(sink, &summary.bytes, &error);
        close(folder);
    }
    if (error.set) {
        char line[800];
        tp_error_line(&error, line, sizeof line);
        tp_log(TP_LOG_WARN, "summary.json was not written: %s", line);
        report.file_count = 0;
    }
    if (run.cycle_count == 0)
        tp_log(TP_LOG_WARN, "no recording window was complete: the program made %llu steps",
               (unsigned long long)tp_session.edges);
    if (prints() && run.cycle_count > 0) {
        struct tp_text text;
        tp_text_init(&text, &arena, 1 << 20);
        tp_log_report(&text, &report);
        tp_log_text(TP_LOG_WARN, text.bytes, text.used);
    }
    tp_arena_free(&arena);
}

const struct tp_session_outputs tp_delivery_outputs = {
    .prepare = prepare, .step = step, .cycle = cycle, .finish = finish, .forget = forget};
