#include "names.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ESCAPES "%h host, %p pid, %r rank, %t time in ns, %s step, %c cycle, %%"

/* What follows the worker name in the longest of our file names: ".", a time, ".", a suffix, ".gz". */
#define AFTER_WORKER 64

/* The value of one escape in text[size]; false if there is no such escape. */
static bool escape_value(char escape, const struct tp_name_values *values, char *text, size_t size)
{
    const struct tp_identity *identity = values->identity;
    switch (escape) {
    case 'h':
        snprintf(text, size, "%s", identity->host[0] ? identity->host : "localhost");
        for (char *c = text; *c; c++)
            if (*c == '/')
                *c = '_'; /* a host is one component, also within a path */
        return true;
    case 'p': snprintf(text, size, "%" PRIu32, identity->pid); return true;
    case 'r': snprintf(text, size, "%" PRIu64, identity->rank); return true;
    case 't': snprintf(text, size, "%" PRIu64, values->time_ns); return true;
    case 's': snprintf(text, size, "%" PRIu64, values->step); return true;
    case 'c': snprintf(text, size, "%" PRIu64, values->cycle); return true;
    case '%': snprintf(text, size, "%%"); return true;
    default: return false;
    }
}

int tp_names_expand(const char *pattern, const struct tp_name_values *values, char *text, size_t size,
                    struct tp_error *error)
{
    size_t used = 0;
    for (const char *c = pattern; *c; c++) {
        char value[HOST_NAME_MAX + 1] = {*c};
        if (*c == '%' && !escape_value(c[1], values, value, sizeof value)) {
            tp_error_set(error, pattern, ESCAPES, "\"%%%.1s\" is not an escape", c + 1);
            return -EINVAL;
        }
        c += *c == '%';
        size_t length = strlen(value);
        if (used + length >= size) {
            tp_error_set(error, pattern, NULL, "is longer than %zu bytes when expanded", size - 1);
            return -ENAMETOOLONG;
        }
        memcpy(text + used, value, length);
        used += length;
    }
    text[used] = '\0';
    return 0;
}

/* The greatest length up to limit at which text is not cut inside a UTF-8 sequence; what is none is cut anywhere. */
static size_t cut_length(const char *text, size_t limit)
{
    if (strlen(text) <= limit)
        return strlen(text);
    size_t at = limit;
    while (at > 0 && limit - at < 3 && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return ((unsigned char)text[at] & 0xc0) == 0x80 ? limit : at;
}

static void make_component(char *text)
{
    for (char *c = text; *c; c++)
        if (*c == '/' || (unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '_';
    if (text[0] == '.')
        text[0] = '_';
    /* A last part of digits alone would be taken for the time. */
    char *dot = strrchr(text, '.');
    if (dot && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1))
        *dot = '_';
}

void tp_names_worker(const char *setting, const struct tp_name_values *values, char *text, size_t size)
{
    char name[4096];
    if (!setting || !setting[0] || tp_names_expand(setting, values, name, sizeof name, NULL) < 0) {
        const char *rank = values->identity->rank_set ? "%h_%p_rank%r" : "%h_%p";
        tp_names_expand(rank, values, name, sizeof name, NULL);
    }
    size_t limit = NAME_MAX - AFTER_WORKER;
    if (limit > size - 1)
        limit = size - 1;
    size_t length = cut_length(name, limit);
    name[length] = '\0';
    make_component(name);
    memcpy(text, name, length);
    text[length] = '\0';
}

void tp_names_file(const char *worker, uint64_t time_ns, const char *suffix, bool gzip, char *text, size_t size)
{
    char after[AFTER_WORKER + NAME_MAX];
    int tail = snprintf(after, sizeof after, ".%" PRIu64 ".%s%s", time_ns, suffix, gzip ? ".gz" : "");
    size_t limit = size - 1 < NAME_MAX ? size - 1 : NAME_MAX;
    limit = (size_t)tail < limit ? limit - (size_t)tail : 0;
    snprintf(text, size, "%.*s%s", (int)cut_length(worker, limit), worker, after);
}

uint64_t tp_names_time(uint64_t now_ns)
{
    static _Atomic uint64_t last;
    /* Relaxed: the number alone is shared, nothing is published with it. */
    uint64_t before = atomic_load_explicit(&last, memory_order_relaxed), time;
    do
        time = now_ns > before ? now_ns : before + 1;
    while (!atomic_compare_exchange_weak_explicit(&last, &before, time, memory_order_relaxed, memory_order_relaxed));
    return time;
}
