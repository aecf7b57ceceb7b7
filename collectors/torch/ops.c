/*
 * ops.c: operators and user ranges: chooses the way in which they are observed, and the one by global RecordFunction
 * callbacks: one pair a scope, so that the scope is known without looking. The other is interposed.c.
 *
 * DESIGN. torch keeps a copy of the callbacks in each RecordFunction from its start on: an end comes even after
 * removeCallback. So a callback may be called at any time until the process is gone, and first asks the hook word what to
 * do.
 */
#include "ops.h"

#include "../../agent/log.h"
#include "interposed.h"
#include "ranges.h"
#include "tensor.h"

static struct tp_torch_abi *const abi = &tp_torch_ranges.abi;
static uint64_t handles[TP_SCOPE_COUNT]; /* 0: not registered; under the session's lock */
static bool interposed;

#define BEGIN_OF(scope) \
    static void *begin_##scope(void **ret_context, const void *record_function) \
    { \
        *ret_context = NULL; \
        tp_torch_begin(record_function, scope); \
        return ret_context; \
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

static void end(const void *record_function, void *context)
{
    (void)context;
    tp_torch_end(record_function, TP_SCOPE_FUNCTION);
}

static void end_user(const void *record_function, void *context)
{
    (void)context;
    tp_torch_end(record_function, TP_SCOPE_USER_SCOPE);
}

static int observe(enum tp_observe what)
{
    for (unsigned scope = 0; scope < TP_SCOPE_COUNT && !interposed; scope++) {
        bool user = scope == TP_SCOPE_USER_SCOPE;
        bool wanted = what == TP_OBSERVE_EVENTS || (user && what == TP_OBSERVE_MARKS);
        if (wanted && !handles[scope]) {
            handles[scope] = tp_torch_abi_add(abi, begins[scope], user ? end_user : end, 1u << scope,
                                              abi->needs);
        } else if (!wanted && handles[scope]) {
            abi->remove_callback(handles[scope]);
            handles[scope] = 0;
        }
    }
    return 0;
}

/* Who asked for callbacks need not be told why. */
static void choose_way(enum tp_hook_way asked)
{
    const char *problem = asked == TP_HOOK_CALLBACK ? "TPROF_HOOK is callback" : tp_torch_interposed_attach();
    interposed = !problem;
    if (interposed)
        tp_log(TP_LOG_INFO, "observes PyTorch %s by interposed functions", abi->version);
    else
        tp_log(TP_LOG_INFO, "observes PyTorch %s by callbacks: %s", abi->version, problem);
    if (problem && asked == TP_HOOK_INTERPOSE)
        tp_log(TP_LOG_WARN, "TPROF_HOOK=interpose: PyTorch %s cannot be observed that way: %s; callbacks are used",
               abi->version, problem);
}

static int attach(const struct tp_settings *settings, struct tp_error *error)
{
    int failed = tp_torch_abi_attach(abi, error);
    if (!failed)
        failed = tp_thread_init(abi->current_thread_id);
    if (failed) {
        tp_error_set(error, "PyTorch", NULL, "cannot be observed");
        return failed;
    }
    /* Ids are asked for, so that a trace can be joined with other observers' output of the same run. FLOPs are computed
     * from inputs: as in torch, they bring those along. */
    abi->needs = TP_TORCH_NEED_IDS;
    bool traces = settings->outputs & 1u << TP_OUTPUT_EXECUTION_TRACE;
    bool shapes = settings->record_shapes || settings->with_flops;
    if ((shapes || traces) && tp_tensor_attach(abi)) {
        abi->needs |= TP_TORCH_NEED_INPUTS;
        tp_torch_ranges.shapes = shapes;
        tp_torch_ranges.values = traces && tp_values_attach(abi);
        if (tp_torch_ranges.values)
            abi->needs |= TP_TORCH_NEED_OUTPUTS;
    }
    bool overloads = settings->experimental_config.capture_overload_names;
    if (overloads && !abi->overload_name)
        tp_log(TP_LOG_WARN, "capture_overload_names: PyTorch %s does not tell them; names stand alone", abi->version);
    tp_torch_ranges.overload_names = overloads && abi->overload_name;
    tp_torch_ranges.whole = tp_torch_ranges.overload_names || tp_torch_ranges.values;
    tp_torch_ranges.step_range = settings->step.kind == TP_STEP_RANGE ? settings->step.name : NULL;
    choose_way(settings->hook);
    return 0;
}

static void check(void)
{
    if (handles[TP_SCOPE_USER_SCOPE] && !abi->has_global_callbacks())
        tp_log(TP_LOG_WARN, "the program removed all observers (torch's clearCallbacks); nothing was seen after that");
}

static const char *version(void)
{
    return abi->version;
}

static const char *way(void)
{
    return interposed ? "interposed" : "callback";
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
