/*
 * selftest.c: makes objects in every scope and in every way, has PyTorch's own functions handle them, through the virtual
 * table as well, and looks at every byte. Shows that PyTorch's calls, from one of its files to another and through the
 * table, come to us; that an object of ours is what PyTorch would have made; and that nothing beyond it is written.
 */
#include "selftest.h"

#include <dlfcn.h>

#include "../../agent/record.h"
#include "abi.h"

#define SCRATCH_BYTES 1024
#define CANARY 0xc3
#define SEQUENCE INT64_C(0x74707366)
#define NAME "tprof self-test"

enum way { FROM_CALLBACKS, FROM_SCOPE, WAYS };

struct scratch {
    _Alignas(64) unsigned char bytes[SCRATCH_BYTES];
};

static const struct tp_torch_selftest *test;
static struct scratch ours, theirs, list;
static struct {
    unsigned before, end, destroy, destroy_and_free;
} seen;

/* Other threads' ranges pass through the table too. */
static bool is_of_the_test(const void *range)
{
    return range == ours.bytes || range == theirs.bytes;
}

/* What stands in the table during the test: these count, and then do what is to be done. */
static void count_before(void *range, struct tp_range_name name, int64_t sequence)
{
    seen.before += is_of_the_test(range);
    test->hooks->before(range, name, sequence);
}

static void count_end(void *range)
{
    seen.end += is_of_the_test(range);
    test->hooks->end(range);
}

static void count_destroy(void *range)
{
    seen.destroy += is_of_the_test(range);
    test->hooks->destroy(range);
}

/* The scratch object is nobody's to free. */
static void count_destroy_and_free(void *range)
{
    if (is_of_the_test(range)) {
        seen.destroy_and_free++;
        test->hooks->destroy(range);
    } else {
        test->hooks->destroy_and_free(range);
    }
}

static bool canary_is_whole(const struct scratch *scratch)
{
    for (size_t at = test->object->range.bytes; at < SCRATCH_BYTES; at++)
        if (scratch->bytes[at] != CANARY)
            return false;
    return true;
}

static bool is_id(size_t at)
{
    return at / 8 * 8 == test->abi->at.id;
}

/* Each byte that PyTorch's constructor wrote in its object is in ours, where pointers into the thing itself are that. */
static bool is_same(void)
{
    const struct tp_torch_image *image = &test->object->range;
    for (unsigned i = 0; i < image->selves; i++) {
        void *to = ours.bytes + image->self[i].to;
        if (tp_torch_pointer(ours.bytes, image->self[i].at) != to)
            return false;
        to = theirs.bytes + image->self[i].to;
        if (tp_torch_pointer(theirs.bytes, image->self[i].at) != to)
            return false;
    }
    for (size_t at = 0; at < image->bytes; at++) {
        bool self = false;
        for (unsigned i = 0; i < image->selves; i++)
            self = self || at / 8 * 8 == image->self[i].at;
        if (!self && !is_id(at) && theirs.bytes[at] != CANARY && theirs.bytes[at] != ours.bytes[at])
            return false;
    }
    return true;
}

static const char *make(enum way way, uint8_t scope)
{
    const struct tp_torch_object *object = test->object;
    memset(ours.bytes, CANARY, SCRATCH_BYTES);
    memset(theirs.bytes, CANARY, SCRATCH_BYTES);
    tp_torch_make(&object->callbacks, list.bytes, scope, test->start_of(scope), test->end);
    tp_range_real.construct_from(theirs.bytes, list.bytes);
    if (way == FROM_CALLBACKS) {
        tp_torch_make(&object->callbacks, list.bytes, scope, test->start_of(scope), test->end);
        test->hooks->construct_from(ours.bytes, list.bytes);
    } else {
        test->hooks->construct(ours.bytes, scope); /* nothing is active: PyTorch's own, without callbacks */
        if (tp_torch_u32(ours.bytes, object->range.count) != 0)
            return "an object that nobody observes has callbacks";
        test->make_range(ours.bytes, scope);
    }
    if (!is_same())
        return "an object of ours is not what PyTorch makes";
    if (tp_torch_id(test->abi, ours.bytes) != tp_torch_id(test->abi, theirs.bytes) + 1)
        return "ids do not come from PyTorch's counter";
    return NULL;
}

/* The ends of a life. Each leaves an object that was destroyed. */
enum death { BY_DESTROY, BY_END, BY_TABLE, BY_TABLE_FREED, BY_PYTORCH, DEATHS };

static const char *kill_range(enum death death, const void *const *table)
{
    const struct tp_torch_image *image = &test->object->range;
    void (*destroy)(void *);
    unsigned destroyed = seen.destroy, freed = seen.destroy_and_free, ended = seen.end;
    switch (death) {
    case BY_DESTROY:
        count_destroy(ours.bytes);
        return NULL;
    case BY_END:
        count_end(ours.bytes);
        if (tp_torch_u32(ours.bytes, image->count) != 0)
            return "an end leaves callbacks behind";
        count_end(ours.bytes); /* twice does no harm */
        count_destroy(ours.bytes);
        return NULL;
    case BY_TABLE:
        memcpy(&destroy, &table[2], sizeof destroy);
        destroy(ours.bytes);
        return seen.destroy == destroyed + 1 ? NULL : "objects are destroyed past us";
    case BY_TABLE_FREED:
        memcpy(&destroy, &table[3], sizeof destroy);
        destroy(ours.bytes);
        return seen.destroy_and_free == freed + 1 ? NULL : "objects are deleted past us";
    default: /* as if it had come past our functions */
        tp_range_real.destroy(ours.bytes);
        return seen.end == ended + 1 ? NULL : "objects are ended past us";
    }
}

static const char *live(enum way way, enum death death, uint8_t scope, bool named_by_text, const void *const *table)
{
    static const struct {
        const char *text;
        uint64_t bytes, rest[62];
    } schema = {.text = NAME, .bytes = sizeof NAME - 1};
    const char *problem = make(way, scope);
    if (problem)
        return problem;
    unsigned before = seen.before;
    if (named_by_text)
        count_before(ours.bytes, (struct tp_range_name){.bytes = sizeof NAME - 1, .text = NAME}, SEQUENCE);
    else
        tp_range_real.run(ours.bytes, &schema, 0, 0);
    if (seen.before != before + 1)
        return "operators begin past us";
    if (!ours.bytes[test->object->started])
        return "a begin is not seen in its object";
    if (tp_torch_sequence(test->abi, ours.bytes) != (named_by_text ? SEQUENCE : -1))
        return "sequence numbers are not given as expected";
    problem = kill_range(death, table);
    if (!problem && !(canary_is_whole(&ours) && canary_is_whole(&theirs)))
        problem = "memory behind an object is written";
    tp_range_real.destroy(theirs.bytes);
    return problem;
}

const char *tp_torch_selftest(const struct tp_torch_selftest *what)
{
    test = what;
    const void *const *table = dlsym(what->abi->library, "_ZTVN2at14RecordFunctionE");
    if (!table)
        return "it has no virtual table";
    static struct tp_range_hooks counting;
    counting = *what->hooks;
    counting.before = count_before;
    counting.end = count_end;
    counting.destroy = count_destroy;
    counting.destroy_and_free = count_destroy_and_free;
    atomic_store_explicit(&tp_range_hooks, &counting, memory_order_release);
    const char *problem = NULL;
    for (uint8_t scope = 0; scope < TP_SCOPE_COUNT; scope++)
        for (int way = 0; way < WAYS; way++)
            for (int death = 0; death < DEATHS; death++)
                for (int named_by_text = 0; named_by_text < 2; named_by_text++)
                    if (!problem)
                        problem = live(way, death, scope, named_by_text, table);
    return problem;
}
