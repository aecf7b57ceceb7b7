/*
 * bell.h: wakes threads of ours, and waits for them. It counts its rings: who waits says which count it saw before it looked
 * for work, so no ring is missed.
 *
 * Waits are relative, by the kernel's own clock: the time of day may be set back while we wait, and clock_gettime may be
 * another preloaded library's. Both calls are async-signal-safe.
 */
#ifndef TP_BELL_H
#define TP_BELL_H

#include <stdatomic.h>

#include "base.h"

struct tp_bell {
    _Atomic uint32_t rings;
};

#define TP_BELL_FOREVER UINT64_MAX

void tp_bell_ring(struct tp_bell *bell);

static inline uint32_t tp_bell_rings(struct tp_bell *bell)
{
    return atomic_load(&bell->rings);
}

/* Returns when the count differs from `seen`: true; or after so many milliseconds: false. */
bool tp_bell_wait(struct tp_bell *bell, uint32_t seen, uint64_t limit_ms);

#endif
