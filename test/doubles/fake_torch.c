#include "fake_torch.h"
#include "fake_tensors.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct callback {
    void *(*start)(void **, const void *);
    void (*end)(const void *, void *);
    double probability;
    uint8_t scopes[10], needs_inputs, needs_outputs, needs_ids;
};

#define MAX_CALLBACKS 32
#define OBJECT_BYTES 344
#define MAX_PAIRS 4

/* Not changed while it may be read: operators take no lock, as in libtorch, also in a forked child. */
struct table {
    int count;
    struct callback callbacks[MAX_CALLBACKS];
    uint64_t handles[MAX_CALLBACKS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those who change it */
static const struct table nobody;
static _Atomic(const struct table *) table = &nobody;
static struct table tables[512]; /* in turn: whoever reads one is done long before its turn comes again */
static unsigned turn;            /* under the lock */
static uint64_t last_handle;     /* under the lock */
static _Atomic uint64_t last_id = 1, last_thread;
static __thread uint64_t thread_id;

bool fake_torch_deviates(const char *name)
{
    const char *chosen = getenv("FAKE_TORCH");
    return chosen && strcmp(chosen, name) == 0;
}

/* at::StepCallbacks; its pairs are in place of a c10::SmallVector. */
struct step_callbacks {
    struct pair *pairs;
    uint32_t count, room;
    struct pair {
        void *(*start)(void **, const void *);
        void (*end)(const void *, void *);
    } inner[MAX_PAIRS];
    uint64_t thread;
    uint8_t scope, needs_inputs, needs_outputs, needs_ids;
};

struct optional_callbacks {
    struct step_callbacks value;
    bool has_value;
};

/* at::RecordFunction. "shifted" moves what lies behind the name. */
struct object {
    const void *vptr;
    struct step_callbacks callbacks;
    bool started;
    const char *name; /* of a text; its bytes are the caller's */
    const struct named *schema;
    uint64_t rest[27];
};

struct named {
    const char *text;
    uint64_t bytes;
};

struct name_variant {
    union {
        uint64_t bytes;
        const struct named *schema;
    };
    const char *text;
    uint8_t is_schema;
};

_Static_assert(sizeof(struct object) == OBJECT_BYTES, "as in PyTorch 2.13");

/* The members behind the name, as offsets: sequence number, inputs (where they are, how many), a map (its first word points to its own last), outputs, the
 * forward thread and the id. */
enum member { SEQUENCE = 200, INPUTS = 208, MAP = 224, MAP_BUCKET = 272, FORWARD_THREAD = 304, ID = 312 };

static size_t at(enum member member)
{
    return (size_t)member - (fake_torch_deviates("shifted") ? 8 : 0);
}

static void put(void *object, size_t offset, uint64_t word)
{
    memcpy((char *)object + offset, &word, sizeof word);
}

#define START "_ZN2at14RecordFunction17runStartCallbacksEv"
#define BEFORE \
    "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl"
#define RUN \
    "_ZN3c1010Dispatcher17runRecordFunctionERN2at14RecordFunctionESt17reference_wrapperIKNS_14FunctionSchemaEENS_11DispatchKeyENS_14DispatchKeySetE"
void *unless_empty(void *ret, uint8_t scope) __asm__("_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE");
void construct_from(void *object, struct step_callbacks *from) __asm__("_ZN2at14RecordFunctionC1EONS_13StepCallbacksE");
void construct(void *object, uint8_t scope) __asm__("_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
void before(void *object, struct name_variant name, int64_t sequence) __asm__(BEFORE);
void end(void *object) __asm__("_ZN2at14RecordFunction3endEv");
void destroy(void *object) __asm__("_ZN2at14RecordFunctionD1Ev");
void destroy_and_free(void *object) __asm__("_ZN2at14RecordFunctionD0Ev");
int64_t sequence_now(uint16_t key, uint64_t keys) __asm__(
    "_ZN3c1010Dispatcher38sequenceNumberForRunningRecordFunctionENS_11DispatchKeyENS_14DispatchKeySetE");
void run(void *object, const struct named *schema, uint16_t key, uint64_t keys) __asm__(RUN);
void run_with_inputs(void *object, const struct named *schema, uint16_t key, uint64_t keys, const void *inputs,
                     uint64_t count) __asm__(RUN "NS_8ArrayRefIKNS_6IValueEEE");
uint64_t current_thread(void) __asm__("_ZN2at14RecordFunction15currentThreadIdEv");
bool is_enabled(void) __asm__("_ZN2at23isRecordFunctionEnabledEv");

bool is_enabled(void)
{
    return true;
}

static void list_callbacks(struct step_callbacks *list, uint8_t scope)
{
    list->pairs = list->inner;
    list->count = 0;
    list->room = MAX_PAIRS;
    list->thread = current_thread();
    list->scope = scope;
    list->needs_inputs = list->needs_outputs = list->needs_ids = 0;
    const struct table *now = table;
    for (int i = 0; i < now->count && list->count < MAX_PAIRS && !fake_torch_deviates("silent"); i++)
        if (now->callbacks[i].scopes[scope]) {
            list->inner[list->count].start = now->callbacks[i].start;
            list->inner[list->count++].end = now->callbacks[i].end;
            list->needs_inputs |= now->callbacks[i].needs_inputs;
            list->needs_ids |= now->callbacks[i].needs_ids;
        }
}

/* Room that holds no callback is left as it is, as c10::SmallVector does. */
static void move_callbacks(struct step_callbacks *to, const struct step_callbacks *from)
{
    to->pairs = to->inner;
    to->count = from->count;
    to->room = from->room;
    memcpy(to->inner, from->pairs, from->count * sizeof from->pairs[0]);
    to->thread = from->thread;
    to->scope = from->scope;
    to->needs_inputs = from->needs_inputs;
    to->needs_outputs = from->needs_outputs;
    to->needs_ids = from->needs_ids;
}

void *unless_empty(void *ret, uint8_t scope)
{
    struct step_callbacks list;
    list_callbacks(&list, scope);
    struct optional_callbacks *optional = ret;
    optional->has_value = list.count > 0;
    if (optional->has_value)
        move_callbacks(&optional->value, &list);
    return ret;
}

/* Two words in front, as in the Itanium ABI. */
void *const vtable[4] __asm__("_ZTVN2at14RecordFunctionE") = {0, 0, (void *)destroy, (void *)destroy_and_free};

static uint64_t next_id(void)
{
    static _Atomic uint64_t hidden = UINT64_MAX; /* the complement of the last id */
    return fake_torch_deviates("hidden_counter") ? ~--hidden : last_id++;
}

void construct_from(void *object, struct step_callbacks *from)
{
    struct object *o = object;
    memset(object, 0, fake_torch_deviates("huge") ? 1024 : OBJECT_BYTES);
    o->vptr = fake_torch_deviates("no_vtable") ? (const void *)vtable : (const void *)(vtable + 2);
    move_callbacks(&o->callbacks, from);
    put(object, at(MAP), (uintptr_t)object + at(MAP_BUCKET));
    if (o->callbacks.needs_ids && !fake_torch_deviates("no_ids"))
        put(object, at(ID), next_id());
    if (fake_torch_deviates("restless")) {
        static _Atomic uint64_t built;
        o->rest[26] = built += 7;
    }
}

void construct(void *object, uint8_t scope)
{
    struct step_callbacks list;
    list_callbacks(&list, scope);
    construct_from(object, &list);
}

void before(void *object, struct name_variant name, int64_t sequence)
{
    struct object *o = object;
    o->schema = name.is_schema ? name.schema : NULL;
    o->name = name.is_schema ? NULL : name.text;
    if (!fake_torch_deviates("no_sequence"))
        put(object, at(SEQUENCE), (uint64_t)sequence);
    o->started = true;
    for (uint32_t i = 0; i < o->callbacks.count; i++) {
        void *context;
        o->callbacks.pairs[i].start(&context, object);
    }
}

static void put_inputs(void *object, const void *inputs, uint64_t count)
{
    if (fake_torch_deviates("no_inputs"))
        return;
    put(object, at(INPUTS), (uintptr_t)inputs);
    put(object, at(INPUTS) + 8, count);
}

/* "bound" is a library whose calls do not leave it. */
static void end_inside(struct object *o)
{
    for (uint32_t i = 0; o->started && i < o->callbacks.count; i++)
        o->callbacks.pairs[i].end(o, NULL);
    if (o->started)
        o->callbacks.count = 0;
}

void end(void *object)
{
    end_inside(object);
}

void destroy(void *object)
{
    if (fake_torch_deviates("bound"))
        end_inside(object);
    else
        end(object);
}

void destroy_and_free(void *object)
{
    destroy(object);
    free(object);
}

int64_t sequence_now(uint16_t key, uint64_t keys)
{
    (void)key;
    return keys ? (int64_t)keys : -1;
}

void run(void *object, const struct named *schema, uint16_t key, uint64_t keys)
{
    before(object, (struct name_variant){.schema = schema, .is_schema = 1}, sequence_now(key, keys));
}

void run_with_inputs(void *object, const struct named *schema, uint16_t key, uint64_t keys, const void *inputs,
                     uint64_t count_of_inputs)
{
    put_inputs(object, inputs, count_of_inputs);
    run(object, schema, key, keys);
}

uint64_t add(struct callback callback) __asm__("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
uint64_t add(struct callback callback)
{
    pthread_mutex_lock(&lock);
    struct table *next = &tables[turn++ % 512];
    *next = *table;
    next->callbacks[next->count] = callback;
    uint64_t handle = next->handles[next->count++] = ++last_handle;
    table = next;
    pthread_mutex_unlock(&lock);
    return handle;
}

void take_away(uint64_t handle) __asm__("_ZN2at14removeCallbackEm");
void take_away(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    struct table *next = &tables[turn++ % 512];
    const struct table *now = table;
    next->count = 0;
    for (int i = 0; i < now->count; i++)
        if (now->handles[i] != handle) {
            next->callbacks[next->count] = now->callbacks[i];
            next->handles[next->count++] = now->handles[i];
        }
    table = next;
    pthread_mutex_unlock(&lock);
}

int fake_torch_callbacks(void)
{
    const struct table *now = table;
    return now->count;
}

bool has_callbacks(void) __asm__("_ZN2at18hasGlobalCallbacksEv");
bool has_callbacks(void)
{
    return fake_torch_callbacks() > 0;
}

const char *name_of(const void *object) __asm__("_ZNK2at14RecordFunction4nameEv");
const char *name_of(const void *object)
{
    const struct object *o = object;
    if (o->schema)
        return fake_torch_deviates("nameless") ? "" : o->schema->text;
    return fake_torch_deviates("wrong_name") ? "something else" : o->name;
}

bool is_async(const void *object) __asm__("_ZNK2at14RecordFunction7isAsyncEv");
bool is_async(const void *object)
{
    (void)object;
    return false;
}

uint64_t current_thread(void)
{
    if (!thread_id)
        thread_id = ++last_thread;
    return thread_id;
}

/* As the dispatcher does it: an operator that nobody observes has no object. */
static void call_operator(const char *name, uint64_t keys, const struct fake_value *values, size_t given,
                          void (*body)(void *), void *argument)
{
    struct named schema = {name, strlen(name)};
    struct optional_callbacks optional;
    unless_empty(&optional, 0);
    if (!optional.has_value) {
        if (body)
            body(argument);
        return;
    }
    _Alignas(16) char object[1024];
    construct_from(object, &optional.value);
    if (((struct object *)object)->callbacks.needs_inputs)
        run_with_inputs(object, &schema, 0, keys, values, given);
    else
        run(object, &schema, 0, keys);
    if (body)
        body(argument);
    destroy(object);
}

void fake_torch_run_given(const char *name, const struct fake_value *values, size_t given)
{
    call_operator(name, 0, values, given, NULL, NULL);
}

void fake_torch_run(const char *name, uint8_t scope, int64_t sequence, uint64_t forward_thread, void (*body)(void *),
                    void *argument)
{
    size_t given;
    const struct fake_value *values = fake_values(&given);
    if (scope == 0) {
        call_operator(name, sequence < 0 ? 0 : (uint64_t)sequence, values, given, body, argument);
        return;
    }
    _Alignas(16) char object[1024];
    construct(object, scope);
    if (forward_thread)
        put(object, at(FORWARD_THREAD), forward_thread);
    if (((struct object *)object)->callbacks.needs_inputs)
        put_inputs(object, values, given);
    if (((struct object *)object)->callbacks.count > 0)
        before(object, (struct name_variant){.bytes = strlen(name), .text = name}, sequence);
    if (body)
        body(argument);
    end(object);
    destroy(object);
}
