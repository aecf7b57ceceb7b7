/*
 * calibrate_inputs.c: finds where PyTorch keeps the inputs of an operator, sizes and strides of tensors, and elements of
 * lists. PyTorch makes tensors of sizes that we choose and runs a few operators on them (torch's C shims: an exception
 * comes back as a status); an observer of ours looks at what those were given. An offset counts only if exactly one
 * place fits all sentinels.
 *
 * The sentinels lie on the meta device, or have no elements: no memory, no thread pool, no random number is touched.
 * What is not surely an object of ours is read by the kernel (peek.h), so that a wrong guess is no crash.
 */
#include <dlfcn.h>
#include <errno.h>

#include "abi.h"
#include "peek.h"

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

/* What is called of PyTorch. Handles are at::Tensor *: the address of the TensorImpl is the word there. */
static struct {
    int32_t (*empty_strided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, void **);
    int32_t (*new_handle)(void *, void **);
    int32_t (*delete_tensor)(void *);
    int32_t (*call)(const char *, const char *, uint64_t *);
    int32_t (*new_list)(size_t, void **);
    int32_t (*push_back)(void *, uint64_t);
    int32_t (*cpu)(void), (*meta)(void), (*float32)(void), (*float64)(void), (*int16)(void), (*complex64)(void);
    const char *(*key_name)(uint16_t);
    const char *(*backend_name)(uint8_t);
    void *const *(*tensor_type)(void); /* const std::shared_ptr<TensorType> & */
    const void *undefined;
    /* May be missing. */
    void (*to_functional)(void **, void *);
    void *(*operator_new)(size_t);
    const void *const *functional_table;
} torch;

static const struct {
    const char *linker_name;
    size_t offset;
    bool needed;
} names[] = {
#define OFFSET(member) (size_t)((char *)&torch.member - (char *)&torch)
#define NAME(linker_name, member) {linker_name, OFFSET(member), true}
    NAME("aoti_torch_empty_strided", empty_strided),
    NAME("aoti_torch_new_tensor_handle", new_handle),
    NAME("aoti_torch_delete_tensor_object", delete_tensor),
    NAME("aoti_torch_call_dispatcher", call),
    NAME("torch_new_list_reserve_size", new_list),
    NAME("torch_list_push_back", push_back),
    NAME("aoti_torch_device_type_cpu", cpu),
    NAME("aoti_torch_device_type_meta", meta),
    NAME("aoti_torch_dtype_float32", float32),
    NAME("aoti_torch_dtype_float64", float64),
    NAME("aoti_torch_dtype_int16", int16),
    NAME("aoti_torch_dtype_complex64", complex64),
    NAME("_ZN3c108toStringENS_11DispatchKeyE", key_name),
    NAME("_ZN3c108toStringENS_16BackendComponentE", backend_name),
    NAME("_ZN3c1010TensorType3getEv", tensor_type),
    NAME("_ZN3c1019UndefinedTensorImpl10_singletonE", undefined),
    {"_ZN2at17functionalization4impl20to_functional_tensorERKNS_6TensorE", OFFSET(to_functional), false},
    {"_Znwm", OFFSET(operator_new), false},
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
    return torch.empty_strided((int64_t)dimensions, sizes, strides, type, device, 0, &sentinel->handle) == 0 &&
           sentinel->handle && take(sentinel);
}

static uint64_t another_handle(const struct sentinel *sentinel)
{
    void *handle = NULL;
    return torch.new_handle(sentinel->handle, &handle) == 0 ? (uintptr_t)handle : 0;
}

/* The list belongs to whom it is given to. */
static uint64_t list_of(const uint64_t *values, size_t count)
{
    void *list = NULL;
    if (torch.new_list(count, &list) != 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (torch.push_back(list, values[i]) != 0)
            return 0;
    return (uintptr_t)list;
}

/* The sentinels: types and devices differ, sizes do not. */
enum { FLOAT_META, DOUBLE_META, SHORT_META, COMPLEX_META, FLOAT_CPU, SPARSE_CPU, SENTINELS };
static struct sentinel made[SENTINELS];

static bool make_sparse(struct sentinel *sentinel)
{
    /* sparse_coo_tensor.size(SymInt[] size, *, dtype, layout, device, pin_memory) */
    uint64_t two_sizes[] = {11, 17}, stack[5] = {list_of(two_sizes, 2)};
    if (!stack[0] || torch.call("aten::sparse_coo_tensor", "size", stack) != 0)
        return false;
    sentinel->handle = (void *)(uintptr_t)stack[0];
    return sentinel->handle && take(sentinel);
}

static bool make_all(void)
{
    const int64_t none[DIMENSIONS] = {0};
    struct sentinel *cpu = &made[FLOAT_CPU];
    return make(&made[FLOAT_META], DIMENSIONS, torch.float32(), torch.meta()) &&
           make(&made[DOUBLE_META], DIMENSIONS, torch.float64(), torch.meta()) &&
           make(&made[SHORT_META], DIMENSIONS, torch.int16(), torch.meta()) &&
           make(&made[COMPLEX_META], DIMENSIONS, torch.complex64(), torch.meta()) &&
           torch.empty_strided(DIMENSIONS, none, strides, torch.float32(), torch.cpu(), 0, &cpu->handle) == 0 &&
           cpu->handle && take(cpu) && make_sparse(&made[SPARSE_CPU]);
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
    size_t most = at->inline_dimensions, w = at->sizes / 8;
    struct sentinel in = {0}, out = {0};
    uint64_t apart[2 * (INLINE_MOST + 1)];
    bool good = make(&in, most, torch.float32(), torch.meta()) && in.image.words[w] == most &&
                same_words(&in.image, w + 1, sizes, most) && same_words(&in.image, w + 1 + most, strides, most);
    if (good && most < INLINE_MOST + 1) {
        size_t more = most + 1;
        good = make(&out, more, torch.float32(), torch.meta()) && out.image.words[w] == more &&
               tp_peek(apart, (void *)(uintptr_t)out.image.words[w + 1], 2 * more) == 2 * more &&
               memcmp(apart, sizes, more * 8) == 0 && memcmp(apart + more, strides, more * 8) == 0;
    }
    if (in.handle)
        torch.delete_tensor(in.handle);
    if (out.handle)
        torch.delete_tensor(out.handle);
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
    const int32_t types[] = {torch.float32(), torch.float64(), torch.int16(), torch.complex64()};
    unsigned found = 0;
    for (size_t offset = 8; offset + 2 <= made[FLOAT_META].image.count * 8; offset += 2) {
        bool fits = true;
        for (size_t i = 0; i < TP_COUNT(types); i++)
            fits = fits && half_at(&made[FLOAT_META + i].image, offset) == types[i];
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
    if (!torch.to_functional || !torch.operator_new || !torch.functional_table)
        return;
    const void *table = torch.functional_table + 2;
    void *handle = torch.operator_new(sizeof(void *)); /* becomes an at::Tensor, deleted as one */
    torch.to_functional(handle, made[FLOAT_META].handle);
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
    torch.delete_tensor(handle);
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

/* Runs an operator that returns a tensor, and looks at what it was given. The stack's handles are its own after that. */
static bool watch(const struct tp_torch_abi *abi, const char *name, const char *overload, uint64_t *stack, size_t count,
                  size_t list_at, uint16_t only)
{
    memset(&seen, 0, sizeof seen);
    seen.abi = abi;
    seen.name = name;
    seen.count = count;
    seen.list_at = list_at;
    seen.tensor = list_at == 0 ? NULL : made[FLOAT_META].object;
    seen.only = only;
    if (torch.call(name, overload, stack) != 0)
        return false;
    if (stack[0])
        torch.delete_tensor((void *)(uintptr_t)stack[0]);
    return seen.places == 1;
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
    uint64_t transpose[3] = {another_handle(&made[FLOAT_META]), 1, 2};
    if (!transpose[0] || !watch(abi, "aten::transpose", "int", transpose, 3, NONE, NONE) || seen.values[2] != 1 ||
        seen.values[4] != 2 || tag_of(seen.values, 1) != tag_of(seen.values, 2))
        return false;
    at->values = seen.place;
    tags->tensor = tag_of(seen.values, 0);
    tags->integer = tag_of(seen.values, 1);
    const double quarter = 0.25;
    uint64_t dropout[3] = {another_handle(&made[FLOAT_META]), 0, false}; /* not in training: nothing is drawn */
    memcpy(&dropout[1], &quarter, sizeof quarter);
    if (!dropout[0] || !watch(abi, "aten::dropout", "", dropout, 3, NONE, at->values) ||
        memcmp(&seen.values[2], &quarter, sizeof quarter) != 0 || (uint8_t)seen.values[4] != false)
        return false;
    tags->floating = tag_of(seen.values, 1);
    tags->boolean = tag_of(seen.values, 2);
    return true;
}

/* The order of the tags in ATen/core/ivalue.h: Tensor, Storage, Double, ComplexDouble, Int, UInt, SymInt, SymFloat,
 * SymBool, Bool. Where those that were seen stand so, the others stand between them. */
static bool name_tags(struct tp_torch_inputs *at, const struct tags *tags)
{
    if (tags->floating != tags->tensor + 2 || tags->integer != tags->floating + 2 ||
        tags->boolean != tags->integer + 5 || tags->boolean >= TP_TORCH_TAGS)
        return false;
    at->kinds[tags->tensor] = TP_TORCH_TENSOR;
    at->kinds[tags->floating] = TP_TORCH_DOUBLE;
    at->kinds[tags->floating + 1] = TP_TORCH_COMPLEX;
    at->kinds[tags->integer] = TP_TORCH_INT;
    for (uint32_t symbol = tags->integer + 2; symbol < tags->boolean; symbol++)
        at->kinds[symbol] = TP_TORCH_SYMBOL;
    at->kinds[tags->boolean] = TP_TORCH_BOOL;
    return true;
}

static bool find_lists(const struct tp_torch_abi *abi, struct tp_torch_inputs *at, const struct tags *tags)
{
    const struct sentinel *tensor = &made[FLOAT_META];
    uint64_t both[] = {another_handle(tensor), another_handle(tensor)}, cat[2] = {list_of(both, 2), 1};
    if (!both[0] || !both[1] || !cat[0] || !watch(abi, "aten::cat", "", cat, 2, 0, at->values) ||
        seen.element_count != 2)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (seen.elements[2 * i] != (uintptr_t)tensor->object || tag_of(seen.elements, i) != tags->tensor)
            return false;
    uint32_t list_tag = tag_of(seen.values, 0);
    at->list_values = (uint16_t)(seen.elements_at * 8);
    at->tensor_type = *torch.tensor_type();
    unsigned types = 0;
    for (size_t w = 1; w < seen.list.count; w++)
        if (seen.list.words[w] == (uintptr_t)at->tensor_type) {
            at->list_type = (uint16_t)(w * 8);
            types++;
        }
    const uint64_t order[] = {0, 2, 1};
    uint64_t permute[2] = {another_handle(tensor), list_of(order, 3)};
    if (types != 1 || !permute[0] || !permute[1] || !watch(abi, "aten::permute", "", permute, 2, 1, at->values) ||
        seen.element_count != 3 || seen.elements_at * 8 != at->list_values || tag_of(seen.values, 1) != list_tag ||
        seen.list.words[at->list_type / 8] == (uintptr_t)at->tensor_type)
        return false;
    for (size_t i = 0; i < 3; i++)
        if (seen.elements[2 * i] != order[i] || tag_of(seen.elements, i) != tags->integer)
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
    if (!find_names(abi->library))
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
                torch.delete_tensor(made[i].handle);
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
