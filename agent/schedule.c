#include "schedule.h"

#include <errno.h>
#include <string.h>

static const char where[] = "TPROF_SCHEDULE";
static const char accepted[] = "always, or wait=1,warmup=1,active=3,repeat=1,skip_first=0,skip_first_wait=0 "
                               "(numbers of steps from 0 to 1000000000000000; active from 1, and never left out)";

static const struct {
    const char *name;
    size_t offset;
} keys[] = {
    {"wait", offsetof(struct tp_schedule, wait)},
    {"warmup", offsetof(struct tp_schedule, warmup)},
    {"active", offsetof(struct tp_schedule, active)},
    {"repeat", offsetof(struct tp_schedule, repeat)},
    {"skip_first", offsetof(struct tp_schedule, skip_first)},
    {"skip_first_wait", offsetof(struct tp_schedule, skip_first_wait)},
};

static uint64_t *field(struct tp_schedule *schedule, size_t key)
{
    return (uint64_t *)((char *)schedule + keys[key].offset);
}

/* Digits alone, up to TP_SCHEDULE_MAX. */
static bool parse_steps(const char *text, size_t length, uint64_t *ret_steps)
{
    uint64_t steps = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        steps = steps * 10 + (uint64_t)(text[i] - '0');
        if (steps > TP_SCHEDULE_MAX)
            return false;
    }
    *ret_steps = steps;
    return length > 0;
}

int tp_schedule_parse(const char *text, struct tp_schedule *ret_schedule, struct tp_error *error)
{
    if (strcmp(text, "always") == 0) {
        *ret_schedule = (struct tp_schedule){.always = true};
        return 0;
    }
    struct tp_schedule schedule = {0};
    unsigned seen = 0;
    for (const char *item = text;;) {
        /* Blanks around an item are fine: people copy the arguments out of a program. */
        item += strspn(item, " ");
        size_t length = strcspn(item, ","), next = length;
        while (length > 0 && item[length - 1] == ' ')
            length--;
        const char *sign = memchr(item, '=', length);
        size_t name = sign ? (size_t)(sign - item) : length, key = 0;
        while (key < TP_COUNT(keys) && (strlen(keys[key].name) != name || memcmp(keys[key].name, item, name) != 0))
            key++;
        if (!sign || key == TP_COUNT(keys)) {
            tp_error_set(error, where, accepted, "'%.*s' in '%s' is not KEY=STEPS with a known key", (int)length, item,
                         text);
            return -EINVAL;
        }
        if (seen & 1u << key) {
            tp_error_set(error, where, accepted, "%s is set twice in '%s'", keys[key].name, text);
            return -EINVAL;
        }
        seen |= 1u << key;
        if (!parse_steps(sign + 1, length - name - 1, field(&schedule, key))) {
            tp_error_set(error, where, accepted, "'%.*s' is not a number of steps", (int)length, item);
            return -EINVAL;
        }
        if (item[next] == '\0')
            break;
        item += next + 1;
    }
    int r = tp_schedule_check(&schedule, error);
    if (r == 0)
        *ret_schedule = schedule;
    return r;
}

int tp_schedule_check(const struct tp_schedule *schedule, struct tp_error *error)
{
    if (schedule->always)
        return 0;
    if (schedule->active == 0) {
        tp_error_set(error, where, accepted, "active must be 1 or more: no step would be recorded");
        return -EINVAL;
    }
    for (size_t i = 0; i < TP_COUNT(keys); i++) {
        uint64_t steps;
        memcpy(&steps, (const char *)schedule + keys[i].offset, sizeof steps);
        if (steps > TP_SCHEDULE_MAX) {
            tp_error_set(error, where, accepted, "%s=%llu is too large", keys[i].name, (unsigned long long)steps);
            return -EINVAL;
        }
    }
    return 0;
}

const char *tp_schedule_warning(const struct tp_schedule *schedule)
{
    if (!schedule->always && schedule->warmup == 0)
        return "Profiler won't be using warmup, this can skew profiler results";
    return NULL;
}

static uint64_t cycle_length(const struct tp_schedule *schedule)
{
    return schedule->wait + schedule->warmup + schedule->active;
}

/* The step counted from the first cycle's begin: skip_first_wait moves that cycle's wait before the start. */
static uint64_t step_in_cycles(const struct tp_schedule *schedule, uint64_t step)
{
    return step - schedule->skip_first + (schedule->skip_first_wait ? schedule->wait : 0);
}

bool tp_schedule_over(const struct tp_schedule *schedule, uint64_t step)
{
    if (schedule->always || schedule->repeat == 0 || step < schedule->skip_first)
        return false;
    return step_in_cycles(schedule, step) / cycle_length(schedule) >= schedule->repeat;
}

enum tp_action tp_schedule_action(const struct tp_schedule *schedule, uint64_t step)
{
    if (schedule->always)
        return TP_ACTION_RECORD;
    if (step < schedule->skip_first || tp_schedule_over(schedule, step))
        return TP_ACTION_NONE;
    uint64_t length = cycle_length(schedule), place = step_in_cycles(schedule, step) % length;
    if (place < schedule->wait)
        return TP_ACTION_NONE;
    if (place < schedule->wait + schedule->warmup)
        return TP_ACTION_WARMUP;
    return place < length - 1 ? TP_ACTION_RECORD : TP_ACTION_RECORD_AND_SAVE;
}

enum tp_action tp_schedule_override(enum tp_action previous, enum tp_action previous_scheduled,
                                    enum tp_action scheduled, bool device_stopped)
{
    if (previous == TP_ACTION_DEVICE_STOPPED) {
        bool cycle_over = previous_scheduled == TP_ACTION_RECORD_AND_SAVE || scheduled == TP_ACTION_NONE;
        return cycle_over ? scheduled : TP_ACTION_DEVICE_STOPPED;
    }
    /* Out of RECORD_AND_SAVE everything is prepared anew anyway; into NONE it stops anyway. */
    if (device_stopped && (previous == TP_ACTION_WARMUP || previous == TP_ACTION_RECORD) && scheduled != TP_ACTION_NONE)
        return TP_ACTION_DEVICE_STOPPED;
    return scheduled;
}

const char *tp_action_name(enum tp_action action)
{
    static const char *const names[TP_ACTION_COUNT] = {
        "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "DEVICE_STOPPED", "EXIT",
    };
    return (unsigned)action < TP_ACTION_COUNT ? names[action] : "?";
}

#define PREPARE TP_TRANSITION_PREPARE
#define START TP_TRANSITION_START
#define STOP TP_TRANSITION_STOP
#define READY TP_TRANSITION_READY

/* [previous][current]; what is not here asks for nothing. */
static const struct tp_transition transitions[TP_ACTION_COUNT][TP_ACTION_COUNT] = {
    [TP_ACTION_NONE] = {
        [TP_ACTION_WARMUP] = {{PREPARE}, NULL},
        [TP_ACTION_RECORD] = {{PREPARE, START}, NULL},
        [TP_ACTION_RECORD_AND_SAVE] = {{PREPARE, START}, NULL},
        [TP_ACTION_DEVICE_STOPPED] = {{0}, "Profiler internal error: NONE -> DEVICE_STOPPED should be unreachable"},
    },
    [TP_ACTION_WARMUP] = {
        [TP_ACTION_NONE] = {{START, STOP}, "Incorrect schedule: WARMUP followed by NONE"},
        [TP_ACTION_RECORD] = {{START}, NULL},
        [TP_ACTION_RECORD_AND_SAVE] = {{START}, NULL},
        /* Also from warmup: with active=1 the only recorded step is this one, and its cycle must still be told. */
        [TP_ACTION_DEVICE_STOPPED] = {{START, STOP, READY}, NULL},
        [TP_ACTION_EXIT] = {{START, STOP}, NULL},
    },
    [TP_ACTION_RECORD] = {
        [TP_ACTION_NONE] = {{STOP}, "Incorrect schedule: RECORD followed by NONE"},
        [TP_ACTION_WARMUP] = {{STOP}, "Incorrect schedule: RECORD followed by WARMUP"},
        [TP_ACTION_DEVICE_STOPPED] = {{STOP, READY}, NULL},
        [TP_ACTION_EXIT] = {{STOP, READY}, NULL},
    },
    [TP_ACTION_RECORD_AND_SAVE] = {
        [TP_ACTION_NONE] = {{STOP, READY}, NULL},
        [TP_ACTION_WARMUP] = {{STOP, READY, PREPARE}, NULL},
        [TP_ACTION_RECORD] = {{STOP, READY, PREPARE, START}, NULL},
        [TP_ACTION_RECORD_AND_SAVE] = {{STOP, READY, PREPARE, START}, NULL},
        [TP_ACTION_DEVICE_STOPPED] = {{0}, "Profiler internal error: RECORD_AND_SAVE -> DEVICE_STOPPED should be "
                                           "unreachable"},
        [TP_ACTION_EXIT] = {{STOP, READY}, NULL},
    },
    [TP_ACTION_DEVICE_STOPPED] = {
        [TP_ACTION_WARMUP] = {{PREPARE}, NULL},
        [TP_ACTION_RECORD] = {{PREPARE, START}, NULL},
        [TP_ACTION_RECORD_AND_SAVE] = {{PREPARE, START}, NULL},
    },
};

const struct tp_transition *tp_schedule_transition(enum tp_action previous, enum tp_action current)
{
    static const struct tp_transition nothing;
    if ((unsigned)previous >= TP_ACTION_COUNT || (unsigned)current >= TP_ACTION_COUNT)
        return &nothing;
    return &transitions[previous][current];
}
