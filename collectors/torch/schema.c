/*
 * c10::operator<<(std::ostream &, const c10::FunctionSchema &) into a std::ostringstream (GCC's; its std::ostream is
 * its first part, and a std::string begins with the address and the length of its text).
 */
#include "schema.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "../../agent/intern.h"
#include "../../agent/session.h"

#define SLOTS 8192u /* PyTorch 2.13 has some 3000 operators */
#define PROBES 64u
#define STREAM_BYTES 1024 /* it takes 376 */
#define OUT 16 /* std::ios_base::out */

struct string {
    const char *text;
    size_t bytes;
    uint64_t rest[2];
};

static struct {
    void (*construct)(void *stream, int mode);
    void (*destroy)(void *stream);
    void (*text)(struct string *ret, const void *stream); /* as C++ returns an object: by a hidden first argument */
    void (*destroy_string)(struct string *string);
    void *(*print)(void *stream, const void *schema);
} cxx;

/* By address; a slot is taken once. What is known of it: id in the lower half, above it what its name and overload
 * hash to. */
static struct {
    _Atomic uintptr_t schema;
    _Atomic uint64_t known;
} slots[SLOTS];

bool tp_schema_attach(void *library)
{
#define STREAM "NSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEE"
    *(void **)&cxx.construct = dlsym(library, "_Z" STREAM "C1ESt13_Ios_Openmode");
    *(void **)&cxx.destroy = dlsym(library, "_Z" STREAM "D1Ev");
    *(void **)&cxx.text = dlsym(library, "_ZNKSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEE3strEv");
    *(void **)&cxx.destroy_string = dlsym(library, "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEED1Ev");
    *(void **)&cxx.print = dlsym(library, "_ZN3c10lsERSoRKNS_14FunctionSchemaE");
#undef STREAM
    return cxx.construct && cxx.destroy && cxx.text && cxx.destroy_string && cxx.print;
}

static void print(const void *schema, struct string *ret)
{
    _Alignas(16) char stream[STREAM_BYTES];
    cxx.construct(stream, OUT);
    cxx.print(stream, schema);
    cxx.text(ret, stream);
    cxx.destroy(stream);
}

bool tp_schema_begins_with(const void *schema, const char *text)
{
    struct string string;
    print(schema, &string);
    bool so = string.bytes >= strlen(text) && memcmp(string.text, text, strlen(text)) == 0;
    cxx.destroy_string(&string);
    return so;
}

static TP_COLD uint32_t intern(const void *schema)
{
    struct string string;
    print(schema, &string);
    uint32_t id = tp_intern(tp_session.spool.names, string.text, string.bytes);
    cxx.destroy_string(&string);
    return id;
}

static uint32_t hash_of(uint32_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT32_C(0x01000193);
    return hash;
}

uint32_t tp_schema_id(const void *schema, const char *name, const char *overload)
{
    uint32_t hash = hash_of(hash_of(UINT32_C(0x811c9dc5), name) ^ '.', overload);
    size_t at = (uintptr_t)schema * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    for (size_t i = 0; i < PROBES; i++) {
        size_t slot = (at + i) % SLOTS;
        uintptr_t here = atomic_load_explicit(&slots[slot].schema, memory_order_relaxed);
        if (here == 0 && !atomic_compare_exchange_strong(&slots[slot].schema, &here, (uintptr_t)schema) &&
            here != (uintptr_t)schema)
            continue;
        if (here && here != (uintptr_t)schema)
            continue;
        uint64_t known = atomic_load_explicit(&slots[slot].known, memory_order_acquire); /* pairs with the store below */
        if (TP_LIKELY((uint32_t)known && known >> 32 == hash))
            return (uint32_t)known;
        uint32_t id = intern(schema);
        /* Release: with the id comes the text that was interned. Whoever writes here writes the same. */
        atomic_store_explicit(&slots[slot].known, (uint64_t)hash << 32 | id, memory_order_release);
        return id;
    }
    return 0;
}

void tp_schema_forget(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        atomic_store_explicit(&slots[i].known, 0, memory_order_relaxed);
}
