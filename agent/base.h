/* base.h: what every file may use: attributes, branch hints, sizes. No types of ours. */
#ifndef TP_BASE_H
#define TP_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TP_EXPORT __attribute__((visibility("default")))
/* Of a variable that hooks read: without a detour over the linker's table. */
#define TP_INTERNAL __attribute__((visibility("hidden")))
#define TP_COLD __attribute__((cold, noinline))
#define TP_PRINTF(at, first) __attribute__((format(printf, at, first)))
#define TP_LIKELY(x) __builtin_expect(!!(x), 1)
#define TP_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define TP_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TP_CACHE_LINE 64
#define TP_PAGE 4096

static inline size_t tp_round_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

#endif
