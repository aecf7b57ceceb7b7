#include "suites.h"

#include <string.h>

#include "../../agent/schedule.h"

static const struct {
    const char *text;
    struct tp_schedule schedule;
} good[] = {
    {"always", {.always = true}},
    {"active=1", {.active = 1}},
    {"wait=1,warmup=2,active=3,repeat=4,skip_first=5,skip_first_wait=6", {1, 2, 3, 4, 5, 6, false}},
    {"active=3,wait=1", {.wait = 1, .active = 3}},
    {" wait=1, warmup=1 ,active=3 ", {.wait = 1, .warmup = 1, .active = 3}},
    {"active=0003", {.active = 3}},
    {"active=1000000000000000", {.active = TP_SCHEDULE_MAX}},
};

START_TEST(settings_are_read)
{
    struct tp_schedule schedule;
    struct tp_error error = {0};
    memset(&schedule, 0xff, sizeof schedule);
    ck_assert_int_eq(tp_schedule_parse(good[_i].text, &schedule, &error), 0);
    ck_assert(!error.set);
    ck_assert_uint_eq(schedule.always, good[_i].schedule.always);
    ck_assert_mem_eq(&schedule, &good[_i].schedule, offsetof(struct tp_schedule, always));
}
END_TEST

static const struct {
    const char *text, *what;
} bad[] = {
    {"", "'' in '' is not KEY=STEPS with a known key"},
    {" ", "'' in ' ' is not KEY=STEPS with a known key"},
    {"wait=1,active=3,", "'' in 'wait=1,active=3,' is not KEY=STEPS with a known key"},
    {",active=3", "'' in ',active=3' is not KEY=STEPS with a known key"},
    {"active", "'active' in 'active' is not KEY=STEPS with a known key"},
    {"=3", "'=3' in '=3' is not KEY=STEPS with a known key"},
    {"activ=3", "'activ=3' in 'activ=3' is not KEY=STEPS with a known key"},
    {"actives=3", "'actives=3' in 'actives=3' is not KEY=STEPS with a known key"},
    {"ACTIVE=3", "'ACTIVE=3' in 'ACTIVE=3' is not KEY=STEPS with a known key"},
    {"device_stopped=1,active=1",
     "'device_stopped=1' in 'device_stopped=1,active=1' is not KEY=STEPS with a known key"},
    {"active=3;wait=1", "'active=3;wait=1' is not a number of steps"},
    {"always,active=3", "'always' in 'always,active=3' is not KEY=STEPS with a known key"},
    {"Always", "'Always' in 'Always' is not KEY=STEPS with a known key"},
    {"active=3,active=3", "active is set twice in 'active=3,active=3'"},
    {"active=", "'active=' is not a number of steps"},
    {"active=-1", "'active=-1' is not a number of steps"},
    {"active=+1", "'active=+1' is not a number of steps"},
    {"active= 1", "'active= 1' is not a number of steps"},
    {"active=1.5", "'active=1.5' is not a number of steps"},
    {"active=0x3", "'active=0x3' is not a number of steps"},
    {"active=3x", "'active=3x' is not a number of steps"},
    {"active=1000000000000001", "'active=1000000000000001' is not a number of steps"},
    {"active=18446744073709551617", "'active=18446744073709551617' is not a number of steps"},
    {"active=0", "active must be 1 or more: no step would be recorded"},
    {"wait=1,warmup=1", "active must be 1 or more: no step would be recorded"},
};

START_TEST(bad_settings_are_refused)
{
    struct tp_schedule schedule = {.wait = 77};
    struct tp_error error = {0};
    ck_assert_int_lt(tp_schedule_parse(bad[_i].text, &schedule, &error), 0);
    ck_assert_str_eq(error.where, "TPROF_SCHEDULE");
    ck_assert_str_eq(error.what, bad[_i].what);
    ck_assert_ptr_nonnull(strstr(error.accepted, "active=3"));
    ck_assert_uint_eq(schedule.wait, 77);
    ck_assert_int_lt(tp_schedule_parse(bad[_i].text, &schedule, NULL), 0);
}
END_TEST

START_TEST(numbers_too_large_are_refused)
{
    struct tp_schedule schedule = {.active = 1, .skip_first = TP_SCHEDULE_MAX + 1};
    struct tp_error error = {0};
    ck_assert_int_lt(tp_schedule_check(&schedule, &error), 0);
    ck_assert_str_eq(error.what, "skip_first=1000000000000001 is too large");
    schedule.always = true;
    ck_assert_int_eq(tp_schedule_check(&schedule, NULL), 0);
}
END_TEST

START_TEST(no_warmup_is_warned_of)
{
    struct tp_schedule schedule = {.active = 1};
    ck_assert_str_eq(tp_schedule_warning(&schedule), "Profiler won't be using warmup, this can skew profiler results");
    schedule.warmup = 1;
    ck_assert_ptr_null(tp_schedule_warning(&schedule));
    schedule = (struct tp_schedule){.always = true};
    ck_assert_ptr_null(tp_schedule_warning(&schedule));
}
END_TEST

/* N none, W warm-up, R record, S record and save. over: the first step from which on nothing comes. */
static const struct {
    const char *text, *actions;
    uint64_t over;
} runs[] = {
    {"always", "RRRRRRRR", 99},
    {"active=1", "SSSSSS", 99},
    {"wait=1,warmup=1,active=3,repeat=1", "NWRRSNNNN", 5},
    {"wait=1,warmup=1,active=2,repeat=2", "NWRSNWRSNNN", 8},
    {"wait=2,active=1,skip_first=3", "NNNNNSNNSNNS", 99},
    {"wait=2,warmup=1,active=1,skip_first=1,skip_first_wait=1,repeat=2", "NWSNNWSNN", 7},
    {"warmup=2,active=2", "WWRSWWRS", 99},
};

START_TEST(steps_have_their_actions)
{
    struct tp_schedule schedule;
    ck_assert_int_eq(tp_schedule_parse(runs[_i].text, &schedule, NULL), 0);
    for (uint64_t step = 0; runs[_i].actions[step]; step++) {
        ck_assert_msg("NWRS"[tp_schedule_action(&schedule, step)] == runs[_i].actions[step], "%s at step %d",
                      runs[_i].text, (int)step);
        ck_assert_msg(tp_schedule_over(&schedule, step) == (step >= runs[_i].over), "%s at step %d", runs[_i].text,
                      (int)step);
    }
}
END_TEST

START_TEST(largest_numbers_do_not_overflow)
{
    struct tp_schedule schedule = {TP_SCHEDULE_MAX, TP_SCHEDULE_MAX, TP_SCHEDULE_MAX, TP_SCHEDULE_MAX, TP_SCHEDULE_MAX,
                                   1, false};
    uint64_t begin = TP_SCHEDULE_MAX; /* skip_first, then no wait */
    ck_assert_int_eq(tp_schedule_action(&schedule, begin - 1), TP_ACTION_NONE);
    ck_assert_int_eq(tp_schedule_action(&schedule, begin), TP_ACTION_WARMUP);
    ck_assert_int_eq(tp_schedule_action(&schedule, begin + TP_SCHEDULE_MAX), TP_ACTION_RECORD);
    ck_assert_int_eq(tp_schedule_action(&schedule, begin + 2 * TP_SCHEDULE_MAX - 1), TP_ACTION_RECORD_AND_SAVE);
    ck_assert_int_eq(tp_schedule_action(&schedule, begin + 2 * TP_SCHEDULE_MAX), TP_ACTION_NONE);
    ck_assert(!tp_schedule_over(&schedule, UINT64_C(1) << 63));
}
END_TEST

/* Row: previous. Column: NONE WARMUP RECORD RECORD_AND_SAVE DEVICE_STOPPED EXIT. p(repare) s(tart) e(nd) r(eady),
 * ! where torch warns or raises. */
static const char *const transitions[TP_ACTION_COUNT][TP_ACTION_COUNT] = {
    {"", "p", "ps", "ps", "!", ""},
    {"!se", "", "s", "s", "ser", "se"},
    {"!e", "!e", "", "", "er", "er"},
    {"er", "erp", "erps", "erps", "!", "er"},
    {"", "p", "ps", "ps", "", ""},
    {"", "", "", "", "", ""},
};

START_TEST(transitions_are_those_of_torch)
{
    for (int previous = 0; previous < TP_ACTION_COUNT; previous++)
        for (int current = 0; current < TP_ACTION_COUNT; current++) {
            const struct tp_transition *transition = tp_schedule_transition(previous, current);
            char found[8] = "";
            size_t n = 0;
            if (transition->warning)
                found[n++] = '!';
            for (size_t i = 0; i < TP_COUNT(transition->steps) && transition->steps[i]; i++)
                found[n++] = "?pser"[transition->steps[i]];
            ck_assert_msg(strcmp(found, transitions[previous][current]) == 0, "%s to %s: %s", tp_action_name(previous),
                          tp_action_name(current), found);
        }
    ck_assert_str_eq(tp_schedule_transition(TP_ACTION_WARMUP, TP_ACTION_NONE)->warning,
                     "Incorrect schedule: WARMUP followed by NONE");
    ck_assert_str_eq(tp_schedule_transition(TP_ACTION_RECORD, TP_ACTION_NONE)->warning,
                     "Incorrect schedule: RECORD followed by NONE");
    ck_assert_str_eq(tp_schedule_transition(TP_ACTION_RECORD, TP_ACTION_WARMUP)->warning,
                     "Incorrect schedule: RECORD followed by WARMUP");
    const struct tp_transition *outside = tp_schedule_transition(TP_ACTION_COUNT, TP_ACTION_NONE);
    ck_assert_int_eq(outside->steps[0], 0);
    ck_assert_ptr_null(outside->warning);
    ck_assert_str_eq(tp_action_name(TP_ACTION_COUNT), "?");
}
END_TEST

/* Actions as letters, X device stopped. */
static const struct {
    char previous, previous_scheduled, scheduled;
    bool device_stopped;
    char found;
} overrides[] = {
    {'N', 'N', 'W', true, 'W'},  {'W', 'W', 'R', false, 'R'}, {'W', 'W', 'R', true, 'X'}, {'W', 'W', 'S', true, 'X'},
    {'R', 'R', 'R', true, 'X'},  {'R', 'R', 'N', true, 'N'},  {'S', 'S', 'R', true, 'R'}, {'S', 'S', 'W', true, 'W'},
    {'X', 'R', 'R', false, 'X'}, {'X', 'R', 'S', false, 'X'}, {'X', 'S', 'W', true, 'W'}, {'X', 'S', 'S', false, 'S'},
    {'X', 'R', 'N', true, 'N'},
};

START_TEST(stopped_device_holds_until_the_next_cycle)
{
    static const char letters[] = "NWRSX";
#define ACTION(letter) ((enum tp_action)(strchr(letters, (letter)) - letters))
    enum tp_action previous = ACTION(overrides[_i].previous), scheduled = ACTION(overrides[_i].scheduled);
    enum tp_action previous_scheduled = ACTION(overrides[_i].previous_scheduled);
    enum tp_action found =
        tp_schedule_override(previous, previous_scheduled, scheduled, overrides[_i].device_stopped);
    ck_assert_int_eq(letters[found], overrides[_i].found);
}
END_TEST

Suite *schedule_suite(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tcase = tcase_create("schedule");
    tcase_add_loop_test(tcase, settings_are_read, 0, TP_COUNT(good));
    tcase_add_loop_test(tcase, bad_settings_are_refused, 0, TP_COUNT(bad));
    tcase_add_test(tcase, numbers_too_large_are_refused);
    tcase_add_test(tcase, no_warmup_is_warned_of);
    tcase_add_loop_test(tcase, steps_have_their_actions, 0, TP_COUNT(runs));
    tcase_add_test(tcase, largest_numbers_do_not_overflow);
    tcase_add_test(tcase, transitions_are_those_of_torch);
    tcase_add_loop_test(tcase, stopped_device_holds_until_the_next_cycle, 0, TP_COUNT(overrides));
    suite_add_tcase(suite, tcase);
    return suite;
}
