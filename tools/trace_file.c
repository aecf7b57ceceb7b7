#include "trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_MS 200

struct input {
    const struct trace_file *file;
    int descriptor;
    bool on_terminal, shown;
    uint64_t bytes, size; /* read so far, of the whole (0: not known) */
    int64_t next_ms;
    /* The event at which a callback stopped. */
    uint64_t event, offset;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void show_progress(struct input *input)
{
    int64_t now = now_ms();
    if (now < input->next_ms)
        return;
    input->next_ms = now + PROGRESS_MS;
    input->shown = true;
    if (input->size)
        fprintf(stderr, "\rtprof %s: %3.0f %% of %.0f MB read", input->file->command,
                (double)input->bytes * 100 / (double)input->size, (double)input->size / 1e6);
    else
        fprintf(stderr, "\rtprof %s: %.0f MB read", input->file->command, (double)input->bytes / 1e6);
}

static ssize_t read_some(void *context, void *bytes, size_t count)
{
    struct input *input = context;
    ssize_t n;
    do
        n = read(input->descriptor, bytes, count);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    input->bytes += (uint64_t)n;
    if (input->on_terminal)
        show_progress(input);
    return n;
}

static int take_event(void *context, const struct tp_trace_event *event)
{
    struct input *input = context;
    int status = input->file->options.event(input->file->options.context, event);
    if (status < 0) {
        input->event = event->number;
        input->offset = event->offset;
    }
    return status;
}

static int take_arg(void *context, const struct tp_trace_event *event, struct tp_json_in *json)
{
    const struct tp_trace_in_options *options = &((struct input *)context)->file->options;
    return options->arg(options->context, event, json);
}

static int take_member(void *context, const char *path, enum tp_json_token token, const struct tp_json_in *json)
{
    const struct tp_trace_in_options *options = &((struct input *)context)->file->options;
    return options->member(options->context, path, token, json);
}

static int take_twice(void *context, const char *path, uint64_t offset)
{
    struct input *input = context;
    if (strcmp(path, "traceEvents") != 0)
        return 0;
    input->offset = offset;
    return -EEXIST;
}

static void complain(const struct input *input, const char *format, ...) TP_PRINTF(2, 3);
static void complain(const struct input *input, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "tprof %s: %s: %s\n", input->file->command, input->file->path, text);
}

static bool judge(const struct input *input, int status, const struct tp_trace_in_result *result,
                  const struct tp_gzip_in *gzip)
{
    unsigned long long events = result->events, offset = result->offset;
    if (status == -EBADMSG)
        complain(input, "%s, behind byte %llu of what it holds; %llu events before that were read",
                 tp_gzip_in_flaw(gzip), offset, events);
    else if (status == -EINVAL)
        complain(input, "byte %llu (line %llu, column %llu): %s; %llu events before that were read", offset,
                 (unsigned long long)result->line, (unsigned long long)result->column, result->flaw, events);
    else if (status == -EPROTO)
        complain(input, "event %llu, at byte %llu: %s; %llu events before that were read",
                 (unsigned long long)input->event, (unsigned long long)input->offset,
                 input->file->flaw(input->file->options.context), (unsigned long long)input->event);
    else if (status == -EEXIST)
        complain(input, "byte %llu: there are two traceEvents; the %llu events of the first were read",
                 (unsigned long long)input->offset, events);
    else if (status < 0)
        complain(input, "%s; %llu events were read", strerror(-status), events);
    else if (!result->found_events)
        complain(input, "it is no trace: an array of events, or an object with traceEvents, is accepted");
    else if (result->is_open)
        complain(input, "note: the array of events has no end; the %llu that are there were read", events);
    return status == 0 && result->found_events;
}

bool trace_file_read(const struct trace_file *file, struct tp_arena *arena, struct tp_trace_in_result *ret)
{
    struct input input = {.file = file};
    struct stat found;
    input.descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
    if (input.descriptor < 0 || fstat(input.descriptor, &found) < 0) {
        complain(&input, "%s", strerror(errno));
        return false;
    }
    input.size = S_ISREG(found.st_mode) ? (uint64_t)found.st_size : 0;
    input.on_terminal = isatty(STDERR_FILENO);
    input.next_ms = now_ms() + PROGRESS_MS;
    struct tp_gzip_in *gzip = tp_gzip_in_new((struct tp_bytes_in){read_some, &input}, arena);
    struct tp_trace_in_options options = {.context = &input, .event = take_event, .arg = take_arg,
                                          .member = take_member, .twice = take_twice};
    *ret = (struct tp_trace_in_result){0};
    int status = -ENOMEM;
    if (gzip) {
        options.source = tp_gzip_in_bytes(gzip);
        status = tp_trace_in_read(&options, arena, ret);
    }
    close(input.descriptor);
    if (input.shown)
        fprintf(stderr, "\r\033[K");
    return judge(&input, status, ret, gzip);
}

bool trace_file_is_pytorchs(const struct trace_file *file, const struct tp_trace_in_result *result,
                            const struct tp_trace_table_facts *facts)
{
    if (facts->events > 0 || facts->other_events == 0)
        return true;
    complain(&(struct input){.file = file},
             "none of its %llu events is of a kind that PyTorch writes (cpu_op, user_annotation, kernel, ...)",
             (unsigned long long)result->events);
    return false;
}
