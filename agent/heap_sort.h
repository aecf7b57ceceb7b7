/*
 * heap_sort.h: sorts in place and is never slow. qsort(3) may take memory of the job's heap. Inline, so that the size and
 * the order are known where it is called.
 */
#ifndef TP_HEAP_SORT_H
#define TP_HEAP_SORT_H

#include <string.h>

#include "base.h"

#define TP_HEAP_ITEM_MAX 128

typedef bool (*tp_heap_before_fn)(const void *a, const void *b);

static inline __attribute__((always_inline)) void tp_heap_sift(char *items, size_t bytes, size_t count, size_t at,
                                                               tp_heap_before_fn before)
{
    _Alignas(16) char moved[TP_HEAP_ITEM_MAX];
    memcpy(moved, items + at * bytes, bytes);
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(items + child * bytes, items + (child + 1) * bytes))
            child++;
        if (!before(moved, items + child * bytes))
            break;
        memcpy(items + at * bytes, items + child * bytes, bytes);
    }
    memcpy(items + at * bytes, moved, bytes);
}

/* bytes: of an item, at most TP_HEAP_ITEM_MAX. Equal items come in any order. */
static inline __attribute__((always_inline)) void tp_heap_sort(void *array, size_t count, size_t bytes,
                                                               tp_heap_before_fn before)
{
    char *items = array;
    _Alignas(16) char last[TP_HEAP_ITEM_MAX];
    for (size_t i = count / 2; i-- > 0;)
        tp_heap_sift(items, bytes, count, i, before);
    for (size_t i = count; i-- > 1;) {
        memcpy(last, items, bytes);
        memcpy(items, items + i * bytes, bytes);
        memcpy(items + i * bytes, last, bytes);
        tp_heap_sift(items, bytes, i, 0, before);
    }
}

#endif
