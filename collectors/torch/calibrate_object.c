/*
 * calibrate_object.c: how PyTorch's own constructors fill at::StepCallbacks and at::RecordFunction, learned by having them
 * do so over known bytes, twice each: what differs between two images must be a pointer into the thing itself, or the id.
 * Anything else that is not as expected, and no object is made by us.
 */
#include <dlfcn.h>

#include "../../agent/range_hooks.h"
#include "abi.h"
#include "abi_object.h"

#define SCRATCH_BYTES 1024
#define MARGIN 64 /* at the end of the scratch area; nothing is written there */
#define SCOPE 3   /* KERNEL_FUNCTION_DTYPE and CUSTOM_CLASS: numbers that stand nowhere else */
#define OTHER_SCOPE 4
#define ALL_SCOPES 0x3ffu

struct scratch {
    _Alignas(64) unsigned char bytes[SCRATCH_BYTES];
};

static struct scratch callbacks[3], ranges[4];
static const char probe_name[] = "tprof object";

/* Two different bytes to fill with: what is equal to both was not written. */
static const unsigned char fill[] = {0xa5, 0x5a};

static void *start(void **ret_context, const void *record_function)
{
    (void)record_function;
    *ret_context = NULL;
    return ret_context;
}

static void end(const void *record_function, void *context)
{
    (void)record_function;
    (void)context;
}

static uint64_t word_at(const struct scratch *scratch, size_t offset)
{
    uint64_t word;
    memcpy(&word, scratch->bytes + offset, sizeof word);
    return word;
}

static bool is_written(const struct scratch *scratch, unsigned char filled, size_t at)
{
    return scratch->bytes[at] != filled;
}

/* A copy in which no byte of an address can be taken for a number: what points into the thing itself or to its name is 0. */
static struct scratch without_addresses(const struct scratch *scratch)
{
    struct scratch plain = *scratch;
    for (size_t at = 0; at < SCRATCH_BYTES; at += 8) {
        uint64_t word = word_at(scratch, at);
        if (word - (uintptr_t)scratch->bytes < SCRATCH_BYTES || word == (uintptr_t)probe_name)
            memset(plain.bytes + at, 0, 8);
    }
    return plain;
}

/* How far two constructors wrote, in whole words; 0: too far. */
static uint16_t extent(const struct scratch scratch[2])
{
    size_t bytes = 0;
    for (size_t at = 0; at < SCRATCH_BYTES; at++)
        if (is_written(&scratch[0], fill[0], at) || is_written(&scratch[1], fill[1], at))
            bytes = at + 1;
    bytes = tp_round_up(bytes, 8);
    return bytes <= SCRATCH_BYTES - MARGIN && bytes <= sizeof((struct tp_torch_image *)0)->words ? (uint16_t)bytes : 0;
}

/* Where the word stands, in both; 0: nowhere or in several places (no word that is looked for stands at 0). */
static uint16_t find_word(const struct scratch scratch[2], uint64_t word, size_t bytes)
{
    uint16_t found = 0;
    for (size_t at = 0; at < bytes; at += 8)
        if (word_at(&scratch[0], at) == word && word_at(&scratch[1], at) == word) {
            if (found)
                return 0;
            found = (uint16_t)at;
        }
    return found;
}

/* The one byte that is so in the one and so in the other; 0: none or several. */
static uint16_t find_byte(const struct scratch *a, uint8_t in_a, const struct scratch *b, uint8_t in_b, size_t bytes)
{
    struct scratch plain_a = without_addresses(a), plain_b = without_addresses(b);
    uint16_t found = 0;
    for (size_t at = 0; at < bytes; at++)
        if (plain_a.bytes[at] == in_a && plain_b.bytes[at] == in_b) {
            if (found)
                return 0;
            found = (uint16_t)at;
        }
    return found;
}

/* The image of two things that were built alike, over fill[0] and fill[1]. id: offset of the one word that may differ. */
static const char *take_image(struct tp_torch_image *image, const struct scratch scratch[2], uint16_t id)
{
    image->bytes = extent(scratch);
    if (!image->bytes)
        return "it is larger than expected";
    image->start = find_word(scratch, (uintptr_t)start, image->bytes);
    if (!image->start || word_at(&scratch[0], image->start + 8) != (uintptr_t)end)
        return "it does not hold its callbacks itself";
    for (uint16_t at = 0; at < image->bytes; at += 8) {
        uint64_t a = word_at(&scratch[0], at), b = word_at(&scratch[1], at);
        uint64_t to = a - (uintptr_t)scratch[0].bytes;
        if (to < image->bytes && to == b - (uintptr_t)scratch[1].bytes) {
            if (image->selves == TP_TORCH_SELF_MAX)
                return "it has more pointers into itself than expected";
            image->self[image->selves].at = at;
            image->self[image->selves++].to = (uint16_t)to;
            continue;
        }
        if (at == id || at == image->start || at == image->start + 8)
            continue;
        unsigned char word[8];
        for (size_t i = 0; i < 8; i++) {
            bool written = is_written(&scratch[0], fill[0], at + i) || is_written(&scratch[1], fill[1], at + i);
            if (written && scratch[0].bytes[at + i] != scratch[1].bytes[at + i])
                return "it is not built the same way twice";
            word[i] = written ? scratch[0].bytes[at + i] : 0;
        }
        memcpy(&image->words[at / 8], word, sizeof word);
    }
    /* c10::SmallVector: a pointer to the elements, how many there are, how many fit; then room for some. */
    for (unsigned i = 0; i < image->selves; i++)
        if (image->self[i].to == image->start)
            image->count = (uint16_t)(image->self[i].at + 8);
    if (!image->count || tp_torch_u32(scratch[0].bytes, image->count) != 1)
        return "the number of its callbacks is not where it was expected";
    return NULL;
}

/* In a list, and in an object made from it: without this need that one byte is 0. */
static bool find_need(const struct tp_torch_abi *abi, const struct tp_torch_object *object, enum tp_torch_need need,
                      uint16_t *ret_in_list, uint16_t *ret_in_range)
{
    struct scratch without[2], range[2];
    uint64_t handle = tp_torch_abi_add(abi, start, end, ALL_SCOPES, abi->needs & ~(uint32_t)need);
    memset(without[0].bytes, fill[0], SCRATCH_BYTES);
    tp_range_real.callbacks(without[0].bytes, SCOPE);
    abi->remove_callback(handle);
    *ret_in_list = find_byte(&without[0], 0, &callbacks[0], 1, object->callbacks.bytes);
    if (!*ret_in_list)
        return false;
    for (int i = 0; i < 2; i++) {
        tp_torch_make(&object->callbacks, without[i].bytes, SCOPE, start, end);
        without[i].bytes[*ret_in_list] = (unsigned char)i;
        memset(range[i].bytes, fill[0], SCRATCH_BYTES);
        tp_range_real.construct_from(range[i].bytes, without[i].bytes);
    }
    size_t bytes = 0;
    for (size_t at = 0; at < SCRATCH_BYTES - MARGIN; at++)
        if (is_written(&range[0], fill[0], at))
            bytes = at + 1;
    memset(range[0].bytes + abi->at.id, 0, 8); /* the one other difference */
    memset(range[1].bytes + abi->at.id, 0, 8);
    *ret_in_range = find_byte(&range[0], 0, &range[1], 1, bytes);
    for (int i = 0; i < 2; i++)
        tp_range_real.destroy(range[i].bytes);
    return *ret_in_range != 0;
}

static bool find_needs(const struct tp_torch_abi *abi, struct tp_torch_object *object)
{
    struct tp_torch_image *list = &object->callbacks, *range = &object->range;
    return (!(abi->needs & TP_TORCH_NEED_INPUTS) ||
            find_need(abi, object, TP_TORCH_NEED_INPUTS, &list->needs_inputs, &range->needs_inputs)) &&
           (!(abi->needs & TP_TORCH_NEED_OUTPUTS) ||
            find_need(abi, object, TP_TORCH_NEED_OUTPUTS, &list->needs_outputs, &range->needs_outputs));
}

static const char *learn_callbacks(const struct tp_torch_abi *abi, struct tp_torch_object *object)
{
    const struct tp_range_hooks *real = &tp_range_real;
    for (int i = 0; i < 2; i++) {
        memset(callbacks[i].bytes, fill[i], SCRATCH_BYTES);
        if (real->callbacks(callbacks[i].bytes, SCOPE) != callbacks[i].bytes)
            return "its callbacks are not returned as expected";
    }
    uint16_t empty = extent(callbacks);
    for (size_t at = 0; empty && at + 8 < empty; at++)
        if (is_written(&callbacks[0], fill[0], at))
            return "there are observers already";
    object->has_callbacks = find_byte(&callbacks[0], 0, &callbacks[1], 0, empty);
    if (!object->has_callbacks)
        return "it is not known how it says that nobody observes";
    uint64_t handle = tp_torch_abi_add(abi, start, end, ALL_SCOPES, abi->needs);
    for (int i = 0; i < 3; i++) {
        memset(callbacks[i].bytes, fill[i % 2], SCRATCH_BYTES);
        real->callbacks(callbacks[i].bytes, i < 2 ? SCOPE : OTHER_SCOPE);
    }
    abi->remove_callback(handle);
    const char *problem = take_image(&object->callbacks, callbacks, 0);
    if (problem)
        return problem;
    object->callbacks.scope = find_byte(&callbacks[0], SCOPE, &callbacks[2], OTHER_SCOPE, object->callbacks.bytes);
    if (!object->callbacks.scope || !tp_torch_is_observed(object, callbacks[0].bytes))
        return "the scope of its callbacks was not found";
    if (!find_needs(abi, object))
        return "it is not known how it says that inputs and outputs are needed";
    return NULL;
}

struct drawing {
    const struct tp_torch_object *object;
    uint16_t id;
};

static uint64_t draw(void *argument)
{
    const struct drawing *drawing = argument;
    struct scratch list;
    struct scratch range;
    tp_torch_make(&drawing->object->callbacks, list.bytes, SCOPE, start, end);
    tp_range_real.construct_from(range.bytes, list.bytes);
    uint64_t number = tp_torch_word(range.bytes, drawing->id);
    tp_range_real.destroy(range.bytes);
    return number;
}

/* The bytes from one offset to another, at least 16 of them. */
static bool add_owners(struct tp_torch_object *object, unsigned from, unsigned to)
{
    if (to < from + 16)
        return false;
    for (unsigned at = from; at < to && object->owners < TP_TORCH_OWNERS_MAX; at += 16)
        object->owner[object->owners++] = (uint16_t)(at + 16 <= to ? at : to - 16);
    return object->owners < TP_TORCH_OWNERS_MAX;
}

/* Four objects: two alike, one of another scope, one of a scope that nobody observes. */
static const char *learn_range(const struct tp_torch_abi *abi, struct tp_torch_object *object)
{
    const struct tp_range_hooks *real = &tp_range_real;
    struct tp_torch_image *image = &object->range;
    for (int i = 0; i < 3; i++) {
        struct scratch list;
        tp_torch_make(&object->callbacks, list.bytes, i < 2 ? SCOPE : OTHER_SCOPE, start, end);
        memset(ranges[i].bytes, fill[i % 2], SCRATCH_BYTES);
        real->construct_from(ranges[i].bytes, list.bytes);
    }
    const char *problem = take_image(image, ranges, abi->at.id);
    if (problem)
        return problem;
    const void *const *table = dlsym(abi->library, "_ZTVN2at14RecordFunctionE");
    image->scope = find_byte(&ranges[0], SCOPE, &ranges[2], OTHER_SCOPE, image->bytes);
    if (!image->scope)
        return "its scope was not found";
    if (!table || image->words[0] != (uintptr_t)(table + 2))
        return "it has no virtual table where one was expected";
    real->construct(ranges[3].bytes, SCOPE);
    if (tp_torch_u32(ranges[3].bytes, image->count) != 0)
        return "there are observers already";
    real->destroy(ranges[3].bytes);
    /* before() says that start callbacks were called. */
    struct scratch unnamed = without_addresses(&ranges[0]); /* a copy's pointers would lead into what it is a copy of */
    struct tp_range_name name = {.bytes = sizeof probe_name - 1, .text = probe_name};
    real->before(ranges[0].bytes, name, 0);
    object->started = find_byte(&unnamed, 0, &ranges[0], 1, image->bytes);
    for (int i = 0; i < 3; i++) {
        real->end(ranges[i].bytes);
        problem = tp_torch_u32(ranges[i].bytes, image->count) != (i ? 1 : 0) ? "its end is not seen in it" : problem;
        real->destroy(ranges[i].bytes);
    }
    if (!object->started)
        return "it is not known how it says that it began";
    /* ATen/record_function.h: inputs, two words, lie behind the sequence number; what owns memory, but for the name and
     * the callbacks' contexts, between them and the forward thread. What may come behind the id in versions to come is
     * looked at as well. The first word is a map's pointer into itself. */
    unsigned map = abi->at.sequence + 24u;
    bool has_map = false;
    for (unsigned i = 0; i < image->selves; i++) {
        has_map = has_map || image->self[i].at == map;
        if (image->self[i].at > map)
            return "it has members that are not known";
    }
    if (!has_map || !add_owners(object, map + 8, abi->at.forward_thread) ||
        !add_owners(object, abi->at.id + 8u, image->bytes))
        return "it lacks members that were expected";
    return problem;
}

/* A thing that has a name: only the name's place is looked at, and it is filled with nothing else. */
static const char *check_object_name(const struct tp_torch_abi *abi, struct tp_torch_object *object)
{
    static const struct {
        const char *text;
        uint64_t bytes, rest[62];
    } named = {.text = probe_name, .bytes = sizeof probe_name - 1};
    struct scratch list, range;
    tp_torch_make(&object->callbacks, list.bytes, SCOPE, start, end);
    tp_range_real.construct_from(range.bytes, list.bytes);
    tp_range_real.before(range.bytes, (struct tp_range_name){.object = &named, .kind = TP_RANGE_NAME_OBJECT}, 0);
    bool same = abi->name(range.bytes) == named.text;
    tp_range_real.destroy(range.bytes);
    return same ? NULL : "the name of an operator is not where it was expected";
}

const char *tp_torch_calibrate_object(const struct tp_torch_abi *abi, struct tp_torch_object *object)
{
    memset(object, 0, sizeof *object);
    if (!tp_range_real_is_whole)
        return "it lacks functions that are interposed";
    if (!abi->at.forward_thread)
        return "the place of its forward threads was not found";
    *(void **)&object->is_enabled = dlsym(abi->library, "_ZN2at23isRecordFunctionEnabledEv");
    *(void **)&object->sequence_now =
        dlsym(abi->library, "_ZN3c1010Dispatcher38sequenceNumberForRunningRecordFunctionENS_11DispatchKeyENS_14DispatchKeySetE");
    if (!object->is_enabled || !object->sequence_now)
        return "it lacks functions that are called";
    const char *problem = learn_callbacks(abi, object);
    if (!problem)
        problem = learn_range(abi, object);
    if (!problem)
        problem = check_object_name(abi, object);
    if (problem)
        return problem;
    struct drawing drawing = {object, abi->at.id};
    object->next_id = tp_torch_find_counter(abi->library, draw, &drawing);
    return object->next_id ? NULL : "the counter of its record function ids was not found";
}
