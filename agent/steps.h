/*
 * steps.h: from the marks that a program makes to its training steps. Pure: marks in, step edges out; knows no PyTorch
 * name, no clock, no thread. The caller feeds marks one at a time, in the order of their time.
 *
 * An edge is a moment at which one step ends and the next begins. Step 0 begins when the agent attaches. Which marks are
 * edges may be known only later; then feed gives back the older edges together with the newest, and the numbers count
 * from the start.
 */
#ifndef TP_STEPS_H
#define TP_STEPS_H

#include "base.h"
#include "error.h"

enum tp_mark_kind {
    TP_MARK_DATALOADER = 1, /* the next batch is fetched */
    TP_MARK_ZERO_GRAD,
    TP_MARK_OPTIMIZER,      /* an optimizer's step */
    TP_MARK_PROFILER_STEP,  /* the program's own profiler says so: ProfilerStep#N */
    TP_MARK_RANGE,          /* a user range whose name the setting names */
    TP_MARK_TIME,           /* the clock of `every:` ran out: always an edge, only under that rule */
};

enum tp_mark_edge { TP_MARK_BEGIN, TP_MARK_END };

struct tp_mark {
    enum tp_mark_kind kind;
    enum tp_mark_edge edge;
    uint64_t identity; /* equal for marks made by the same name at the same place of the program */
    uint64_t thread;   /* serial of the thread that made it */
    uint64_t time;     /* clock ticks, never falling from one feed to the next */
    const char *name;  /* for messages; valid during the call only */
};

enum tp_step_rule_kind {
    TP_STEP_AUTO,
    TP_STEP_OPTIMIZER,
    TP_STEP_DATALOADER,
    TP_STEP_RANGE,
    TP_STEP_PYTHON, /* comes with Python tracing */
    TP_STEP_EVERY,
    TP_STEP_NONE,
};

struct tp_step_rule {
    enum tp_step_rule_kind kind;
    const char *name;   /* range or qualified Python name */
    uint64_t period_ns; /* every: */
};

/* Reads a value of TPROF_STEP. name points into text. 0, or -EINVAL with error set. */
int tp_step_rule_parse(const char *text, struct tp_step_rule *ret_rule, struct tp_error *error);

/* What a step is made of, for its name in the trace and in the summary. */
enum tp_step_kind {
    TP_STEP_KIND_TRAINING, /* ends at an optimizer step, a named range, the program's own ProfilerStep */
    TP_STEP_KIND_BATCH,    /* a batch without an optimizer step: inference, evaluation */
    TP_STEP_KIND_TIME,     /* a period of `every:` */
    TP_STEP_KIND_WHOLE,    /* no edge was ever seen */
};

struct tp_step_edge {
    uint64_t time;          /* the step that began at the edge before (or at attach) ends here */
    uint64_t thread;        /* that made the mark */
    enum tp_step_kind kind; /* of the step that ends */
};

struct tp_steps;

/* Bytes that the caller provides, 16-byte aligned, for one struct tp_steps. */
size_t tp_steps_size(void);
void tp_steps_init(struct tp_steps *steps, const struct tp_step_rule *rule);

/* At most this many edges come out of one feed; the marks that wait for a decision are bounded by it too. */
#define TP_STEPS_MAX_EDGES 64

/* Takes one mark. Returns how many edges are now known that were not before, oldest first. */
unsigned tp_steps_feed(struct tp_steps *steps, const struct tp_mark *mark, struct tp_step_edge edges[TP_STEPS_MAX_EDGES]);

/* The program ends: what was still open is decided by what was seen. As for feed. */
unsigned tp_steps_finish(struct tp_steps *steps, struct tp_step_edge edges[TP_STEPS_MAX_EDGES]);

/* True while the next edge is still open to decision, so that what is recorded now may belong to an earlier step. */
bool tp_steps_undecided(const struct tp_steps *steps);

/* A line on what was chosen and why ("steps end at Optimizer.step#Adam.step (most seldom of 2 per batch); ..."), when
 * it was chosen or changed since the last call; else NULL. Static or inside steps, valid until the next feed. */
const char *tp_steps_news(struct tp_steps *steps);

#endif
