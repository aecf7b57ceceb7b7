/*
 * recover.h: writes the files that a process which died could not write, from its spool, with the code that would have
 * written them: what was being recorded, and summary.json. Then the spool is removed. A recovery that is itself killed, or
 * stopped, leaves the spool; the next one goes on.
 */
#ifndef TP_RECOVER_H
#define TP_RECOVER_H

#include <stdatomic.h>

#include "../agent/base.h"
#include "../agent/error.h"

struct tp_recovered {
    char process[16], host[65];
    uint32_t pid;
    uint64_t files;            /* written, or found written by a try before */
    uint64_t kept;             /* operators and ranges */
    uint64_t from_chunks;      /* of them, those that only its threads had */
    uint64_t damaged;          /* blocks */
    uint64_t died_at_ns;       /* the last sign of life */
    bool chunks_lost;          /* its spool lay on a disk: what its threads had stored last is not in it */
    char folder[4096];         /* where the files are, escapes unexpanded */
    bool unwanted;             /* a child that did nothing worth files: the spool was removed */
};

/* Is this entry of a folder named as a spool? */
bool tp_recover_is_name(const char *name);

/* 0; -EBUSY: the process lives; -ECANCELED: stopped; -ENODATA: there was nothing in it yet, and it is removed; -EIO: a file could not be written, and the spool stays; else as
 * tp_spool_in_open. error says which, but for -ECANCELED. */
int tp_recover(int folder, const char *name, const _Atomic bool *stop, struct tp_recovered *ret, struct tp_error *error);

/* What was recovered, in a line. */
void tp_recovered_line(const struct tp_recovered *recovered, const char *name, char *line, size_t size);

#endif
