/* summary.c: `tprof summary`: what a trace file holds, on one screen: whose it is, its steps, what was lost, a table. */
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"
#include "table_json.h"
#include "trace_file.h"

#define ROWS 20
#define TEXT_LIMIT ((size_t)1 << 31)
#define CATEGORIES 32
#define NAME 64

static const char help[] =
    "usage: tprof summary [--json] FILE\n"
    "\n"
    "Says what a Chrome trace holds (.json or .json.gz; tprof's or PyTorch's): host, process and rank, how long was\n"
    "recorded, events of each kind, the times of its steps, what was lost (where tprof wrote it), and the first rows\n"
    "of the table of operators (tprof table prints all of it).\n"
    "\n"
    "  --json   one JSON object on stdout instead, with all rows\n"
    "  --help   this text\n"
    "\n"
    "Exit status: 0 done, 2 the file cannot be read, or wrong use.\n";

struct category {
    char name[NAME];
    uint64_t events;
};

struct summary {
    const char *path;
    bool json;
    struct tp_trace_table *table;
    struct category categories[CATEGORIES];
    size_t category_count;
    uint64_t in_other_categories;
    char host[256], process[NAME];
    bool has_rank, by_tprof, partial, has_times, has_process;
    int64_t rank, world_size, base_ns, kept, lost;
    int64_t first_ns, last_ns;
    int64_t *steps_ns;
    size_t step_count, step_capacity;
};

/* Reading. */

static bool named(const struct tp_trace_text *text, const char *name)
{
    return text->bytes == strlen(name) && memcmp(text->text, name, text->bytes) == 0;
}

static void count_category(struct summary *summary, const struct tp_trace_text *text)
{
    for (size_t i = 0; i < summary->category_count; i++)
        if (named(text, summary->categories[i].name)) {
            summary->categories[i].events++;
            return;
        }
    if (summary->category_count == CATEGORIES || text->bytes >= NAME) {
        summary->in_other_categories++;
        return;
    }
    struct category *category = &summary->categories[summary->category_count++];
    memcpy(category->name, text->text, text->kept + 1);
    category->events = 1;
}

static int add_step(struct summary *summary, int64_t ns)
{
    if (summary->step_count == summary->step_capacity) {
        size_t capacity = summary->step_capacity ? summary->step_capacity * 2 : 256;
        int64_t *grown = realloc(summary->steps_ns, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        summary->steps_ns = grown;
        summary->step_capacity = capacity;
    }
    summary->steps_ns[summary->step_count++] = ns;
    return 0;
}

static int take_event(void *context, const struct tp_trace_event *event)
{
    static const char step[] = "ProfilerStep#";
    struct summary *summary = context;
    int status = tp_trace_table_event(summary->table, event);
    if (status < 0 || event->phase != 'X' || !event->cat.there || named(&event->cat, "Trace"))
        return status;
    count_category(summary, &event->cat);
    int64_t end_ns = event->ts_ns + event->dur_ns;
    if (!summary->has_times || event->ts_ns < summary->first_ns)
        summary->first_ns = event->ts_ns;
    if (!summary->has_times || end_ns > summary->last_ns)
        summary->last_ns = end_ns;
    summary->has_times = true;
    if (!summary->has_process && named(&event->cat, "cpu_op")) {
        summary->has_process = true;
        snprintf(summary->process, sizeof summary->process, "%.*s", NAME - 1, event->pid.text);
    }
    if (named(&event->cat, "user_annotation") && strncmp(event->name.text, step, sizeof step - 1) == 0)
        return add_step(summary, event->dur_ns);
    return 0;
}

static int take_arg(void *context, const struct tp_trace_event *event, struct tp_json_in *json)
{
    return tp_trace_table_arg(((struct summary *)context)->table, event, json);
}

static int take_member(void *context, const char *path, enum tp_json_token token, const struct tp_json_in *json)
{
    struct summary *summary = context;
    const struct {
        const char *path;
        int64_t *value;
    } numbers[] = {{"baseTimeNanoseconds", &summary->base_ns}, {"distributedInfo/rank", &summary->rank},
                   {"distributedInfo/world_size", &summary->world_size}, {"tprof/kept", &summary->kept},
                   {"tprof/lost", &summary->lost}};
    for (size_t i = 0; token == TP_JSON_NUMBER && i < TP_COUNT(numbers); i++)
        if (strcmp(path, numbers[i].path) == 0)
            tp_trace_integer(json->text, json->text_bytes, numbers[i].value);
    summary->has_rank |= strcmp(path, "distributedInfo/rank") == 0;
    summary->by_tprof |= strcmp(path, "tprof/kept") == 0;
    summary->partial |= strcmp(path, "tprof/partial") == 0 && token == TP_JSON_TRUE;
    if (token == TP_JSON_STRING && strcmp(path, "host_name") == 0)
        snprintf(summary->host, sizeof summary->host, "%s", json->text);
    return tp_trace_table_member(summary->table, path, token, json);
}

static const char *flaw_of(const void *context)
{
    return tp_trace_table_flaw(((const struct summary *)context)->table);
}

/* Steps. */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct step_times {
    int64_t first_ns, median_ns, p95_ns, max_ns;
};

/* As those of the report at the end of a program: the median of an even number is the middle of the two, 95 % of the
 * steps take no longer than p95. */
static struct step_times step_times(struct summary *summary)
{
    size_t count = summary->step_count;
    int64_t *steps = summary->steps_ns;
    struct step_times times = {.first_ns = steps[0]};
    qsort(steps, count, sizeof *steps, compare);
    int64_t lower = steps[(count - 1) / 2], upper = steps[count / 2];
    times.median_ns = lower + (upper - lower) / 2;
    times.p95_ns = steps[(count * 95 + 99) / 100 - 1];
    times.max_ns = steps[count - 1];
    return times;
}

/* Output. */

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

static int print_text(struct summary *summary, const struct tp_averages *averages,
                      const struct tp_table_options *options, struct tp_arena *arena)
{
    struct tp_text text;
    tp_text_init(&text, arena, TEXT_LIMIT);
    tp_text_format(&text, "%s:\n", summary->path);
    tp_text_format(&text, "  written by %s", summary->by_tprof ? "tprof" : "PyTorch's profiler or in its form");
    if (summary->host[0]) {
        tp_text_format(&text, ", on ");
        tp_text_name(&text, summary->host, strlen(summary->host), SIZE_MAX);
    }
    if (summary->has_process) {
        tp_text_format(&text, ", process ");
        tp_text_name(&text, summary->process, strlen(summary->process), SIZE_MAX);
    }
    if (summary->has_rank)
        tp_text_format(&text, ", rank %lld of %lld", (long long)summary->rank, (long long)summary->world_size);
    if (summary->has_times)
        tp_text_format(&text, "\n  %.3f ms from the first begin to the last end%s",
                       ms(summary->last_ns - summary->first_ns),
                       summary->partial ? "; partial: the program ended before the schedule did" : "");
    for (size_t i = 0; i < summary->category_count; i++) {
        tp_text_format(&text, "%s%llu ", i ? ", " : "\n  events: ", (unsigned long long)summary->categories[i].events);
        tp_text_name(&text, summary->categories[i].name, strlen(summary->categories[i].name), SIZE_MAX);
    }
    if (summary->in_other_categories)
        tp_text_format(&text, ", %llu of other kinds", (unsigned long long)summary->in_other_categories);
    if (summary->by_tprof)
        tp_text_format(&text, "\n  lost: %lld of %lld operators and ranges", (long long)summary->lost,
                       (long long)(summary->kept + summary->lost));
    tp_text_format(&text, "\n");
    if (summary->step_count) {
        struct step_times times = step_times(summary);
        tp_text_format(&text, "steps (ms)  %10s%12s%12s%12s%12s\n", "count", "first", "median", "p95", "max");
        tp_text_format(&text, "            %10zu%12.3f%12.3f%12.3f%12.3f\n", summary->step_count, ms(times.first_ns),
                       ms(times.median_ns), ms(times.p95_ns), ms(times.max_ns));
    } else {
        tp_text_format(&text, "steps: none is marked\n");
    }
    int status = tp_table_render(&text, averages, options);
    if (status == 0)
        fwrite(text.bytes, 1, text.used, stdout);
    return status;
}

static int print_json(struct summary *summary, const struct tp_averages *averages,
                      const struct tp_trace_table_facts *facts, const struct tp_table_options *options,
                      struct tp_arena *arena)
{
    printf("{\"schema\":1,\"file\":");
    print_json_string(summary->path, stdout);
    printf(",\"by_tprof\":%s,\"partial\":%s,\"host\":", summary->by_tprof ? "true" : "false",
           summary->partial ? "true" : "false");
    print_json_string(summary->host, stdout);
    printf(",\"process\":");
    print_json_string(summary->process, stdout);
    if (summary->has_rank)
        printf(",\"rank\":%lld,\"world_size\":%lld", (long long)summary->rank, (long long)summary->world_size);
    if (summary->by_tprof)
        printf(",\"kept\":%lld,\"lost\":%lld", (long long)summary->kept, (long long)summary->lost);
    if (summary->has_times)
        printf(",\"first_ns\":%lld,\"last_ns\":%lld", (long long)(summary->base_ns + summary->first_ns),
               (long long)(summary->base_ns + summary->last_ns));
    printf(",\"categories\":{");
    for (size_t i = 0; i < summary->category_count; i++) {
        printf("%s", i ? "," : "");
        print_json_string(summary->categories[i].name, stdout);
        printf(":%llu", (unsigned long long)summary->categories[i].events);
    }
    printf("},\"steps\":{\"count\":%zu", summary->step_count);
    if (summary->step_count) {
        struct step_times times = step_times(summary);
        printf(",\"first_ns\":%lld,\"median_ns\":%lld,\"p95_ns\":%lld,\"max_ns\":%lld", (long long)times.first_ns,
               (long long)times.median_ns, (long long)times.p95_ns, (long long)times.max_ns);
    }
    printf("},");
    int status = print_rows_json(averages, facts, options, arena);
    printf("}\n");
    return status;
}

static int summarize(struct summary *summary, struct tp_arena *arena)
{
    summary->table = tp_trace_table_new(&(struct tp_trace_table_options){0}, arena);
    struct tp_trace_in_result result;
    struct trace_file file = {
        .command = "summary",
        .path = summary->path,
        .options = {.context = summary, .event = take_event, .arg = take_arg, .member = take_member},
        .flaw = flaw_of};
    if (summary->table && !trace_file_read(&file, arena, &result))
        return TP_WRONG_USE;
    const struct tp_averages *averages;
    struct tp_trace_table_facts facts;
    int status = summary->table ? tp_trace_table_end(summary->table, &averages, &facts) : -ENOMEM;
    if (status == 0 && !trace_file_is_pytorchs(&file, &result, &facts))
        return TP_WRONG_USE;
    if (status == 0) {
        struct tp_table_options options = {.row_limit = summary->json ? -1 : ROWS,
                                           .sort_by = facts.device ? "self_device_time_total" : TP_TABLE_DEFAULT_SORT,
                                           .device = facts.device,
                                           .memory = facts.memory,
                                           .flops = facts.flops};
        status = summary->json ? print_json(summary, averages, &facts, &options, arena)
                               : print_text(summary, averages, &options, arena);
    }
    if (status < 0)
        fprintf(stderr, "tprof summary: %s: %s\n", summary->path, strerror(-status));
    return status < 0 ? TP_WRONG_USE : TP_DONE;
}

int tp_command_summary(int argc, char **argv)
{
    struct summary summary = {0};
    bool may_be_option = true;
    for (int i = 1; i < argc; i++) {
        if (may_be_option && strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return TP_DONE;
        } else if (may_be_option && strcmp(argv[i], "--json") == 0) {
            summary.json = true;
        } else if (may_be_option && strcmp(argv[i], "--") == 0) {
            may_be_option = false;
        } else if (may_be_option && argv[i][0] == '-' && argv[i][1]) {
            fprintf(stderr, "tprof summary: unknown option %s; there are --json and --help\n", argv[i]);
            return TP_WRONG_USE;
        } else if (summary.path) {
            fprintf(stderr, "tprof summary: one file at a time, not %s too\n", argv[i]);
            return TP_WRONG_USE;
        } else {
            summary.path = argv[i];
        }
    }
    if (!summary.path) {
        fprintf(stderr, "tprof summary: which file? (tprof summary --help)\n");
        return TP_WRONG_USE;
    }
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    int status = summarize(&summary, &arena);
    tp_arena_free(&arena);
    free(summary.steps_ns);
    return status;
}
