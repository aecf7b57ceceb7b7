/* table.c: `tprof table`: torch's table of a trace file. */
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../output/table.h"
#include "../output/trace_table.h"
#include "findings.h"
#include "table_json.h"
#include "trace_file.h"

#define TEXT_LIMIT ((size_t)1 << 31)

static const char help[] =
    "usage: tprof table [options] FILE\n"
    "\n"
    "Prints the table of operators that torch's key_averages().table() prints, from a Chrome trace (.json, .json.gz;\n"
    "tprof's or PyTorch's). Columns appear as they do there: device times, memory, FLOPs where they were recorded.\n"
    "\n"
    "  --sort-by KEY                  any of torch's keys, as cpu_time_total, self_cuda_time_total, count, flops;\n"
    "                                 none: as they first appear. Else self_cuda_time_total, or self_cpu_time_total\n"
    "                                 where nothing ran on a device\n"
    "  --row-limit N                  100; -1: all\n"
    "  --group-by LIST                input_shape, stack:N, overload_name (a file holds no overload names: no column)\n"
    "  --top-level-events-only        rows whose first event lies in no other one\n"
    "  --include-python-functions     rows for Python functions too, as PyTorch 2.13 has; 2.14 has none\n"
    "  --flops WHICH                  torch: its formulas; extended: more operators; none. Else torch's, where the\n"
    "                                 file says that they were recorded (with_flops)\n"
    "  --time-unit UNIT               s, ms or us for all times; else what fits each\n"
    "  --header TEXT                  a line above the table\n"
    "  --max-name-column-width N      55; none: as wide as it needs to be\n"
    "  --max-shapes-column-width N    80; or none\n"
    "  --max-src-column-width N       75; or none\n"
    "  --json                         one JSON object on stdout instead, with the same rows\n"
    "  --help                         this text\n"
    "\n"
    "Exit status: 0 done, 2 the file cannot be read, or wrong use.\n";

struct request {
    const char *path, *sort_by;
    bool json;
    struct tp_trace_table_options trace;
    struct tp_table_options table;
};

/* Options. */

static bool refuse(const char *option, const char *value, const char *accepted)
{
    fprintf(stderr, "tprof table: --%s: \"%s\" is not accepted; %s\n", option, value, accepted);
    return false;
}

static bool read_sort(struct request *request, const char *option, const char *value)
{
    request->sort_by = value;
    return tp_table_knows_sort(value) ||
           refuse(option, value,
                  "there are self_cpu_time_total, cpu_time_total, cpu_time, count, key, flops, cpu_memory_usage, "
                  "self_cpu_memory_usage, device_time, device_time_total, self_device_time_total, device_memory_usage, "
                  "self_device_memory_usage (cuda, xpu, privateuse1 for device), and none");
}

static bool read_limit(struct request *request, const char *option, const char *value)
{
    char *end;
    errno = 0;
    long long limit = strtoll(value, &end, 10);
    request->table.row_limit = limit;
    return (*value && !*end && !errno && limit >= -1) || refuse(option, value, "a number of rows is, or -1 for all");
}

static bool read_width(const char *option, const char *value, size_t *ret)
{
    char *end;
    errno = 0;
    unsigned long width = strtoul(value, &end, 10);
    if (strcmp(value, "none") == 0) {
        *ret = TP_TABLE_ANY_WIDTH;
        return true;
    }
    *ret = width;
    return (*value >= '0' && *value <= '9' && !*end && !errno && width >= 3 && width <= 100000) ||
           refuse(option, value, "3 to 100000 is, or none");
}

static bool read_name_width(struct request *request, const char *option, const char *value)
{
    return read_width(option, value, &request->table.name_width_max);
}

static bool read_shapes_width(struct request *request, const char *option, const char *value)
{
    return read_width(option, value, &request->table.shapes_width_max);
}

static bool read_source_width(struct request *request, const char *option, const char *value)
{
    return read_width(option, value, &request->table.source_width_max);
}

static bool read_header(struct request *request, const char *option, const char *value)
{
    (void)option;
    request->table.header = value;
    return true;
}

static bool read_unit(struct request *request, const char *option, const char *value)
{
    static const char *const names[] = {[TP_TABLE_UNIT_S] = "s", [TP_TABLE_UNIT_MS] = "ms", [TP_TABLE_UNIT_US] = "us"};
    for (unsigned i = TP_TABLE_UNIT_S; i < TP_COUNT(names); i++)
        if (strcmp(value, names[i]) == 0) {
            request->table.unit = (enum tp_table_unit)i;
            return true;
        }
    return refuse(option, value, "s, ms and us are");
}

static bool read_flops(struct request *request, const char *option, const char *value)
{
    static const char *const names[] = {
        [TP_FLOPS_NONE] = "none", [TP_FLOPS_TORCH] = "torch", [TP_FLOPS_EXTENDED] = "extended"};
    request->trace.flops_given = true;
    for (unsigned i = 0; i < TP_COUNT(names); i++)
        if (strcmp(value, names[i]) == 0) {
            request->trace.flops = (enum tp_flops_formulas)i;
            return true;
        }
    return refuse(option, value, "torch, extended and none are");
}

static bool read_groups(struct request *request, const char *option, const char *value)
{
    for (const char *at = value, *end; at; at = *end ? end + 1 : NULL) {
        size_t bytes = strcspn(at, ",");
        end = at + bytes;
        char *digits_end = NULL;
        if (bytes == strlen("input_shape") && strncmp(at, "input_shape", bytes) == 0) {
            request->trace.by_shapes = true;
        } else if (strncmp(at, "stack:", 6) == 0 && at[6] >= '1' && at[6] <= '9' &&
                   (request->trace.by_stack = (unsigned)strtoul(at + 6, &digits_end, 10)) > 0 && digits_end == end) {
            continue;
        } else if (bytes != strlen("overload_name") || strncmp(at, "overload_name", bytes) != 0) {
            return refuse(option, value, "a list of input_shape, stack:N (N frames, from 1) and overload_name is");
        }
    }
    return true;
}

static bool set_top_level(struct request *request, const char *option, const char *value)
{
    (void)option;
    (void)value;
    return request->table.top_level_only = true;
}

static bool set_python_functions(struct request *request, const char *option, const char *value)
{
    (void)option;
    (void)value;
    return request->trace.python_functions = true;
}

static bool set_json(struct request *request, const char *option, const char *value)
{
    (void)option;
    (void)value;
    return request->json = true;
}

static const struct {
    const char *name;
    bool has_value;
    bool (*take)(struct request *request, const char *option, const char *value);
} options[] = {
    {"sort-by", true, read_sort},
    {"row-limit", true, read_limit},
    {"group-by", true, read_groups},
    {"top-level-events-only", false, set_top_level},
    {"include-python-functions", false, set_python_functions},
    {"flops", true, read_flops},
    {"time-unit", true, read_unit},
    {"header", true, read_header},
    {"max-name-column-width", true, read_name_width},
    {"max-shapes-column-width", true, read_shapes_width},
    {"max-src-column-width", true, read_source_width},
    {"json", false, set_json},
};

/* An option in argv[*at], which moves on to the option's value. */
static bool read_option(struct request *request, int argc, char **argv, int *at)
{
    const char *name = argv[*at] + 2, *equals = strchr(name, '=');
    size_t bytes = equals ? (size_t)(equals - name) : strlen(name);
    for (size_t i = 0; strncmp(argv[*at], "--", 2) == 0 && i < TP_COUNT(options); i++) {
        if (strlen(options[i].name) != bytes || strncmp(options[i].name, name, bytes) != 0)
            continue;
        if (!options[i].has_value && equals) {
            fprintf(stderr, "tprof table: --%s takes no value\n", options[i].name);
            return false;
        }
        if (options[i].has_value && !equals && *at + 1 == argc) {
            fprintf(stderr, "tprof table: --%s needs a value\n", options[i].name);
            return false;
        }
        return options[i].take(request, options[i].name,
                               !options[i].has_value ? NULL : equals ? equals + 1 : argv[++*at]);
    }
    fprintf(stderr, "tprof table: unknown option %s (tprof table --help)\n", argv[*at]);
    return false;
}

/* Output. */

static int print_json(const struct request *request, const struct tp_averages *averages,
                      const struct tp_trace_table_facts *facts, struct tp_arena *arena)
{
    printf("{\"schema\":1,\"file\":");
    print_json_string(request->path, stdout);
    printf(",\"events\":%llu,\"device\":", (unsigned long long)facts->events);
    if (facts->device)
        print_json_string(facts->device, stdout);
    else
        printf("null");
    printf(",");
    int status = print_rows_json(averages, facts, &request->table, arena);
    printf("}\n");
    return status;
}

static int print_text(const struct request *request, const struct tp_averages *averages, struct tp_arena *arena)
{
    struct tp_text text;
    tp_text_init(&text, arena, TEXT_LIMIT);
    int status = tp_table_render(&text, averages, &request->table);
    if (status == 0)
        fwrite(text.bytes, 1, text.used, stdout);
    return status;
}

static int make_table(struct request *request, struct tp_arena *arena)
{
    struct tp_trace_table *table = tp_trace_table_new(&request->trace, arena);
    struct tp_trace_in_result result;
    struct trace_file file = {.command = "table",
                              .path = request->path,
                              .options = {.context = table,
                                          .event = tp_trace_table_event,
                                          .arg = tp_trace_table_arg,
                                          .member = tp_trace_table_member},
                              .flaw = tp_trace_table_flaw};
    if (table && !trace_file_read(&file, arena, &result))
        return TP_WRONG_USE;
    const struct tp_averages *averages;
    struct tp_trace_table_facts facts;
    int status = table ? tp_trace_table_end(table, &averages, &facts) : -ENOMEM;
    if (status == 0 && !trace_file_is_pytorchs(&file, &result, &facts))
        return TP_WRONG_USE;
    if (status == 0) {
        request->table.device = facts.device;
        request->table.memory = facts.memory;
        request->table.flops = facts.flops;
        request->table.sort_by = request->sort_by  ? request->sort_by
                                 : facts.device ? "self_device_time_total"
                                                : TP_TABLE_DEFAULT_SORT;
        status = request->json ? print_json(request, averages, &facts, arena) : print_text(request, averages, arena);
    }
    if (status < 0) {
        fprintf(stderr, "tprof table: %s: %s\n", request->path, strerror(-status));
        return TP_WRONG_USE;
    }
    if (tp_averages_count(averages) == 0)
        fprintf(stderr, "tprof table: %s: there is no event in it\n", request->path);
    return TP_DONE;
}

int tp_command_table(int argc, char **argv)
{
    struct request request = {.table = {.row_limit = 100}};
    bool may_be_option = true;
    for (int i = 1; i < argc; i++) {
        if (may_be_option && strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return TP_DONE;
        }
        if (may_be_option && strcmp(argv[i], "--") == 0) {
            may_be_option = false;
        } else if (may_be_option && argv[i][0] == '-' && argv[i][1]) {
            if (!read_option(&request, argc, argv, &i))
                return TP_WRONG_USE;
        } else if (request.path) {
            fprintf(stderr, "tprof table: one file at a time, not %s too\n", argv[i]);
            return TP_WRONG_USE;
        } else {
            request.path = argv[i];
        }
    }
    if (!request.path) {
        fprintf(stderr, "tprof table: which file? (tprof table --help)\n");
        return TP_WRONG_USE;
    }
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    int status = make_table(&request, &arena);
    tp_arena_free(&arena);
    return status;
}
