/*
 * Answers questions about the schedule, one a line, so that test_schedule.py can compare with PyTorch's own:
 *     actions SETTING STEPS            the actions of so many steps, one digit each, and the step from which it is over
 *     transition PREVIOUS CURRENT      p(repare) s(tart) e(nd) r(eady), and the warning
 *     run SETTING STOPPED              a whole profiler: STOPPED has a character per step, 1 where the device stopped
 *                                      itself; per change the letters as above, then those of the exit
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../agent/schedule.h"

static void print_steps(const struct tp_transition *transition)
{
    for (size_t i = 0; i < TP_COUNT(transition->steps) && transition->steps[i]; i++)
        putchar("?pser"[transition->steps[i]]);
}

static void print_actions(const struct tp_schedule *schedule, uint64_t steps)
{
    uint64_t over = steps;
    for (uint64_t step = 0; step < steps; step++) {
        putchar('0' + (int)tp_schedule_action(schedule, step));
        if (over == steps && tp_schedule_over(schedule, step))
            over = step;
    }
    printf(" %llu\n", (unsigned long long)over);
}

static void print_run(const struct tp_schedule *schedule, const char *stopped)
{
    enum tp_action scheduled = tp_schedule_action(schedule, 0), action = scheduled;
    print_steps(tp_schedule_transition(TP_ACTION_NONE, action));
    for (uint64_t step = 1; stopped[step - 1]; step++) {
        enum tp_action previous = action, previous_scheduled = scheduled;
        scheduled = tp_schedule_action(schedule, step);
        action = tp_schedule_override(previous, previous_scheduled, scheduled, stopped[step - 1] == '1');
        putchar(' ');
        print_steps(tp_schedule_transition(previous, action));
    }
    putchar(' ');
    print_steps(tp_schedule_transition(action, TP_ACTION_EXIT));
    putchar('\n');
}

int main(void)
{
    char line[1024], setting[512], rest[512];
    unsigned previous, current;
    while (fgets(line, sizeof line, stdin)) {
        struct tp_schedule schedule;
        struct tp_error error = {0};
        if (sscanf(line, "transition %u %u", &previous, &current) == 2) {
            const struct tp_transition *t = tp_schedule_transition((enum tp_action)previous, (enum tp_action)current);
            print_steps(t);
            printf(" %s\n", t->warning ? t->warning : "");
            continue;
        }
        bool actions = sscanf(line, "actions %511s %511s", setting, rest) == 2;
        if (!actions && sscanf(line, "run %511s %511s", setting, rest) != 2) {
            fprintf(stderr, "not a question: %s", line);
            return EXIT_FAILURE;
        }
        if (tp_schedule_parse(setting, &schedule, &error) < 0) {
            fprintf(stderr, "%s: %s\n", setting, error.what);
            return EXIT_FAILURE;
        }
        if (actions)
            print_actions(&schedule, strtoull(rest, NULL, 10));
        else
            print_run(&schedule, rest);
    }
    return EXIT_SUCCESS;
}
