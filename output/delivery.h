/*
 * delivery.h: from whole cycles to files, and from all of them to the summary and the report at the end. The table of
 * writers stands in delivery.c.
 *
 * Threads: prepare on the program's thread, step under the session's lock, cycle on the worker, finish on the drain after
 * the worker has ended.
 */
#ifndef TP_DELIVERY_H
#define TP_DELIVERY_H

#include "../agent/session.h"

extern const struct tp_session_outputs tp_delivery_outputs;

#endif
