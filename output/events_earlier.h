/* events_earlier.h: the events of an events.json, as they stand there, into the next one: TPROF_ACC_EVENTS. */
#ifndef TP_EVENTS_EARLIER_H
#define TP_EVENTS_EARLIER_H

#include "sink.h"

/* Copies its lines of events, each behind a comma if one stands before it (*count > 0), and counts them. 0; a negative errno:
 * it cannot be read (nothing was put then, if it is that of open(2)), or is damaged. */
int tp_events_copy(const char *path, struct tp_sink *sink, uint64_t *count, struct tp_arena *arena);

#endif
