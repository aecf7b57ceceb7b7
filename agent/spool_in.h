/*
 * spool_in.h: the spool file of a process that died: found, checked, mapped. What it holds is then read as in the process
 * itself: the log (with what its threads had stored in chunks appended), names, windows, steps.
 *
 * Nothing in the file is trusted: a block that is damaged is passed over and counted.
 */
#ifndef TP_SPOOL_IN_H
#define TP_SPOOL_IN_H

#include "arena.h"
#include "error.h"
#include "spool.h"

struct tp_spool_in {
    int file; /* locked as long as it is open */
    char *memory; /* the whole file, private: what is written here does not reach it */
    size_t bytes;
    struct tp_spool spool; /* its log and names; nothing else of it may be used */
    struct tp_spool_state *state;
    /* Windows that were to be saved and are not written yet, oldest first, with their edges. An open one is closed at the
     * last moment that is known, and marked partial. */
    struct tp_cycle cycles[TP_SPOOL_CYCLES];
    size_t cycle_count;
    uint64_t first_step;      /* by place: the oldest that is there of state->header.steps; then all up to that count are */
    uint64_t last_time;       /* ticks: the newest record or step */
    uint64_t damaged;         /* blocks */
    uint64_t untold;          /* begins that threads had lost, of which no record tells */
    uint64_t from_chunks;     /* begins that the background thread had not taken yet */
    bool chunks_lost;         /* on a disk: there may have been such, and they are not in the file */
};

/* Is this entry of a folder named as a spool? */
bool tp_spool_in_is_name(const char *name);

/*
 * Opens the spool if its process is dead. -EBUSY: it lives (or another process is just reading it); -ENODATA: it died before
 * there was anything in it, and the file is removed; -EPERM: it is another user's; -EINVAL: it is none, or of another version of
 * tprof; -errno. error (not NULL) says which. The arena holds the edges.
 */
int tp_spool_in_open(struct tp_spool_in *in, int folder, const char *name, struct tp_arena *arena, struct tp_error *error);

/* Unmaps; removes the file if asked to. */
void tp_spool_in_close(struct tp_spool_in *in, int folder, const char *name, bool remove);

#endif
