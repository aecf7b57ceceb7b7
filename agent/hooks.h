/*
 * hooks.h: what hooks do now. One word of bits on a page of its own that a forked child reads as zero (MADV_WIPEONFORK): off,
 * at no cost, also after a raw clone that runs no handler. Hooks read it first, before any thread-local state.
 *
 * A child of vfork shares the page and reads it armed: what it may run of ours (interpose/signal.c) does not use it.
 */
#ifndef TP_HOOKS_H
#define TP_HOOKS_H

#include <stdatomic.h>

#include "base.h"

enum tp_hook_bit {
    TP_HOOK_RECORD = 1, /* ranges are recorded */
    TP_HOOK_MARKS = 2,  /* user ranges may be step marks */
    TP_HOOK_COLD = 4,   /* a forked child: the first hook starts its session */
};

struct tp_hooks {
    uint32_t home; /* 1 in the process that mapped the page, 0 in a child that no fork handler has seen */
    _Atomic uint32_t active; /* enum tp_hook_bit; above them the epoch, one more each time recording is switched on */
};

#define TP_HOOK_EPOCH_SHIFT 8

TP_INTERNAL extern struct tp_hooks *_Atomic tp_hooks; /* never NULL */

static inline struct tp_hooks *tp_hooks_page(void)
{
    return atomic_load_explicit(&tp_hooks, memory_order_acquire); /* pairs with tp_hooks_init */
}

/* False in a child of a raw clone: threads, locks and chunks of the session are not there. True in a child of vfork. */
static inline bool tp_hooks_at_home(void)
{
    return tp_hooks_page()->home;
}

/* In a forked child, once its session's state is its own. */
void tp_hooks_move_in(void);

/* Maps the page. Without it (no memory) every hook stays off: -ENOMEM. */
int tp_hooks_init(void);

/* What to do when a library to observe has been loaded; NULL: nothing. Set by entry.c, before any other thread exists. */
extern void (*tp_hooks_library_loaded)(void);

static inline uint32_t tp_hooks_active(void)
{
    /* A hook that sees an older word records a little longer or begins a little later; the window's times, not this word,
     * say what counts. Acquire: who sees it switched on sees all that was made ready for it (tp_hooks_set). */
    return atomic_load_explicit(&tp_hooks_page()->active, memory_order_acquire);
}

/* Sets the bits. One caller at a time (the session, under its lock). */
void tp_hooks_set(uint32_t bits);

#endif
