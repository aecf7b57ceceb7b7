#include "sentinels.h"

#include <dlfcn.h>
#include <string.h>

#include "catch.h"

#define DEVICE_META 14 /* c10/core/DeviceType.h; where no function tells */
#define LIST_MAX 8

/* As C++ passes and returns them. c10::ArrayRef and std::optional go by value; an at::Tensor comes back in memory of the
 * caller's, as a struct does that is too large for registers. */
struct array_ref {
    const void *data;
    size_t count;
};

struct optional_byte { /* of at::ScalarType, of at::Layout, of bool */
    int8_t value;
    bool has;
};

struct optional_device {
    int8_t type, index;
    bool has;
};

struct returned {
    void *tensor;
    void *none[2];
};

static struct {
    /* Of every version; from_blob is for values alone. */
    int32_t (*empty_strided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, void **);
    int32_t (*from_blob)(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t, int32_t, void **);
    int32_t (*delete_tensor)(void *);
    int32_t (*cpu)(void), (*float32)(void), (*float64)(void), (*int16)(void), (*complex64)(void);
    /* Of the C shims. */
    int32_t (*meta)(void);
    int32_t (*new_handle)(void *, void **);
    int32_t (*call)(const char *, const char *, uint64_t *);
    int32_t (*new_list)(size_t, void **);
    int32_t (*push_back)(void *, uint64_t);
    /* Of C++. */
    struct returned (*transpose)(const void *, int64_t, int64_t);
    struct returned (*dropout)(const void *, double, bool);
    struct returned (*permute)(const void *, struct array_ref);
    struct returned (*stack)(struct array_ref, int64_t);
    struct returned (*sparse)(struct array_ref, struct optional_byte, struct optional_byte, struct optional_device,
                              struct optional_byte);
    struct returned (*functional)(const void *);
    void *(*operator_new)(size_t);
    const void *undefined;
} torch;

struct tp_sentinel_types tp_sentinel_types;
static bool by_shims, calls_cxx;

enum set { ALWAYS, SHIMS, CXX, MAYBE };

static const struct {
    const char *linker_name;
    size_t offset;
    enum set set;
} names[] = {
#define NAME(set, member, linker_name) {linker_name, (size_t)((char *)&torch.member - (char *)&torch), set}
    NAME(ALWAYS, empty_strided, "aoti_torch_empty_strided"),
    NAME(MAYBE, from_blob, "aoti_torch_create_tensor_from_blob"),
    NAME(ALWAYS, delete_tensor, "aoti_torch_delete_tensor_object"),
    NAME(ALWAYS, cpu, "aoti_torch_device_type_cpu"),
    NAME(ALWAYS, float32, "aoti_torch_dtype_float32"),
    NAME(ALWAYS, float64, "aoti_torch_dtype_float64"),
    NAME(ALWAYS, int16, "aoti_torch_dtype_int16"),
    NAME(ALWAYS, complex64, "aoti_torch_dtype_complex64"),
    NAME(SHIMS, meta, "aoti_torch_device_type_meta"),
    NAME(SHIMS, new_handle, "aoti_torch_new_tensor_handle"),
    NAME(SHIMS, call, "aoti_torch_call_dispatcher"),
    NAME(SHIMS, new_list, "torch_new_list_reserve_size"),
    NAME(SHIMS, push_back, "torch_list_push_back"),
    NAME(CXX, transpose, "_ZN2at4_ops13transpose_int4callERKNS_6TensorEll"),
    NAME(CXX, dropout, "_ZN2at4_ops7dropout4callERKNS_6TensorEdb"),
    NAME(CXX, permute, "_ZN2at4_ops7permute4callERKNS_6TensorEN3c108ArrayRefIlEE"),
    NAME(CXX, stack, "_ZN2at4_ops5stack4callEN3c108ArrayRefINS_6TensorEEEl"),
    NAME(CXX, sparse, "_ZN2at4_ops22sparse_coo_tensor_size4callEN3c108ArrayRefIlEESt8optionalINS2_10ScalarTypeEE"
                      "S5_INS2_6LayoutEES5_INS2_6DeviceEES5_IbE"),
    NAME(MAYBE, functional, "_ZN2at17functionalization4impl20to_functional_tensorERKNS_6TensorE"),
    NAME(MAYBE, operator_new, "_Znwm"),
    NAME(MAYBE, undefined, "_ZN3c1019UndefinedTensorImpl10_singletonE"),
#undef NAME
};

bool tp_sentinels_find(void *library)
{
    bool has[] = {[ALWAYS] = true, [SHIMS] = true, [CXX] = true, [MAYBE] = true};
    for (size_t i = 0; i < TP_COUNT(names); i++) {
        void *symbol = dlsym(library, names[i].linker_name);
        has[names[i].set] = has[names[i].set] && symbol;
        memcpy((char *)&torch + names[i].offset, &symbol, sizeof symbol);
    }
    by_shims = has[SHIMS];
    calls_cxx = torch.operator_new && torch.undefined && tp_catch_find(library);
    if (!has[ALWAYS] || !(by_shims || (has[CXX] && calls_cxx)))
        return false;
    tp_sentinel_types = (struct tp_sentinel_types){
        .cpu = torch.cpu(),
        .meta = torch.meta ? torch.meta() : DEVICE_META,
        .float32 = torch.float32(),
        .float64 = torch.float64(),
        .int16 = torch.int16(),
        .complex64 = torch.complex64(),
    };
    return true;
}

bool tp_sentinel_empty(size_t dimensions, const int64_t *sizes, const int64_t *strides, int32_t type, int32_t device,
                       void **ret_handle)
{
    *ret_handle = NULL;
    return torch.empty_strided((int64_t)dimensions, sizes, strides, type, device, 0, ret_handle) == 0 && *ret_handle;
}

bool tp_sentinel_from_blob(void *memory, size_t dimensions, const int64_t *sizes, const int64_t *strides, int64_t offset,
                           void **ret_handle)
{
    *ret_handle = NULL;
    return torch.from_blob &&
           torch.from_blob(memory, (int64_t)dimensions, sizes, strides, offset, tp_sentinel_types.float32,
                           tp_sentinel_types.cpu, 0, ret_handle) == 0 &&
           *ret_handle;
}

void tp_sentinel_delete(void *handle)
{
    torch.delete_tensor(handle);
}

/* A shim takes the handles on its stack as its own. */
static uint64_t another_handle(const void *tensor)
{
    void *handle = NULL;
    return torch.new_handle((void *)tensor, &handle) == 0 ? (uintptr_t)handle : 0;
}

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

/* The first on the stack and the `list`-th are handles; 0: they could not be made. */
static bool call(const char *name, const char *overload, uint64_t *stack, size_t list, void **ret_handle)
{
    *ret_handle = NULL;
    if (!stack[0] || !stack[list] || torch.call(name, overload, stack) != 0)
        return false;
    *ret_handle = (void *)(uintptr_t)stack[0];
    return *ret_handle != NULL;
}

/* A call of C++: what it is given, and the handle that it gives back. */
struct cxx_call {
    const void *tensor;
    struct array_ref list;
    int64_t first, second;
    double number;
    bool flag;
    void **handle; /* deleted as others are */
};

static void keep(struct cxx_call *call, struct returned returned)
{
    *call->handle = returned.tensor;
}

static void cxx_sparse(void *of)
{
    struct cxx_call *call = of;
    const struct optional_byte none = {0};
    keep(call, torch.sparse(call->list, none, none, (struct optional_device){0}, none));
}

static void cxx_transpose(void *of)
{
    struct cxx_call *call = of;
    keep(call, torch.transpose(call->tensor, call->first, call->second));
}

static void cxx_dropout(void *of)
{
    struct cxx_call *call = of;
    keep(call, torch.dropout(call->tensor, call->number, call->flag));
}

static void cxx_permute(void *of)
{
    struct cxx_call *call = of;
    keep(call, torch.permute(call->tensor, call->list));
}

static void cxx_stack(void *of)
{
    struct cxx_call *call = of;
    keep(call, torch.stack(call->list, call->first));
}

static void cxx_functional(void *of)
{
    struct cxx_call *call = of;
    keep(call, torch.functional(call->tensor));
}

static void cxx_handle(void *of)
{
    struct cxx_call *call = of;
    call->handle = torch.operator_new(sizeof *call->handle);
}

static bool call_cxx(void (*body)(void *), struct cxx_call call, void **ret_handle)
{
    *ret_handle = NULL;
    if (!tp_catch(cxx_handle, &call))
        return false;
    *call.handle = (void *)torch.undefined; /* what an at::Tensor is before it is one */
    bool good = tp_catch(body, &call);
    if (good)
        *ret_handle = call.handle;
    else
        torch.delete_tensor(call.handle);
    return good;
}

bool tp_sentinel_sparse(const int64_t *sizes, size_t dimensions, void **ret_handle)
{
    if (!by_shims)
        return call_cxx(cxx_sparse, (struct cxx_call){.list = {sizes, dimensions}}, ret_handle);
    /* sparse_coo_tensor.size(SymInt[] size, *, dtype, layout, device, pin_memory) */
    uint64_t stack[5] = {list_of((const uint64_t *)sizes, dimensions)};
    return call("aten::sparse_coo_tensor", "size", stack, 0, ret_handle);
}

bool tp_sentinel_functional(void *tensor, void **ret_handle)
{
    *ret_handle = NULL;
    return torch.functional && calls_cxx && call_cxx(cxx_functional, (struct cxx_call){.tensor = tensor}, ret_handle);
}

bool tp_sentinel_transpose(void *tensor, int64_t first, int64_t second, void **ret_handle)
{
    if (!by_shims)
        return call_cxx(cxx_transpose, (struct cxx_call){.tensor = tensor, .first = first, .second = second}, ret_handle);
    uint64_t stack[3] = {another_handle(tensor), (uint64_t)first, (uint64_t)second};
    return call("aten::transpose", "int", stack, 0, ret_handle);
}

bool tp_sentinel_dropout(void *tensor, double probability, bool train, void **ret_handle)
{
    if (!by_shims)
        return call_cxx(cxx_dropout, (struct cxx_call){.tensor = tensor, .number = probability, .flag = train}, ret_handle);
    uint64_t stack[3] = {another_handle(tensor), 0, train};
    memcpy(&stack[1], &probability, sizeof probability);
    return call("aten::dropout", "", stack, 0, ret_handle);
}

bool tp_sentinel_permute(void *tensor, const int64_t *order, size_t dimensions, void **ret_handle)
{
    if (!by_shims)
        return call_cxx(cxx_permute, (struct cxx_call){.tensor = tensor, .list = {order, dimensions}}, ret_handle);
    uint64_t stack[2] = {another_handle(tensor), list_of((const uint64_t *)order, dimensions)};
    return call("aten::permute", "", stack, 1, ret_handle);
}

bool tp_sentinel_stack(void *const *tensors, size_t count, int64_t dimension, void **ret_handle)
{
    uint64_t each[LIST_MAX];
    *ret_handle = NULL;
    if (count > LIST_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        each[i] = by_shims ? another_handle(tensors[i]) : *(const uint64_t *)tensors[i];
        if (!each[i])
            return false;
    }
    if (!by_shims)
        return call_cxx(cxx_stack, (struct cxx_call){.list = {each, count}, .first = dimension}, ret_handle);
    uint64_t stack[2] = {list_of(each, count), (uint64_t)dimension};
    return call("aten::stack", "", stack, 0, ret_handle);
}
