#include "intern.h"

#include <stdatomic.h>
#include <string.h>

#define SLOTS (TP_INTERN_MAX_NAMES * 2)

/* One name in text memory; an id is its place in units of 8 bytes, plus one. */
struct entry {
    uint32_t hash;
    uint32_t bytes;
    char text[];
};

struct tp_intern {
    char *text;
    size_t text_bytes;
    _Atomic size_t usable; /* grows on the background thread */
    _Atomic size_t used;
    _Atomic uint32_t names;
    _Atomic uint32_t slots[SLOTS]; /* ids; 0: free. Set once, by compare-and-swap with release; read with acquire */
};

size_t tp_intern_size(void)
{
    return sizeof(struct tp_intern);
}

void tp_intern_init(struct tp_intern *table, char *text, size_t text_bytes)
{
    table->text = text;
    table->text_bytes = text_bytes;
}

void tp_intern_prepare(struct tp_intern *table, size_t usable)
{
    if (usable > table->text_bytes)
        usable = table->text_bytes;
    /* Pairs with the acquire in take: whoever sees the larger bound sees the memory faulted in. */
    atomic_store_explicit(&table->usable, usable, memory_order_release);
}

void tp_intern_adopt(struct tp_intern *table, char *text, size_t used)
{
    tp_intern_init(table, text, used);
    atomic_store_explicit(&table->used, used, memory_order_relaxed);
}

size_t tp_intern_used(const struct tp_intern *table)
{
    return atomic_load_explicit(&table->used, memory_order_relaxed);
}

/* A word at a time; quality enough for names, and an end shorter than a word is read without passing it. */
static uint32_t hash_of(const char *name, size_t bytes)
{
    uint64_t h = bytes * UINT64_C(0x9e3779b97f4a7c15);
    while (bytes >= 8) {
        uint64_t word;
        memcpy(&word, name, 8);
        h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
        name += 8;
        bytes -= 8;
    }
    uint64_t word = 0;
    memcpy(&word, name, bytes);
    h = (h ^ word) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(h ^ h >> 32);
}

static struct entry *entry_of(const struct tp_intern *table, uint32_t id)
{
    return (struct entry *)(table->text + (size_t)(id - 1) * 8);
}

/* Takes room for one entry out of the usable text; NULL when there is none. */
static struct entry *take(struct tp_intern *table, size_t bytes, uint32_t *ret_id)
{
    size_t need = tp_round_up(sizeof(struct entry) + bytes + 1, 8);
    size_t usable = atomic_load_explicit(&table->usable, memory_order_acquire); /* pairs with tp_intern_prepare */
    size_t used = atomic_load_explicit(&table->used, memory_order_relaxed);
    do {
        if (need > usable || used > usable - need)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&table->used, &used, used + need, memory_order_relaxed,
                                                    memory_order_relaxed));
    *ret_id = (uint32_t)(used / 8) + 1;
    return (struct entry *)(table->text + used);
}

static TP_COLD uint32_t add(struct tp_intern *table, const char *name, size_t bytes, uint32_t hash, uint32_t at)
{
    if (atomic_load_explicit(&table->names, memory_order_relaxed) >= TP_INTERN_MAX_NAMES || bytes > UINT32_MAX / 2)
        return 0;
    uint32_t id;
    struct entry *fresh = take(table, bytes, &id);
    if (!fresh)
        return 0;
    fresh->hash = hash;
    fresh->bytes = (uint32_t)bytes;
    memcpy(fresh->text, name, bytes);
    fresh->text[bytes] = '\0';
    for (uint32_t probe = 0; probe < SLOTS; probe++, at = (at + 1) % SLOTS) {
        uint32_t seen = 0;
        /* Release: the entry is whole before its id can be seen. Pairs with the acquire in tp_intern. */
        if (atomic_compare_exchange_strong_explicit(&table->slots[at], &seen, id, memory_order_release,
                                                    memory_order_acquire)) {
            atomic_fetch_add_explicit(&table->names, 1, memory_order_relaxed);
            return id;
        }
        struct entry *other = entry_of(table, seen);
        if (other->hash == hash && other->bytes == bytes && memcmp(other->text, name, bytes) == 0)
            return seen; /* another thread was first; our copy stays unused */
    }
    return 0;
}

uint32_t tp_intern(struct tp_intern *table, const char *name, size_t bytes)
{
    uint32_t hash = hash_of(name, bytes);
    uint32_t at = hash % SLOTS;
    for (uint32_t probe = 0; probe < SLOTS; probe++, at = (at + 1) % SLOTS) {
        uint32_t id = atomic_load_explicit(&table->slots[at], memory_order_acquire); /* pairs with add */
        if (id == 0)
            return add(table, name, bytes, hash, at);
        struct entry *entry = entry_of(table, id);
        if (entry->hash == hash && entry->bytes == bytes && memcmp(entry->text, name, bytes) == 0)
            return id;
    }
    return 0;
}

const char *tp_intern_text(const struct tp_intern *table, uint32_t id, size_t *ret_bytes)
{
    size_t used = tp_intern_used(table), at = (size_t)(id - 1) * 8 + sizeof(struct entry);
    const struct entry *entry = id != 0 && at <= used ? entry_of(table, id) : NULL;
    if (!entry || entry->bytes >= used - at) {
        *ret_bytes = 0;
        return "";
    }
    *ret_bytes = entry->bytes;
    return entry->text;
}
