/*
 * An object is made by PyTorch's own constructor, over memory of ours, of values that stand nowhere else in it. It is
 * never destroyed: what it owns is ours. A place counts only if it is the only one that fits.
 */
#include "comms.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define OBJECT_BYTES 512
#define VTABLE_HEAD 2 /* words before what an object's first word leads to */

/* libstdc++'s: short ones lie in the object itself. */
struct string {
    const char *text;
    size_t bytes;
    char near[16];
};

struct vector {
    const int64_t *begin, *end, *room;
};

static struct {
    const void *(*get)(const void *kind);
    const void *kind;
    const void *vtable;
    uint16_t collective, group_name, group_description; /* a string */
    uint16_t in_split, out_split;                       /* a vector */
    uint16_t in_elements, out_elements;                 /* 64 bits */
    uint16_t rank_start, rank_stride, group_size;       /* 32 bits */
    uint16_t type, is_async;                            /* 8 bits */
} places;

static _Alignas(16) unsigned char objects[2][OBJECT_BYTES];

static uint16_t find(const void *what, size_t bytes)
{
    uint16_t found = 0;
    for (size_t at = 8; at + bytes <= OBJECT_BYTES; at += bytes < 8 ? bytes : 8)
        if (memcmp(objects[0] + at, what, bytes) == 0) {
            if (found)
                return 0;
            found = (uint16_t)at;
        }
    return found;
}

static uint16_t find_string(const char *text)
{
    uint16_t found = 0;
    for (size_t at = 8; at + sizeof(struct string) <= OBJECT_BYTES; at += 8) {
        struct string string;
        memcpy(&string, objects[0] + at, sizeof string);
        if (string.text == (const char *)objects[0] + at + offsetof(struct string, near) &&
            string.bytes == strlen(text) && memcmp(string.near, text, string.bytes) == 0) {
            if (found)
                return 0;
            found = (uint16_t)at;
        }
    }
    return found;
}

/* The byte that is so in the one object and so in the other. */
static uint16_t find_byte(uint8_t in_first, uint8_t in_second)
{
    uint16_t found = 0;
    for (size_t at = 8; at < OBJECT_BYTES; at++)
        if (objects[0][at] == in_first && objects[1][at] == in_second) {
            if (found)
                return 0;
            found = (uint16_t)at;
        }
    return found;
}

static void set_string(struct string *string, const char *text)
{
    *string = (struct string){.text = string->near, .bytes = strlen(text)};
    memcpy(string->near, text, string->bytes);
}

bool tp_comms_attach(void *library)
{
    static const int64_t sizes[] = {701, 703, 709, 719, 727};
    static const int64_t in_elements = 0x1122334455667788, out_elements = 0x2233445566778811;
    /* Of a stride above 0 PyTorch makes the list of all ranks, as long as the group is large. */
    static const int32_t start = 0x31415926, stride = -0x27182818, size = 0x16180339;
    /* The tuple's second element is the first in memory. All that is no number goes by its address. */
    void (*construct)(void *, struct string *, int, struct string *, int64_t, int64_t, int8_t, struct vector *,
                      struct vector *, int, int, int, bool);
    *(void **)&construct =
        dlsym(library, "_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES7_EEi"
                       "OS7_llN3c1010ScalarTypeESt6vectorIlSaIlEESE_iiib");
    *(void **)&places.get = dlsym(library, "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE");
    const void **kind = dlsym(library, "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE");
    const char *vtable = dlsym(library, "_ZTVN5torch19ParamCommsDebugInfoE");
    if (!construct || !places.get || !kind || !vtable)
        return false;
    for (unsigned i = 0; i < 2; i++) {
        struct string group[2], collective;
        struct vector in = {sizes, sizes + 2, sizes + 2}, out = {sizes + 2, sizes + 5, sizes + 5};
        set_string(&group[0], "description");
        set_string(&group[1], "name");
        set_string(&collective, "collective");
        memset(objects[i], 0xee, OBJECT_BYTES);
        construct(objects[i], group, 0, &collective, in_elements, out_elements, i ? 7 : 6, &in, &out, start, stride,
                  size, i == 0);
    }
    const int64_t *in[] = {sizes, sizes + 2}, *out[] = {sizes + 2, sizes + 5};
    places.collective = find_string("collective");
    places.group_name = find_string("name");
    places.group_description = find_string("description");
    places.in_elements = find(&in_elements, 8);
    places.out_elements = find(&out_elements, 8);
    places.rank_start = find(&start, 4);
    places.rank_stride = find(&stride, 4);
    places.group_size = find(&size, 4);
    places.type = find_byte(6, 7);
    places.is_async = find_byte(1, 0);
    places.in_split = find(in, sizeof in);
    places.out_split = find(out, sizeof out);
    if (memcmp(objects[0], &(const char *){vtable + VTABLE_HEAD * sizeof(void *)}, sizeof vtable) != 0 ||
        !places.collective || !places.group_name || !places.group_description || !places.in_split ||
        !places.out_split || !places.in_elements || !places.out_elements || !places.rank_start ||
        !places.rank_stride || !places.group_size || !places.type || !places.is_async)
        return false;
    places.kind = *kind;
    places.vtable = vtable + VTABLE_HEAD * sizeof(void *);
    return true;
}

bool tp_comms_is_name(const char *name)
{
    return strcmp(name, "record_param_comms") == 0;
}

#define READ(member, object, place) memcpy(&(member), (object) + (place), sizeof(member))

bool tp_comms_now(struct tp_comms *ret)
{
    const char *object = places.vtable ? places.get(places.kind) : NULL;
    if (!object || memcmp(object, &places.vtable, sizeof places.vtable) != 0)
        return false;
    READ(ret->collective, object, places.collective);
    READ(ret->group_name, object, places.group_name);
    READ(ret->group_description, object, places.group_description);
    struct vector in, out;
    READ(in, object, places.in_split);
    READ(out, object, places.out_split);
    ret->in_split.sizes = in.begin;
    ret->in_split.count = (size_t)(in.end - in.begin);
    ret->out_split.sizes = out.begin;
    ret->out_split.count = (size_t)(out.end - out.begin);
    READ(ret->in_elements, object, places.in_elements);
    READ(ret->out_elements, object, places.out_elements);
    READ(ret->rank_start, object, places.rank_start);
    READ(ret->rank_stride, object, places.rank_stride);
    READ(ret->group_size, object, places.group_size);
    READ(ret->type, object, places.type);
    READ(ret->is_async, object, places.is_async);
    return true;
}
