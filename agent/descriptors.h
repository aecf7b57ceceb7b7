/*
 * descriptors.h: a table of descriptors for one thread of ours. The program counts on its own numbers: it may close all of
 * them, reuse any, or be allowed few. What a thread with its own table opens has no number in the program at all.
 *
 * Nothing of the program's stays open in such a table (a reader of its pipes waits until the last copy is closed). Lines
 * for stderr borrow the program's descriptor for as long as a write takes (log.h).
 */
#ifndef TP_DESCRIPTORS_H
#define TP_DESCRIPTORS_H

#include "base.h"

/*
 * Gives the calling thread a table of its own. False where the kernel (before 5.9) or a container's rules forbid it:
 * numbers are then the program's, and every use asks first whether a number still means our file (tp_file_id). Between
 * the look and the use there remains a moment, which only a table of our own takes away.
 */
bool tp_descriptors_own(void);

struct tp_file_id {
    uint64_t device, inode;
};

/* What the descriptor refers to; all zero if nothing. */
struct tp_file_id tp_file_id(int descriptor);
bool tp_file_is(int descriptor, const struct tp_file_id *id);

/* Closes the number if it still means that file. False: it does not. */
bool tp_file_close(int descriptor, const struct tp_file_id *id);

#endif
