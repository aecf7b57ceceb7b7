#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace_judge.h"

enum { SOUND = 0, FLAWED = 1, UNREADABLE = 2 };

static const char help[] =
    "usage: tprof check [--json] FILE\n"
    "\n"
    "Says whether a Chrome trace (.json or .json.gz; tprof's, PyTorch's or another's) is sound: valid JSON and UTF-8;\n"
    "events with all that their kind needs, once; slices that nest; flows with a start and an end at slices, in "
    "order;\n"
    "nothing before what caused it; unique Ev Idx; steps in order; everything inside the record window; and, where\n"
    "tprof wrote it, all that it kept.\n"
    "\n"
    "Each finding is one line: kind, number of the event (from 0), byte in the file (after decompression), what is "
    "wrong;\n"
    "at most 20 of a kind, then their number. A note tells of what is odd and no fault: known habits of other writers.\n"
    "\n"
    "  --json   one JSON object on stdout instead\n"
    "  --help   this text\n"
    "\n"
    "Exit status: 0 sound, 1 not sound, 2 the file cannot be read, or wrong use.\n";

struct check {
    const char *path;
    bool json;
    struct findings findings;
    struct tp_trace_in_result result;
    struct judge_counts counts;
    const char *what_else; /* a file without traceEvents */
};

static ssize_t read_descriptor(void *context, void *bytes, size_t count)
{
    ssize_t n;
    do
        n = read(*(int *)context, bytes, count);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* 0, or a negative errno when the file could not be judged. */
static int check_bytes(struct check *check, int descriptor, struct tp_arena *arena, struct judge *judge)
{
    struct tp_gzip_in *gzip = tp_gzip_in_new((struct tp_bytes_in){read_descriptor, &descriptor}, arena);
    if (!gzip)
        return -ENOMEM;
    struct tp_trace_in_options options = {
        .source = tp_gzip_in_bytes(gzip),
        .context = judge,
        .event = judge_event,
        .member = judge_member,
        .twice = judge_twice,
    };
    int status = tp_trace_in_read(&options, arena, &check->result);
    const struct tp_trace_in_result *result = &check->result;
    if (status == -EBADMSG) {
        findings_add(&check->findings, FINDING_GZIP, NO_PLACE, result->offset, "%s", tp_gzip_in_flaw(gzip));
        return 0;
    }
    if (status == -EINVAL) {
        findings_add(&check->findings, FINDING_JSON, NO_PLACE, result->offset, "line %llu, column %llu: %s",
                     (unsigned long long)result->line, (unsigned long long)result->column, result->flaw);
        return 0;
    }
    if (status < 0)
        return status;
    if (!result->found_events) {
        check->what_else = judge_what_else(judge);
        findings_add(&check->findings, FINDING_TOP_LEVEL, NO_PLACE, NO_PLACE, "%s", check->what_else);
        return 0;
    }
    if (result->is_open)
        findings_note(&check->findings, NOTE_OPEN_ARRAY, NO_PLACE, NO_PLACE,
                      "the array has no end, as the format allows; the program may have been killed");
    judge_end(judge, &check->counts);
    return 0;
}

static int check_file(struct check *check)
{
    int descriptor = open(check->path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return -errno;
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    struct judge *judge = judge_new(&check->findings);
    int status = judge ? check_bytes(check, descriptor, &arena, judge) : -ENOMEM;
    if (judge)
        judge_free(judge);
    tp_arena_free(&arena);
    close(descriptor);
    return status;
}

static void print_text(const struct check *check, uint64_t total)
{
    if (check->what_else) {
        printf("%s: no Chrome trace: %s\n", check->path, check->what_else);
        return;
    }
    findings_print(&check->findings, stdout);
    if (check->result.flaw) {
        printf("%s: not sound; nothing is known of what follows after %llu events, and what they mean together was not "
               "judged\n",
               check->path, (unsigned long long)check->result.events);
        return;
    }
    printf("%s: %llu events, %llu slices on %llu rows, %llu flow events", check->path,
           (unsigned long long)check->result.events, (unsigned long long)check->counts.slices,
           (unsigned long long)check->counts.rows, (unsigned long long)check->counts.flows);
    if (check->counts.by_tprof)
        printf(", %llu kept and %llu lost", (unsigned long long)check->counts.kept,
               (unsigned long long)check->counts.lost);
    if (total == 0)
        printf(": sound\n");
    else
        printf(": not sound, %llu finding%s\n", (unsigned long long)total, total == 1 ? "" : "s");
}

static void print_json(const struct check *check, uint64_t total)
{
    printf("{\"file\":");
    print_json_string(check->path, stdout);
    printf(",\"sound\":%s,\"events\":%llu,\"slices\":%llu,\"rows\":%llu,\"flow_events\":%llu,",
           total ? "false" : "true", (unsigned long long)check->result.events, (unsigned long long)check->counts.slices,
           (unsigned long long)check->counts.rows, (unsigned long long)check->counts.flows);
    if (check->counts.by_tprof)
        printf("\"kept\":%llu,\"lost\":%llu,", (unsigned long long)check->counts.kept,
               (unsigned long long)check->counts.lost);
    findings_print_json(&check->findings, stdout);
    printf("}\n");
}

int tp_command_check(int argc, char **argv)
{
    struct check check = {0};
    bool options = true;
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return SOUND;
        } else if (options && strcmp(argv[i], "--json") == 0) {
            check.json = true;
        } else if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            fprintf(stderr, "tprof check: unknown option %s; there are --json and --help\n", argv[i]);
            return UNREADABLE;
        } else if (check.path) {
            fprintf(stderr, "tprof check: one file at a time, not %s too\n", argv[i]);
            return UNREADABLE;
        } else {
            check.path = argv[i];
        }
    }
    if (!check.path) {
        fprintf(stderr, "tprof check: which file? (tprof check --help)\n");
        return UNREADABLE;
    }
    int status = check_file(&check);
    if (status < 0) {
        fprintf(stderr, "tprof check: %s: %s\n", check.path, strerror(-status));
        findings_free(&check.findings);
        return UNREADABLE;
    }
    uint64_t total = findings_total(&check.findings);
    if (check.json)
        print_json(&check, total);
    else
        print_text(&check, total);
    findings_free(&check.findings);
    return total ? FLAWED : SOUND;
}
