/*
 * calibrate.c: finds where at::RecordFunction keeps what no exported function tells, by letting PyTorch's own code build
 * such objects with values that we choose. Objects live in a scratch area with canaries; three of them, one after the
 * other: the sequence number is where all three sentinels stand, the id is where three consecutive numbers stand.
 */
#include <dlfcn.h>
#include <errno.h>

#include "../../agent/log.h"
#include "abi.h"

#define BEFORE \
    "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl"
#define BEFORE_TEXT "_ZN2at14RecordFunction6beforeEPKcl" /* up to 2.8 */
#define SCRATCH_WORDS 128
#define CANARY UINT64_C(0x5ca1ab1e0ddba115)
#define PROBES 3
#define PROBE_SCOPE 7 /* USER_SCOPE */
#define PROBE_NAME "tprof calibration"

/* std::variant<std::string_view, std::reference_wrapper<const c10::FunctionSchema>>: not trivial for the purposes of
 * passing by its size, so it lies in memory; the index comes last. */
struct name_variant {
    uint64_t length;
    const char *text;
    uint64_t index;
};

static struct {
    const void *started, *ended;
    unsigned starts, ends;
    bool name_is_right;
    const struct tp_torch_abi *abi;
} seen;

static void *on_start(void **ret_context, const void *record_function)
{
    *ret_context = NULL;
    seen.started = record_function;
    seen.starts++;
    seen.name_is_right = strcmp(seen.abi->name(record_function), PROBE_NAME) == 0;
    return ret_context;
}

static void on_end(const void *record_function, void *context)
{
    (void)context;
    seen.ended = record_function;
    seen.ends++;
}

static int64_t sentinel(int probe)
{
    return INT64_C(0x7470726f66000000) + probe * 4099;
}

static const char *probe(const struct tp_torch_abi *abi, uint64_t images[PROBES][SCRATCH_WORDS])
{
    void (*construct)(void *, uint8_t), (*end)(void *), (*destroy)(void *);
    void (*before)(void *, struct name_variant, int64_t), (*before_text)(void *, const char *, int64_t);
    *(void **)&construct = dlsym(abi->library, "_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
    *(void **)&before = dlsym(abi->library, BEFORE);
    *(void **)&before_text = dlsym(abi->library, BEFORE_TEXT);
    *(void **)&end = dlsym(abi->library, "_ZN2at14RecordFunction3endEv");
    *(void **)&destroy = dlsym(abi->library, "_ZN2at14RecordFunctionD1Ev");
    const void *const *vtable = dlsym(abi->library, "_ZTVN2at14RecordFunctionE");
    if (!construct || !(before || before_text) || !end || !destroy || !vtable)
        return "its RecordFunction has another interface";
    uint64_t handle = tp_torch_abi_add(abi, on_start, on_end, 1u << PROBE_SCOPE, TP_TORCH_NEED_IDS);
    const char *problem = NULL;
    for (int i = 0; i < PROBES && !problem; i++) {
        _Alignas(64) uint64_t scratch[SCRATCH_WORDS];
        for (int w = 0; w < SCRATCH_WORDS; w++)
            scratch[w] = CANARY;
        seen.started = seen.ended = NULL;
        construct(scratch, PROBE_SCOPE);
        bool fits = scratch[SCRATCH_WORDS - 1] == CANARY;
        bool is_one = fits && scratch[0] == (uintptr_t)(vtable + 2);
        if (is_one) {
            if (before)
                before(scratch, (struct name_variant){strlen(PROBE_NAME), PROBE_NAME, 0}, sentinel(i));
            else
                before_text(scratch, PROBE_NAME, sentinel(i));
            memcpy(images[i], scratch, sizeof scratch);
            end(scratch);
        }
        destroy(scratch);
        if (!fits)
            problem = "its RecordFunction is larger than expected";
        else if (!is_one)
            problem = "its RecordFunction has no virtual table where one was expected";
        else if (seen.started != scratch || seen.ended != scratch)
            problem = "its callbacks are not called as expected";
        else if (!seen.name_is_right)
            problem = "its RecordFunction does not give its name";
        else if (scratch[SCRATCH_WORDS - 1] != CANARY)
            problem = "its RecordFunction is larger than expected";
    }
    abi->remove_callback(handle);
    return problem;
}

static uint16_t find(uint64_t images[PROBES][SCRATCH_WORDS], bool ids)
{
    uint16_t found = 0;
    for (int w = 1; w < SCRATCH_WORDS - 1; w++) {
        bool fits = true;
        for (int i = 0; i < PROBES; i++)
            fits = fits && (ids ? images[i][w] == images[0][w] + (uint64_t)i && images[0][w] != CANARY && images[0][w] > 0
                                : images[i][w] == (uint64_t)sentinel(i));
        if (fits && found)
            return 0; /* two places: no telling which */
        if (fits)
            found = (uint16_t)(w * 8);
    }
    return found;
}

int tp_torch_calibrate(struct tp_torch_abi *abi, struct tp_error *error)
{
    static uint64_t images[PROBES][SCRATCH_WORDS];
    memset(&seen, 0, sizeof seen);
    seen.abi = abi;
    const char *problem = probe(abi, images);
    if (!problem) {
        abi->at.sequence = find(images, false);
        abi->at.id = find(images, true);
        /* Declared just before the id (ATen/record_function.h); zero in a forward range. Checked again at the first
         * backward function. */
        abi->at.forward_thread = abi->at.id ? (uint16_t)(abi->at.id - 8) : 0;
        for (int i = 0; i < PROBES; i++)
            if (abi->at.forward_thread && images[i][abi->at.forward_thread / 8] != 0)
                abi->at.forward_thread = 0;
        if (!abi->at.sequence)
            problem = "the place of its sequence numbers was not found";
        else if (!abi->at.id)
            problem = "the place of its record function ids was not found";
    }
    tp_log(TP_LOG_DEBUG, "RecordFunction: sequence number at %u, forward thread at %u, id at %u", abi->at.sequence,
           abi->at.forward_thread, abi->at.id);
    if (!problem)
        return 0;
    tp_error_set(error, "PyTorch", NULL, "operators cannot be observed in PyTorch %s: %s", abi->version, problem);
    return -ENOTSUP;
}
