/*
 * abi_object.h: at::RecordFunction and at::StepCallbacks, made by us. An object of ours is byte for byte what PyTorch's
 * constructor makes of one callback; so whatever function of PyTorch comes by it, inline or not, finds it sound, and would
 * run that callback. Images of both are taken from PyTorch's own code at attach (calibrate_object.c).
 *
 * The mark is the callback's start function. It counts only while the object has one callback, which the real constructors
 * write anew, so that what an object of ours leaves behind on a stack marks nothing.
 */
#ifndef TP_TORCH_ABI_OBJECT_H
#define TP_TORCH_ABI_OBJECT_H

#include <stdatomic.h>
#include <string.h>

#include "../../agent/base.h"
#include "../../agent/error.h"
#include "abi_inputs.h"

#define TP_TORCH_IMAGE_WORDS 64
#define TP_TORCH_SELF_MAX 8
#define TP_TORCH_OWNERS_MAX 24

typedef void *(*tp_torch_start_fn)(void **ret_context, const void *record_function);
typedef void (*tp_torch_end_fn)(const void *record_function, void *context);

/* Offsets of bytes. */
struct tp_torch_image {
    uint16_t bytes; /* written by the constructor; a multiple of 8 */
    uint16_t count; /* 32 bits: how many callbacks it has */
    uint16_t start; /* the callback's start function; behind it its end function */
    uint16_t scope; /* 8 bits */
    uint16_t needs_inputs, needs_outputs; /* 8 bits: 1 if a callback asked for them; place 0: it was not needed */
    uint16_t selves;
    struct {
        uint16_t at, to; /* a pointer that points into the thing itself */
    } self[TP_TORCH_SELF_MAX];
    uint64_t words[TP_TORCH_IMAGE_WORDS]; /* with neither self nor scope nor function */
};

struct tp_torch_object {
    struct tp_torch_image callbacks; /* at::StepCallbacks in its optional */
    struct tp_torch_image range;     /* at::RecordFunction */
    uint16_t has_callbacks; /* in the optional: 8 bits */
    uint16_t started;       /* in the RecordFunction: 8 bits, 1 from before() on */
    uint16_t owners; /* in the RecordFunction: 16 bytes each, which may overlap, of members that may come to own memory */
    uint16_t owner[TP_TORCH_OWNERS_MAX];
    _Atomic uint64_t *next_id; /* PyTorch's own counter */
    bool (*is_enabled)(void);  /* at::isRecordFunctionEnabled */
    int64_t (*sequence_now)(uint16_t key, uint64_t keys); /* Dispatcher::sequenceNumberForRunningRecordFunction */
};

static inline uint32_t tp_torch_u32(const void *thing, uint16_t offset)
{
    uint32_t value;
    memcpy(&value, (const char *)thing + offset, sizeof value);
    return value;
}

static inline bool tp_torch_has_start(const struct tp_torch_image *image, const void *thing, tp_torch_start_fn start)
{
    return tp_torch_u32(thing, image->count) == 1 && tp_torch_pointer(thing, image->start) == (void *)start;
}

static inline uint8_t tp_torch_scope(const struct tp_torch_image *image, const void *thing)
{
    return ((const uint8_t *)thing)[image->scope];
}

/* An image of one scope, with its functions: what is not yet in it are pointers into the thing itself. */
struct tp_torch_cast {
    uint64_t words[TP_TORCH_IMAGE_WORDS];
};

static inline void tp_torch_make_cast(const struct tp_torch_image *image, struct tp_torch_cast *cast, uint8_t scope,
                                      tp_torch_start_fn start, tp_torch_end_fn end)
{
    char *bytes = (char *)cast->words;
    memcpy(bytes, image->words, image->bytes);
    memcpy(bytes + image->start, &start, sizeof start);
    memcpy(bytes + image->start + sizeof start, &end, sizeof end);
    bytes[image->scope] = (char)scope;
}

/* A thing of ours in raw memory. */
static inline void tp_torch_pour(const struct tp_torch_image *image, const struct tp_torch_cast *cast, void *thing)
{
    char *bytes = memcpy(thing, cast->words, image->bytes);
    for (unsigned i = 0, selves = image->selves; i < selves; i++) {
        void *to = bytes + image->self[i].to;
        memcpy(bytes + image->self[i].at, &to, sizeof to);
    }
}

static inline void tp_torch_make(const struct tp_torch_image *image, void *thing, uint8_t scope, tp_torch_start_fn start,
                                 tp_torch_end_fn end)
{
    struct tp_torch_cast cast;
    tp_torch_make_cast(image, &cast, scope, start, end);
    tp_torch_pour(image, &cast, thing);
}

typedef uint64_t tp_torch_pair __attribute__((vector_size(16)));

/* Nothing in it has come to own memory: it may be left as it is instead of being destroyed. */
static inline bool tp_torch_owns_nothing(const struct tp_torch_object *object, const void *range)
{
    tp_torch_pair differs = {0};
    for (const uint16_t *at = object->owner, *end = at + object->owners; at < end; at++) {
        tp_torch_pair here, there;
        memcpy(&here, (const char *)range + *at, sizeof here);
        memcpy(&there, (const char *)object->range.words + *at, sizeof there);
        differs |= here ^ there;
    }
    return (differs[0] | differs[1]) == 0;
}

static inline bool tp_torch_is_observed(const struct tp_torch_object *object, const void *ret_callbacks)
{
    return ((const uint8_t *)ret_callbacks)[object->has_callbacks];
}

struct tp_torch_abi;

/* Fills object. NULL, or why objects cannot be made here; nothing of ours stays behind. */
const char *tp_torch_calibrate_object(const struct tp_torch_abi *abi, struct tp_torch_object *object);

/* The counter that numbers objects; NULL: not found. `draw` has PyTorch take the next number. */
_Atomic uint64_t *tp_torch_find_counter(void *library, uint64_t (*draw)(void *), void *argument);

#endif
