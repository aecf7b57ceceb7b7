/*
 * json_library.h: the functions of jansson that the settings use, in one table, found at run time.
 *
 * The agent never links jansson: a preloaded library with dependencies costs every process of the job, and a conda
 * environment brings its own. It is opened when a JSON setting is given, and closed when that is read. The command
 * links jansson, and sets tp_settings_jansson to its own table.
 */
#ifndef TP_JSON_LIBRARY_H
#define TP_JSON_LIBRARY_H

#include "arena.h"
#include "base.h"

#if defined(__has_include)
#if __has_include(<jansson.h>)
#define TP_HAVE_JANSSON 1
#include <jansson.h>
#endif
#endif

#ifdef TP_HAVE_JANSSON

#define TP_JANSSON_FUNCTIONS(F) \
    F(json_t *, json_loadb, (const char *, size_t, size_t, json_error_t *)) \
    F(void, json_delete, (json_t *)) \
    F(void *, json_object_iter, (json_t *)) \
    F(void *, json_object_iter_next, (json_t *, void *)) \
    F(const char *, json_object_iter_key, (void *)) \
    F(json_t *, json_object_iter_value, (void *)) \
    F(size_t, json_array_size, (const json_t *)) \
    F(json_t *, json_array_get, (const json_t *, size_t)) \
    F(const char *, json_string_value, (const json_t *)) \
    F(json_int_t, json_integer_value, (const json_t *)) \
    F(double, json_real_value, (const json_t *)) \
    F(void, json_set_alloc_funcs, (json_malloc_t, json_free_t)) \
    F(void, json_get_alloc_funcs, (json_malloc_t *, json_free_t *))

struct tp_jansson {
#define TP_JANSSON_FIELD(result, name, parameters) result(*name) parameters;
    TP_JANSSON_FUNCTIONS(TP_JANSSON_FIELD)
#undef TP_JANSSON_FIELD
};

#endif

/* An open library, and the memory of what it parses. */
struct tp_json_library {
    const struct tp_jansson *functions;
    void *handle;
    bool own_memory; /* the allocator is ours meanwhile */
    struct tp_arena arena;
#ifdef TP_HAVE_JANSSON
    struct tp_jansson found;
    json_malloc_t allocate;
    json_free_t release;
#endif
};

/* NULL, or why there is no JSON and what to do about it. One library at a time. */
const char *tp_json_library_open(struct tp_json_library *library);
void tp_json_library_close(struct tp_json_library *library);

#endif
