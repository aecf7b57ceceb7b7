/*
 * ranges.c: at::RecordFunction, by which PyTorch tells observers of operators and user ranges: the functions through which
 * every such object is made, named, ended and destroyed, wherever in the program. They are taken together or not at all:
 * an object that was made by a function of ours must come to ours again. Each calls what stands in the table.
 *
 * Exceptions of C++ pass through these frames (unwind tables are on for the whole library).
 */
#include "ranges.h"

#include <sched.h>
#include <string.h>

#include "../agent/dso.h"
#include "../agent/hooks.h"
#include "../agent/log.h"
#include "../agent/range_hooks.h"
#include "real.h"

#define LIBRARY "libtorch_cpu.so"
#define CALLBACKS "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE"
#define CONSTRUCT_FROM "_ZN2at14RecordFunctionC1EONS_13StepCallbacksE"
#define CONSTRUCT "_ZN2at14RecordFunctionC1ENS_11RecordScopeE"
#define CONSTRUCT_BASE_FROM "_ZN2at14RecordFunctionC2EONS_13StepCallbacksE"
#define CONSTRUCT_BASE "_ZN2at14RecordFunctionC2ENS_11RecordScopeE"
#define BEFORE \
    "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_wrapperIKN3c1014" \
    "FunctionSchemaEEEEl"
/* PyTorch up to 2.8: one function for each kind of name. A std::string is passed by its address, in both layouts of it. */
#define BEFORE_TEXT "_ZN2at14RecordFunction6beforeEPKcl"
#define BEFORE_OBJECT "_ZN2at14RecordFunction6beforeESt17reference_wrapperIKN3c1014FunctionSchemaEEl"
#define BEFORE_STRING "_ZN2at14RecordFunction6beforeESsl"
#define BEFORE_STRING_CXX11 "_ZN2at14RecordFunction6beforeENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEl"
#define END "_ZN2at14RecordFunction3endEv"
#define DESTROY "_ZN2at14RecordFunctionD1Ev"
#define DESTROY_AND_FREE "_ZN2at14RecordFunctionD0Ev"
#define RUN_ARGUMENTS \
    "RN2at14RecordFunctionESt17reference_wrapperIKNS_14FunctionSchemaEENS_11DispatchKeyENS_14DispatchKeySetE"
#define RUN "_ZN3c1010Dispatcher17runRecordFunctionE" RUN_ARGUMENTS
#define RUN_WITH_INPUTS RUN "NS_8ArrayRefIKNS_6IValueEEE"

const struct tp_range_hooks *_Atomic tp_range_hooks;
struct tp_range_hooks tp_range_real;
bool tp_range_real_is_whole;

static const struct {
    const char *linker_name;
    size_t offset;
} names[] = {
    {CALLBACKS, offsetof(struct tp_range_hooks, callbacks)},
    {CONSTRUCT_FROM, offsetof(struct tp_range_hooks, construct_from)},
    {CONSTRUCT, offsetof(struct tp_range_hooks, construct)},
    {BEFORE, offsetof(struct tp_range_hooks, before)},
    {END, offsetof(struct tp_range_hooks, end)},
    {DESTROY, offsetof(struct tp_range_hooks, destroy)},
    {DESTROY_AND_FREE, offsetof(struct tp_range_hooks, destroy_and_free)},
    {RUN, offsetof(struct tp_range_hooks, run)},
    {RUN_WITH_INPUTS, offsetof(struct tp_range_hooks, run_with_inputs)},
};

/* In a PyTorch that has no such function nobody calls it; a library that asks for one loads because of us, and ends here. */
static void is_missing(void)
{
    tp_log(TP_LOG_QUIET, "a function of PyTorch was called that this PyTorch does not have (at::RecordFunction)");
    __builtin_trap();
}

/* The program's own; by enum tp_range_name_kind. */
struct before_by_kind {
    void (*of[3])(void *range, const void *name, int64_t sequence);
};
static struct before_by_kind before_by_kind;

static void before_of_kind(void *range, struct tp_range_name name, int64_t sequence)
{
    before_by_kind.of[name.kind](range, name.kind == TP_RANGE_NAME_TEXT ? name.text : name.object, sequence);
}

/* before(), where PyTorch has one for each kind of name. NULL: it has not. */
static void *look_up_kinds(struct before_by_kind *ret_kinds)
{
    *(void **)&ret_kinds->of[TP_RANGE_NAME_TEXT] = tp_real_in(LIBRARY, BEFORE_TEXT);
    *(void **)&ret_kinds->of[TP_RANGE_NAME_OBJECT] = tp_real_in(LIBRARY, BEFORE_OBJECT);
    void *string = tp_real_in(LIBRARY, BEFORE_STRING);
    *(void **)&ret_kinds->of[TP_RANGE_NAME_STRING] = string ? string : tp_real_in(LIBRARY, BEFORE_STRING_CXX11);
    for (size_t i = 0; i < TP_COUNT(ret_kinds->of); i++)
        if (!ret_kinds->of[i])
            return NULL;
    void *function;
    *(void (**)(void *, struct tp_range_name, int64_t))&function = before_of_kind;
    return function;
}

/* Several threads may come here at once. Each looks up, for which the loader's lock is needed, and one publishes, for which
 * none is: so nobody waits here for a thread that waits for the loader. */
TP_COLD bool tp_ranges_look_up(void)
{
    if (atomic_load_explicit(&tp_range_hooks, memory_order_acquire))
        return false;
    bool whole = true;
    struct tp_range_hooks real;
    struct before_by_kind kinds = {0};
    for (size_t i = 0; i < TP_COUNT(names); i++) {
        void *function = tp_real_in(LIBRARY, names[i].linker_name);
        if (!function && names[i].offset == offsetof(struct tp_range_hooks, before))
            function = look_up_kinds(&kinds);
        whole = whole && function;
        if (!function)
            *(void (**)(void))&function = is_missing;
        memcpy((char *)&real + names[i].offset, &function, sizeof function);
    }
    static _Atomic bool taken;
    if (atomic_exchange(&taken, true)) {
        /* A child forked at this very moment has no thread that would: it publishes the same. */
        for (int i = 0; i < 1000; i++, sched_yield())
            if (atomic_load_explicit(&tp_range_hooks, memory_order_acquire))
                return false;
    }
    before_by_kind = kinds;
    tp_range_real = real;
    tp_range_real_is_whole = whole;
    const struct tp_range_hooks *none = NULL; /* else it has been published meanwhile, and what observes may be in its place */
    return atomic_compare_exchange_strong(&tp_range_hooks, &none, &tp_range_real);
}

/* The door into a program without Python (torch.c is the other): its first range. One thread goes through, while the others
 * run on. Where Python's part of PyTorch is loaded too, initModule tells when all of it is ready. */
static TP_COLD void come_in(void)
{
    if (tp_ranges_look_up() && tp_hooks_library_loaded && !tp_dso_open("libtorch_python.so"))
        tp_hooks_library_loaded();
}

static inline const struct tp_range_hooks *hooks(void)
{
    const struct tp_range_hooks *now = atomic_load_explicit(&tp_range_hooks, memory_order_acquire);
    if (TP_UNLIKELY(!now)) {
        come_in();
        now = atomic_load_explicit(&tp_range_hooks, memory_order_acquire);
    }
    return now;
}

void *tp_range_callbacks(void *ret_callbacks, uint8_t scope) __asm__(CALLBACKS);
TP_EXPORT void *tp_range_callbacks(void *ret_callbacks, uint8_t scope)
{
    return hooks()->callbacks(ret_callbacks, scope);
}

void tp_range_construct_from(void *range, void *callbacks) __asm__(CONSTRUCT_FROM);
TP_EXPORT void tp_range_construct_from(void *range, void *callbacks)
{
    hooks()->construct_from(range, callbacks);
}

void tp_range_construct(void *range, uint8_t scope) __asm__(CONSTRUCT);
TP_EXPORT void tp_range_construct(void *range, uint8_t scope)
{
    hooks()->construct(range, scope);
}

/* The same, for the part of a derived class; there are no virtual bases. Such an object's end comes by tp_range_end. */
TP_EXPORT void tp_range_construct_base_from(void *range, void *callbacks) __asm__(CONSTRUCT_BASE_FROM)
    __attribute__((alias(CONSTRUCT_FROM)));
TP_EXPORT void tp_range_construct_base(void *range, uint8_t scope) __asm__(CONSTRUCT_BASE)
    __attribute__((alias(CONSTRUCT)));

void tp_range_before(void *range, struct tp_range_name name, int64_t sequence) __asm__(BEFORE);
TP_EXPORT void tp_range_before(void *range, struct tp_range_name name, int64_t sequence)
{
    hooks()->before(range, name, sequence);
}

void tp_range_before_text(void *range, const char *text, int64_t sequence) __asm__(BEFORE_TEXT);
TP_EXPORT void tp_range_before_text(void *range, const char *text, int64_t sequence)
{
    hooks()->before(range, (struct tp_range_name){.bytes = strlen(text), .text = text}, sequence);
}

void tp_range_before_object(void *range, const void *object, int64_t sequence) __asm__(BEFORE_OBJECT);
TP_EXPORT void tp_range_before_object(void *range, const void *object, int64_t sequence)
{
    hooks()->before(range, (struct tp_range_name){.object = object, .kind = TP_RANGE_NAME_OBJECT}, sequence);
}

/* Either layout of a std::string begins with the address of its text. */
void tp_range_before_string(void *range, char *const *string, int64_t sequence) __asm__(BEFORE_STRING);
TP_EXPORT void tp_range_before_string(void *range, char *const *string, int64_t sequence)
{
    hooks()->before(range, (struct tp_range_name){.object = string, .text = *string, .kind = TP_RANGE_NAME_STRING}, sequence);
}

void tp_range_before_string_cxx11(void *range, char *const *string, int64_t sequence) __asm__(BEFORE_STRING_CXX11);
TP_EXPORT void tp_range_before_string_cxx11(void *range, char *const *string, int64_t sequence)
{
    tp_range_before_string(range, string, sequence);
}

void tp_range_end(void *range) __asm__(END);
TP_EXPORT void tp_range_end(void *range)
{
    hooks()->end(range);
}

void tp_range_destroy(void *range) __asm__(DESTROY);
TP_EXPORT void tp_range_destroy(void *range)
{
    hooks()->destroy(range);
}

void tp_range_destroy_and_free(void *range) __asm__(DESTROY_AND_FREE);
TP_EXPORT void tp_range_destroy_and_free(void *range)
{
    hooks()->destroy_and_free(range);
}

void tp_range_run(void *range, const void *object, uint16_t key, uint64_t keys) __asm__(RUN);
TP_EXPORT void tp_range_run(void *range, const void *object, uint16_t key, uint64_t keys)
{
    hooks()->run(range, object, key, keys);
}

void tp_range_run_with_inputs(void *range, const void *object, uint16_t key, uint64_t keys, const void *inputs,
                              uint64_t count) __asm__(RUN_WITH_INPUTS);
TP_EXPORT void tp_range_run_with_inputs(void *range, const void *object, uint16_t key, uint64_t keys, const void *inputs,
                                        uint64_t count)
{
    hooks()->run_with_inputs(range, object, key, keys, inputs, count);
}
