/*
 * The text of TPROF_STEP, up to a newline; what follows are marks, two bytes each, for the rule that came of it. Edges
 * come in the order of their time, and never more than fit.
 */
#include <errno.h>
#include <string.h>

#include "../../agent/steps.h"
#include "must.h"

static uint64_t see_edges(const struct tp_step_edge *edges, unsigned count, uint64_t last, uint64_t now)
{
    must(count <= TP_STEPS_MAX_EDGES);
    for (unsigned i = 0; i < count; i++) {
        must(edges[i].time >= last && edges[i].time <= now && edges[i].kind <= TP_STEP_KIND_WHOLE);
        last = edges[i].time;
    }
    return last;
}

static void feed_marks(const struct tp_step_rule *rule, const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a", "Optimizer.step#Adam.step", "ProfilerStep#1", ""};
    struct tp_step_edge edges[TP_STEPS_MAX_EDGES];
    struct tp_steps *steps = malloc(tp_steps_size());
    must(steps);
    tp_steps_init(steps, rule);
    uint64_t time = 0, last = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        time += data[i + 1] & 15;
        struct tp_mark mark = {.kind = (enum tp_mark_kind)(TP_MARK_DATALOADER + data[i] % TP_MARK_TIME),
                               .edge = data[i + 1] & 16 ? TP_MARK_BEGIN : TP_MARK_END,
                               .identity = data[i] >> 5,
                               .thread = data[i + 1] >> 6,
                               .time = time,
                               .name = names[data[i + 1] >> 4 & 3]};
        last = see_edges(edges, tp_steps_feed(steps, &mark, edges), last, time);
        const char *news = tp_steps_news(steps);
        must(!news || strlen(news) < 4096);
        tp_steps_undecided(steps);
    }
    see_edges(edges, tp_steps_finish(steps, edges), last, time);
    free(steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);
    size_t bytes = end ? (size_t)(end - data) : size;
    char line[800], *text = malloc(bytes + 1);
    must(text);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    struct tp_step_rule rule;
    struct tp_error error = {0};
    int status = tp_step_rule_parse(text, &rule, &error);
    must(status == 0 || status == -EINVAL);
    must((status == 0) == !error.set);
    if (error.set)
        must(tp_error_line(&error, line, sizeof line) == strlen(line) && !strchr(line, '\n'));
    if (status == 0) {
        must(rule.kind <= TP_STEP_NONE);
        must(!rule.name || (rule.name >= text && rule.name <= text + bytes));
        must(rule.kind != TP_STEP_EVERY || rule.period_ns > 0);
        if (end)
            feed_marks(&rule, end + 1, size - bytes - 1);
    }
    free(text);
    return 0;
}
