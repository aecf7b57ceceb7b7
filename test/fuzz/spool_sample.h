/* spool_sample.h: the spool of a process that died in the middle of a small run, as that process left it. */
#ifndef TP_SPOOL_SAMPLE_H
#define TP_SPOOL_SAMPLE_H

#include "../../agent/spool.h"

/* Makes it in the folder, and copies its name there. Its files would go to `files`. Aborts where it cannot. */
void spool_sample_make(const char *folder, const char *files, char *name, size_t size);

#endif
