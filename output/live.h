/*
 * live.h: what this process's session has from output/: its cycles become files, its end the summary and the report; and
 * the files of processes that died here before are written.
 */
#ifndef TP_LIVE_H
#define TP_LIVE_H

#include "../agent/session.h"

extern const struct tp_session_outputs tp_live_outputs;

#endif
