/*
 * ops.c: operators and user ranges, by global RecordFunction callbacks: one pair a scope, so that the scope is known
 * without looking. The interposed way will write the same records (record_begin, record_end).
 *
 * DESIGN. torch keeps a copy of the callbacks in each RecordFunction from its start on: an end comes even after
 * removeCallback. So a callback may be called at any time until the process is gone, and first asks the hook word what to
 * do. The key of a range is the address of its RecordFunction, which can be neither copied nor moved.
 */
#include "ops.h"

#include <stdio.h>
#include <string.h>

#include "../../agent/clock.h"
#include "../../agent/hooks.h"
#include "../../agent/intern.h"
#include "../../agent/log.h"
#include "../../agent/ring.h"
#include "../../agent/session.h"
#include "../../agent/thread.h"
#include "abi.h"

static struct tp_torch_abi abi;
static uint64_t handles[TP_SCOPE_COUNT]; /* 0: not registered; under the session's lock */
static bool overload_names;
static const char *step_range; /* of TPROF_STEP=range:NAME */

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What PyTorch calls the ranges that may end a step (torch/optim/optimizer.py, torch/utils/data/dataloader.py,
 * torch/profiler/profiler.py). 0: not a mark. */
static enum tp_mark_kind mark_kind(const char *name)
{
    if (step_range)
        return strcmp(name, step_range) == 0 ? TP_MARK_RANGE : 0;
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

static void mark(const void *record_function, enum tp_mark_edge edge)
{
    const char *name = abi.name(record_function);
    enum tp_mark_kind kind = mark_kind(name);
    if (kind)
        tp_session_mark(kind, edge, identity_of(name), name);
}

static TP_COLD uint32_t wake_child(void)
{
    return tp_session_wake_child() ? tp_hooks_active() : 0;
}

static inline struct tp_thread *recording_thread(uint32_t active)
{
    struct tp_thread *thread = tp_thread_self();
    if (TP_UNLIKELY(!thread))
        thread = tp_thread_enter();
    if (TP_LIKELY(thread != NULL) && TP_UNLIKELY(thread->epoch != active >> TP_HOOK_EPOCH_SHIFT))
        tp_ring_restart(thread, active >> TP_HOOK_EPOCH_SHIFT);
    return thread;
}

/* "aten::empty.memory_format", as torch writes it under capture_overload_names. */
static const char *with_overload(const void *record_function, const char *name, char *buffer, size_t size)
{
    const char *overload = abi.overload_name(record_function);
    if (!overload || !*overload)
        return name;
    snprintf(buffer, size, "%s.%s", name, overload);
    return buffer;
}

static inline void record_begin(const void *record_function, unsigned scope, uint32_t active)
{
    struct tp_thread *thread = recording_thread(active);
    if (TP_UNLIKELY(!thread)) {
        tp_thread_count_late(1);
        return;
    }
    char buffer[512];
    const char *name = abi.name(record_function);
    if (TP_UNLIKELY(overload_names))
        name = with_overload(record_function, name, buffer, sizeof buffer);
    size_t bytes = strlen(name), text_bytes = 0;
    uint32_t id = tp_intern(tp_session.spool.names, name, bytes);
    uint64_t forward_thread = tp_torch_forward_thread(&abi, record_function);
    unsigned words = TP_BEGIN_WORDS + (forward_thread != 0);
    uint8_t flags = forward_thread != 0 ? TP_BEGIN_FORWARD_THREAD : 0;
    if (TP_UNLIKELY(id == 0)) {
        text_bytes = bytes < TP_BEGIN_TEXT_MAX ? bytes : TP_BEGIN_TEXT_MAX;
        flags |= text_bytes < bytes ? TP_BEGIN_TEXT | TP_BEGIN_TEXT_CUT : TP_BEGIN_TEXT;
        words += (unsigned)((text_bytes + 7) / 8);
    }
    if (TP_UNLIKELY(abi.is_async(record_function)))
        flags |= TP_BEGIN_ASYNC;
    uint64_t time = tp_clock_now();
    uint64_t *at = tp_ring_reserve_begin(thread, words, time);
    if (TP_UNLIKELY(!at))
        return;
    struct tp_begin *begin = (struct tp_begin *)at;
    begin->head = tp_record_head(TP_RECORD_BEGIN, words, (uintptr_t)record_function);
    begin->time = time;
    begin->name = id;
    begin->scope = (uint8_t)scope;
    begin->flags = flags;
    begin->text_bytes = (uint16_t)text_bytes;
    begin->sequence = tp_torch_sequence(&abi, record_function);
    begin->id = tp_torch_id(&abi, record_function);
    uint64_t *rest = at + TP_BEGIN_WORDS;
    if (forward_thread)
        *rest++ = forward_thread;
    if (TP_UNLIKELY(text_bytes)) {
        at[words - 1] = 0; /* the padding */
        memcpy(rest, name, text_bytes);
    }
    tp_ring_commit(thread, at + words);
}

static inline void record_end(const void *record_function, uint32_t active, uint64_t time)
{
    struct tp_thread *thread = recording_thread(active);
    uint64_t *at = thread ? tp_ring_reserve_end(thread) : NULL;
    if (TP_UNLIKELY(!at))
        return;
    at[0] = tp_record_head(TP_RECORD_END, TP_END_WORDS, (uintptr_t)record_function);
    at[1] = time;
    tp_ring_commit(thread, at + TP_END_WORDS);
}

static inline void *begin(void **ret_context, const void *record_function, unsigned scope)
{
    *ret_context = NULL;
    uint32_t active = tp_hooks_active();
    if (TP_UNLIKELY(active & TP_HOOK_COLD))
        active = wake_child();
    if (scope == TP_SCOPE_USER_SCOPE && active & TP_HOOK_MARKS) {
        mark(record_function, TP_MARK_BEGIN);
        active = tp_hooks_active(); /* the mark may have begun or ended a window */
    }
    if (scope == TP_SCOPE_BACKWARD_FUNCTION &&
        !atomic_load_explicit(&tp_session.saw_backward, memory_order_relaxed)) {
        tp_torch_abi_check_backward(&abi, record_function);
        atomic_store_explicit(&tp_session.saw_backward, true, memory_order_relaxed);
    }
    if (active & TP_HOOK_RECORD)
        record_begin(record_function, scope, active);
    return ret_context;
}

static void end(const void *record_function, void *context)
{
    (void)context;
    uint64_t time = tp_clock_now();
    uint32_t active = tp_hooks_active();
    if (active & TP_HOOK_RECORD)
        record_end(record_function, active, time);
}

static void end_user(const void *record_function, void *context)
{
    end(record_function, context);
    if (tp_hooks_active() & TP_HOOK_MARKS)
        mark(record_function, TP_MARK_END);
}

#define BEGIN_OF(scope) \
    static void *begin_##scope(void **ret_context, const void *record_function) \
    { \
        return begin(ret_context, record_function, scope); \
    }
BEGIN_OF(0)
BEGIN_OF(1)
BEGIN_OF(2)
BEGIN_OF(3)
BEGIN_OF(4)
BEGIN_OF(5)
BEGIN_OF(6)
BEGIN_OF(7)
BEGIN_OF(8)
BEGIN_OF(9)

static void *(*const begins[TP_SCOPE_COUNT])(void **, const void *) = {
    begin_0, begin_1, begin_2, begin_3, begin_4, begin_5, begin_6, begin_7, begin_8, begin_9,
};

static int observe(enum tp_observe what)
{
    for (unsigned scope = 0; scope < TP_SCOPE_COUNT; scope++) {
        bool user = scope == TP_SCOPE_USER_SCOPE;
        bool wanted = what == TP_OBSERVE_EVENTS || (user && what == TP_OBSERVE_MARKS);
        if (wanted && !handles[scope]) {
            /* Ids are asked for, so that a trace can be joined with other observers' output of the same run. */
            handles[scope] = tp_torch_abi_add(&abi, begins[scope], user ? end_user : end, 1u << scope, true);
        } else if (!wanted && handles[scope]) {
            abi.remove_callback(handles[scope]);
            handles[scope] = 0;
        }
    }
    return 0;
}

static int attach(const struct tp_settings *settings, struct tp_error *error)
{
    int failed = tp_torch_abi_attach(&abi, error);
    if (!failed)
        failed = tp_thread_init(abi.current_thread_id);
    if (failed) {
        tp_error_set(error, "PyTorch", NULL, "cannot be observed");
        return failed;
    }
    overload_names = settings->experimental_config.capture_overload_names;
    step_range = settings->step.kind == TP_STEP_RANGE ? settings->step.name : NULL;
    tp_log(TP_LOG_INFO, "observes PyTorch %s by callbacks", abi.version);
    return 0;
}

static void check(void)
{
    if (handles[TP_SCOPE_USER_SCOPE] && !abi.has_global_callbacks())
        tp_log(TP_LOG_WARN, "the program removed all observers (torch's clearCallbacks); nothing was seen after that");
}

static const char *version(void)
{
    return abi.version;
}

static const char *way(void)
{
    return "callback";
}

const struct tp_collector tp_torch_ops = {
    .name = "torch",
    .activity = 1u << TP_ACTIVITY_CPU,
    .attach = attach,
    .observe = observe,
    .check = check,
    .version = version,
    .way = way,
};
