/*
 * range_hooks.h: where interposed functions meet the collector that observes ranges. A program opens a range by asking for
 * the callbacks of a scope, building an object from them, naming it (before) and ending it, or by destroying it. The
 * interposer calls what the table has: the program's own functions, or those of a collector, which call the program's own.
 *
 * Objects are opaque here; what lies in them is the collector's knowledge.
 */
#ifndef TP_RANGE_HOOKS_H
#define TP_RANGE_HOOKS_H

#include <stdatomic.h>

#include "base.h"

enum tp_range_name_kind {
    TP_RANGE_NAME_TEXT,   /* text, of so many bytes */
    TP_RANGE_NAME_OBJECT, /* an object that has a name */
    TP_RANGE_NAME_STRING, /* PyTorch up to 2.8: text that ends with a NUL and lies in the object, a std::string */
};

/* A name as it is passed, by value, from PyTorch 2.9 on. */
struct tp_range_name {
    union {
        uint64_t bytes;
        const void *object;
    };
    const char *text;
    uint8_t kind; /* enum tp_range_name_kind; the bytes behind it are padding, and anything */
};

struct tp_range_hooks {
    void *(*callbacks)(void *ret_callbacks, uint8_t scope); /* an optional: empty where nobody observes */
    void (*construct_from)(void *range, void *callbacks);
    void (*construct)(void *range, uint8_t scope);
    void (*before)(void *range, struct tp_range_name name, int64_t sequence);
    void (*end)(void *range);
    void (*destroy)(void *range);
    void (*destroy_and_free)(void *range);
    void (*run)(void *range, const void *object, uint16_t key, uint64_t keys);
    void (*run_with_inputs)(void *range, const void *object, uint16_t key, uint64_t keys, const void *inputs, uint64_t count);
};

/* NULL: the program's own functions have not been looked up. Acquire: what the table's functions use is written first. */
TP_INTERNAL extern const struct tp_range_hooks *_Atomic tp_range_hooks;

/* The program's own functions, and whether all of them are there; known when a library to observe is told of (hooks.h). */
TP_INTERNAL extern struct tp_range_hooks tp_range_real;
extern bool tp_range_real_is_whole;

#endif
