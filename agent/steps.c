#include "steps.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * `auto`, in words (docs/steps.md has the table of programs):
 *
 * D is the next batch, S an optimizer's step. Optimizer steps are counted in rounds. With batches a round is one or
 * more D and the S that follow, closed by the next D; without, it is closed by the first S whose identity the round has
 * already. One identity is chosen, the most seldom (most rounds between its ends, else fewest ends in a round, else the
 * last of the round), and its last end in a round is the edge: the m-th, where it regularly ends m times. What ended in
 * closed rounds without an edge waits in `ends` until it is known whether it was one.
 *
 * D after D without S are batches of another kind once there are more of them than accumulation explains.
 *
 * The program's own profiler, while it counts steps, goes over all of this, which goes on unseen.
 */
enum {
    MAX_WAITING = TP_STEPS_MAX_EDGES - 4, /* some come out together with what the mark itself gives */
    MAX_IDENTITIES = 32,
    MAX_GAP = 32,          /* an optimizer that ends in fewer rounds than this is not what steps are made of */
    ROUNDS_REMEMBERED = 5,
    FIRST_BATCHES = 5,     /* so many D before the first S: the program only reads batches */
    FIRST_BATCHES_IF_ZEROED = 17, /* the same where gradients were zeroed: it will train, after accumulation */
    ENDS_WITHOUT_BATCH = 16, /* so many ends of one S after a D: no D comes any more */
    ENDS_WITHOUT_BATCH_AGAIN = 4, /* the same where that was so before */
    ROUNDS_WAITING = 48,     /* for a choice that was changed before; what waits must fit */
    MAX_CHANGES = 6,
    RIVAL_ENDS = 4,          /* so many by one other thread, none by the leader: that thread leads */
    OTHERS_ENDS = 64,        /* so many by several */
    HELD = 2,                /* edges after the program's own last: its profiler is done */
};

struct identity {
    uint64_t id;
    uint32_t last_round, rounds; /* in which it last ended; in how many */
    uint32_t gap[2];             /* rounds between its last ends, newest first */
    uint32_t ends, order;        /* in the open round */
    uint32_t closed_ends, closed_order; /* in the last round that it ended in */
    char name[56];
};

struct end {
    uint64_t time, thread;
    uint32_t round, identity;
};

struct start {
    uint64_t time, thread;
};

struct tp_steps {
    enum tp_step_rule_kind rule;

    /* What goes out. */
    struct tp_step_edge *out;
    unsigned out_count;
    uint64_t edges, last_edge_time;

    /* Optimizer steps. */
    struct identity identities[MAX_IDENTITIES];
    unsigned identity_count;
    struct identity *choice;
    uint32_t round, ends_in_round;
    uint32_t ends_per_round, last_ends; /* of the choice: how many are expected, how many there were */
    uint32_t ends_since_batch, last_ends_since_batch; /* of the choice, over rounds without D too */
    bool round_has_edge;
    struct end ends[MAX_WAITING];
    unsigned end_count;
    struct identity *rival; /* better than the choice, so many rounds in a row */
    uint32_t rival_rounds, changes;

    /* Batches. */
    bool by_batch; /* rounds are closed by D */
    bool batch_was_missing;
    uint32_t batches; /* D since the last S */
    bool only_batches, had_only_batches; /* now; in the D of the open round */
    struct start starts[MAX_WAITING];    /* of D that may be edges */
    unsigned start_count;
    uint32_t history[ROUNDS_REMEMBERED], history_count, last_batches; /* D per round */
    uint32_t zeroed;
    bool zeroed_in_batch;
    bool optimizer_since_edge;

    /* Threads. */
    bool has_leader, leader_optimizes;
    uint64_t leader, other;
    uint32_t other_ends, others_ends, depth; /* depth: S open on the leader's thread */

    /* The program's own profiler. */
    bool program_rules;
    uint32_t program_open, edges_under_program;
    uint64_t program_begin;
    struct tp_step_edge held[HELD];
    unsigned held_count;

    bool told_batches, told_evaluation, told_program, has_news;
    char news[320];
};

size_t tp_steps_size(void)
{
    return sizeof(struct tp_steps);
}

void tp_steps_init(struct tp_steps *steps, const struct tp_step_rule *rule)
{
    memset(steps, 0, sizeof *steps);
    steps->rule = rule->kind;
    steps->ends_per_round = 1;
}

static void TP_PRINTF(2, 3) tell(struct tp_steps *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->news, sizeof s->news, format, arguments);
    va_end(arguments);
    s->has_news = true;
}

const char *tp_steps_news(struct tp_steps *s)
{
    bool has_news = s->has_news;
    s->has_news = false;
    return has_news ? s->news : NULL;
}

static void put_out(struct tp_steps *s, const struct tp_step_edge *edge)
{
    /* What was decided late may lie before an edge that the program's own profiler gave meanwhile. */
    if (edge->time < s->last_edge_time || s->out_count == TP_STEPS_MAX_EDGES)
        return;
    s->out[s->out_count++] = *edge;
    s->last_edge_time = edge->time;
    s->edges++;
    s->optimizer_since_edge = false;
}

static void release_held(struct tp_steps *s)
{
    for (unsigned i = 0; i < s->held_count; i++)
        put_out(s, &s->held[i]);
    s->held_count = 0;
}

/* An edge by optimizer or batch. The program's own profiler overrules it while a step of its own is open, and for one
 * edge after, until it is clear that no other step follows. */
static void give_edge(struct tp_steps *s, uint64_t time, uint64_t thread, enum tp_step_kind kind)
{
    struct tp_step_edge edge = {.time = time, .thread = thread, .kind = kind};
    if (s->program_rules && s->program_open > 0 && ++s->edges_under_program < TP_STEPS_MAX_EDGES)
        return;
    if (s->program_rules && s->program_open == 0) {
        s->held[s->held_count++] = edge;
        if (s->held_count < HELD)
            return;
        s->program_rules = false;
        release_held(s);
        return;
    }
    s->program_rules = false;
    put_out(s, &edge);
}

static void feed_program_step(struct tp_steps *s, const struct tp_mark *mark)
{
    release_held(s);
    if (mark->edge == TP_MARK_BEGIN) {
        if (s->program_open++ == 0)
            s->program_begin = mark->time;
        return;
    }
    if (s->program_open > 0)
        s->program_open--;
    s->edges_under_program = 0;
    if (!s->told_program)
        tell(s, "steps end where the program's own profiler says so (ProfilerStep), while it does");
    s->told_program = true;
    /* Its first step ends where an optimizer has just ended a step: one edge, not two. */
    bool ended_already = !s->program_rules && s->edges > 0 && s->last_edge_time >= s->program_begin;
    s->program_rules = true;
    if (!ended_already)
        put_out(s, &(struct tp_step_edge){mark->time, mark->thread, TP_STEP_KIND_TRAINING});
}

/* How many rounds from one in which it ends to the next: the fewer of the last two, as one may be a short epoch. */
static uint32_t gap_of(const struct identity *i)
{
    if (i->rounds < 2)
        return 1;
    return i->rounds > 2 && i->gap[1] < i->gap[0] ? i->gap[1] : i->gap[0];
}

static bool in_use(const struct tp_steps *s, const struct identity *i)
{
    return s->round - i->last_round <= 2 * gap_of(i);
}

/* Other optimizers go on without it. Where one is skipped at random it comes back: each change waits longer. */
static bool choice_is_gone(const struct tp_steps *s)
{
    uint32_t usual = 2 * gap_of(s->choice), longest = usual > ROUNDS_WAITING ? usual : ROUNDS_WAITING;
    uint32_t patience = usual << s->changes < longest ? usual << s->changes : longest;
    return s->round - s->choice->last_round > patience;
}

/* Is a more seldom than b, or as seldom and later in the round? Without D a round has no last. */
static bool better(const struct identity *a, const struct identity *b, bool rounds_have_order)
{
    uint32_t gap_a = gap_of(a), gap_b = gap_of(b);
    if (gap_a != gap_b)
        return gap_a <= MAX_GAP && (gap_a > gap_b || gap_b > MAX_GAP);
    if (a->closed_ends != b->closed_ends)
        return a->closed_ends < b->closed_ends;
    return rounds_have_order && a->last_round == b->last_round && a->closed_order > b->closed_order;
}

static struct identity *identity_of(struct tp_steps *s, const struct tp_mark *mark)
{
    struct identity *found = NULL;
    for (unsigned i = 0; i < s->identity_count; i++)
        if (s->identities[i].id == mark->identity)
            return &s->identities[i];
    if (s->identity_count < MAX_IDENTITIES) {
        found = &s->identities[s->identity_count++];
    } else {
        for (struct identity *i = s->identities; i < s->identities + MAX_IDENTITIES; i++)
            if (i != s->choice && i->ends == 0 && (!found || i->last_round < found->last_round))
                found = i;
        if (!found)
            return NULL;
        uint32_t index = (uint32_t)(found - s->identities);
        unsigned kept = 0;
        for (unsigned i = 0; i < s->end_count; i++)
            if (s->ends[i].identity != index)
                s->ends[kept++] = s->ends[i];
        s->end_count = kept;
        if (s->rival == found)
            s->rival = NULL;
    }
    *found = (struct identity){.id = mark->identity};
    snprintf(found->name, sizeof found->name, "%s", mark->name ? mark->name : "?");
    return found;
}

static void tell_choice(struct tp_steps *s, bool changed, const char *why)
{
    char times[64] = "";
    if (s->by_batch && s->ends_per_round > 1)
        snprintf(times, sizeof times, ", at the last of its %u ends for a batch", s->ends_per_round);
    tell(s, "steps %send at %s%s (%s); TPROF_STEP sets another rule", changed ? "now " : "", s->choice->name, times,
         why);
}

static void choose(struct tp_steps *s, struct identity *choice, bool changed)
{
    bool only = true;
    for (unsigned i = 0; i < s->identity_count; i++)
        only = only && (&s->identities[i] == choice || s->identities[i].rounds == 0 || !in_use(s, &s->identities[i]));
    s->choice = choice;
    s->ends_per_round = s->last_ends = choice->closed_ends;
    s->ends_since_batch = s->last_ends_since_batch = 0;
    s->rival = NULL;
    s->rival_rounds = 0;
    s->changes += changed && s->changes < MAX_CHANGES;
    tell_choice(s, changed, only ? "the only optimizer in use" : "the most seldom or last of several optimizers");
}

/* Of a closed round only the last end of each identity can be an edge. */
static void keep_last_ends(struct tp_steps *s)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < s->end_count; i++) {
        bool last = true;
        for (unsigned j = i + 1; j < s->end_count && last; j++)
            last = s->ends[j].round != s->ends[i].round || s->ends[j].identity != s->ends[i].identity;
        if (last)
            s->ends[kept++] = s->ends[i];
    }
    s->end_count = kept;
}

static void give_waiting_ends(struct tp_steps *s)
{
    for (unsigned i = 0; i < s->end_count; i++)
        if (&s->identities[s->ends[i].identity] == s->choice)
            give_edge(s, s->ends[i].time, s->ends[i].thread, TP_STEP_KIND_TRAINING);
    s->end_count = 0;
}

static void review_choice(struct tp_steps *s)
{
    struct identity *best = s->choice;
    for (unsigned k = 0; k < s->identity_count; k++) {
        struct identity *i = &s->identities[k];
        if (i->rounds > 2 && in_use(s, i) && better(i, best, s->by_batch))
            best = i;
    }
    if (best == s->choice) {
        s->rival = NULL;
        return;
    }
    s->rival_rounds = best == s->rival ? s->rival_rounds + 1 : 1;
    s->rival = best;
    /* Where an optimizer is skipped at random the balance goes to and fro: each change asks for more proof. */
    if (s->rival_rounds >= 1u << s->changes)
        choose(s, best, true);
}

/* The choice of a first round, or of the rounds that went by without the choice. */
static void choose_anew(struct tp_steps *s)
{
    struct identity *best = NULL;
    for (unsigned k = 0; k < s->identity_count; k++) {
        struct identity *i = &s->identities[k];
        if (i->rounds > 0 && in_use(s, i) && (!best || better(i, best, true)))
            best = i;
    }
    choose(s, best, s->choice != NULL);
    give_waiting_ends(s);
}

static void expect_ends(struct tp_steps *s, uint32_t ends)
{
    /* More ends move the edge to the last of them; fewer ends do when they come twice. */
    if (ends > s->ends_per_round || ends == s->last_ends)
        s->ends_per_round = ends;
    s->last_ends = ends;
}

static uint32_t accumulation(const struct tp_steps *s)
{
    uint32_t sorted[ROUNDS_REMEMBERED], count = 0;
    for (; count < s->history_count; count++) {
        uint32_t at = count;
        for (; at > 0 && sorted[at - 1] > s->history[count]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = s->history[count];
    }
    uint32_t median = count ? sorted[count / 2] : 1;
    return median < 1 ? 1 : median > MAX_WAITING ? MAX_WAITING : median;
}

static void remember_batches(struct tp_steps *s)
{
    bool repeated = s->batches == s->last_batches;
    s->last_batches = s->batches;
    if (s->had_only_batches && !repeated)
        return;
    if (s->had_only_batches) /* what looked like evaluation comes in every round */
        s->history_count = 0;
    if (s->history_count == ROUNDS_REMEMBERED)
        memmove(s->history, s->history + 1, --s->history_count * sizeof *s->history);
    s->history[s->history_count++] = s->batches;
}

static void close_round(struct tp_steps *s)
{
    s->round++;
    for (unsigned k = 0; k < s->identity_count; k++) {
        struct identity *i = &s->identities[k];
        if (i->ends == 0)
            continue;
        i->gap[1] = i->gap[0];
        i->gap[0] = s->round - i->last_round;
        i->last_round = s->round;
        i->rounds += i->rounds < UINT32_MAX;
        i->closed_ends = i->ends;
        i->closed_order = i->order;
        i->ends = 0;
    }
    keep_last_ends(s);
    if (!s->choice || choice_is_gone(s)) {
        choose_anew(s);
    } else {
        if (s->choice->last_round == s->round) {
            if (!s->round_has_edge)
                give_waiting_ends(s); /* fewer ends than expected */
            s->end_count = 0;
            if (s->by_batch)
                expect_ends(s, s->choice->closed_ends);
        }
        review_choice(s);
    }
    if (s->by_batch && s->batches > 0)
        remember_batches(s);
    s->ends_in_round = 0;
    s->round_has_edge = false;
}

static void take_end(struct tp_steps *s, struct identity *i, uint64_t time, uint64_t thread)
{
    if (!s->by_batch && i->ends > 0)
        close_round(s);
    i->ends++;
    i->order = ++s->ends_in_round;
    if (!s->choice && s->rule == TP_STEP_OPTIMIZER) {
        i->closed_ends = 1;
        choose(s, i, false);
    }
    uint32_t expected = s->by_batch ? s->ends_per_round : 1;
    if (i == s->choice && !s->round_has_edge && i->ends >= expected) {
        s->round_has_edge = true;
        s->end_count = 0;
        give_edge(s, time, thread, TP_STEP_KIND_TRAINING);
        return;
    }
    if (s->end_count == MAX_WAITING)
        memmove(s->ends, s->ends + 1, --s->end_count * sizeof *s->ends);
    s->ends[s->end_count++] =
        (struct end){.time = time, .thread = thread, .round = s->round, .identity = (uint32_t)(i - s->identities)};
}

/* No D comes any more: the ends since the last one are looked at again, as rounds without. */
static void go_on_without_batches(struct tp_steps *s)
{
    struct end again[MAX_WAITING];
    unsigned count = 0, kept = 0;
    for (unsigned i = 0; i < s->end_count; i++) {
        if (s->ends[i].round == s->round)
            again[count++] = s->ends[i];
        else
            s->ends[kept++] = s->ends[i];
    }
    s->end_count = kept;
    s->by_batch = false;
    s->batch_was_missing = true;
    s->batches = 0;
    s->round_has_edge = false;
    s->ends_in_round = 0;
    for (unsigned i = 0; i < s->identity_count; i++)
        s->identities[i].ends = 0;
    for (unsigned i = 0; i < count; i++)
        take_end(s, &s->identities[again[i].identity], again[i].time, again[i].thread);
}

static uint32_t ends_without_batch(const struct tp_steps *s, const struct identity *i)
{
    uint32_t usual = i == s->choice ? s->ends_per_round : i->closed_ends;
    uint32_t least = s->batch_was_missing && i == s->choice ? ENDS_WITHOUT_BATCH_AGAIN : ENDS_WITHOUT_BATCH;
    return 2 * usual > least ? 2 * usual : least;
}

static void feed_optimizer(struct tp_steps *s, const struct tp_mark *mark)
{
    struct identity *i = identity_of(s, mark);
    s->start_count = 0; /* accumulation, or the batch of this very step */
    s->only_batches = false;
    if (!i)
        return;
    take_end(s, i, mark->time, mark->thread);
    if (i == s->choice)
        s->ends_since_batch++;
    if (s->by_batch && i->ends >= ends_without_batch(s, i))
        go_on_without_batches(s);
}

/* Where D was found missing, and yet comes after as many ends as the time before: they are one round after all. */
static void review_ends_since_batch(struct tp_steps *s, bool evaluated)
{
    uint32_t ends = s->ends_since_batch;
    s->ends_since_batch = 0;
    if (ends == 0)
        return;
    if (ends > 1 && ends == s->last_ends_since_batch && !s->by_batch && !evaluated && s->choice) {
        s->by_batch = true;
        s->batch_was_missing = false;
        s->ends_per_round = s->last_ends = ends;
        tell_choice(s, true, "so many for each batch");
    }
    s->last_ends_since_batch = ends;
}

static uint32_t too_many_batches(const struct tp_steps *s)
{
    if (!s->choice)
        return s->zeroed == 1 || s->zeroed == 2 ? FIRST_BATCHES_IF_ZEROED : FIRST_BATCHES;
    /* An epoch may end within accumulation: the rest of it, the D that finds the end, a whole one. */
    uint32_t a = accumulation(s);
    return a + 3 > 2 * a + 1 ? a + 3 : 2 * a + 1;
}

static void take_only_batches(struct tp_steps *s)
{
    if (!s->choice && !s->told_batches)
        tell(s, "steps are batches of the DataLoader, as no optimizer steps; TPROF_STEP sets another rule");
    else if (s->choice && !s->told_evaluation)
        tell(s, "batches without an optimizer step are steps of another kind (evaluation)");
    s->told_batches |= !s->choice;
    s->told_evaluation |= s->choice != NULL;
    s->only_batches = s->had_only_batches = true;
}

static void give_waiting_starts(struct tp_steps *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        give_edge(s, s->starts[i].time, s->starts[i].thread, TP_STEP_KIND_BATCH);
    s->start_count -= count;
    memmove(s->starts, s->starts + count, s->start_count * sizeof *s->starts);
}

static void feed_batch(struct tp_steps *s, const struct tp_mark *mark)
{
    bool evaluated = s->had_only_batches;
    s->zeroed_in_batch = false;
    if (s->ends_in_round > 0) {
        close_round(s);
        s->batches = 0;
        s->had_only_batches = false;
    }
    review_ends_since_batch(s, evaluated);
    s->by_batch = true;
    /* The first D after an edge begins nothing new. */
    if (s->batches++ > 0) {
        if (s->start_count == MAX_WAITING)
            memmove(s->starts, s->starts + 1, --s->start_count * sizeof *s->starts);
        s->starts[s->start_count++] = (struct start){mark->time, mark->thread};
    }
    if (!s->only_batches && s->batches >= too_many_batches(s))
        take_only_batches(s);
    if (!s->only_batches)
        return;
    /* The newest may belong to a step that ends after accumulation. */
    uint32_t waiting = accumulation(s) - 1;
    if (s->start_count > waiting)
        give_waiting_starts(s, s->start_count - waiting);
}

static void follow(struct tp_steps *s, uint64_t thread)
{
    s->has_leader = true;
    s->leader = thread;
    s->by_batch = false;
    s->batches = s->start_count = s->depth = s->other_ends = s->others_ends = 0;
    s->only_batches = s->had_only_batches = false;
}

/* One thread's loop makes the steps; of threads that train side by side, the first, while it goes on. */
static bool is_led(struct tp_steps *s, const struct tp_mark *mark)
{
    bool optimizes = mark->kind == TP_MARK_OPTIMIZER;
    if (!s->has_leader || (optimizes && !s->leader_optimizes && s->leader != mark->thread))
        follow(s, mark->thread);
    s->leader_optimizes |= optimizes;
    if (mark->thread == s->leader) {
        s->other_ends = s->others_ends = 0;
        return true;
    }
    /* Where an optimizer leads, D of other threads are a prefetcher's, in no order with the steps. */
    if (optimizes != s->leader_optimizes || mark->edge != (optimizes ? TP_MARK_END : TP_MARK_BEGIN))
        return false;
    s->other_ends = mark->thread == s->other ? s->other_ends + 1 : 1;
    s->other = mark->thread;
    if (s->other_ends < RIVAL_ENDS && ++s->others_ends < OTHERS_ENDS)
        return false;
    follow(s, mark->thread);
    return true;
}

static void feed_auto(struct tp_steps *s, const struct tp_mark *mark)
{
    switch (mark->kind) {
    case TP_MARK_PROFILER_STEP:
        feed_program_step(s, mark);
        break;
    case TP_MARK_ZERO_GRAD:
        if (mark->edge == TP_MARK_BEGIN && !s->zeroed_in_batch) {
            s->zeroed_in_batch = true;
            s->zeroed += s->zeroed < UINT32_MAX;
        }
        break;
    case TP_MARK_OPTIMIZER:
        if (!is_led(s, mark))
            break;
        if (mark->edge == TP_MARK_BEGIN) {
            s->depth++;
            break;
        }
        /* An optimizer inside another is a part of it. */
        if (s->depth <= 1)
            feed_optimizer(s, mark);
        s->depth -= s->depth > 0;
        break;
    case TP_MARK_DATALOADER:
        /* Inside an optimizer's step it is the closure that fetches: no order of batches and steps. */
        if (mark->edge == TP_MARK_BEGIN && is_led(s, mark) && s->depth == 0)
            feed_batch(s, mark);
        break;
    case TP_MARK_RANGE:
    case TP_MARK_TIME:
        break;
    }
}

static void feed_dataloader(struct tp_steps *s, const struct tp_mark *mark)
{
    if (mark->kind == TP_MARK_OPTIMIZER && mark->edge == TP_MARK_END)
        s->optimizer_since_edge = true;
    if (mark->kind != TP_MARK_DATALOADER || mark->edge != TP_MARK_BEGIN || s->batches++ == 0)
        return;
    enum tp_step_kind kind = s->optimizer_since_edge ? TP_STEP_KIND_TRAINING : TP_STEP_KIND_BATCH;
    put_out(s, &(struct tp_step_edge){mark->time, mark->thread, kind});
}

unsigned tp_steps_feed(struct tp_steps *s, const struct tp_mark *mark, struct tp_step_edge edges[TP_STEPS_MAX_EDGES])
{
    s->out = edges;
    s->out_count = 0;
    switch (s->rule) {
    case TP_STEP_AUTO:
        feed_auto(s, mark);
        break;
    case TP_STEP_OPTIMIZER:
        if (mark->kind == TP_MARK_OPTIMIZER)
            feed_auto(s, mark);
        break;
    case TP_STEP_DATALOADER:
        feed_dataloader(s, mark);
        break;
    case TP_STEP_RANGE:
        if (mark->kind == TP_MARK_RANGE && mark->edge == TP_MARK_END)
            put_out(s, &(struct tp_step_edge){mark->time, mark->thread, TP_STEP_KIND_TRAINING});
        break;
    case TP_STEP_EVERY:
        if (mark->kind == TP_MARK_TIME)
            put_out(s, &(struct tp_step_edge){mark->time, mark->thread, TP_STEP_KIND_TIME});
        break;
    case TP_STEP_PYTHON:
    case TP_STEP_NONE:
        break;
    }
    s->out = NULL;
    return s->out_count;
}

unsigned tp_steps_finish(struct tp_steps *s, struct tp_step_edge edges[TP_STEPS_MAX_EDGES])
{
    if (s->rule != TP_STEP_AUTO && s->rule != TP_STEP_OPTIMIZER)
        return 0;
    s->out = edges;
    s->out_count = 0;
    release_held(s);
    if (s->ends_in_round > 0)
        close_round(s);
    /* No optimizer ever: few batches are batches all the same. After an optimizer they may be a rest of accumulation. */
    if (!s->choice && s->batches > 1 && !s->only_batches)
        take_only_batches(s);
    if (s->only_batches)
        give_waiting_starts(s, s->start_count);
    s->out = NULL;
    return s->out_count;
}

bool tp_steps_undecided(const struct tp_steps *s)
{
    if (s->rule != TP_STEP_AUTO && s->rule != TP_STEP_OPTIMIZER)
        return false;
    if (s->program_rules)
        return s->held_count > 0;
    if (s->only_batches)
        return s->start_count > 0;
    if (!s->choice)
        return s->rule == TP_STEP_AUTO;
    bool late = s->round - s->choice->last_round >= gap_of(s->choice) && s->end_count > 0 && !s->round_has_edge;
    bool irregular = s->by_batch && s->last_ends != s->ends_per_round && s->end_count > 0;
    bool no_batch = s->by_batch && s->round_has_edge && s->choice->ends > s->ends_per_round;
    bool evaluation = s->ends_in_round == 0 && s->batches > accumulation(s);
    return late || irregular || no_batch || evaluation;
}
