#include "ranges.h"

#include <stdio.h>

#include "schema.h"

struct tp_torch_ranges tp_torch_ranges;

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What PyTorch calls the ranges that may end a step (torch/optim/optimizer.py, torch/utils/data/dataloader.py,
 * torch/profiler/profiler.py). 0: not a mark. */
static enum tp_mark_kind mark_kind(const char *name)
{
    if (tp_torch_ranges.step_range)
        return strcmp(name, tp_torch_ranges.step_range) == 0 ? TP_MARK_RANGE : 0;
    if (starts_with(name, "Optimizer.step#"))
        return TP_MARK_OPTIMIZER;
    if (starts_with(name, "Optimizer.zero_grad#"))
        return TP_MARK_ZERO_GRAD;
    if (starts_with(name, "enumerate(DataLoader)#"))
        return TP_MARK_DATALOADER;
    if (starts_with(name, "ProfilerStep#"))
        return TP_MARK_PROFILER_STEP;
    return 0;
}

static uint64_t identity_of(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a: few and short names */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash;
}

void tp_torch_mark(const void *record_function, enum tp_mark_edge edge)
{
    const char *name = tp_torch_ranges.abi.name(record_function);
    enum tp_mark_kind kind = mark_kind(name);
    if (kind)
        tp_session_mark(kind, edge, identity_of(name), name);
}

TP_COLD uint32_t tp_torch_wake_child(void)
{
    tp_schema_forget();
    return tp_session_wake_child() ? tp_hooks_active() : 0;
}

TP_COLD void tp_torch_first_backward(const void *record_function)
{
    tp_torch_abi_check_backward(&tp_torch_ranges.abi, record_function);
    atomic_store_explicit(&tp_session.saw_backward, true, memory_order_relaxed);
}

TP_COLD const char *tp_torch_with_overload(const void *record_function, const char *name, char *buffer, size_t size)
{
    const char *overload = tp_torch_ranges.abi.overload_name(record_function);
    if (!overload || !*overload)
        return name;
    snprintf(buffer, size, "%s.%s", name, overload);
    return buffer;
}
