/*
 * ids.h: lists of numbers, as those of the events inside another one: a byte or two for each where they lie close
 * together. Pieces of lists that are gone are used again.
 */
#ifndef TP_IDS_H
#define TP_IDS_H

#include "../agent/arena.h"
#include "../agent/base.h"

struct tp_ids_piece;

struct tp_ids {
    struct tp_ids_piece *first, *last;
    uint64_t newest, count;
};

struct tp_ids_pool {
    struct tp_arena *arena;
    struct tp_ids_piece *free;
};

int tp_ids_add(struct tp_ids_pool *pool, struct tp_ids *ids, uint64_t number); /* 0 or -ENOMEM */
/* Takes all of another list, which is empty then. */
int tp_ids_move(struct tp_ids_pool *pool, struct tp_ids *ids, struct tp_ids *from);
void tp_ids_clear(struct tp_ids_pool *pool, struct tp_ids *ids);

struct tp_ids_cursor {
    const struct tp_ids_piece *piece;
    size_t at;
    uint64_t number;
};

struct tp_ids_cursor tp_ids_begin(const struct tp_ids *ids);
bool tp_ids_next(struct tp_ids_cursor *cursor, uint64_t *ret);

#endif
