/* selftest.h: whether objects that we make live and die in this PyTorch as its own do (selftest.c). */
#ifndef TP_TORCH_SELFTEST_H
#define TP_TORCH_SELFTEST_H

#include "../../agent/range_hooks.h"
#include "abi_object.h"

struct tp_torch_selftest {
    const struct tp_torch_abi *abi;
    const struct tp_torch_object *object;
    const struct tp_range_hooks *hooks; /* those under test */
    tp_torch_start_fn (*start_of)(uint8_t scope);
    tp_torch_end_fn end;
    void (*make_range)(void *range, uint8_t scope);
};

/* While no hook is active. NULL, or what went wrong. The table of hooks is changed meanwhile, and left as it happens. */
const char *tp_torch_selftest(const struct tp_torch_selftest *test);

#endif
