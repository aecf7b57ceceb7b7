/*
 * place.h: where in the user's program a thread is, so that two optimizers of one class are told apart by the line that
 * steps them.
 */
#ifndef TP_PYTHON_PLACE_H
#define TP_PYTHON_PLACE_H

#include "../../agent/collector.h"

extern const struct tp_collector tp_python_place;

#endif
