/*
 * calibrate_inputs.c: finds where PyTorch keeps the inputs of an operator, sizes and strides of tensors, and elements of
 * lists. PyTorch makes tensors of sizes that we choose and runs a few operators on them (sentinels.h); an observer of ours
 * looks at what those were given. An offset counts only if exactly one place fits all sentinels.
 *
 * The sentinels lie on the meta device, or have no elements: no memory, no thread pool, no random number is touched.
 * What is not surely an object of ours is read by the kernel (peek.h), so that a wrong guess is no crash.
 */
#include <dlfcn.h>
#include <errno.h>

#include "abi.h"
#include "peek.h"
#include "sentinels.h"

#define TENSOR_WORDS 24 /* what is looked at of a tensor, of a list, of a RecordFunction */
#define FUNCTIONAL_WORDS 40
#define LIST_WORDS 8
#define FUNCTION_WORDS 64
#define VALUES_MAX 3
#define DIMENSIONS 3
#define INLINE_LEAST 3
#define INLINE_MOST 8

#define NONE UINT16_MAX /* no place, no input */

static const int64_t sizes[INLINE_MOST + 1] = {1009, 13, 7, 1, 1, 1, 1, 1, 1};
static const int64_t strides[INLINE_MOST + 1] = {9176, 701, 97, 1, 1, 1, 1, 1, 1};

/* What else is called of PyTorch. */
static struct {
    const char *(*key_name)(uint16_t);
    const char *(*backend_name)(uint8_t);
    void *const *(*tensor_type)(void); /* const std::shared_ptr<TensorType> & */
    const void *undefined;
    /* May be missing. */
    const void *const *functional_table;
} torch;

static const struct {
    const char *linker_name;
    size_t offset;
    bool needed;
} names[] = {
#define OFFSET(member) (size_t)((char *)&torch.member - (char *)&torch)
#define NAME(linker_name, member) {linker_name, OFFSET(member), true}
    NAME("_ZN3c108toStringENS_11DispatchKeyE", key_name),
    NAME("_ZN3c108toStringENS_16BackendComponentE", backend_name),
    NAME("_ZN3c1010TensorType3getEv", tensor_type),
    NAME("_ZN3c1019UndefinedTensorImpl10_singletonE", undefined),
    {"_ZTVN2at23FunctionalTensorWrapperE", OFFSET(functional_table), false},
#undef NAME
#undef OFFSET
};

static bool find_names(void *library)
{
    for (size_t i = 0; i < TP_COUNT(names); i++) {
        void *symbol = dlsym(library, names[i].linker_name);
        if (!symbol && names[i].needed)
            return false;
        memcpy((char *)&torch + names[i].offset, &symbol, sizeof symbol);
    }
    return true;
}

struct image {
    uint64_t words[FUNCTION_WORDS];
    size_t count;
};

static void take_image(struct image *image, const void *object, size_t words)
{
    memset(image, 0, sizeof *image);
    image->count = tp_peek(image->words, object, words);
}

struct sentinel {
    void *handle;
    const void *object;
    struct image image;
};

static bool take(struct sentinel *sentinel)
{
    sentinel->object = *(void **)sentinel->handle;
    take_image(&sentinel->image, sentinel->object, TENSOR_WORDS);
    return sentinel->image.count > DIMENSIONS;
}

static bool make(struct sentinel *sentinel, size_t dimensions, int32_t type, int32_t device)
{
    return tp_sentinel_empty(dimensions, sizes, strides, type, device, &sentinel->handle) && take(sentinel);
}

/* The sentinels: types and devices differ, sizes do not. */
enum { FLOAT_META, DOUBLE_META, SHORT_META, COMPLEX_META, FLOAT_CPU, SPARSE_CPU, SENTINELS };
static struct sentinel made[SENTINELS];

static bool make_all(void)
{
    const struct tp_sentinel_types *types = &tp_sentinel_types;
    const int64_t none[DIMENSIONS] = {0}, two_sizes[] = {11, 17};
    struct sentinel *cpu = &made[FLOAT_CPU], *sparse = &made[SPARSE_CPU];
    return make(&made[FLOAT_META], DIMENSIONS, types->float32, types->meta) &&
           make(&made[DOUBLE_META], DIMENSIONS, types->float64, types->meta) &&
           make(&made[SHORT_META], DIMENSIONS, types->int16, types->meta) &&
           make(&made[COMPLEX_META], DIMENSIONS, types->complex64, types->meta) &&
           tp_sentinel_empty(DIMENSIONS, none, strides, types->float32, types->cpu, &cpu->handle) && take(cpu) &&
           tp_sentinel_sparse(two_sizes, 2, &sparse->handle) && take(sparse);
}

static bool same_words(const struct image *image, size_t at, const int64_t *expected, size_t count)
{
    return at + count <= image->count && memcmp(&image->words[at], expected, count * 8) == 0;
}

/* Dimensions, sizes, room for more, strides. */
static bool find_sizes(struct tp_torch_inputs *at)
{
    const struct image *image = &made[FLOAT_META].image;
    unsigned found = 0;
    for (size_t w = 1; w + 1 < image->count; w++)
        for (size_t room = INLINE_LEAST; room <= INLINE_MOST; room++)
            if (image->words[w] == DIMENSIONS && same_words(image, w + 1, sizes, DIMENSIONS) &&
                same_words(image, w + 1 + room, strides, DIMENSIONS)) {
                at->sizes = (uint16_t)(w * 8);
                at->inline_dimensions = (uint16_t)room;
                found++;
            }
    return found == 1;
}

/* As many dimensions as lie in the object itself, and one more: then both arrays lie elsewhere, side by side. */
static bool sizes_move_out(const struct tp_torch_inputs *at)
{
    const struct tp_sentinel_types *types = &tp_sentinel_types;
    size_t most = at->inline_dimensions, w = at->sizes / 8;
    struct sentinel in = {0}, out = {0};
    uint64_t apart[2 * (INLINE_MOST + 1)];
    bool good = make(&in, most, types->float32, types->meta) && in.image.words[w] == most &&
                same_words(&in.image, w + 1, sizes, most) && same_words(&in.image, w + 1 + most, strides, most);
    if (good && most < INLINE_MOST + 1) {
        size_t more = most + 1;
        good = make(&out, more, types->float32, types->meta) && out.image.words[w] == more &&
               tp_peek(apart, (void *)(uintptr_t)out.image.words[w + 1], 2 * more) == 2 * more &&
               memcmp(apart, sizes, more * 8) == 0 && memcmp(apart + more, strides, more * 8) == 0;
    }
    if (in.handle)
        tp_sentinel_delete(in.handle);
    if (out.handle)
        tp_sentinel_delete(out.handle);
    return good;
}

static uint16_t half_at(const struct image *image, size_t offset)
{
    uint16_t half;
    memcpy(&half, (const char *)image->words + offset, sizeof half);
    return half;
}

static bool find_type(struct tp_torch_inputs *at)
{
    const struct tp_sentinel_types *types = &tp_sentinel_types;
    const int32_t expected[] = {types->float32, types->float64, types->int16, types->complex64};
    unsigned found = 0;
    for (size_t offset = 8; offset + 2 <= made[FLOAT_META].image.count * 8; offset += 2) {
        bool fits = true;
        for (size_t i = 0; i < TP_COUNT(expected); i++)
            fits = fits && half_at(&made[FLOAT_META + i].image, offset) == expected[i];
        if (fits) {
            at->type = (uint16_t)offset;
            found++;
        }
    }
    return found == 1;
}

/* A set of dispatch keys: the backends' bits from 0 on, then those of what a tensor can do. */
struct key_bits {
    uint64_t cpu, meta, dense, sparse, sparse_csr, nested, mkldnn;
};

static bool find_key_bits(struct key_bits *bits)
{
    unsigned backends = 0;
    for (uint8_t b = 1; b < 32 && strncmp(torch.backend_name(b), "UNKNOWN", 7) != 0; b++) {
        const char *name = torch.backend_name(b);
        if (strcmp(name, "CPUBit") == 0)
            bits->cpu = UINT64_C(1) << (b - 1);
        if (strcmp(name, "MetaBit") == 0)
            bits->meta = UINT64_C(1) << (b - 1);
        backends = b;
    }
    struct {
        const char *name;
        uint64_t *bit;
    } keys[] = {{"Dense", &bits->dense},          {"Sparse", &bits->sparse},    {"SparseCsr", &bits->sparse_csr},
                {"NestedTensor", &bits->nested}, {"MkldnnCPU", &bits->mkldnn}};
    bool all = bits->cpu && bits->meta;
    for (size_t i = 0; i < TP_COUNT(keys); i++) {
        for (uint16_t key = 1; key + backends <= 64 && !*keys[i].bit; key++)
            if (strcmp(torch.key_name(key), keys[i].name) == 0)
                *keys[i].bit = UINT64_C(1) << (backends + key - 1);
        all = all && *keys[i].bit;
    }
    return all;
}

static bool has_keys(const struct sentinel *sentinel, size_t word, uint64_t all, uint64_t none)
{
    uint64_t keys = sentinel->image.words[word];
    return word < sentinel->image.count && (keys & all) == all && !(keys & none);
}

static bool find_keys(struct tp_torch_inputs *at)
{
    struct key_bits bits = {0};
    if (!find_key_bits(&bits))
        return false;
    at->nested_keys = bits.nested;
    at->unstrided_keys = bits.sparse | bits.sparse_csr | bits.mkldnn;
    uint64_t special = at->nested_keys | at->unstrided_keys;
    unsigned found = 0;
    for (size_t w = 1; w < TENSOR_WORDS; w++)
        if (has_keys(&made[FLOAT_META], w, bits.dense | bits.meta, special | bits.cpu) &&
            has_keys(&made[SHORT_META], w, bits.dense | bits.meta, special | bits.cpu) &&
            has_keys(&made[FLOAT_CPU], w, bits.dense | bits.cpu, special | bits.meta) &&
            has_keys(&made[SPARSE_CPU], w, bits.sparse | bits.cpu, (special & ~bits.sparse) | bits.dense)) {
            at->keys = (uint16_t)(w * 8);
            found++;
        }
    return found == 1;
}

static unsigned bits_at(const struct image *image, size_t bit, unsigned count)
{
    unsigned value = 0;
    for (unsigned i = 0; i < count; i++, bit++)
        value |= (unsigned)(image->words[bit / 64] >> bit % 64 & 1) << i;
    return value;
}

/* Between element type and keys lie bits. Three fields stand side by side: how sizes are asked for (2 bits), whether they
 * are symbolic (1), how the class wants them to be asked for (2). Of a sparse tensor the outer ones are both 1, of a
 * strided one 0. A tensor with symbolic sizes cannot be made here. The first two are to lie in one byte. */
static bool find_flags(struct tp_torch_inputs *at)
{
    unsigned found = 0;
    for (size_t bit = ((size_t)at->type + 2) * 8; bit + 5 <= (size_t)at->keys * 8; bit++) {
        unsigned sparse = bits_at(&made[SPARSE_CPU].image, bit, 5);
        if (sparse == 9 && bits_at(&made[FLOAT_CPU].image, bit, 5) == 0 && bits_at(&made[FLOAT_META].image, bit, 5) == 0) {
            at->flags = (uint16_t)(bit / 8);
            at->answers_itself = (uint8_t)(3u << bit % 8);
            at->symbolic = (uint8_t)(4u << bit % 8);
            found++;
        }
    }
    return found == 1 && at->symbolic != 0;
}

/* torch.func.functionalize wraps tensors, and the sizes of the wrapper lag behind. Where this is not found they are what
 * is shown. */
static void find_functional(struct tp_torch_inputs *at)
{
    void *handle;
    if (!torch.functional_table || !tp_sentinel_functional(made[FLOAT_META].handle, &handle))
        return;
    const void *table = torch.functional_table + 2;
    struct image image;
    take_image(&image, *(void **)handle, FUNCTIONAL_WORDS);
    unsigned found = 0;
    for (size_t w = TENSOR_WORDS - 2; w < image.count; w++)
        if (image.words[w] == (uintptr_t)made[FLOAT_META].object) {
            at->functional_value = (uint16_t)(w * 8);
            found++;
        }
    if (found == 1 && image.words[0] == (uintptr_t)table)
        at->functional = table;
    tp_sentinel_delete(handle);
}

/* The observer: copies the inputs of one operator, from the place where they are or from every one that fits. */
static struct {
    const struct tp_torch_abi *abi;
    const char *name; /* NULL: seen already */
    size_t count;
    const void *tensor; /* that the first one is; NULL: not told */
    size_t list_at; /* which input is a list; NONE: none */
    uint16_t only;  /* the place; NONE: not known yet */
    uint16_t place;
    unsigned places;
    uint64_t values[2 * VALUES_MAX];
    struct image list;
    uint64_t elements[2 * VALUES_MAX];
    size_t elements_at, element_count;
} seen;

/* A list's begin and end stand side by side. */
static void look_at_list(const void *list)
{
    take_image(&seen.list, list, LIST_WORDS);
    for (size_t w = 1; w + 1 < seen.list.count && !seen.element_count; w++) {
        uint64_t begin = seen.list.words[w], bytes = seen.list.words[w + 1] - begin;
        if (begin % 8 || bytes == 0 || bytes > sizeof seen.elements || bytes % TP_TORCH_VALUE_BYTES ||
            tp_peek(seen.elements, (void *)(uintptr_t)begin, bytes / 8) != bytes / 8)
            continue;
        seen.elements_at = w;
        seen.element_count = bytes / TP_TORCH_VALUE_BYTES;
    }
}

static bool look_at(const struct image *function, size_t w)
{
    if (function->words[w + 1] != seen.count || (seen.only != NONE && seen.only != w * 8))
        return false;
    uint64_t values[2 * VALUES_MAX];
    if (tp_peek(values, (void *)(uintptr_t)function->words[w], 2 * seen.count) != 2 * seen.count)
        return false;
    if (seen.tensor && values[0] != (uintptr_t)seen.tensor)
        return false;
    memcpy(seen.values, values, sizeof seen.values);
    return true;
}

static void *on_start(void **ret_context, const void *record_function)
{
    *ret_context = NULL;
    if (!seen.name || strcmp(seen.abi->name(record_function), seen.name) != 0)
        return ret_context;
    seen.name = NULL; /* only the operator itself, not what it calls */
    struct image function;
    take_image(&function, record_function, FUNCTION_WORDS);
    for (size_t w = 1; w + 1 < function.count; w++)
        if (look_at(&function, w)) {
            seen.place = (uint16_t)(w * 8);
            seen.places++;
        }
    if (seen.places == 1 && seen.list_at != NONE)
        look_at_list((void *)(uintptr_t)seen.values[2 * seen.list_at]);
    return ret_context;
}

static void on_end(const void *record_function, void *context)
{
    (void)record_function;
    (void)context;
}

/* Looks at the next operator of this name. */
static void watch(const struct tp_torch_abi *abi, const char *name, size_t count, size_t list_at, uint16_t only)
{
    memset(&seen, 0, sizeof seen);
    seen.abi = abi;
    seen.name = name;
    seen.count = count;
    seen.list_at = list_at;
    seen.tensor = list_at == 0 ? NULL : made[FLOAT_META].object;
    seen.only = only;
}

/* It ran, and its inputs lie at one place. */
static bool watched(bool ran, void *result)
{
    if (result)
        tp_sentinel_delete(result);
    return ran && seen.places == 1;
}

static uint32_t tag_of(const uint64_t *values, size_t i)
{
    return (uint32_t)values[2 * i + 1];
}

struct tags {
    uint32_t tensor, floating, integer, boolean;
};

/* Where the inputs are, by operators whose inputs are known. */
static bool find_place(const struct tp_torch_abi *abi, struct tp_torch_inputs *at, struct tags *tags)
{
    void *tensor = made[FLOAT_META].handle, *result;
    watch(abi, "aten::transpose", 3, NONE, NONE);
    bool ran = tp_sentinel_transpose(tensor, 1, 2, &result);
    if (!watched(ran, result) || seen.values[2] != 1 || seen.values[4] != 2 ||
        tag_of(seen.values, 1) != tag_of(seen.values, 2))
        return false;
    at->values = seen.place;
    tags->tensor = tag_of(seen.values, 0);
    tags->integer = tag_of(seen.values, 1);
    const double quarter = 0.25;
    watch(abi, "aten::dropout", 3, NONE, at->values);
    ran = tp_sentinel_dropout(tensor, quarter, false, &result); /* not in training: nothing is drawn */
    if (!watched(ran, result) || memcmp(&seen.values[2], &quarter, sizeof quarter) != 0 || (uint8_t)seen.values[4] != false)
        return false;
    tags->floating = tag_of(seen.values, 1);
    tags->boolean = tag_of(seen.values, 2);
    return true;
}

/* The order of the tags in ATen/core/ivalue.h: Tensor, Storage, Double, ComplexDouble, Int, UInt (not up to 2.6), SymInt,
 * SymFloat, SymBool, Bool. Where those that were seen stand so, the others stand between them. */
static bool name_tags(struct tp_torch_inputs *at, const struct tags *tags)
{
    at->has_uint = tags->boolean == tags->integer + 5;
    uint32_t symbols = tags->integer + 1 + at->has_uint;
    if (tags->floating != tags->tensor + 2 || tags->integer != tags->floating + 2 || tags->boolean != symbols + 3 ||
        tags->boolean >= TP_TORCH_TAGS)
        return false;
    at->kinds[tags->tensor] = TP_TORCH_TENSOR;
    at->kinds[tags->floating] = TP_TORCH_DOUBLE;
    at->kinds[tags->floating + 1] = TP_TORCH_COMPLEX;
    at->kinds[tags->integer] = TP_TORCH_INT;
    for (uint32_t symbol = symbols; symbol < tags->boolean; symbol++)
        at->kinds[symbol] = TP_TORCH_SYMBOL;
    at->kinds[tags->boolean] = TP_TORCH_BOOL;
    return true;
}

static bool find_lists(const struct tp_torch_abi *abi, struct tp_torch_inputs *at, const struct tags *tags)
{
    const struct sentinel *tensor = &made[FLOAT_META];
    void *const both[] = {tensor->handle, tensor->handle};
    void *result;
    watch(abi, "aten::stack", 2, 0, at->values);
    bool ran = tp_sentinel_stack(both, 2, 1, &result);
    if (!watched(ran, result) || seen.element_count != 2)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (seen.elements[2 * i] != (uintptr_t)tensor->object || tag_of(seen.elements, i) != tags->tensor)
            return false;
    uint32_t list_tag = tag_of(seen.values, 0);
    at->list_values = (uint16_t)(seen.elements_at * 8);
    at->tensor_type = *torch.tensor_type();
    unsigned type_places = 0;
    for (size_t w = 1; w < seen.list.count; w++)
        if (seen.list.words[w] == (uintptr_t)at->tensor_type) {
            at->list_type = (uint16_t)(w * 8);
            type_places++;
        }
    const int64_t order[] = {0, 2, 1};
    watch(abi, "aten::permute", 2, 1, at->values);
    ran = tp_sentinel_permute(tensor->handle, order, 3, &result);
    if (!watched(ran, result) || type_places != 1 || seen.element_count != 3 ||
        seen.elements_at * 8 != at->list_values || tag_of(seen.values, 1) != list_tag ||
        seen.list.words[at->list_type / 8] == (uintptr_t)at->tensor_type)
        return false;
    for (size_t i = 0; i < 3; i++)
        if (seen.elements[2 * i] != (uint64_t)order[i] || tag_of(seen.elements, i) != tags->integer)
            return false;
    if (list_tag >= TP_TORCH_TAGS || at->kinds[list_tag] != TP_TORCH_OTHER)
        return false;
    at->kinds[list_tag] = TP_TORCH_LIST;
    /* ComplexHolder: behind the same head as a list's vector, aligned to two doubles. */
    at->complex = (uint16_t)tp_round_up(at->list_values, 16);
    return true;
}

static const char *find_values(const struct tp_torch_abi *abi, struct tp_torch_inputs *at)
{
    struct tags tags;
    if (!find_place(abi, at, &tags))
        return "the place of its operators' inputs was not found";
    if (!name_tags(at, &tags))
        return "its values are numbered in another way";
    if (!find_lists(abi, at, &tags))
        return "its lists are kept in another way";
    return NULL;
}

static const char *find_all(const struct tp_torch_abi *abi, struct tp_torch_inputs *at)
{
    if (!tp_sentinels_find(abi->library) || !find_names(abi->library))
        return "it lacks functions that would show them";
    if (!make_all())
        return "its tensors cannot be made";
    if (!find_sizes(at) || !sizes_move_out(at))
        return "the place of its tensors' sizes was not found";
    if (!find_type(at))
        return "the place of its tensors' types was not found";
    if (!find_keys(at))
        return "the place of its tensors' dispatch keys was not found";
    if (!find_flags(at))
        return "the place of its tensors' flags was not found";
    at->undefined = torch.undefined;
    find_functional(at);
    uint64_t handle = tp_torch_abi_add(abi, on_start, on_end, 1, TP_TORCH_NEED_INPUTS);
    const char *problem = find_values(abi, at);
    abi->remove_callback(handle);
    return problem;
}

int tp_torch_calibrate_inputs(struct tp_torch_abi *abi, struct tp_error *error)
{
    const char *problem = "there is no pipe to look at them with";
    struct tp_torch_inputs at = {0};
    if (tp_peek_begin()) {
        problem = find_all(abi, &at);
        for (size_t i = 0; i < SENTINELS; i++)
            if (made[i].handle)
                tp_sentinel_delete(made[i].handle);
        memset(made, 0, sizeof made);
        tp_peek_end();
    }
    if (problem) {
        tp_error_set(error, "PyTorch", NULL, "shapes are not known in PyTorch %s: %s", abi->version, problem);
        return -ENOTSUP;
    }
    at.known = true;
    abi->inputs = at;
    return 0;
}
