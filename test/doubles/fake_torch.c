#include "fake_torch.h"

#include <pthread.h>
#include <stdbool.h>
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
static _Atomic uint64_t last_id, last_thread;
static __thread uint64_t thread_id;

/* The object's own bookkeeping lies where at::RecordFunction has its StepCallbacks. */
struct object {
    const void *vptr;
    int active;
    bool started, needs_ids;
    struct {
        void *(*start)(void **, const void *);
        void (*end)(const void *, void *);
    } pairs[9];
};

static bool mode(const char *name)
{
    const char *chosen = getenv("FAKE_TORCH");
    return chosen && strcmp(chosen, name) == 0;
}

static size_t shift(void)
{
    return mode("shifted") ? 16 : 0;
}

static void put(void *object, size_t offset, uint64_t word)
{
    memcpy((char *)object + offset, &word, sizeof word);
}

static void nothing(void)
{
}

/* Two words in front, as in the Itanium ABI. */
void *const vtable[4] __asm__("_ZTVN2at14RecordFunctionE") = {0, 0, (void *)nothing, (void *)nothing};

void construct(void *object, uint8_t scope) __asm__("_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
void construct(void *object, uint8_t scope)
{
    struct object *o = object;
    memset(object, 0, mode("huge") ? 1024 : OBJECT_BYTES);
    o->vptr = mode("no_vtable") ? (const void *)vtable : (const void *)(vtable + 2);
    const struct table *now = table;
    for (int i = 0; i < now->count && o->active < 9 && !mode("silent"); i++)
        if (now->callbacks[i].scopes[scope]) {
            o->pairs[o->active].start = now->callbacks[i].start;
            o->pairs[o->active++].end = now->callbacks[i].end;
            o->needs_ids |= now->callbacks[i].needs_ids;
        }
    if (o->needs_ids && !mode("no_ids"))
        put(object, 312 + shift(), ++last_id);
}

struct name_variant {
    uint64_t length;
    const char *text;
    uint64_t index;
};

void before(void *object, struct name_variant name, int64_t sequence) __asm__(
    "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl");
void before(void *object, struct name_variant name, int64_t sequence)
{
    struct object *o = object;
    put(object, 160, (uintptr_t)name.text);
    if (!mode("no_sequence"))
        put(object, 200 + shift(), (uint64_t)sequence);
    o->started = true;
    for (int i = 0; i < o->active; i++) {
        void *context;
        o->pairs[i].start(&context, object);
    }
}

void end(void *object) __asm__("_ZN2at14RecordFunction3endEv");
void end(void *object)
{
    struct object *o = object;
    for (int i = 0; o->started && i < o->active; i++)
        o->pairs[i].end(object, NULL);
    o->started = false;
}

void destroy(void *object) __asm__("_ZN2at14RecordFunctionD1Ev");
void destroy(void *object)
{
    end(object);
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
    const char *name;
    memcpy(&name, (const char *)object + 160, sizeof name);
    return mode("wrong_name") ? "something else" : name;
}

bool is_async(const void *object) __asm__("_ZNK2at14RecordFunction7isAsyncEv");
bool is_async(const void *object)
{
    (void)object;
    return false;
}

uint64_t current_thread(void) __asm__("_ZN2at14RecordFunction15currentThreadIdEv");
uint64_t current_thread(void)
{
    if (!thread_id)
        thread_id = ++last_thread;
    return thread_id;
}

void fake_torch_run(const char *name, uint8_t scope, int64_t sequence, uint64_t forward_thread, void (*body)(void *),
                    void *argument)
{
    _Alignas(16) char object[1024];
    construct(object, scope);
    if (forward_thread)
        put(object, 304 + shift(), forward_thread);
    before(object, (struct name_variant){strlen(name), name, 0}, sequence);
    if (body)
        body(argument);
    end(object);
    destroy(object);
}
