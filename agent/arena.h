/*
 * arena.h: our own memory, from mmap. The job's heap is never used inside the job: an exit or a signal may find its
 * lock held, and its statistics belong to the program.
 *
 * An arena grows by mapped blocks and is freed whole; single pieces are not given back. It belongs to one thread at
 * a time. A limit of 0 means none. All pieces are zeroed and 16-byte aligned.
 */
#ifndef TP_ARENA_H
#define TP_ARENA_H

#include "base.h"

struct tp_arena_block;

struct tp_arena {
    struct tp_arena_block *blocks;
    size_t mapped; /* bytes held from the kernel */
    size_t limit;
};

void tp_arena_init(struct tp_arena *arena, size_t limit);
void *tp_arena_alloc(struct tp_arena *arena, size_t bytes); /* NULL: limit reached or the kernel said no */
char *tp_arena_copy(struct tp_arena *arena, const char *text, size_t bytes); /* NUL-terminated */
void tp_arena_free(struct tp_arena *arena);

#endif
