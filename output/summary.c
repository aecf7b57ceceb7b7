#include "summary.h"

#include <errno.h>

#include "json.h"
#include "table.h"

static void put_text_or_null(struct tp_json *json, const char *key, const char *value)
{
    tp_json_key(json, key);
    if (value)
        tp_json_text(json, value);
    else
        tp_json_null(json);
}

static void put_bool(struct tp_json *json, const char *key, bool value)
{
    tp_json_key(json, key);
    tp_json_bool(json, value);
}

static void put_us(struct tp_json *json, const char *key, uint64_t ns)
{
    tp_json_key(json, key);
    tp_json_us(json, ns);
}

static void put_clock(struct tp_json *json, const char *key, const struct tp_clock_pair *pair)
{
    tp_json_key(json, key);
    tp_json_open_object(json);
    tp_json_u64_member(json, "ticks", pair->ticks);
    tp_json_u64_member(json, "monotonic_ns", pair->monotonic_ns);
    tp_json_u64_member(json, "realtime_ns", pair->realtime_ns);
    tp_json_close_object(json);
}

static void put_process(struct tp_json *json, const struct tp_run_report *run)
{
    const struct tp_identity *identity = run->identity;
    tp_json_text_member(json, "host", identity->host);
    tp_json_u64_member(json, "pid", identity->pid);
    tp_json_text_member(json, "process", identity->process);
    put_text_or_null(json, "command", run->command);
    tp_json_u64_member(json, "rank", identity->rank);
    tp_json_u64_member(json, "world_size", identity->world_size);
    put_bool(json, "rank_set", identity->rank_set);
    put_text_or_null(json, "boot_id", identity->boot_id[0] ? identity->boot_id : NULL);
    put_text_or_null(json, "pytorch", run->pytorch);
    put_text_or_null(json, "observed", run->observed);
    put_text_or_null(json, "ended", run->ended);
    tp_json_u64_member(json, "start_ns", run->clock_begin.realtime_ns);
    tp_json_key(json, "clock");
    tp_json_open_object(json);
    put_clock(json, "begin", &run->clock_begin);
    put_clock(json, "end", &run->clock_end);
    tp_json_key(json, "ticks_per_ns");
    tp_json_double(json, tp_clock_ticks_per_ns(&run->map));
    tp_json_close_object(json);
    tp_json_key(json, "settings");
    tp_json_open_object(json);
    for (size_t i = 0; i < run->settings_given_count; i++)
        tp_json_text_member(json, run->settings_given[i].name, run->settings_given[i].value);
    tp_json_close_object(json);
}

/* True if the step lies in a recorded window. By number: each window has its own line from ticks to nanoseconds, and an edge
 * that it shares with a step would be a little beside it. Numbers rise, so `at` only goes on. */
static bool is_recorded(const struct tp_run_report *run, uint64_t number, size_t *at)
{
    while (*at < run->cycle_count && (!run->cycles[*at].has_steps || run->cycles[*at].last_step < number))
        ++*at;
    return *at < run->cycle_count && run->cycles[*at].first_step <= number;
}

static void put_steps(struct tp_json *json, const struct tp_run_report *run, struct tp_arena *scratch)
{
    tp_json_key(json, "step_statistics");
    tp_json_open_array(json);
    for (unsigned kind = 0; kind < TP_STEP_KIND_COUNT; kind++) {
        struct tp_step_statistics statistics;
        if (!tp_step_times_statistics(run->steps, (enum tp_step_kind)kind, &run->map, scratch, &statistics))
            continue;
        tp_json_open_object(json);
        tp_json_text_member(json, "kind", tp_step_kind_name((enum tp_step_kind)kind));
        tp_json_u64_member(json, "count", statistics.count);
        put_us(json, "first_us", statistics.first_ns);
        put_us(json, "mean_us", statistics.mean_ns);
        put_us(json, "median_us", statistics.median_ns);
        put_us(json, "p95_us", statistics.p95_ns);
        put_us(json, "min_us", statistics.min_ns);
        put_us(json, "max_us", statistics.max_ns);
        put_bool(json, "estimated", statistics.estimated || statistics.unknown);
        tp_json_close_object(json);
    }
    tp_json_close_array(json);
    tp_json_u64_member(json, "step_count", run->steps->count);
    tp_json_u64_member(json, "steps_kept", run->steps->kept);
    tp_json_key(json, "steps");
    tp_json_open_array(json);
    struct tp_step_cursor cursor = {0};
    struct tp_step_time step;
    for (size_t cycle = 0; tp_step_times_next(run->steps, &cursor, &step);) {
        uint64_t start_ns = tp_clock_ns(&run->map, step.begin), end_ns = tp_clock_ns(&run->map, step.end);
        tp_json_open_object(json);
        tp_json_u64_member(json, "number", step.number);
        tp_json_text_member(json, "kind", tp_step_kind_name(step.kind));
        tp_json_u64_member(json, "start_ns", start_ns);
        put_us(json, "duration_us", end_ns > start_ns ? end_ns - start_ns : 0);
        put_bool(json, "recorded", is_recorded(run, step.number, &cycle));
        tp_json_close_object(json);
    }
    tp_json_close_array(json);
}

/* As the table in the log: the same rows, all of them, in the same order. */
static int put_operators(struct tp_json *json, const struct tp_run_report *run, struct tp_arena *scratch)
{
    tp_json_key(json, "operators");
    tp_json_open_array(json);
    size_t count = run->averages ? tp_averages_count(run->averages) : 0;
    uint32_t *order = count ? tp_table_order(run->averages, run->settings->sort_by, scratch) : NULL;
    for (size_t i = 0; order && i < count; i++) {
        const struct tp_average *row = tp_averages_row(run->averages, order[i]);
        tp_json_open_object(json);
        tp_json_key(json, "name");
        tp_json_string(json, row->name, row->name_bytes);
        put_bool(json, "annotation", row->annotation);
        tp_json_u64_member(json, "count", row->count);
        tp_json_u64_member(json, "self_cpu_ns", row->self_ns);
        tp_json_u64_member(json, "cpu_total_ns", row->total_ns);
        if (run->settings->with_flops)
            tp_json_u64_member(json, "flops", row->flops);
        tp_json_close_object(json);
    }
    tp_json_close_array(json);
    tp_json_u64_member(json, "operators_unnamed", run->averages ? tp_averages_others(run->averages) : 0);
    return count && !order ? -ENOMEM : 0;
}

static void put_files(struct tp_json *json, const struct tp_report_file *files, size_t count)
{
    tp_json_key(json, "files");
    tp_json_open_array(json);
    for (size_t i = 0; i < count; i++) {
        tp_json_open_object(json);
        tp_json_text_member(json, "path", files[i].path);
        if (files[i].failure)
            tp_json_text_member(json, "failure", files[i].failure);
        else
            tp_json_u64_member(json, "bytes", files[i].bytes);
        tp_json_close_object(json);
    }
    tp_json_close_array(json);
}

static void put_counts(struct tp_json *json, const struct tp_report_totals *totals)
{
    tp_json_u64_member(json, "kept", totals->kept);
    tp_json_u64_member(json, "lost", totals->lost_no_room + totals->lost_before + totals->unwritten);
    tp_json_key(json, "lost_why");
    tp_json_open_object(json);
    tp_json_u64_member(json, "buffer_full", totals->lost_before);
    tp_json_u64_member(json, "no_room", totals->lost_no_room);
    tp_json_u64_member(json, "not_written", totals->unwritten);
    tp_json_close_object(json);
    tp_json_u64_member(json, "unfinished", totals->unfinished);
    tp_json_u64_member(json, "names_cut", totals->names_cut);
    tp_json_u64_member(json, "inputs_cut", totals->inputs_cut);
    tp_json_u64_member(json, "damaged_blocks", totals->damaged);
}

static void put_cycle(struct tp_json *json, const struct tp_report_cycle *cycle)
{
    struct tp_run_report one = {.cycles = cycle, .cycle_count = 1};
    struct tp_report_totals totals = tp_report_totals(&one);
    tp_json_open_object(json);
    tp_json_u64_member(json, "number", cycle->number);
    tp_json_u64_member(json, "begin_ns", cycle->window_begin_ns);
    tp_json_u64_member(json, "end_ns", cycle->window_end_ns);
    if (cycle->has_steps) {
        tp_json_u64_member(json, "first_step", cycle->first_step);
        tp_json_u64_member(json, "last_step", cycle->last_step);
    }
    put_bool(json, "partial", cycle->partial);
    if (cycle->partial_why)
        tp_json_text_member(json, "why", cycle->partial_why);
    put_counts(json, &totals);
    put_files(json, cycle->files, cycle->file_count);
    tp_json_close_object(json);
}

static void put_cost(struct tp_json *json, const struct tp_cost *cost)
{
    tp_json_key(json, "cost");
    tp_json_open_object(json);
    put_us(json, "background_cpu_us", cost->background_cpu_ns);
    put_us(json, "attach_us", cost->attach_ns);
    put_us(json, "step_edges_us", cost->edge_ns);
    tp_json_u64_member(json, "memory_bytes", cost->held_bytes);
    tp_json_u64_member(json, "memory_limit_bytes", cost->budget_bytes);
    tp_json_close_object(json);
}

int tp_summary_write(struct tp_sink *sink, const struct tp_run_report *run, struct tp_arena *scratch)
{
    struct tp_json json;
    tp_json_init(&json, sink);
    tp_json_open_object(&json);
    tp_json_u64_member(&json, "schema", TP_SUMMARY_SCHEMA);
    tp_json_text_member(&json, "version", TP_VERSION);
    put_process(&json, run);
    struct tp_report_totals totals = tp_report_totals(run);
    put_counts(&json, &totals);
    tp_json_u64_member(&json, "cycle_count", run->cycle_count + run->cycles_left_out);
    tp_json_key(&json, "cycles");
    tp_json_open_array(&json);
    for (size_t i = 0; i < run->cycle_count; i++)
        put_cycle(&json, &run->cycles[i]);
    tp_json_close_array(&json);
    put_cost(&json, &run->cost);
    tp_json_key(&json, "notes");
    tp_json_open_array(&json);
    for (size_t i = 0; i < run->note_count; i++)
        tp_json_text(&json, run->notes[i]);
    tp_json_close_array(&json);
    int status = put_operators(&json, run, scratch);
    put_steps(&json, run, scratch);
    tp_json_close_object(&json);
    tp_sink_put(sink, "\n", 1);
    return status < 0 ? status : tp_sink_status(sink);
}
