/*
 * interposed.c: operators and user ranges by the functions through which every RecordFunction passes (range_hooks.h).
 *
 * DESIGN. The real function is asked first. Where it says that nobody observes a scope, we say that one callback of ours
 * does (abi_object.h), and build the object ourselves: a quick one is handled here from its making to its end, and costs a
 * fraction of what RecordFunction costs. What anybody else observes is made, named and ended by PyTorch alone, with
 * exactly the callbacks that it would have without us; we look on at its beginning and end. What an object is stands in
 * the object and nowhere else, since it may outlive any window.
 *
 * User ranges are ours by a whole object: their names are temporaries, and are needed again at the end. So are all objects
 * where more than the name is asked of one (overloads, what it gives back). PyTorch's own code runs the callback of a
 * whole object.
 */
#include "interposed.h"

#include "../../agent/range_hooks.h"
#include "abi_object.h"
#include "ranges.h"
#include "selftest.h"

static struct tp_torch_object object;

/* What is made of it, for each scope. */
static struct {
    struct tp_torch_cast callbacks, range;
} casts[TP_SCOPE_COUNT];

static inline bool wants(uint32_t active, uint8_t scope)
{
    return active & (scope == TP_SCOPE_USER_SCOPE ? TP_HOOK_RECORD | TP_HOOK_COLD | TP_HOOK_MARKS
                                                  : TP_HOOK_RECORD | TP_HOOK_COLD);
}

static inline void start(const void *range)
{
    tp_torch_begin(range, tp_torch_scope(&object.range, range));
}

/* The callbacks of our objects: called by PyTorch for whole ones, and for a quick one that came past our functions. */
static void *start_whole(void **ret_context, const void *range)
{
    *ret_context = NULL;
    start(range);
    return ret_context;
}

static void *start_quick(void **ret_context, const void *range)
{
    start(range);
    *ret_context = NULL;
    return ret_context;
}

static void *start_dispatched(void **ret_context, const void *range)
{
    return start_quick(ret_context, range);
}

static void end_of_ours(const void *range, void *context)
{
    (void)context;
    tp_torch_end(range, tp_torch_scope(&object.range, range));
}

static inline tp_torch_start_fn start_of(uint8_t scope)
{
    return scope == TP_SCOPE_USER_SCOPE || tp_torch_ranges.whole ? start_whole : start_quick;
}

static inline bool is_dispatched(const void *range)
{
    return tp_torch_has_start(&object.range, range, start_dispatched);
}

static inline bool is_quick(const void *range)
{
    return tp_torch_has_start(&object.range, range, start_quick) || is_dispatched(range);
}

static inline bool is_started(const void *range)
{
    return ((const uint8_t *)range)[object.started];
}

/* Others observe it, and only they. */
static inline bool is_watched(const void *range)
{
    return tp_torch_u32(range, object.range.count) != 0 && !tp_torch_has_start(&object.range, range, start_whole) &&
           !is_quick(range);
}

static inline uint64_t next_id(void)
{
    return atomic_fetch_add_explicit(object.next_id, 1, memory_order_relaxed);
}

static inline void put_word(void *range, uint16_t offset, uint64_t word)
{
    memcpy((char *)range + offset, &word, sizeof word);
}

static void make_range(void *range, uint8_t scope)
{
    tp_torch_pour(&object.range, &casts[scope].range, range);
    put_word(range, tp_torch_ranges.abi.at.id, next_id());
}

static inline void clear_callbacks(void *range)
{
    memset((char *)range + object.range.count, 0, sizeof(uint32_t));
}

/* True: the scope is to be observed, and nobody else does. */
static inline bool is_ours(uint8_t scope, uint32_t active)
{
    if (TP_UNLIKELY(active & TP_HOOK_COLD))
        active = tp_torch_wake_child();
    return scope < TP_SCOPE_COUNT && wants(active, scope) && object.is_enabled();
}

/* Inputs and outputs are handed over only where an observer asks for them: we do, as a callback of ours among the
 * others' would. */
static inline void ask_for_values(const struct tp_torch_image *image, void *thing)
{
    uint32_t needs = tp_torch_ranges.abi.needs;
    if (needs & TP_TORCH_NEED_INPUTS && tp_hooks_active() & TP_HOOK_RECORD) {
        ((uint8_t *)thing)[image->needs_inputs] = 1;
        if (needs & TP_TORCH_NEED_OUTPUTS)
            ((uint8_t *)thing)[image->needs_outputs] = 1;
    }
}

static __attribute__((noinline)) void *callbacks_when_active(void *ret_callbacks, uint8_t scope, uint32_t active)
{
    tp_range_real.callbacks(ret_callbacks, scope);
    if (TP_UNLIKELY(tp_torch_is_observed(&object, ret_callbacks)))
        ask_for_values(&object.callbacks, ret_callbacks);
    else if (is_ours(scope, active))
        tp_torch_pour(&object.callbacks, &casts[scope].callbacks, ret_callbacks);
    return ret_callbacks;
}

static void *callbacks(void *ret_callbacks, uint8_t scope)
{
    uint32_t active = tp_hooks_active();
    if (TP_LIKELY(!wants(active, scope)))
        return tp_range_real.callbacks(ret_callbacks, scope);
    return callbacks_when_active(ret_callbacks, scope, active);
}

static void construct_from(void *range, void *list)
{
    if (TP_LIKELY(tp_torch_has_start(&object.callbacks, list, start_quick)))
        make_range(range, tp_torch_scope(&object.callbacks, list));
    else
        tp_range_real.construct_from(range, list);
}

static void construct(void *range, uint8_t scope)
{
    tp_range_real.construct(range, scope);
    uint32_t active = tp_hooks_active();
    if (!wants(active, scope))
        return;
    /* An object without callbacks owns nothing yet: ours may be made over it. */
    if (tp_torch_u32(range, object.range.count) != 0)
        ask_for_values(&object.range, range);
    else if (is_ours(scope, active))
        make_range(range, scope);
}

static inline void begin_quick(void *range, struct tp_torch_begin *what)
{
    const struct tp_torch_abi *abi = &tp_torch_ranges.abi;
    uint32_t active = tp_hooks_active();
    put_word(range, abi->at.sequence, (uint64_t)what->sequence);
    ((uint8_t *)range)[object.started] = 1;
    if (TP_UNLIKELY(!(active & TP_HOOK_RECORD)))
        return;
    what->record_function = range;
    what->id = tp_torch_id(abi, range);
    what->scope = tp_torch_scope(&object.range, range);
    tp_torch_record_begin(what, active);
}

/* c10::FunctionSchema begins with its name, a std::string, and that with its text: seen at attach. */
static inline const char *name_of(const void *schema)
{
    return tp_torch_pointer(schema, 0);
}

/* Its length is behind the text's address. It is compared with the text where a name is new to a thread. */
static inline struct tp_torch_kept_name kept_name_of(const void *schema)
{
    return (struct tp_torch_kept_name){name_of(schema), tp_torch_u64(schema, sizeof(char *))};
}

static void before_quick(void *range, struct tp_range_name name, int64_t sequence)
{
    const struct tp_torch_abi *abi = &tp_torch_ranges.abi;
    const char *text = name.kind == TP_RANGE_NAME_OBJECT ? name_of(name.object) : name.text;
    size_t bytes = name.kind == TP_RANGE_NAME_TEXT ? strnlen(text, name.bytes) : strlen(text);
    if (tp_torch_scope(&object.range, range) == TP_SCOPE_BACKWARD_FUNCTION &&
        !atomic_load_explicit(&tp_session.saw_backward, memory_order_relaxed) && tp_hooks_active())
        tp_torch_first_backward(range);
    struct tp_torch_begin what = {
        .name = text,
        .bytes = bytes,
        .sequence = sequence,
        .forward_thread = tp_torch_forward_thread(abi, range),
        .is_async = abi->is_async(range),
        .inputs = tp_torch_inputs_of(range),
    };
    begin_quick(range, &what);
}

/* After the start callbacks of the others, so that what those cost is not in our range. An id that none of them asked
 * for is drawn all the same, as for a callback of ours: by it their traces and ours are joined. */
static void before_watched(void *range, struct tp_range_name name, int64_t sequence)
{
    const struct tp_torch_abi *abi = &tp_torch_ranges.abi;
    if (tp_torch_id(abi, range) == 0)
        put_word(range, abi->at.id, next_id());
    tp_range_real.before(range, name, sequence);
    start(range);
}

static void before(void *range, struct tp_range_name name, int64_t sequence)
{
    if (is_quick(range)) {
        before_quick(range, name, sequence);
        return;
    }
    if (tp_hooks_active() && is_watched(range))
        before_watched(range, name, sequence);
    else
        tp_range_real.before(range, name, sequence);
}

static inline void end_quick(const void *range)
{
    uint64_t time = tp_clock_now();
    uint32_t active = tp_hooks_active();
    if (TP_LIKELY(active & TP_HOOK_RECORD))
        tp_torch_record_end(range, active, time);
}

static void end(void *range)
{
    if (is_quick(range)) {
        if (is_started(range)) {
            end_quick(range);
            clear_callbacks(range);
        }
        return;
    }
    if (tp_hooks_active() && is_watched(range) && is_started(range))
        tp_torch_end(range, tp_torch_scope(&object.range, range));
    tp_range_real.end(range);
}

static __attribute__((noinline)) void end_dispatched(const void *range)
{
    end_quick(range);
}

static __attribute__((noinline)) void destroy_any(void *range)
{
    if (is_quick(range)) {
        if (is_started(range))
            end_quick(range);
        if (TP_LIKELY(tp_torch_owns_nothing(&object, range)))
            return;
        clear_callbacks(range);
    }
    tp_range_real.destroy(range); /* calls end() */
}

static void destroy(void *range)
{
    if (TP_UNLIKELY(!is_dispatched(range))) {
        destroy_any(range);
        return;
    }
    uint32_t active = tp_hooks_active();
    if (TP_LIKELY(active & TP_HOOK_RECORD) && TP_UNLIKELY(!tp_torch_record_quick_end(range, active)))
        end_dispatched(range);
}

static void destroy_and_free(void *range)
{
    if (is_quick(range)) {
        if (is_started(range))
            end_quick(range);
        clear_callbacks(range);
    }
    tp_range_real.destroy_and_free(range);
}

/* The id of a name, which the thread will know from now on; 0: none. */
static TP_COLD uint32_t learn_name(struct tp_thread *thread, struct tp_torch_kept_name name)
{
    size_t bytes = strlen(name.text);
    uint32_t id = tp_intern(tp_session.spool.names, name.text, bytes);
    if (id && bytes == name.bytes && bytes <= UINT32_MAX)
        *tp_torch_place_of(thread, name) = (struct tp_thread_name){
            .text = tp_intern_text(tp_session.spool.names, id, &bytes),
            .id = id,
            .bytes = (uint32_t)name.bytes,
        };
    return id;
}

static uint32_t id_of_name(struct tp_thread *thread, struct tp_torch_kept_name name)
{
    const struct tp_thread_name *known = tp_torch_known_name(thread, name);
    return TP_LIKELY(known != NULL) ? known->id : learn_name(thread, name);
}

static __attribute__((noinline)) void record_dispatched(void *range, const void *schema, int64_t sequence,
                                                        uint32_t active, struct tp_torch_values inputs)
{
    struct tp_torch_kept_name name = kept_name_of(schema);
    struct tp_thread *thread = tp_torch_recording_thread(active);
    struct tp_torch_begin what = {
        .record_function = range,
        .name = name.text,
        .name_id = thread ? id_of_name(thread, name) : 0,
        .sequence = sequence,
        .id = tp_torch_id(&tp_torch_ranges.abi, range),
        .scope = tp_torch_scope(&object.range, range),
        .inputs = inputs,
    };
    if (!what.name_id)
        what.bytes = strlen(name.text);
    tp_torch_record_begin(&what, active);
}

/* Called by the dispatcher alone, with an object that nobody else sees: it will not come to own anything. */
static inline int64_t start_dispatching(void *range, uint16_t key, uint64_t keys)
{
    put_word(range, object.range.start, (uintptr_t)start_dispatched);
    ((uint8_t *)range)[object.started] = 1;
    int64_t sequence = object.sequence_now(key, keys);
    put_word(range, tp_torch_ranges.abi.at.sequence, (uint64_t)sequence);
    return sequence;
}

static void run(void *range, const void *schema, uint16_t key, uint64_t keys)
{
    if (TP_UNLIKELY(!is_quick(range))) {
        tp_range_real.run(range, schema, key, keys);
        return;
    }
    int64_t sequence = start_dispatching(range, key, keys);
    uint32_t active = tp_hooks_active();
    if (TP_LIKELY(active & TP_HOOK_RECORD) &&
        TP_UNLIKELY(!tp_torch_record_quick_begin(range, kept_name_of(schema), sequence,
                                                 tp_torch_id(&tp_torch_ranges.abi, range),
                                                 tp_torch_scope(&object.range, range), active)))
        record_dispatched(range, schema, sequence, active, (struct tp_torch_values){0});
}

static void run_with_inputs(void *range, const void *schema, uint16_t key, uint64_t keys, const void *inputs,
                            uint64_t count)
{
    if (TP_UNLIKELY(!is_quick(range))) {
        tp_range_real.run_with_inputs(range, schema, key, keys, inputs, count);
        return;
    }
    int64_t sequence = start_dispatching(range, key, keys);
    uint32_t active = tp_hooks_active();
    if (TP_LIKELY(active & TP_HOOK_RECORD))
        record_dispatched(range, schema, sequence, active,
                          tp_torch_ranges.shapes ? (struct tp_torch_values){inputs, count} : (struct tp_torch_values){0});
}

static const struct tp_range_hooks hooks = {
    .callbacks = callbacks,
    .construct_from = construct_from,
    .construct = construct,
    .before = before,
    .end = end,
    .destroy = destroy,
    .destroy_and_free = destroy_and_free,
    .run = run,
    .run_with_inputs = run_with_inputs,
};

const char *tp_torch_interposed_attach(void)
{
    const char *problem = tp_torch_calibrate_object(&tp_torch_ranges.abi, &object);
    if (problem)
        return problem;
    for (uint8_t scope = 0; scope < TP_SCOPE_COUNT; scope++) {
        tp_torch_make_cast(&object.callbacks, &casts[scope].callbacks, scope, start_of(scope), end_of_ours);
        tp_torch_make_cast(&object.range, &casts[scope].range, scope, start_of(scope), end_of_ours);
    }
    struct tp_torch_selftest test = {
        .abi = &tp_torch_ranges.abi,
        .object = &object,
        .hooks = &hooks,
        .start_of = start_of,
        .end = end_of_ours,
        .make_range = make_range,
    };
    problem = tp_torch_selftest(&test);
    atomic_store_explicit(&tp_range_hooks, problem ? &tp_range_real : &hooks, memory_order_release);
    return problem;
}
