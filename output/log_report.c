#include "log_report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "table.h"

#define COLUMN 14 /* with its gap: the table has six besides the name, and that of FLOPs */
#define FILES_MAX 40
#define RANGES_MAX 4

struct tp_report_totals tp_report_totals(const struct tp_run_report *run)
{
    const struct tp_model_counts *left_out = &run->left_out;
    struct tp_report_totals totals = {left_out->kept,      left_out->lost,       run->left_out_lost_before,
                                      left_out->unwritten, left_out->unfinished, left_out->names_cut, left_out->inputs_cut,
                                      left_out->damaged};
    for (size_t i = 0; i < run->cycle_count; i++) {
        const struct tp_report_cycle *cycle = &run->cycles[i];
        totals.kept += cycle->counts.kept;
        totals.lost_no_room += cycle->counts.lost;
        totals.lost_before += cycle->lost_before;
        totals.unwritten += cycle->counts.unwritten;
        totals.unfinished += cycle->counts.unfinished;
        totals.names_cut += cycle->counts.names_cut;
        totals.inputs_cut += cycle->counts.inputs_cut;
        totals.damaged += cycle->counts.damaged;
    }
    return totals;
}

/* A sentence, broken at blanks; further lines are indented. A word longer than a line (a path) keeps a line of its own.
 */
static void put_wrapped(struct tp_text *text, const char *sentence, size_t indent)
{
    size_t column = 0;
    while (*sentence) {
        size_t word = strcspn(sentence, " "), columns = tp_text_columns(sentence, word);
        if (column > 0 && column + 1 + columns > TP_LOG_REPORT_COLUMNS) {
            tp_text_put(text, "\n", 1);
            tp_text_fill(text, ' ', indent);
            column = indent;
        } else if (column > 0) {
            tp_text_put(text, " ", 1);
            column++;
        }
        tp_text_name(text, sentence, word, SIZE_MAX);
        column += columns;
        sentence += word + (sentence[word] == ' ');
    }
    tp_text_put(text, "\n", 1);
}

static void put_bytes(char *room, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) {
        snprintf(room, size, "%llu B", (unsigned long long)bytes);
        return;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < TP_COUNT(units); unit++)
        value /= 1024;
    size_t length = tp_text_fixed(room, size - 5, value, 1);
    snprintf(room + length, size - length, " %s", units[unit]);
}

/* "steps 2..4 of cycle 0": what the table covers. */
static void describe_cover(const struct tp_run_report *run, struct tp_text *text)
{
    size_t ranges = 0;
    for (size_t i = 0; i < run->cycle_count && ranges < RANGES_MAX; i++) {
        const struct tp_report_cycle *cycle = &run->cycles[i];
        if (!cycle->has_steps)
            continue;
        tp_text_format(text, "%s%llu", ranges == 0 ? "steps " : ", ", (unsigned long long)cycle->first_step);
        if (cycle->last_step != cycle->first_step)
            tp_text_format(text, "..%llu", (unsigned long long)cycle->last_step);
        ranges++;
    }
    uint64_t cycles = run->cycle_count + run->cycles_left_out;
    const char *of = ranges == 0 ? "" : cycles > RANGES_MAX ? ", ... of " : " of ";
    if (cycles == 1)
        tp_text_format(text, "%scycle %llu", of, (unsigned long long)run->cycles[0].number);
    else
        tp_text_format(text, "%sall %llu cycles", of, (unsigned long long)cycles);
}

static int put_table(struct tp_text *text, const struct tp_run_report *run)
{
    char room[256], identity[128];
    const struct tp_identity *who = run->identity;
    snprintf(identity, sizeof identity, who->rank_set ? "%s, process %u, rank %llu of %llu" : "%s, process %u",
             who->host, who->pid, (unsigned long long)who->rank, (unsigned long long)who->world_size);
    if (run->cycle_count + run->cycles_left_out == 0) {
        tp_text_format(text, "tprof: nothing was recorded (%s)\n", identity);
        return 0;
    }
    struct tp_text cover;
    tp_text_init(&cover, text->arena, 1024);
    describe_cover(run, &cover);
    int length = snprintf(room, sizeof room, "tprof: %s (%s)", cover.bytes, identity);
    if (length > TP_LOG_REPORT_COLUMNS) /* a host name of 64 characters: it gets its own line */
        snprintf(room, sizeof room, "tprof: %s\n(%s)", cover.bytes, identity);
    int status = 0;
    size_t columns = run->settings->with_flops ? 7 : 6;
    if (run->settings->experimental_config.trace_only)
        tp_text_format(text, "%s\nno table: events() is not available when trace_only=True in ExperimentalConfig\n", room);
    else if (!run->averages || tp_averages_count(run->averages) == 0)
        tp_text_format(text, "%s\n%s\n", room,
                       run->averages ? "no operator ran meanwhile" : "no memory for the table of operators");
    else
        status = tp_table_render(text, run->averages,
                                 &(struct tp_table_options){.sort_by = run->settings->sort_by,
                                                            .row_limit = run->settings->row_limit,
                                                            .header = room,
                                                            .name_width_max = TP_LOG_REPORT_COLUMNS - columns * COLUMN,
                                                            .flops = run->settings->with_flops,
                                                            .bare_lines = true});
    for (size_t i = 0; i < run->cycle_count; i++) {
        const struct tp_report_cycle *cycle = &run->cycles[i];
        if (!cycle->partial)
            continue;
        snprintf(room, sizeof room, "cycle %llu is partial%s%s", (unsigned long long)cycle->number,
                 cycle->partial_why ? ": " : "", cycle->partial_why ? cycle->partial_why : "");
        put_wrapped(text, room, 4);
    }
    return status;
}

static void put_ms(struct tp_text *text, uint64_t ns)
{
    char cell[40];
    size_t length = tp_text_fixed(cell, sizeof cell, (double)ns / 1e6, 3);
    tp_text_fill(text, ' ', length < 12 ? 12 - length : 1);
    tp_text_put(text, cell, length);
}

static void put_steps(struct tp_text *text, const struct tp_run_report *run)
{
    bool titled = false, estimated = false;
    for (unsigned kind = 0; kind < TP_STEP_KIND_COUNT; kind++) {
        struct tp_step_statistics statistics;
        if (!tp_step_times_statistics(run->steps, (enum tp_step_kind)kind, &run->map, text->arena, &statistics))
            continue;
        if (!titled)
            tp_text_format(text, "steps (ms)  %10s%12s%12s%12s%12s\n", "count", "first", "median", "p95", "max");
        titled = true;
        tp_text_format(text, "  %-10s%10llu", tp_step_kind_name((enum tp_step_kind)kind),
                       (unsigned long long)statistics.count);
        put_ms(text, statistics.first_ns);
        put_ms(text, statistics.median_ns);
        put_ms(text, statistics.p95_ns);
        put_ms(text, statistics.max_ns);
        tp_text_put(text, "\n", 1);
        estimated |= statistics.estimated || statistics.unknown;
    }
    if (!titled)
        tp_text_format(text, "steps: none was finished\n");
    if (estimated)
        tp_text_format(text, "  median and p95 within 2 %%: only the first %llu steps were kept one by one\n",
                       (unsigned long long)run->steps->kept);
}

static void put_loss(struct tp_text *text, const struct tp_run_report *run)
{
    struct tp_report_totals totals = tp_report_totals(run);
    uint64_t lost = totals.lost_no_room + totals.lost_before + totals.unwritten, all = totals.kept + lost;
    char room[640];
    if (lost == 0) {
        snprintf(room, sizeof room, "lost: nothing; %llu operators and ranges are kept", (unsigned long long)all);
        put_wrapped(text, room, 6);
    } else {
        char share[40];
        tp_text_fixed(share, sizeof share, (double)lost * 100 / (double)all, 2);
        int at = snprintf(room, sizeof room, "lost: %llu of %llu operators and ranges (%s %%)",
                          (unsigned long long)lost, (unsigned long long)all, share);
        if (totals.lost_before)
            at += snprintf(room + at, sizeof room - (size_t)at,
                           "; %llu let go before they could be written, as the buffer was full (TPROF_BUFFER_MB=%llu)",
                           (unsigned long long)totals.lost_before, (unsigned long long)(run->cost.budget_bytes >> 20));
        if (totals.unwritten)
            at += snprintf(room + at, sizeof room - (size_t)at, "; %llu were not written, as a partial cycle's reason says",
                           (unsigned long long)totals.unwritten);
        if (totals.lost_no_room)
            snprintf(room + at, sizeof room - (size_t)at,
                     "; %llu found no free room, as the background thread did not get the processor in time",
                     (unsigned long long)totals.lost_no_room);
        put_wrapped(text, room, 6);
    }
    if (totals.unfinished)
        tp_text_format(text,
                       "      %llu of the kept ones had no end; they end where the recording, or the range around "
                       "them, ends\n",
                       (unsigned long long)totals.unfinished);
    if (totals.names_cut)
        tp_text_format(text, "      %llu of the kept ones have a name that was too long and is cut\n",
                       (unsigned long long)totals.names_cut);
    if (totals.inputs_cut)
        tp_text_format(text, "      %llu of the kept ones had more inputs than could be kept; some are left out\n",
                       (unsigned long long)totals.inputs_cut);
    if (totals.damaged)
        tp_text_format(text, "      %llu blocks of records could not be read; what they held is not counted above\n",
                       (unsigned long long)totals.damaged);
}

static void put_cost(struct tp_text *text, const struct tp_cost *cost)
{
    char cpu[40], edges[40], attach[40], held[40], budget[40], room[400];
    tp_text_time(cpu, sizeof cpu, (double)cost->background_cpu_ns / 1e3);
    tp_text_time(edges, sizeof edges, (double)cost->edge_ns / 1e3);
    tp_text_time(attach, sizeof attach, (double)cost->attach_ns / 1e3);
    put_bytes(held, sizeof held, cost->held_bytes);
    put_bytes(budget, sizeof budget, cost->budget_bytes);
    snprintf(room, sizeof room,
             "cost: %s of CPU time in the background; on the program's threads %s to attach and %s at steps, "
             "besides the hooks; %s of memory, of at most %s",
             cpu, attach, edges, held, budget);
    put_wrapped(text, room, 6);
}

static void put_file(struct tp_text *text, const struct tp_report_file *file)
{
    char bytes[40];
    if (file->failure)
        snprintf(bytes, sizeof bytes, "not written");
    else
        put_bytes(bytes, sizeof bytes, file->bytes);
    tp_text_format(text, "  %11s  ", bytes);
    tp_text_name(text, file->path, strlen(file->path), SIZE_MAX);
    tp_text_put(text, "\n", 1);
    if (file->failure) {
        tp_text_fill(text, ' ', 15);
        tp_text_name(text, file->failure, strlen(file->failure), TP_LOG_REPORT_COLUMNS - 15);
        tp_text_put(text, "\n", 1);
    }
}

static void put_files(struct tp_text *text, const struct tp_run_report *run)
{
    uint64_t shown = 0, more = 0;
    for (size_t i = 0; i < run->cycle_count; i++)
        for (size_t k = 0; k < run->cycles[i].file_count; k++) {
            if (shown == 0)
                tp_text_format(text, "files:\n");
            /* What failed is always shown. */
            if (shown < FILES_MAX || run->cycles[i].files[k].failure) {
                put_file(text, &run->cycles[i].files[k]);
                shown++;
            } else {
                more++;
            }
        }
    if (more)
        tp_text_format(text, "               and %llu more, which summary.json lists\n", (unsigned long long)more);
    if (run->cycles_left_out)
        tp_text_format(text, "               and those of %llu later cycles\n",
                       (unsigned long long)run->cycles_left_out);
    if (shown == 0 && run->file_count > 0)
        tp_text_format(text, "files:\n");
    for (size_t i = 0; i < run->file_count; i++)
        put_file(text, &run->files[i]);
}

int tp_log_report(struct tp_text *text, const struct tp_run_report *run)
{
    int status = put_table(text, run);
    put_steps(text, run);
    put_loss(text, run);
    for (size_t i = 0; i < run->note_count; i++) {
        char room[1024];
        snprintf(room, sizeof room, "note: %s", run->notes[i]);
        put_wrapped(text, room, 6);
    }
    put_cost(text, &run->cost);
    put_files(text, run);
    return status < 0 ? status : text->cut ? -ENOMEM : 0;
}
