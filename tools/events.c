/* events.c: `tprof events`: the events of a trace one by one, as torch's prof.events() has them. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "../output/function_event.h"
#include "../output/trace_table.h"
#include "commands.h"
#include "findings.h"
#include "trace_file.h"

static const char help[] =
    "usage: tprof events [--json] [--flops WHICH] FILE\n"
    "\n"
    "Prints the events of a Chrome trace (.json, .json.gz; tprof's or PyTorch's) one by one, as torch's prof.events() has\n"
    "them: what tables leave out is not there, an only child of its parent's name is one with it. Thread by thread, an\n"
    "event behind those that lie in it; what ran on a device behind all of them. Times are those of the file.\n"
    "\n"
    "  --json         one JSON object, each event on a line of its own\n"
    "  --flops WHICH  torch: its formulas; extended: more operators; none. Else torch's, where the file says that they\n"
    "                 were recorded (with_flops)\n"
    "  --help         this text\n"
    "\n"
    "Exit status: 0 done, 2 the file cannot be read, or wrong use.\n";

#define BUFFER (128 * 1024)
#define STEP "ProfilerStep#"

struct request {
    const char *path;
    bool json;
    struct tp_trace_table *table;
    struct tp_trace_table_options options;
    char base_ns[24];
    unsigned long long count;
    char buffer[BUFFER];
    size_t used;
};

static char *reserve(void *context, size_t bytes)
{
    struct request *request = context;
    if (bytes > sizeof request->buffer - request->used) {
        fwrite(request->buffer, 1, request->used, stdout);
        request->used = 0;
    }
    return request->buffer + request->used;
}

static void advance(void *context, size_t bytes)
{
    struct request *request = context;
    request->used += bytes;
}

static void write_head(struct request *request)
{
    if (!request->json) {
        printf("%20s  %14s  %8s  %8s  %-10s  name\n", "start (us)", "length (us)", "id", "parent", "tid");
        return;
    }
    printf("{\"schema\":1,\"file\":");
    print_json_string(request->path, stdout);
    printf(",\"base_ns\":%s,\"events\":[", request->base_ns[0] ? request->base_ns : "0");
}

static void write_text(const struct tp_function_event *event)
{
    char parent[24] = "-";
    if (event->has_parent)
        snprintf(parent, sizeof parent, "%llu", (unsigned long long)event->parent);
    printf("%20.3f  %14.3f  %8llu  %8s  %-10.*s  ", (double)event->start_ns / 1000,
           (double)(event->end_ns - event->start_ns) / 1000, (unsigned long long)event->id, parent, (int)event->tid_bytes,
           event->tid);
    print_json_string(event->name, stdout);
    printf("\n");
}

static void take_function(void *context, const struct tp_function_event *event)
{
    struct request *request = context;
    struct tp_function_event shown = *event;
    struct tp_function_out out = {request, reserve, advance};
    if (request->count == 0)
        write_head(request);
    request->count++;
    if (!request->json) {
        write_text(event);
        return;
    }
    if (event->name_bytes >= sizeof STEP - 1 && memcmp(event->name, STEP, sizeof STEP - 1) == 0) {
        shown.trace_name = event->name;
        shown.trace_name_bytes = event->name_bytes;
        shown.name = "ProfilerStep*";
        shown.name_bytes = strlen(shown.name);
    }
    const char *before = request->count > 1 ? ",\n" : "\n";
    memcpy(reserve(request, 2), before, strlen(before));
    advance(request, strlen(before));
    tp_function_event_write(&shown, &out);
}

/* What is read goes on to the table. */

static int take_event(void *context, const struct tp_trace_event *event)
{
    return tp_trace_table_event(((struct request *)context)->table, event);
}

static int take_arg(void *context, const struct tp_trace_event *event, struct tp_json_in *json)
{
    return tp_trace_table_arg(((struct request *)context)->table, event, json);
}

static int take_member(void *context, const char *path, enum tp_json_token token, const struct tp_json_in *json)
{
    struct request *request = context;
    int64_t base;
    if (strcmp(path, "baseTimeNanoseconds") == 0 && token == TP_JSON_NUMBER &&
        tp_trace_integer(json->text, json->text_bytes, &base))
        snprintf(request->base_ns, sizeof request->base_ns, "%lld", (long long)base);
    return tp_trace_table_member(request->table, path, token, json);
}

static const char *flaw_of(const void *context)
{
    return tp_trace_table_flaw(((const struct request *)context)->table);
}

static int list(struct request *request, struct tp_arena *arena)
{
    struct tp_trace_in_result result;
    struct trace_file file = {.command = "events",
                              .path = request->path,
                              .options = {.context = request, .event = take_event, .arg = take_arg, .member = take_member},
                              .flaw = flaw_of};
    request->table = tp_trace_table_new(&request->options, arena);
    if (request->table && !trace_file_read(&file, arena, &result))
        return TP_WRONG_USE;
    const struct tp_averages *averages;
    struct tp_trace_table_facts facts;
    int status = request->table ? tp_trace_table_end(request->table, &averages, &facts) : -ENOMEM;
    if (status < 0) {
        fprintf(stderr, "tprof events: %s: %s\n", request->path, strerror(-status));
        return TP_WRONG_USE;
    }
    if (!trace_file_is_pytorchs(&file, &result, &facts))
        return TP_WRONG_USE;
    if (request->count == 0)
        write_head(request);
    fwrite(request->buffer, 1, request->used, stdout);
    if (request->json)
        printf("],\n\"count\":%llu}\n", request->count);
    return TP_DONE;
}

static bool read_flops(struct request *request, const char *value)
{
    static const char *const names[] = {
        [TP_FLOPS_NONE] = "none", [TP_FLOPS_TORCH] = "torch", [TP_FLOPS_EXTENDED] = "extended"};
    request->options.flops_given = true;
    for (unsigned i = 0; i < TP_COUNT(names); i++)
        if (strcmp(value, names[i]) == 0) {
            request->options.flops = (enum tp_flops_formulas)i;
            return true;
        }
    fprintf(stderr, "tprof events: --flops: \"%s\" is not accepted; torch, extended and none are\n", value);
    return false;
}

static bool read_argument(struct request *request, int argc, char **argv, int *at, bool *may_be_option)
{
    const char *word = argv[*at];
    bool option = *may_be_option && word[0] == '-' && word[1];
    if (option && strcmp(word, "--") == 0) {
        *may_be_option = false;
    } else if (option && strcmp(word, "--json") == 0) {
        request->json = true;
    } else if (option && strncmp(word, "--flops=", 8) == 0) {
        return read_flops(request, word + 8);
    } else if (option && strcmp(word, "--flops") == 0 && *at + 1 < argc) {
        return read_flops(request, argv[++*at]);
    } else if (option) {
        fprintf(stderr, strcmp(word, "--flops") == 0 ? "tprof events: %s needs a value\n"
                                                     : "tprof events: unknown option %s (tprof events --help)\n",
                word);
        return false;
    } else if (request->path) {
        fprintf(stderr, "tprof events: one file at a time, not %s too\n", word);
        return false;
    } else {
        request->path = word;
    }
    return true;
}

int tp_command_events(int argc, char **argv)
{
    static struct request request;
    bool may_be_option = true;
    request.options = (struct tp_trace_table_options){
        .by_shapes = true, .by_stack = UINT_MAX, .function = take_function, .context = &request};
    for (int i = 1; i < argc; i++) {
        if (may_be_option && strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return TP_DONE;
        }
        if (!read_argument(&request, argc, argv, &i, &may_be_option))
            return TP_WRONG_USE;
    }
    if (!request.path) {
        fprintf(stderr, "tprof events: which file? (tprof events --help)\n");
        return TP_WRONG_USE;
    }
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    int status = list(&request, &arena);
    tp_arena_free(&arena);
    return status;
}
