/*
 * nearest.h: which known word a mistyped one was meant to be. Case does not count; two letters that changed places
 * count as one mistake. A word that shares too little with all of them has no nearest one.
 */
#ifndef TP_NEAREST_H
#define TP_NEAREST_H

#include "base.h"

struct tp_nearest {
    const char *word;
    const char *found; /* the nearest candidate so far, or NULL */
    unsigned distance; /* a candidate must come nearer than this */
};

void tp_nearest_init(struct tp_nearest *nearest, const char *word);
void tp_nearest_offer(struct tp_nearest *nearest, const char *candidate);

#endif
