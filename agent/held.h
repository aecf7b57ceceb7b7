/*
 * held.h: what a limit or a reader that is gone would send to the job's thread for something that we do on it: SIGXFSZ
 * for a file beyond RLIMIT_FSIZE, SIGPIPE for a line to a stderr that nobody reads. Both would end the job. Between begin
 * and end they are held back, and those that came of us are taken away. Threads of ours have all signals blocked anyway.
 */
#ifndef TP_HELD_H
#define TP_HELD_H

#include <signal.h>

struct tp_held {
    sigset_t before; /* the thread's mask */
    sigset_t ours;   /* those that were not pending before */
};

void tp_held_begin(struct tp_held *held);
void tp_held_end(const struct tp_held *held); /* keeps errno */

#endif
