/*
 * A program is written as the marks that it makes, the edges that are right among them:
 *     D  next batch    Z  zero_grad    S T U  steps of three optimizers    L  a step with zero_grad inside, as LBFGS
 *     <  >  begin and end of a step of S, for what lies inside    [  ]  begin and end of the program's own ProfilerStep
 *     r  a named range    t  the clock of every:    1 to 9  the marks that follow come from this thread
 *     .  the mark before is a training step's edge    ,  a batch's    ;  a period's
 *     3{DZS.}  three times    !  the program ends
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

static void take(const struct tp_step_edge *edges, unsigned count)
{
    if (count > TP_STEPS_MAX_EDGES)
        ck_abort_msg("%u edges", count);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_uint_lt(run.found_count, MAX_EDGES);
        ck_assert_uint_le(edges[i].time, run.time);
        if (run.found_count > 0)
            ck_assert_uint_gt(edges[i].time, run.found[run.found_count - 1].time);
        run.late += edges[i].time < run.time;
        run.found[run.found_count++] = edges[i];
    }
}

static void feed(enum tp_mark_kind kind, enum tp_mark_edge edge, const char *name)
{
    struct tp_step_edge edges[TP_STEPS_MAX_EDGES];
    struct tp_mark mark = {.kind = kind, .edge = edge, .thread = run.thread, .time = ++run.time, .name = name};
    for (const char *c = name; *c; c++)
        mark.identity = mark.identity * 31 + (unsigned char)*c;
    take(edges, tp_steps_feed(run.steps, &mark, edges));
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

static void end(void)
{
    struct tp_step_edge edges[TP_STEPS_MAX_EDGES];
    run.time++;
    take(edges, tp_steps_finish(run.steps, edges));
}

static void letter(char c)
{
    char name[40];
    switch (c) {
    case '!':
        end();
        break;
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
        ck_assert_msg(run.expected[i].kind == run.found[i].kind, "%s: edge %zu has kind %d", what, i,
                      run.found[i].kind);
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
    {"accumulation x16, three zero_grad at first", "auto", "ZZZ 6{16{D}S.} D", 1},
    {"accumulation x8, not known before two rounds", "auto",
     "DD,D,D,D,D,D,D,S. DD,D,D,D,D,D,D,S. 4{8{D}S.}", 6},
    {"accumulation x4 with a short last group that is kept", "auto", "3{ 2{DDDDZS.} DD D }", 1},
    {"accumulation x4 with a short last group that steps", "auto", "3{ 2{DDDDZS.} DDZS. D }", 1},
    {"two loaders in one iteration", "auto", "5{DDZS.}", 1},
    {"GAN, two identities", "auto", "5{DZSZT.}", 1},
    {"GAN, one identity", "auto", "5{DZSZS.}", 1},
    {"GAN, one identity, one step is skipped", "auto", "3{DZSZS.} DZS. 4{DZSZS.}", 2},
    {"n-critic on one batch, two identities", "auto", "5{D 5{ZS} ZT.}", 1},
    {"n-critic on one batch, one identity", "auto", "5{D 5{ZS} ZS.}", 1},
    {"n-critic on five batches, two identities", "auto", "3{4{DZS.} DZS.ZT} 5{4{DZS} DZSZT.}", 1},
    {"n-critic on five batches, the seldom one first", "auto", "2{DZTZS. 4{DZS.}} DZTZS. 4{DZS} 3{DZT.ZS 4{DZS}}", 1},
    {"an optimizer every forty batches", "auto", "4{DZTZS. 39{DZS.}}", 1},
    {"two optimizers, the first skipped once", "auto", "3{DTS.} DS. 5{DTS.}", 1},
    {"two steps an iteration, then one", "auto", "3{DSS.} DS. DS. 4{DS.}", 3},
    {"two optimizers, one after the other", "auto", "5{DZZST.}", 1},
    {"three optimizers, two of one class", "auto", "5{DZST.S}", 1},
    {"LBFGS", "auto", "5{DL.}", 1},
    {"LBFGS without batches", "auto", "5{L.}", 1},
    {"LBFGS whose closure fetches batches", "auto", "4{<DZDZ>.}", 1},
    {"LBFGS whose closure fetches many", "auto", "4{<DZDZDZDZDZDZ>.}", 1},
    {"an optimizer inside another", "auto", "5{DZ<T>.}", 1},
    {"an optimizer inside another, without batches", "auto", "5{Z<S>.}", 1},
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
    {"training goes on in another thread", "auto", "3{1ZS.} 3{2ZS} 5{2ZS.}", 1},
    {"batches fetched ahead by another thread", "auto", "2D2D 5{1ZS.2D}", 1},
    {"the program's profiler from the start", "auto", "[ 5{DZS].[}DZS].", 0},
    {"the program's profiler in the middle", "auto", "3{DZS.} [DZS.][DZS].[DZS].[DZS]. 3{DZS.}", 2},
    {"the program's profiler, never told of steps", "auto", "[ 5{DZS.} ]", 1},
    {"the program's profiler, told of epochs", "auto", "[ 70{DZS.} ][ 63{DZS} 7{DZS.} ]", 1},
    {"the program's profiler alone", "auto", "[].[].[].", 0},
    {"one step, then the end", "auto", "DZS.!", 1},
    {"one step without batches, then the end", "auto", "ZS.!", 1},
    {"plain, then the end", "auto", "5{DZS.}D!", 1},
    {"accumulation, then the end in the middle of it", "auto", "3{DDDDS.}DDD!", 1},
    {"GAN of one round, then the end", "auto", "DZSZT.!", 1},
    {"an iteration cut short by the end", "auto", "3{DZSZS.}DZS.!", 2},
    {"an iteration without its last optimizer, then the end", "auto", "3{DZSZT.}DZS!", 1},
    {"inference on two batches, then the end", "auto", "D D, D,!", 2},
    {"inference on one batch, then the end", "auto", "D D,!", 1},
    {"inference on nine batches, then the end", "auto", "D 9{D,}!", 3},
    {"zero_grad without a step, then the end", "auto", "DZ D,Z D,!", 2},
    {"training and evaluation, then the end", "auto", "5{DZS.} D D,D,D,D,!", 3},
    {"accumulation and evaluation, then the end", "auto", "5{DDZS.} DD,D,D,D,D,D,D,!", 8},
    {"the program's profiler, then two steps and the end", "auto", "[DZS].[DZS].DZS.!", 1},
    {"no marks, then the end", "auto", "!", 0},
    {"optimizer, then the end", "optimizer", "DZS.DZS.!", 0},
    {"dataloader, then the end", "dataloader", "DZS D.ZS!", 0},
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

/* xorshift64*: the same programs on every machine. */
static uint64_t random_state;

static unsigned random_below(unsigned n)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (unsigned)((random_state * UINT64_C(0x2545f4914f6cdd1d) >> 33) % n);
}

/* One iteration's optimizers, and where in it the edge belongs: at the last end of the most seldom. */
struct iteration {
    char optimizers[8];
    unsigned length, edge;
};

static struct iteration random_iteration(void)
{
    struct iteration i = {.length = 1 + random_below(6)};
    unsigned count[128] = {0}, identities = 1 + random_below(3);
    for (unsigned k = 0; k < i.length; k++)
        count[(unsigned char)(i.optimizers[k] = "STU"[random_below(identities)])]++;
    for (unsigned k = 0; k < i.length; k++)
        if (count[(unsigned char)i.optimizers[k]] <= count[(unsigned char)i.optimizers[i.edge]])
            i.edge = k;
    return i;
}

static void play_iteration(const struct iteration *i, unsigned batches, bool first_is_edge, bool zeroes)
{
    for (unsigned k = 0; k < batches; k++) {
        letter('D');
        if (first_is_edge && k == 0)
            letter(',');
    }
    for (unsigned k = 0; k < i->length; k++) {
        if (zeroes)
            letter('Z');
        letter(i->optimizers[k]);
        if (k == i->edge)
            letter('.');
    }
}

/* Whatever the accumulation, the optimizers, the epochs and the evaluation between them: one edge an iteration, and one
 * a batch of evaluation. */
START_TEST(random_programs_have_their_edges)
{
    for (unsigned seed = 1; seed <= 2000; seed++) {
        char what[96];
        random_state = seed;
        begin("auto");
        struct iteration iteration = random_iteration();
        unsigned accumulation = 1 + random_below(4), epochs = 1 + random_below(5), length = 6 + random_below(10);
        unsigned rest = random_below(accumulation), clear = 2 * accumulation + 3;
        unsigned evaluation = random_below(2) ? clear + random_below(8) : 0;
        bool zeroes = random_below(2);
        snprintf(what, sizeof what, "seed %u: %u batches, %.*s, rest %u, evaluation %u", seed, accumulation,
                 (int)iteration.length, iteration.optimizers, rest, evaluation);
        for (unsigned epoch = 0; epoch < epochs; epoch++) {
            for (unsigned k = 0; k < length; k++)
                play_iteration(&iteration, accumulation, epoch > 0 && k == 0 && evaluation, zeroes);
            for (unsigned k = 0; k < rest + 1 + evaluation; k++) {
                letter('D');
                if (k > 0 && evaluation)
                    letter(',');
            }
        }
        /* So many D at the very end may still be accumulation. */
        if (evaluation)
            run.expected_count -= accumulation - 1;
        compare(what);
    }
}
END_TEST

START_TEST(random_marks_give_rising_edges)
{
    static const char letters[] = "DDDDSSSSSTUZL<>[]rt1234";
    static const char *const rules[] = {"auto", "auto", "auto", "optimizer", "dataloader"};
    for (unsigned seed = 1; seed <= 1000; seed++) {
        random_state = seed;
        begin(rules[seed % TP_COUNT(rules)]);
        /* Some kinds often, some seldom: long stretches of one kind meet every bound. */
        unsigned kinds = 1 + random_below(sizeof letters - 2), from = random_below(sizeof letters - 1);
        for (unsigned i = 0; i < 3000; i++) {
            if (i % 500 == 499)
                from = random_below(sizeof letters - 1);
            char c = letters[(from + random_below(kinds)) % (sizeof letters - 1)];
            if (c >= '1' && c <= '9')
                run.thread = (uint64_t)(c - '0');
            else
                letter(c);
            tp_steps_undecided(run.steps);
            const char *news = tp_steps_news(run.steps);
            if (news && !news[0])
                ck_abort_msg("seed %u: empty news", seed);
        }
        end();
    }
}
END_TEST

/* Where which of two optimizers is the more seldom goes to and fro, the choice does not go with it each time. */
START_TEST(random_skips_change_the_choice_seldom)
{
    unsigned told = 0;
    random_state = 1;
    begin("auto");
    for (unsigned i = 0; i < 3000; i++) {
        unsigned which = random_below(3);
        play(which == 0 ? "DZSZT" : which == 1 ? "DZS" : "DZT");
        told += tp_steps_news(run.steps) != NULL;
    }
    ck_assert_uint_le(told, 8);
    ck_assert_uint_ge(run.found_count, 1500);
    ck_assert_uint_le(run.found_count, 3000);
}
END_TEST

/* More optimizers than are kept apart, each of its own identity. */
START_TEST(many_identities_are_bounded)
{
    begin("auto");
    for (unsigned iteration = 0; iteration < 50; iteration++) {
        letter('D');
        for (unsigned i = 0; i < 100; i++) {
            char name[40];
            snprintf(name, sizeof name, "Optimizer.step#Own%u.step", i);
            both(TP_MARK_OPTIMIZER, name);
        }
    }
    ck_assert_uint_ge(run.found_count, 49);
    ck_assert_uint_le(run.found_count, 50);
    ck_assert_uint_le(tp_steps_size(), 8192);
}
END_TEST

START_TEST(undecided_while_an_edge_may_still_come_late)
{
    begin("auto");
    ck_assert(tp_steps_undecided(run.steps));
    play("DZS");
    ck_assert(tp_steps_undecided(run.steps));
    play("D");
    ck_assert(!tp_steps_undecided(run.steps));
    for (int i = 0; i < 5; i++) {
        play("ZSD");
        ck_assert(!tp_steps_undecided(run.steps));
    }
    play("D");
    ck_assert(tp_steps_undecided(run.steps)); /* accumulation or evaluation? */
    play("DD");
    ck_assert(!tp_steps_undecided(run.steps)); /* evaluation */
    play("ZSDZT");
    ck_assert(!tp_steps_undecided(run.steps));
    play("D");
    ck_assert(tp_steps_undecided(run.steps)); /* where is S? */
    play("ZTDZTDZT");
    ck_assert(!tp_steps_undecided(run.steps)); /* T is in its place */
    play("[DZT]");
    ck_assert(!tp_steps_undecided(run.steps));
    play("DZT");
    ck_assert(tp_steps_undecided(run.steps)); /* is the program's profiler done? */
    play("DZT");
    ck_assert(!tp_steps_undecided(run.steps));
    begin("every:1s");
    ck_assert(!tp_steps_undecided(run.steps));
}
END_TEST

static void expect_news(const char *program, const char *news)
{
    play(program);
    const char *found = tp_steps_news(run.steps);
    ck_assert_msg((found && news && strcmp(found, news) == 0) || found == news, "after %s: %s", program,
                  found ? found : "nothing");
    ck_assert_ptr_null(tp_steps_news(run.steps));
}

START_TEST(choices_are_told_once)
{
    begin("auto");
    expect_news("DZSZS", NULL);
    expect_news("D", "steps end at Optimizer.step#S.step, at the last of its 2 ends for a batch "
                     "(the only optimizer in use); TPROF_STEP sets another rule");
    expect_news("ZSZSDZSZSDZSZSDD", NULL);
    expect_news("DD", "batches without an optimizer step are steps of another kind (evaluation)");
    expect_news("ZSZSDDDDDDDZSZS", NULL);
    expect_news("DTDTDTD", "steps now end at Optimizer.step#T.step (the only optimizer in use); "
                           "TPROF_STEP sets another rule");
    expect_news("[", NULL);
    expect_news("DT]", "steps end where the program's own profiler says so (ProfilerStep), while it does");
    expect_news("[DT]DTDTDT[DT]", NULL);
    begin("auto");
    expect_news("DDDD", NULL);
    expect_news("D", "steps are batches of the DataLoader, as no optimizer steps; TPROF_STEP sets another rule");
    expect_news("DDD", NULL);
    begin("auto");
    expect_news("DZSZT", NULL);
    expect_news("D", "steps end at Optimizer.step#T.step (the most seldom or last of several optimizers); "
                     "TPROF_STEP sets another rule");
}
END_TEST

static const struct {
    const char *text;
    struct tp_step_rule rule;
} good_rules[] = {
    {"auto", {TP_STEP_AUTO, NULL, 0}},
    {"optimizer", {TP_STEP_OPTIMIZER, NULL, 0}},
    {"dataloader", {TP_STEP_DATALOADER, NULL, 0}},
    {"none", {TP_STEP_NONE, NULL, 0}},
    {"range:my iteration: a", {TP_STEP_RANGE, "my iteration: a", 0}},
    {"python:trainer.Trainer.step", {TP_STEP_PYTHON, "trainer.Trainer.step", 0}},
    {"every:1000000ns", {TP_STEP_EVERY, NULL, 1000000}},
    {"every:7000us", {TP_STEP_EVERY, NULL, 7000000}},
    {"every:250ms", {TP_STEP_EVERY, NULL, 250000000}},
    {"every:2s", {TP_STEP_EVERY, NULL, 2000000000}},
    {"every:3min", {TP_STEP_EVERY, NULL, 180000000000}},
    {"every:18446744073709551615ns", {TP_STEP_EVERY, NULL, UINT64_MAX}},
};

START_TEST(rules_are_read)
{
    struct tp_step_rule rule;
    struct tp_error error = {0};
    ck_assert_int_eq(tp_step_rule_parse(good_rules[_i].text, &rule, &error), 0);
    ck_assert(!error.set);
    ck_assert_int_eq(rule.kind, good_rules[_i].rule.kind);
    ck_assert_uint_eq(rule.period_ns, good_rules[_i].rule.period_ns);
    ck_assert_pstr_eq(rule.name, good_rules[_i].rule.name);
}
END_TEST

static const struct {
    const char *text, *what;
} bad_rules[] = {
    {"", "'' is not a rule of steps"},
    {"Auto", "'Auto' is not a rule of steps"},
    {"auto ", "'auto ' is not a rule of steps"},
    {"autos", "'autos' is not a rule of steps"},
    {"range", "'range' is not a rule of steps"},
    {"range:", "'range:' has no name"},
    {"python:", "'python:' has no name"},
    {"every:", "'' is not a time"},
    {"every:ms", "'ms' is not a time"},
    {"every:5", "'5' is not a time"},
    {"every:999999ns", "'999999ns' is too short"},
    {"every:1us", "'1us' is too short"},
    {"every:0s", "'0s' is not a time"},
    {"every:-5s", "'-5s' is not a time"},
    {"every:1.5s", "'1.5s' is not a time"},
    {"every:5 s", "'5 s' is not a time"},
    {"every:5sec", "'5sec' is not a time"},
    {"every:18446744073709551616ns", "'18446744073709551616ns' is not a time"},
    {"every:18446744073709551615us", "'18446744073709551615us' is not a time"},
};

START_TEST(bad_rules_are_refused)
{
    struct tp_step_rule rule = {.period_ns = 77};
    struct tp_error error = {0};
    ck_assert_int_lt(tp_step_rule_parse(bad_rules[_i].text, &rule, &error), 0);
    ck_assert_str_eq(error.where, "TPROF_STEP");
    ck_assert_str_eq(error.what, bad_rules[_i].what);
    ck_assert_ptr_nonnull(strstr(error.accepted, "range:NAME"));
    ck_assert_uint_eq(rule.period_ns, 77);
}
END_TEST

Suite *steps_suite(void)
{
    Suite *suite = suite_create("steps");
    TCase *tcase = tcase_create("steps");
    tcase_add_loop_test(tcase, programs_have_their_edges, 0, TP_COUNT(programs));
    tcase_add_test(tcase, random_programs_have_their_edges);
    tcase_add_test(tcase, random_marks_give_rising_edges);
    tcase_add_test(tcase, random_skips_change_the_choice_seldom);
    tcase_add_test(tcase, many_identities_are_bounded);
    tcase_add_test(tcase, undecided_while_an_edge_may_still_come_late);
    tcase_add_test(tcase, choices_are_told_once);
    tcase_add_loop_test(tcase, rules_are_read, 0, TP_COUNT(good_rules));
    tcase_add_loop_test(tcase, bad_rules_are_refused, 0, TP_COUNT(bad_rules));
    suite_add_tcase(suite, tcase);
    return suite;
}
