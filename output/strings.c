#include "strings.h"

#include <errno.h>
#include <string.h>

struct string {
    const char *text;
    size_t bytes;
    uint64_t hash;
};

struct tp_strings {
    struct tp_arena *arena;
    struct string *strings;
    uint32_t *slots; /* number + 1, open addressing, twice the capacity */
    size_t count, capacity;
};

static uint64_t hash_of(const char *text, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

static int grow(struct tp_strings *strings)
{
    size_t capacity = strings->capacity ? strings->capacity * 2 : 256;
    struct string *grown = tp_arena_alloc(strings->arena, capacity * sizeof *grown);
    uint32_t *slots = tp_arena_alloc(strings->arena, capacity * 2 * sizeof *slots);
    if (!grown || !slots)
        return -ENOMEM;
    if (strings->count)
        memcpy(grown, strings->strings, strings->count * sizeof *grown);
    for (size_t i = 0; i < strings->count; i++) {
        size_t at = grown[i].hash & (capacity * 2 - 1);
        while (slots[at])
            at = (at + 1) & (capacity * 2 - 1);
        slots[at] = (uint32_t)i + 1;
    }
    strings->strings = grown;
    strings->slots = slots;
    strings->capacity = capacity;
    return 0;
}

struct tp_strings *tp_strings_new(struct tp_arena *arena)
{
    struct tp_strings *strings = tp_arena_alloc(arena, sizeof *strings);
    if (!strings)
        return NULL;
    strings->arena = arena;
    return grow(strings) < 0 ? NULL : strings;
}

int64_t tp_strings_of(struct tp_strings *strings, const char *text, size_t bytes)
{
    if (strings->count == strings->capacity && grow(strings) < 0)
        return -ENOMEM;
    uint64_t hash = hash_of(text, bytes);
    size_t at = hash & (strings->capacity * 2 - 1);
    for (; strings->slots[at]; at = (at + 1) & (strings->capacity * 2 - 1)) {
        const struct string *string = &strings->strings[strings->slots[at] - 1];
        if (string->hash == hash && string->bytes == bytes && memcmp(string->text, text, bytes) == 0)
            return strings->slots[at] - 1;
    }
    const char *copy = tp_arena_copy(strings->arena, text, bytes);
    if (!copy)
        return -ENOMEM;
    strings->strings[strings->count] = (struct string){copy, bytes, hash};
    strings->slots[at] = (uint32_t)++strings->count;
    return (int64_t)strings->count - 1;
}

const char *tp_strings_text(const struct tp_strings *strings, uint32_t number, size_t *ret_bytes)
{
    *ret_bytes = strings->strings[number].bytes;
    return strings->strings[number].text;
}
