#include "trace_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 100 /* bytes of a name */

struct trace_name {
    uint64_t hash;
    char *text;
};

static bool place_all(struct trace_names *names)
{
    size_t count = names->slot_count ? names->slot_count * 2 : 1024;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < names->count; i++) {
        size_t at = names->names[i].hash & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(names->slots);
    names->slots = slots;
    names->slot_count = count;
    return true;
}

static char *copy(const struct tp_trace_text *text)
{
    size_t bytes = text->kept;
    if (bytes > SHOWN)
        for (bytes = SHOWN; bytes > 0 && ((unsigned char)text->text[bytes] & 0xc0) == 0x80;)
            bytes--; /* not inside of a character */
    char *name = malloc(bytes + 4);
    if (!name)
        return NULL;
    memcpy(name, text->text, bytes);
    strcpy(name + bytes, text->bytes > bytes ? "..." : "");
    return name;
}

int64_t trace_names_number(struct trace_names *names, const struct tp_trace_text *text)
{
    if (names->count * 2 >= names->slot_count && !place_all(names))
        return -ENOMEM;
    size_t at = text->hash & (names->slot_count - 1);
    for (; names->slots[at]; at = (at + 1) & (names->slot_count - 1))
        if (names->names[names->slots[at] - 1].hash == text->hash)
            return names->slots[at] - 1;
    if (names->count == names->capacity) {
        size_t larger = names->capacity ? names->capacity * 2 : 256;
        struct trace_name *memory = realloc(names->names, larger * sizeof *memory);
        if (!memory)
            return -ENOMEM;
        names->names = memory;
        names->capacity = larger;
    }
    struct trace_name name = {text->hash, copy(text)};
    if (!name.text)
        return -ENOMEM;
    names->names[names->count] = name;
    names->slots[at] = (uint32_t)++names->count;
    return (int64_t)names->count - 1;
}

const char *trace_names_text(const struct trace_names *names, uint32_t number)
{
    return names->names[number].text;
}

void trace_names_free(struct trace_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i].text);
    free(names->names);
    free(names->slots);
}
