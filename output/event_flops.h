/* event_flops.h: floating point operations of an event of the model, from the inputs that were recorded with it. */
#ifndef TP_EVENT_FLOPS_H
#define TP_EVENT_FLOPS_H

#include "flops.h"
#include "model.h"

/* 0: there is no formula for it, or the inputs are not as it needs them. */
uint64_t tp_event_flops(const struct tp_event *event, enum tp_flops_formulas formulas);

#endif
