/*
 * ranges.h: what is done when a range of PyTorch begins and ends, in whichever way it is observed (ops.c, interposed.c).
 *
 * The key of a range is the address of its RecordFunction, which can be neither copied nor moved.
 */
#ifndef TP_TORCH_RANGES_H
#define TP_TORCH_RANGES_H

#include <string.h>

#include "../../agent/clock.h"
#include "../../agent/hooks.h"
#include "../../agent/intern.h"
#include "../../agent/ring.h"
#include "../../agent/session.h"
#include "../../agent/thread.h"
#include "abi.h"
#include "tensor.h"
#include "values.h"

/* Set at attach; only read after that, but for what the first backward function shows. */
struct tp_torch_ranges {
    struct tp_torch_abi abi;
    bool overload_names;
    bool shapes; /* inputs are recorded as traces show them */
    bool values; /* what an operator is given and gives back is recorded as execution traces tell it */
    bool whole;  /* more than the name and the inputs is asked of a range: overload_names, values */
    const char *step_range; /* of TPROF_STEP=range:NAME */
};

TP_INTERNAL extern struct tp_torch_ranges tp_torch_ranges;

/* Tells the session of a user range that may end a step. */
void tp_torch_mark(const void *record_function, enum tp_mark_edge edge);

/* A forked child's first range: what the hooks have to do now. */
uint32_t tp_torch_wake_child(void);

/* Once in the life of the process. */
void tp_torch_first_backward(const void *record_function);

/* "aten::empty.memory_format", as torch writes it under capture_overload_names. */
const char *tp_torch_with_overload(const void *record_function, const char *name, char *buffer, size_t size);

/* What is known of a range that begins. */
struct tp_torch_begin {
    const void *record_function;
    const char *name; /* may be a temporary, and need not end with a NUL */
    size_t bytes;
    uint32_t name_id; /* 0: the name is still to be interned; else name and bytes are not looked at */
    int64_t sequence;
    uint64_t id;
    uint64_t forward_thread;
    uint8_t scope;
    bool is_async;
    struct tp_torch_values inputs; /* none where they are not recorded */
    bool values; /* tp_values_given() follows */
};

static inline struct tp_thread *tp_torch_recording_thread(uint32_t active)
{
    struct tp_thread *thread = tp_thread_self();
    if (TP_UNLIKELY(!thread))
        thread = tp_thread_enter();
    if (TP_LIKELY(thread != NULL) && TP_UNLIKELY(thread->epoch != active >> TP_HOOK_EPOCH_SHIFT))
        tp_ring_restart(thread, active >> TP_HOOK_EPOCH_SHIFT);
    return thread;
}

/* The thread, where it records already and its clock takes no call; else NULL. */
static inline struct tp_thread *tp_torch_quick_thread(uint32_t active)
{
    struct tp_thread *thread = tp_thread_self();
    bool is_quick = thread && thread->epoch == active >> TP_HOOK_EPOCH_SHIFT && tp_clock_is_quick();
    return TP_LIKELY(is_quick) ? thread : NULL;
}

/* What every begin has, without a flag. */
static inline struct tp_begin *tp_torch_put_begin(uint64_t *at, unsigned words, const void *record_function, uint64_t time,
                                                  uint32_t name, uint8_t scope, int64_t sequence, uint64_t id)
{
    struct tp_begin *begin = (struct tp_begin *)at;
    begin->head = tp_record_head(TP_RECORD_BEGIN, words, (uintptr_t)record_function);
    begin->time = time;
    begin->name = name;
    begin->scope = scope;
    begin->flags = 0;
    begin->text_bytes = 0;
    begin->sequence = sequence;
    begin->id = id;
    return begin;
}

static inline void tp_torch_put_end(struct tp_thread *thread, uint64_t *at, const void *record_function, uint64_t time)
{
    at[0] = tp_record_head(TP_RECORD_END, TP_END_WORDS, (uintptr_t)record_function);
    at[1] = time;
    tp_ring_commit(thread, at + TP_END_WORDS);
}

/* Its time; 0: it was not recorded. */
static inline uint64_t tp_torch_record_begin(const struct tp_torch_begin *what, uint32_t active)
{
    struct tp_thread *thread = tp_torch_recording_thread(active);
    if (TP_UNLIKELY(!thread)) {
        tp_thread_count_late(1);
        return 0;
    }
    size_t bytes = what->bytes, text_bytes = 0;
    uint32_t id = what->name_id ? what->name_id : tp_intern(tp_session.spool.names, what->name, bytes);
    unsigned words = TP_BEGIN_WORDS + (what->forward_thread != 0);
    uint8_t flags = what->forward_thread != 0 ? TP_BEGIN_FORWARD_THREAD : 0;
    if (TP_UNLIKELY(id == 0)) {
        text_bytes = bytes < TP_BEGIN_TEXT_MAX ? bytes : TP_BEGIN_TEXT_MAX;
        flags |= text_bytes < bytes ? TP_BEGIN_TEXT | TP_BEGIN_TEXT_CUT : TP_BEGIN_TEXT;
        words += (unsigned)((text_bytes + 7) / 8);
    }
    if (TP_UNLIKELY(what->is_async))
        flags |= TP_BEGIN_ASYNC;
    if (what->values)
        flags |= TP_BEGIN_VALUES;
    const struct tp_torch_inputs *inputs = &tp_torch_ranges.abi.inputs;
    const uint64_t *ahead = thread->next;
    unsigned input_words = 0;
    if (what->inputs.count > 0)
        input_words = tp_tensor_write_ahead(inputs, what->record_function, &what->inputs, thread, words);
    uint64_t time = tp_clock_now(); /* as late as can be: the operator's time is its own */
    uint64_t *at = tp_ring_reserve_begin(thread, words + input_words, time);
    if (TP_UNLIKELY(!at))
        return 0;
    struct tp_begin *begin =
        tp_torch_put_begin(at, words, what->record_function, time, id, what->scope, what->sequence, what->id);
    begin->flags = flags;
    begin->text_bytes = (uint16_t)text_bytes;
    uint64_t *rest = at + TP_BEGIN_WORDS;
    if (what->forward_thread)
        *rest++ = what->forward_thread;
    if (TP_UNLIKELY(text_bytes)) {
        at[words - 1] = 0; /* the padding */
        memcpy(rest, what->name, text_bytes);
    }
    if (input_words) {
        if (TP_UNLIKELY(at != ahead)) /* in another chunk */
            input_words = tp_tensor_write(inputs, what->record_function, &what->inputs, at + words, input_words);
        tp_tensor_stamp(at + words, input_words, time);
    }
    tp_ring_commit(thread, at + words + input_words);
    return time;
}

/* A name that stands at the same address each time, as an operator's does. */
struct tp_torch_kept_name {
    const char *text;
    size_t bytes;
};

/* A few words in the common case; a call of memcmp costs more. No operator's name is shorter than 4 ("a::b"). */
static inline bool tp_torch_same_text(const char *a, const char *b, size_t bytes)
{
    uint64_t here, there;
    uint32_t short_here, short_there;
    if (TP_UNLIKELY(bytes < sizeof here)) {
        if (bytes < sizeof short_here)
            return false;
        memcpy(&short_here, a, sizeof short_here);
        memcpy(&short_there, b, sizeof short_there);
        if (short_here != short_there)
            return false;
        memcpy(&short_here, a + bytes - sizeof short_here, sizeof short_here);
        memcpy(&short_there, b + bytes - sizeof short_there, sizeof short_there);
        return short_here == short_there;
    }
    for (size_t at = 0; at + sizeof here < bytes; at += sizeof here) {
        memcpy(&here, a + at, sizeof here);
        memcpy(&there, b + at, sizeof there);
        if (here != there)
            return false;
    }
    memcpy(&here, a + bytes - sizeof here, sizeof here);
    memcpy(&there, b + bytes - sizeof there, sizeof there);
    return here == there;
}

static inline struct tp_thread_name *tp_torch_place_of(struct tp_thread *thread, struct tp_torch_kept_name name)
{
    return &thread->names[(uintptr_t)name.text / 16 % TP_THREAD_NAMES];
}

/* NULL: not known. The text decides: an address may have been freed meanwhile and hold another name. */
static inline const struct tp_thread_name *tp_torch_known_name(struct tp_thread *thread,
                                                               struct tp_torch_kept_name name)
{
    const struct tp_thread_name *known = tp_torch_place_of(thread, name);
    return TP_LIKELY(known->bytes == name.bytes && tp_torch_same_text(known->text, name.text, name.bytes)) ? known : NULL;
}

/* The begin of an operator of which no more is known, where all is as it mostly is. Calls nothing, so that the caller
 * needs no registers kept. False: nothing was done. */
static inline bool tp_torch_record_quick_begin(const void *record_function, struct tp_torch_kept_name name,
                                               int64_t sequence, uint64_t id, uint8_t scope, uint32_t active)
{
    struct tp_thread *thread = tp_torch_quick_thread(active);
    if (TP_UNLIKELY(!thread))
        return false;
    const struct tp_thread_name *known = tp_torch_known_name(thread, name);
    if (TP_UNLIKELY(!known || !tp_ring_has_room_for_begin(thread, TP_BEGIN_WORDS)))
        return false;
    uint64_t time = tp_clock_quick();
    uint64_t *at = tp_ring_take_begin(thread);
    tp_torch_put_begin(at, TP_BEGIN_WORDS, record_function, time, known->id, scope, sequence, id);
    tp_ring_commit(thread, at + TP_BEGIN_WORDS);
    return true;
}

/* The inputs that stand in an object. */
static inline struct tp_torch_values tp_torch_inputs_of(const void *record_function)
{
    const struct tp_torch_ranges *ranges = &tp_torch_ranges;
    return ranges->shapes ? tp_torch_values(&ranges->abi.inputs, record_function) : (struct tp_torch_values){0};
}

/* The end of a range, where all is as it mostly is. False: nothing was done. */
static inline bool tp_torch_record_quick_end(const void *record_function, uint32_t active)
{
    struct tp_thread *thread = tp_torch_quick_thread(active);
    if (TP_UNLIKELY(!thread || !tp_ring_has_room_for_end(thread)))
        return false;
    tp_torch_put_end(thread, tp_ring_take_end(thread), record_function, tp_clock_quick());
    return true;
}

static inline void tp_torch_record_end(const void *record_function, uint32_t active, uint64_t time)
{
    struct tp_thread *thread = tp_torch_recording_thread(active);
    uint64_t *at = thread ? tp_ring_reserve_end(thread) : NULL;
    if (TP_UNLIKELY(!at))
        return;
    tp_torch_put_end(thread, at, record_function, time);
}

/* A range that PyTorch's own code began. */
static inline void tp_torch_begin(const void *record_function, unsigned scope)
{
    const struct tp_torch_abi *abi = &tp_torch_ranges.abi;
    uint32_t active = tp_hooks_active();
    if (TP_UNLIKELY(active & TP_HOOK_COLD))
        active = tp_torch_wake_child();
    if (!active)
        return;
    if (scope == TP_SCOPE_USER_SCOPE && active & TP_HOOK_MARKS) {
        tp_torch_mark(record_function, TP_MARK_BEGIN);
        active = tp_hooks_active(); /* the mark may have begun or ended a window */
    }
    if (scope == TP_SCOPE_BACKWARD_FUNCTION && !atomic_load_explicit(&tp_session.saw_backward, memory_order_relaxed))
        tp_torch_first_backward(record_function);
    if (!(active & TP_HOOK_RECORD))
        return;
    char buffer[512];
    struct tp_torch_begin what = {
        .record_function = record_function,
        .name = abi->name(record_function),
        .sequence = tp_torch_sequence(abi, record_function),
        .id = tp_torch_id(abi, record_function),
        .forward_thread = tp_torch_forward_thread(abi, record_function),
        .scope = (uint8_t)scope,
        .is_async = abi->is_async(record_function),
        .inputs = tp_torch_inputs_of(record_function),
        .values = tp_torch_ranges.values,
    };
    if (TP_UNLIKELY(tp_torch_ranges.overload_names))
        what.name = tp_torch_with_overload(record_function, what.name, buffer, sizeof buffer);
    what.bytes = strlen(what.name);
    uint64_t time = tp_torch_record_begin(&what, active);
    if (TP_UNLIKELY(what.values) && time)
        tp_values_given(abi, tp_thread_self(), record_function, time);
}

static inline void tp_torch_end(const void *record_function, unsigned scope)
{
    uint64_t time = tp_clock_now();
    uint32_t active = tp_hooks_active();
    if (active & TP_HOOK_RECORD) {
        if (TP_UNLIKELY(tp_torch_ranges.values))
            tp_values_returned(&tp_torch_ranges.abi, tp_torch_recording_thread(active), record_function, time);
        tp_torch_record_end(record_function, active, time);
    }
    if (scope == TP_SCOPE_USER_SCOPE && active & TP_HOOK_MARKS)
        tp_torch_mark(record_function, TP_MARK_END);
}

#endif
