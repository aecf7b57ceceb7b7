/* chrome_inputs.h: what an operator was given, as members of its event in a Chrome trace. */
#ifndef TP_CHROME_INPUTS_H
#define TP_CHROME_INPUTS_H

#include "model.h"
#include "sink.h"

/* The four members, each with a comma before it. The event has inputs. */
void tp_chrome_write_inputs(struct tp_sink *sink, const struct tp_event *event);

#endif
