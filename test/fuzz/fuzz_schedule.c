/* The text of TPROF_SCHEDULE. What is accepted gives an action at every step, and ends if it says so. */
#include <errno.h>
#include <string.h>

#include "../../agent/schedule.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char line[800], *text = malloc(size + 1);
    must(text);
    memcpy(text, data, size);
    text[size] = '\0';
    struct tp_schedule schedule;
    struct tp_error error = {0};
    int status = tp_schedule_parse(text, &schedule, &error);
    must(status == 0 || status == -EINVAL);
    must((status == 0) == !error.set);
    if (error.set)
        must(tp_error_line(&error, line, sizeof line) == strlen(line) && !strchr(line, '\n'));
    if (status == 0) {
        must(tp_schedule_check(&schedule, &error) == 0);
        must(schedule.always || schedule.active > 0);
        tp_schedule_warning(&schedule);
        enum tp_action before = TP_ACTION_NONE;
        for (uint64_t step = 0; step < 200; step++) {
            uint64_t at = step < 100 ? step : TP_SCHEDULE_MAX - step;
            enum tp_action action = tp_schedule_action(&schedule, at);
            must(action <= TP_ACTION_RECORD_AND_SAVE && strcmp(tp_action_name(action), "?") != 0);
            must(!tp_schedule_over(&schedule, at) || action == TP_ACTION_NONE);
            must(tp_schedule_transition(before, action));
            before = action;
        }
    }
    free(text);
    return 0;
}
