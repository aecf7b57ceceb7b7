/*
 * schedule.h: which steps are recorded, as torch.profiler.schedule and torch.profiler.profile say. Pure: settings and a
 * step number in, what to do out; no clock, no thread, no memory.
 *
 * Source of each rule: torch/profiler/profiler.py of PyTorch 2.13 (schedule(), profile._transit_action, action_map).
 */
#ifndef TP_SCHEDULE_H
#define TP_SCHEDULE_H

#include "base.h"
#include "error.h"

/* torch.profiler.ProfilerAction, the same numbers. */
enum tp_action {
    TP_ACTION_NONE = 0,
    TP_ACTION_WARMUP = 1,
    TP_ACTION_RECORD = 2,
    TP_ACTION_RECORD_AND_SAVE = 3,
    TP_ACTION_DEVICE_STOPPED = 4, /* internal: device collection ended early; a schedule cannot ask for it */
    TP_ACTION_EXIT = 5,           /* internal: the profiler is left (None in torch's table) */
    TP_ACTION_COUNT = 6,
};

/* The arguments of torch.profiler.schedule, in steps. */
struct tp_schedule {
    uint64_t wait, warmup, active, repeat, skip_first, skip_first_wait;
    bool always; /* no schedule: RECORD at every step, saved at the end, as torch.profiler without a schedule */
};

/*
 * Reads "wait=1,warmup=1,active=3,repeat=1,skip_first=0,skip_first_wait=0" or "always". Keys left out take torch's own
 * defaults; wait, warmup and active have none there: wait and warmup are then 0, active must be given. 0, or -EINVAL
 * with error set.
 */
int tp_schedule_parse(const char *text, struct tp_schedule *ret_schedule, struct tp_error *error);

/* No number of steps is larger: sums of them and a step number stay within 64 bits. */
#define TP_SCHEDULE_MAX UINT64_C(1000000000000000)

/* 0, or -EINVAL with error set: what torch's own assertions refuse (active 0), and what is over TP_SCHEDULE_MAX. */
int tp_schedule_check(const struct tp_schedule *schedule, struct tp_error *error);

/* What torch warns of when such a schedule is made, or NULL. */
const char *tp_schedule_warning(const struct tp_schedule *schedule);

enum tp_action tp_schedule_action(const struct tp_schedule *schedule, uint64_t step);

/* True if no step from this one on will ever be other than NONE: what is off may stay off. */
bool tp_schedule_over(const struct tp_schedule *schedule, uint64_t step);

/*
 * The action that is in force at a step for which the schedule says `scheduled`, once device collection may have ended
 * early: DEVICE_STOPPED from there until the next cycle. previous: the action in force before; previous_scheduled: what
 * the schedule said then. device_stopped: the device's collection says now that it ended by itself; always false where
 * no device is observed.
 */
enum tp_action tp_schedule_override(enum tp_action previous, enum tp_action previous_scheduled,
                                    enum tp_action scheduled, bool device_stopped);

/* "NONE", "RECORD_AND_SAVE", ...; "?" for what is none. */
const char *tp_action_name(enum tp_action action);

/* What a change of action asks for, in this order. torch's names: prepare_trace, start_trace, stop_trace,
 * on_trace_ready. */
enum tp_transition_step {
    TP_TRANSITION_PREPARE = 1,
    TP_TRANSITION_START,
    TP_TRANSITION_STOP,
    TP_TRANSITION_READY,
};

struct tp_transition {
    unsigned char steps[4]; /* enum tp_transition_step, ended by 0 or by the array's end */
    const char *warning;    /* torch's text, or NULL; comes before the steps */
};

/*
 * What torch does when the action goes from previous to current; current may be TP_ACTION_EXIT. Never NULL. The two
 * changes that torch holds to be unreachable, and raises an exception for, ask for nothing and have that text.
 */
const struct tp_transition *tp_schedule_transition(enum tp_action previous, enum tp_action current);

#endif
