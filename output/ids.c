#include "ids.h"

#include <errno.h>

#define NUMBER_MOST 10u /* bytes */

struct tp_ids_piece {
    struct tp_ids_piece *next;
    uint8_t used;
    uint8_t bytes[55];
};

static struct tp_ids_piece *take_piece(struct tp_ids_pool *pool)
{
    struct tp_ids_piece *piece = pool->free;
    if (piece)
        pool->free = piece->next;
    else if (!(piece = tp_arena_alloc(pool->arena, sizeof *piece)))
        return NULL;
    piece->next = NULL;
    piece->used = 0;
    return piece;
}

/* As what it differs by from the one before, the sign in the last bit, seven bits a byte. */
int tp_ids_add(struct tp_ids_pool *pool, struct tp_ids *ids, uint64_t number)
{
    struct tp_ids_piece *piece = ids->last;
    if (!piece || piece->used + NUMBER_MOST > sizeof piece->bytes) {
        if (!(piece = take_piece(pool)))
            return -ENOMEM;
        if (ids->last)
            ids->last->next = piece;
        else
            ids->first = piece;
        ids->last = piece;
    }
    uint64_t up = number - ids->newest, step = up >> 63 ? ~(up << 1) : up << 1;
    for (; step >= 0x80; step >>= 7)
        piece->bytes[piece->used++] = (uint8_t)(step | 0x80);
    piece->bytes[piece->used++] = (uint8_t)step;
    ids->newest = number;
    ids->count++;
    return 0;
}

int tp_ids_move(struct tp_ids_pool *pool, struct tp_ids *ids, struct tp_ids *from)
{
    int failed = 0;
    if (ids->count == 0) {
        *ids = *from;
        *from = (struct tp_ids){0};
        return 0;
    }
    struct tp_ids_cursor cursor = tp_ids_begin(from);
    for (uint64_t number; !failed && tp_ids_next(&cursor, &number);)
        failed = tp_ids_add(pool, ids, number);
    tp_ids_clear(pool, from);
    return failed;
}

void tp_ids_clear(struct tp_ids_pool *pool, struct tp_ids *ids)
{
    if (ids->last) {
        ids->last->next = pool->free;
        pool->free = ids->first;
    }
    *ids = (struct tp_ids){0};
}

struct tp_ids_cursor tp_ids_begin(const struct tp_ids *ids)
{
    return (struct tp_ids_cursor){.piece = ids->first};
}

bool tp_ids_next(struct tp_ids_cursor *cursor, uint64_t *ret)
{
    if (cursor->piece && cursor->at == cursor->piece->used) {
        cursor->piece = cursor->piece->next;
        cursor->at = 0;
    }
    if (!cursor->piece)
        return false;
    uint64_t step = 0, byte;
    unsigned shift = 0;
    do {
        byte = cursor->piece->bytes[cursor->at++];
        step |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    cursor->number += step & 1 ? ~(step >> 1) : step >> 1;
    *ret = cursor->number;
    return true;
}
