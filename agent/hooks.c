#include "hooks.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static struct tp_hooks off = {.home = 1};
struct tp_hooks *_Atomic tp_hooks = &off;
void (*tp_hooks_library_loaded)(void);

int tp_hooks_init(void)
{
    if (tp_hooks_page() != &off)
        return 0;
    struct tp_hooks *page = mmap(NULL, TP_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return -ENOMEM;
    madvise(page, TP_PAGE, MADV_WIPEONFORK); /* kernels before 4.14 do not know it: there the fork handler does it alone */
    page->home = 1;
    atomic_store_explicit(&tp_hooks, page, memory_order_release);
    return 0;
}

void tp_hooks_move_in(void)
{
    tp_hooks_page()->home = 1;
}

void tp_hooks_set(uint32_t bits)
{
    uint32_t before = tp_hooks_active();
    uint32_t epoch = before >> TP_HOOK_EPOCH_SHIFT;
    if (bits & ~before & TP_HOOK_RECORD)
        epoch++;
    atomic_store_explicit(&tp_hooks_page()->active, bits | epoch << TP_HOOK_EPOCH_SHIFT, memory_order_release);
}
