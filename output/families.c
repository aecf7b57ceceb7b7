#include "families.h"

#include <errno.h>

/* One that waits for its range, in a chain of its hash; or a free one. */
struct waiting {
    struct waiting *next;
    struct tp_family family;
};

struct tp_families {
    struct tp_arena *arena;
    const struct tp_event *events;
    struct tp_family *here; /* by place in the segment */
    uint32_t *around;       /* place of the parent, plus 1; 0: not here */
    size_t capacity;
    struct waiting **buckets, *free;
    unsigned bits;
    size_t waits;
};

static size_t bucket_of(const struct tp_families *families, uint64_t index)
{
    return (size_t)(index * UINT64_C(0x9e3779b97f4a7c15) >> (64 - families->bits));
}

static int grow(struct tp_families *families)
{
    unsigned bits = families->bits ? families->bits + 1 : 8;
    struct waiting **old = families->buckets, **buckets = tp_arena_alloc(families->arena, sizeof *buckets << bits);
    size_t count = old ? (size_t)1 << families->bits : 0;
    if (!buckets)
        return -ENOMEM;
    families->buckets = buckets;
    families->bits = bits;
    for (size_t i = 0; i < count; i++)
        for (struct waiting *next, *waiting = old[i]; waiting; waiting = next) {
            struct waiting **to = &buckets[bucket_of(families, waiting->family.parent)];
            next = waiting->next;
            waiting->next = *to;
            *to = waiting;
        }
    return 0;
}

struct tp_families *tp_families_new(struct tp_arena *arena)
{
    struct tp_families *families = tp_arena_alloc(arena, sizeof *families);
    if (!families)
        return NULL;
    families->arena = arena;
    return grow(families) < 0 ? NULL : families;
}

static struct waiting **find(struct tp_families *families, uint64_t index)
{
    struct waiting **at = &families->buckets[bucket_of(families, index)];
    while (*at && (*at)->family.parent != index)
        at = &(*at)->next;
    return at;
}

/* Most ranges lie in the one before them, or beside it. */
static uint32_t find_around(const struct tp_families *families, size_t at)
{
    const struct tp_event *events = families->events;
    uint64_t parent = events[at].parent;
    if (parent == UINT64_MAX || at == 0)
        return 0;
    if (events[at - 1].index == parent)
        return (uint32_t)at;
    if (events[at - 1].parent == parent)
        return families->around[at - 1];
    size_t low = 0, high = at;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (events[middle].index < parent)
            low = middle + 1;
        else
            high = middle;
    }
    return low < at && events[low].index == parent ? (uint32_t)low + 1 : 0;
}

static int make_room(struct tp_families *families, size_t count)
{
    if (count <= families->capacity)
        return 0;
    families->here = tp_arena_alloc(families->arena, count * sizeof *families->here);
    families->around = tp_arena_alloc(families->arena, count * sizeof *families->around);
    families->capacity = families->here && families->around ? count : 0;
    return families->capacity ? 0 : -ENOMEM;
}

int tp_families_begin(struct tp_families *families, const struct tp_event *events, size_t count)
{
    if (make_room(families, count) < 0)
        return -ENOMEM;
    families->events = events;
    for (size_t i = 0; i < count; i++) {
        struct waiting **at = families->waits ? find(families, events[i].index) : NULL;
        families->here[i] = at && *at ? (*at)->family : (struct tp_family){.parent = events[i].index};
        families->around[i] = find_around(families, i);
        if (at && *at) {
            struct waiting *done = *at;
            *at = done->next;
            done->next = families->free;
            families->free = done;
            families->waits--;
        }
    }
    return 0;
}

struct tp_family *tp_families_of(struct tp_families *families, size_t at)
{
    return &families->here[at];
}

bool tp_families_parent_at(const struct tp_families *families, size_t at, size_t *ret)
{
    *ret = families->around[at] - 1;
    return families->around[at] > 0;
}

struct tp_family *tp_families_around(struct tp_families *families, size_t at)
{
    if (families->around[at])
        return &families->here[families->around[at] - 1];
    uint64_t index = families->events[at].parent;
    struct waiting *waiting = *find(families, index);
    if (waiting)
        return &waiting->family;
    if (families->waits >> families->bits && grow(families) < 0)
        return NULL;
    waiting = families->free;
    if (waiting)
        families->free = waiting->next;
    else if (!(waiting = tp_arena_alloc(families->arena, sizeof *waiting)))
        return NULL;
    struct waiting **to = &families->buckets[bucket_of(families, index)];
    *waiting = (struct waiting){.next = *to, .family = {.parent = index}};
    *to = waiting;
    families->waits++;
    return &waiting->family;
}

void tp_family_add(struct tp_family *family, const struct tp_child *child)
{
    if (family->count++ == 0)
        family->only = *child;
}
