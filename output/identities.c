#include "identities.h"

#define FIRST_SLOTS 256
#define MOST_SLOTS (1u << 16)

struct object {
    uint64_t id;    /* 0: none */
    uint64_t since; /* begin of the operator that made it; 0: it was there */
};

/* Open addressing; the number of slots is a power of two. */
struct tp_identity {
    uint64_t key; /* 0: free */
    struct object now, before;
    uint64_t shown; /* latest begin of an operator that it was an input or output of */
};

static uint64_t key_of(enum tp_identity_kind kind, uint64_t address)
{
    return address << 2 | (uint64_t)kind << 1 | 1;
}

static struct tp_identity *slot_of(const struct tp_identities *identities, uint64_t key)
{
    size_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (identities->capacity - 1);
    while (identities->slots[at].key && identities->slots[at].key != key)
        at = (at + 1) & (identities->capacity - 1);
    return &identities->slots[at];
}

static bool grow(struct tp_identities *identities)
{
    struct tp_identities grown = *identities;
    grown.capacity = identities->capacity ? identities->capacity * 2 : FIRST_SLOTS;
    if (grown.capacity > MOST_SLOTS ||
        !(grown.slots = tp_arena_alloc(identities->arena, grown.capacity * sizeof *grown.slots)))
        return false;
    for (size_t i = 0; i < identities->capacity; i++)
        if (identities->slots[i].key)
            *slot_of(&grown, identities->slots[i].key) = identities->slots[i];
    *identities = grown;
    return true;
}

static uint64_t take_id(struct tp_identities *identities)
{
    uint64_t id = *identities->next_id;
    *identities->next_id += 2;
    return id;
}

/* NULL: there is no room. One that was not known has no object yet. */
static struct tp_identity *find(struct tp_identities *identities, enum tp_identity_kind kind, uint64_t address)
{
    uint64_t key = key_of(kind, address);
    if (identities->capacity) {
        struct tp_identity *slot = slot_of(identities, key);
        if (slot->key)
            return slot;
    }
    if (identities->count * 2 >= identities->capacity && !grow(identities))
        return NULL;
    struct tp_identity *slot = slot_of(identities, key);
    *slot = (struct tp_identity){.key = key};
    identities->count++;
    return slot;
}

static void show(struct tp_identity *slot, uint64_t begin)
{
    if (slot->shown < begin)
        slot->shown = begin;
}

uint64_t tp_identity_given(struct tp_identities *identities, enum tp_identity_kind kind, uint64_t address,
                           uint64_t begin)
{
    struct tp_identity *slot = find(identities, kind, address);
    if (!slot)
        return 0;
    show(slot, begin);
    struct object *object = slot->now.id && slot->now.since > begin ? &slot->before : &slot->now;
    if (!object->id)
        *object = (struct object){.id = take_id(identities)};
    return object->id;
}

uint64_t tp_identity_returned(struct tp_identities *identities, enum tp_identity_kind kind, uint64_t address,
                              uint64_t begin, bool is_new)
{
    struct tp_identity *slot = find(identities, kind, address);
    if (!slot)
        return 0;
    bool is_known = slot->now.id && (!is_new || slot->shown >= begin);
    if (!is_known) {
        slot->before = slot->now;
        slot->now = (struct object){.id = take_id(identities), .since = is_new ? begin : 0};
    }
    show(slot, begin);
    return slot->now.id;
}

bool tp_identity_was_shown(const struct tp_identities *identities, enum tp_identity_kind kind, uint64_t address,
                           uint64_t begin)
{
    if (!identities->capacity)
        return false;
    const struct tp_identity *slot = slot_of(identities, key_of(kind, address));
    return slot->key && slot->shown >= begin;
}
