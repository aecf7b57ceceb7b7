/*
 * A program is written as the marks that it makes, the edges that are right among them:
 *     D  next batch    Z  zero_grad    S T U  steps of three optimizers    L  a step with zero_grad inside, as LBFGS
 *     <  >  begin and end of a step of S, for what lies inside    [  ]  begin and end of the program's own ProfilerStep
 *     r  a named range    t  the clock of every:    1 to 9  the marks that follow come from this thread
 *     .  the mark before is a training step's edge    ,  a batch's    ;  a period's
 *     3{DZS.}  three times
 * A D is an edge where it begins, every other mark where it ends.
 */
#include "suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/steps.h"

#define MAX_EDGES 20000

struct run {
    struct tp_steps *steps;
    uint64_t time, thread, last_mark_edge;
    struct tp_step_edge expected[MAX_EDGES], found[MAX_EDGES];
    size_t expected_count, found_count;
    size_t late; /* edges told at a later mark than their own */
    unsigned profiler_steps;
};

static struct run run;

static void begin(const char *rule)
{
    struct tp_step_rule parsed;
    ck_assert_int_eq(tp_step_rule_parse(rule, &parsed, NULL), 0);
    free(run.steps);
    memset(&run, 0, sizeof run);
    run.steps = aligned_alloc(16, tp_round_up(tp_steps_size(), 16));
    tp_steps_init(run.steps, &parsed);
    run.thread = 1;
}

static void feed(enum tp_mark_kind kind, enum tp_mark_edge edge, const char *name)
{
    struct tp_step_edge edges[TP_STEPS_MAX_EDGES];
    struct tp_mark mark = {.kind = kind, .edge = edge, .thread = run.thread, .time = ++run.time, .name = name};
    for (const char *c = name; *c; c++)
        mark.identity = mark.identity * 31 + (unsigned char)*c;
    unsigned count = tp_steps_feed(run.steps, &mark, edges);
    ck_assert_uint_le(count, TP_STEPS_MAX_EDGES);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_uint_lt(run.found_count, MAX_EDGES);
        ck_assert_uint_le(edges[i].time, run.time);
        if (run.found_count > 0)
            ck_assert_uint_gt(edges[i].time, run.found[run.found_count - 1].time);
        run.late += edges[i].time < run.time;
        run.found[run.found_count++] = edges[i];
    }
    if ((kind == TP_MARK_DATALOADER) == (edge == TP_MARK_BEGIN))
        run.last_mark_edge = run.time;
}

static void both(enum tp_mark_kind kind, const char *name)
{
    feed(kind, TP_MARK_BEGIN, name);
    feed(kind, TP_MARK_END, name);
}

static void expect(enum tp_step_kind kind)
{
    run.expected[run.expected_count++] = (struct tp_step_edge){run.last_mark_edge, run.thread, kind};
}

static void letter(char c)
{
    char name[40];
    switch (c) {
    case 'D':
        both(TP_MARK_DATALOADER, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
        break;
    case 'Z':
        both(TP_MARK_ZERO_GRAD, "Optimizer.zero_grad#SGD.zero_grad");
        break;
    case 'S':
    case 'T':
    case 'U':
        snprintf(name, sizeof name, "Optimizer.step#%c.step", c);
        both(TP_MARK_OPTIMIZER, name);
        break;
    case 'L':
        feed(TP_MARK_OPTIMIZER, TP_MARK_BEGIN, "Optimizer.step#LBFGS.step");
        for (int i = 0; i < 4; i++)
            both(TP_MARK_ZERO_GRAD, "Optimizer.zero_grad#LBFGS.zero_grad");
        feed(TP_MARK_OPTIMIZER, TP_MARK_END, "Optimizer.step#LBFGS.step");
        break;
    case '<':
    case '>':
        feed(TP_MARK_OPTIMIZER, c == '<' ? TP_MARK_BEGIN : TP_MARK_END, "Optimizer.step#S.step");
        break;
    case '[':
    case ']':
        snprintf(name, sizeof name, "ProfilerStep#%u", run.profiler_steps);
        run.profiler_steps += c == ']';
        feed(TP_MARK_PROFILER_STEP, c == '[' ? TP_MARK_BEGIN : TP_MARK_END, name);
        break;
    case 'r':
        both(TP_MARK_RANGE, "iteration");
        break;
    case 't':
        feed(TP_MARK_TIME, TP_MARK_END, "every");
        break;
    case '.':
        expect(TP_STEP_KIND_TRAINING);
        break;
    case ',':
        expect(TP_STEP_KIND_BATCH);
        break;
    case ';':
        expect(TP_STEP_KIND_TIME);
        break;
    case ' ':
        break;
    default:
        ck_abort_msg("no mark: %c", c);
    }
}

/* Up to the closing brace or the end; returns where it stopped. */
static const char *play(const char *program)
{
    while (*program && *program != '}') {
        char *after;
        unsigned long times = strtoul(program, &after, 10);
        if (after == program || *program == ' ') {
            letter(*program++);
        } else if (*after != '{') {
            run.thread = times;
            program = after;
        } else {
            const char *closed = after + 1;
            for (; times > 0; times--)
                closed = play(after + 1);
            program = closed + 1;
        }
    }
    return program;
}

static void compare(const char *what)
{
    for (size_t i = 0; i < run.expected_count || i < run.found_count; i++) {
        uint64_t expected = i < run.expected_count ? run.expected[i].time : 0;
        uint64_t found = i < run.found_count ? run.found[i].time : 0;
        ck_assert_msg(expected == found, "%s: edge %zu is at mark %llu, not %llu", what, i, (unsigned long long)found,
                      (unsigned long long)expected);
        ck_assert_msg(run.expected[i].kind == run.found[i].kind, "%s: edge %zu has kind %d", what, i, run.found[i].kind);
        ck_assert_msg(run.expected[i].thread == run.found[i].thread, "%s: edge %zu has thread %llu", what, i,
                      (unsigned long long)run.found[i].thread);
    }
}

static const struct {
    const char *name, *rule, *program;
    size_t late;
} programs[] = {
    {"plain", "auto", "5{DZS.}", 1},
    {"plain, two epochs", "auto", "5{DZS.} D 5{DZS.} D", 1},
    {"an epoch of one batch", "auto", "6{DZS.D}", 1},
    {"accumulation x2", "auto", "6{DDZS.} D", 1},
    {"accumulation x4, zero_grad after the step", "auto", "6{DDDDS.Z} D", 1},
    {"accumulation x16, zero_grad at first", "auto", "Z 6{16{D}S.Z} D", 1},
    {"accumulation x8, not known before two rounds", "auto", "DD,D,D,D,D,D,D,S. DD,D,D,D,D,D,D,S. 4{8{D}S.}", 6},
    {"accumulation x4 with a short last group that is kept", "auto", "3{ 2{DDDDZS.} DD D }", 1},
    {"accumulation x4 with a short last group that steps", "auto", "3{ 2{DDDDZS.} DDZS. D }", 1},
    {"two loaders in one iteration", "auto", "5{DDZS.}", 1},
    {"GAN, two identities", "auto", "5{DZSZT.}", 1},
    {"GAN, one identity", "auto", "5{DZSZS.}", 1},
    {"GAN, one identity, one step is skipped", "auto", "3{DZSZS.} DZS. 4{DZSZS.}", 2},
    {"n-critic on one batch, two identities", "auto", "5{D 5{ZS} ZT.}", 1},
    {"n-critic on one batch, one identity", "auto", "5{D 5{ZS} ZS.}", 1},
    {"n-critic on five batches, two identities", "auto", "3{4{DZS.} DZS.ZT} 5{4{DZS} DZSZT.}", 1},
    {"two optimizers, one after the other", "auto", "5{DZZST.}", 1},
    {"three optimizers, two of one class", "auto", "5{DZST.S}", 1},
    {"LBFGS", "auto", "5{DL.}", 1},
    {"LBFGS without batches", "auto", "5{L.}", 1},
    {"LBFGS whose closure fetches batches", "auto", "4{<DZDZ>.}", 1},
    {"an optimizer inside another", "auto", "5{DZ<T>.}", 1},
    {"training and evaluation", "auto", "10{DZS.} 2{ D D,D,D,D, D,ZS. 9{DZS.} }", 5},
    {"accumulation x2 and evaluation", "auto", "5{DDZS.} 2{ DD,D,D,D,D,D, D,DZS. 4{DDZS.} }", 15},
    {"evaluation too short to be told from accumulation", "auto", "3{ 10{DZS.} DD }", 1},
    {"inference", "auto", "D 9{D,}", 3},
    {"inference on four batches", "auto", "D 4{D,}", 3},
    {"zero_grad without a step, batches", "auto", "DZ D,Z D,Z D,Z D,Z D,Z", 3},
    {"zero_grad alone", "auto", "20{Z}", 0},
    {"no marks", "auto", "", 0},
    {"one step", "auto", "DZS", 0},
    {"one step and the end of the batches", "auto", "DZS.D", 1},
    {"two steps", "auto", "DZS.DZS.", 1},
    {"two steps without batches", "auto", "ZS.ZS.", 1},
    {"one step without batches", "auto", "ZS", 0},
    {"steps alone", "auto", "9{S.}", 1},
    {"steps and zero_grad", "auto", "9{ZS.}", 1},
    {"two optimizers without batches", "auto", "9{ZSZT.}S", 1},
    {"one batch, then steps alone", "auto", "D 40{ZS.}", 15},
    {"training on batches, then steps alone", "auto", "5{DZS.} 40{ZS.}", 15},
    {"a hundred optimizers of one class per batch, not known before three rounds", "auto",
     "3{D 100{S.}} 5{D 99{S}S.}", 19},
    {"sanity evaluation before training", "auto", "DDD 9{DZS.}", 1},
    {"another optimizer from the middle", "auto", "5{DZS.} 6{DZT.}", 4},
    {"another optimizer from the middle, without batches", "auto", "5{S.} T 6{T.}", 4},
    {"a step before the first batch", "auto", "S. 5{DZS.}", 1},
    {"threads that train side by side", "auto", "6{1ZS.2ZS}", 1},
    {"threads that train side by side on batches", "auto", "6{1DZ2DZ1S.2S}", 1},
    {"batches fetched ahead by another thread", "auto", "2D2D 5{1ZS.2D}", 1},
    {"the program's profiler from the start", "auto", "[ 5{DZS].[}DZS].", 0},
    {"the program's profiler in the middle", "auto", "3{DZS.} [DZS.][DZS].[DZS].[DZS]. 3{DZS.}", 2},
    {"the program's profiler, never told of steps", "auto", "[ 5{DZS.} ]", 1},
    {"the program's profiler alone", "auto", "[].[].[].", 0},
    {"optimizer", "optimizer", "D 3{D} 5{DZS.}", 0},
    {"optimizer, two of them", "optimizer", "5{DZS.ZT}", 0},
    {"dataloader", "dataloader", "DZS D.ZS D.ZS D.D,D,", 0},
    {"range", "range:iteration", "DZSr. DZSr. [r.]", 0},
    {"every", "every:250ms", "DZSt; t; DZS DZSt;", 0},
    {"none", "none", "5{DZSrt}[][]", 0},
};

START_TEST(programs_have_their_edges)
{
    begin(programs[_i].rule);
    play(programs[_i].program);
    compare(programs[_i].name);
    ck_assert_msg(run.late == programs[_i].late, "%s: %zu edges came late, not %zu", programs[_i].name, run.late,
                  programs[_i].late);
}
END_TEST

Suite *steps_suite(void)
{
    Suite *suite = suite_create("steps");
    TCase *tcase = tcase_create("steps");
    tcase_add_loop_test(tcase, programs_have_their_edges, 0, TP_COUNT(programs));
    suite_add_tcase(suite, tcase);
    return suite;
}
