#include "arena.h"

#include <string.h>
#include <sys/mman.h>

struct tp_arena_block {
    struct tp_arena_block *next;
    size_t size, used;
};

#define BLOCK_MIN (64 * 1024)
#define HEADER tp_round_up(sizeof(struct tp_arena_block), 16)

void tp_arena_init(struct tp_arena *arena, size_t limit)
{
    *arena = (struct tp_arena){.limit = limit};
}

static struct tp_arena_block *grow(struct tp_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    size_t size = tp_round_up(bytes + HEADER, BLOCK_MIN);
    if (arena->limit && size > arena->limit - arena->mapped) {
        size = tp_round_up(bytes + HEADER, TP_PAGE); /* the last bit of the limit may hold a smaller block */
        if (arena->mapped > arena->limit || size > arena->limit - arena->mapped)
            return NULL;
    }
    struct tp_arena_block *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return NULL;
    block->size = size;
    block->used = HEADER;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->mapped += size;
    return block;
}

void *tp_arena_alloc(struct tp_arena *arena, size_t bytes)
{
    bytes = tp_round_up(bytes ? bytes : 1, 16);
    struct tp_arena_block *block = arena->blocks;
    if (!block || block->size - block->used < bytes)
        block = grow(arena, bytes);
    if (!block)
        return NULL;
    void *piece = (char *)block + block->used;
    block->used += bytes;
    return piece;
}

char *tp_arena_copy(struct tp_arena *arena, const char *text, size_t bytes)
{
    char *copy = tp_arena_alloc(arena, bytes + 1);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

void tp_arena_free(struct tp_arena *arena)
{
    struct tp_arena_block *block = arena->blocks;
    while (block) {
        struct tp_arena_block *next = block->next;
        munmap(block, block->size);
        block = next;
    }
    arena->blocks = NULL;
    arena->mapped = 0;
}
