/*
 * make_trace: writes a synthetic training through the Chrome writer, for readers of such files and for measurements.
 *
 * usage: make_trace FILE.json[.gz] [STEPS [LAYERS [WORD ...]]] Words: around (a user range around everything), marks
 * (the step edge lies inside an optimizer's range), async (ranges that overlap without nesting), coarse (all stamps
 * of a thread are one nanosecond apart), names (odd names), loss, python (torch's Python form), open (a range that
 * never ends), rank. Prints nanoseconds and bytes an event.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "../unit/trace_feed.h"

static struct tp_thread_info trainer = {.serial = 1, .logical_id = 1, .os_id = 4000, .name = "python"};
static struct tp_thread_info autograd = {.serial = 2, .logical_id = 2, .os_id = 4017, .name = "pt_autograd_0"};

static uint64_t now, tick = 700;
static int64_t sequence;
static char **words;

static bool asked(const char *word)
{
    for (char **w = words; *w; w++)
        if (strcmp(*w, word) == 0)
            return true;
    return false;
}

static uint64_t later(void)
{
    return now += tick;
}

/* Names get ids as the agent's intern table gives them: one per name. */
static struct tp_event *named(struct tp_event *event, uint32_t id)
{
    event->name_id = id;
    return event;
}

static void forward(struct trace_feed *feed)
{
    static const char *const inner[] = {"aten::t", "aten::transpose", "aten::as_strided", "aten::addmm"};
    size_t linear = feed_begin(feed, &trainer, "aten::linear", later());
    for (uint32_t i = 0; i < 4; i++) {
        size_t op = feed_begin(feed, &trainer, inner[i], later());
        named(feed_end(feed, op, later()), 1 + i)->sequence = sequence;
    }
    named(feed_end(feed, linear, later()), 5)->sequence = sequence++;
}

static void backward(struct trace_feed *feed, int64_t of)
{
    static const char wrapper[] = "autograd::engine::evaluate_function: AddmmBackward0";
    size_t outer = feed_begin(feed, &autograd, wrapper, later());
    size_t node = feed_begin(feed, &autograd, "AddmmBackward0", later());
    size_t mm = feed_begin(feed, &autograd, "aten::mm", later());
    named(feed_end(feed, mm, later()), 6);
    struct tp_event *event = named(feed_end(feed, node, later()), 7);
    event->sequence = of;
    event->forward_thread = 1;
    event->scope = TP_SCOPE_BACKWARD_FUNCTION;
    event = named(feed_end(feed, outer, later()), 8);
    event->sequence = of;
    event->forward_thread = 1;
}

static uint64_t train(struct trace_feed *feed, unsigned layers)
{
    for (unsigned i = 0; i < layers; i++)
        forward(feed);
    for (unsigned i = 0; i < layers; i++)
        backward(feed, sequence - 1 - (int64_t)i);
    size_t optimizer = feed_begin(feed, &trainer, "Optimizer.step#SGD.step", later());
    uint64_t edge = 0;
    for (unsigned i = 0; i < 3; i++) {
        size_t op = feed_begin(feed, &trainer, "aten::_foreach_add_", later());
        if (i == 1 && asked("marks"))
            edge = now + tick / 2;
        named(feed_end(feed, op, later()), 9);
    }
    named(feed_end(feed, optimizer, later()), 10)->scope = TP_SCOPE_USER_SCOPE;
    return edge ? edge : now;
}

static void odd_ranges(struct trace_feed *feed)
{
    static const char *const odd[] = {
        "back\\slash\\", "\\u12", "quote\"", "caf\xc3\xa9 \xf0\x9f\x94\xa5", "\xff\xc0\x80", "\xed\xa0\x80",
        "a\nb\tc\x01\x7f", "\xef\xbf\xbf", "", "</script>",
    };
    for (size_t i = 0; asked("names") && i < TP_COUNT(odd); i++) {
        size_t op = feed_begin(feed, &trainer, odd[i], later());
        feed_end(feed, op, later());
    }
    for (unsigned i = 0; asked("async") && i < 20; i++) {
        uint64_t start = later();
        struct tp_event *event = feed_range(feed, &trainer, "gloo:all_reduce", start, start + tick * (3 + i % 5) + 1);
        event->scope = TP_SCOPE_USER_SCOPE;
        event->flags |= TP_EVENT_ASYNC;
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: make_trace FILE.json[.gz] [STEPS [LAYERS [WORD ...]]]\n", stderr);
        return 2;
    }
    unsigned steps = argc > 2 ? (unsigned)atoi(argv[2]) : 4, layers = argc > 3 ? (unsigned)atoi(argv[3]) : 8;
    words = argv + (argc > 4 ? 4 : argc);
    struct trace_feed feed;
    now = UINT64_C(1796000000123456789);
    feed_init(&feed, now);
    feed.segment = 5000;
    if (asked("coarse"))
        tick = 1;
    feed.settings.use_python_export = asked("python");
    feed.identity.rank_set = asked("rank");
    struct tp_step_span *spans = calloc(steps + 1, sizeof *spans);
    size_t around = asked("around") ? feed_begin(&feed, &trainer, "training", later()) : 0;
    size_t never = asked("open") ? feed_begin(&feed, &trainer, "main", later()) : 0;
    uint64_t edge = feed.report.window_begin_ns - 500;
    for (unsigned i = 0; i < steps; i++) {
        spans[i] = (struct tp_step_span){.number = 5 + i, .start_ns = edge, .thread = trainer,
                                         .kind = TP_STEP_KIND_TRAINING};
        odd_ranges(&feed);
        edge = spans[i].end_ns = train(&feed, layers);
    }
    spans[steps] = (struct tp_step_span){.number = 5 + steps, .start_ns = edge, .end_ns = now + tick * 1000,
                                         .thread = trainer, .kind = TP_STEP_KIND_TRAINING};
    forward(&feed);
    if (asked("around"))
        feed_end(&feed, around, later())->scope = TP_SCOPE_USER_SCOPE;
    feed.report.window_end_ns = now + tick * 100;
    if (asked("open")) {
        feed.events[never].end_ns = feed.report.window_end_ns;
        feed.counts.unfinished = 1;
    }
    if (asked("loss")) {
        feed.counts.lost = 17;
        feed.report.lost_before = 5;
        feed.report.dropped_end_ns = feed.report.window_begin_ns + tick * 20;
    }
    feed.report.steps = spans;
    feed.report.step_count = steps + 1;
    feed.report.trace_name = argv[1];
    const char *name = strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1];
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s", name > argv[1] ? (int)(name - argv[1]) : 1, name > argv[1] ? argv[1] : ".");
    bool gzip = strlen(name) > 3 && strcmp(name + strlen(name) - 3, ".gz") == 0;
    double begin = seconds();
    int result = feed_write(&feed, &tp_chrome_writer, open(folder, O_PATH | O_DIRECTORY), name, gzip ? 1 : 0);
    double time = seconds() - begin;
    struct stat status = {0};
    stat(argv[1], &status);
    printf("%zu events, %.0f ns and %.1f bytes an event, result %d\n", feed.count, time * 1e9 / (double)feed.count,
           (double)status.st_size / (double)feed.count, result);
    feed_free(&feed);
    free(spans);
    return result < 0;
}
