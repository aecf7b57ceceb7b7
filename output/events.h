/*
 * events.h: events.json, the events of a cycle one by one, as torch's prof.events() has them: what its tables leave out is
 * not there, an only child of its parent's name is one with it, and steps are events with what ran in them inside. One
 * event a line, in the order in which they were finished; of a segment by their begin.
 */
#ifndef TP_EVENTS_H
#define TP_EVENTS_H

#include "writer.h"

/* Its reports have a lineage. */
extern const struct tp_writer tp_events_writer;

#endif
