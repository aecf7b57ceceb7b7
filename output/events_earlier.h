/* events_earlier.h: the events of an events.json, as they stand there, into the next one: TPROF_ACC_EVENTS. */
#ifndef TP_EVENTS_EARLIER_H
#define TP_EVENTS_EARLIER_H

#include "sink.h"

/* Copies its lines of events, each behind a comma if one stands before it (*count > 0), and counts them. The file is read
 * twice: what cannot be read or is damaged is a negative errno, and nothing was put, unless it became so in between. */
int tp_events_copy(const char *path, struct tp_sink *sink, uint64_t *count, struct tp_arena *arena);

#endif
