/*
 * Tensors, lists and operators of the fake libtorch, as far as the agent calibrates on them: torch's C shims and a few
 * names of libc10. FAKE_TORCH picks how they deviate (fake_torch.h).
 */
#include "fake_tensors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fake_torch.h"

#define TENSOR_WORDS 40
#define CPU 0
#define META 14
#define DENSE (UINT64_C(1) << 16)
#define SPARSE (UINT64_C(1) << 23)

enum { TAG_TENSOR = 1, TAG_DOUBLE = 3, TAG_COMPLEX = 4, TAG_INT = 5, TAG_BOOL = 10, TAG_LIST = 14, TAGS = 32 };

/* std::vector<StableIValue> of the shims; c10::detail::ListImpl. */
struct stable_list {
    size_t count;
    uint64_t values[8];
};

struct list {
    const void *table;
    uint64_t references;
    struct fake_value *begin, *end, *room;
    const void *type, *control;
};

int32_t aoti_torch_empty_strided(int64_t dimensions, const int64_t *sizes, const int64_t *strides, int32_t type,
                                 int32_t device, int32_t index, void ***ret);
int32_t aoti_torch_new_tensor_handle(void **handle, void ***ret);
int32_t aoti_torch_delete_tensor_object(void **handle);
int32_t torch_new_list_reserve_size(size_t count, struct stable_list **ret);
int32_t torch_list_push_back(struct stable_list *list, uint64_t value);
int32_t aoti_torch_device_type_cpu(void);
int32_t aoti_torch_device_type_meta(void);
int32_t aoti_torch_dtype_float32(void);
int32_t aoti_torch_dtype_float64(void);
int32_t aoti_torch_dtype_int16(void);
int32_t aoti_torch_dtype_complex64(void);
int32_t aoti_torch_call_dispatcher(const char *name, const char *overload, uint64_t *stack);

static uint64_t tensor_type_object, int_type_object;
static const void *tensor_type_pointer = &tensor_type_object;
uint64_t undefined_tensor __asm__("_ZN3c1019UndefinedTensorImpl10_singletonE");

static size_t first_word(void)
{
    return fake_torch_deviates("shifted") ? 9 : 7;
}

static size_t inline_dimensions(void)
{
    return fake_torch_deviates("shifted") ? 4 : 5;
}

static uint64_t *new_tensor(size_t dimensions, const int64_t *sizes, const int64_t *strides, int type, int device,
                            bool sparse)
{
    uint64_t *tensor = calloc(TENSOR_WORDS, 8), *at = tensor + first_word();
    tensor[1] = 1;
    at[0] = dimensions + (fake_torch_deviates("other_sizes") ? 1 : 0);
    size_t room = inline_dimensions();
    int64_t *numbers = (int64_t *)(at + 1);
    if (dimensions > room) {
        room = dimensions;
        numbers = calloc(2 * dimensions, 8);
        at[1] = (uintptr_t)numbers;
    }
    memcpy(numbers, sizes, dimensions * 8);
    if (!fake_torch_deviates("no_strides"))
        memcpy(numbers + room, strides, dimensions * 8);
    uint64_t *bits = tensor + first_word() + 13;
    bits[0] = (uint64_t)(fake_torch_deviates("other_types") ? 3 : type) | (uint64_t)device << 16 | UINT64_C(0x01ff) << 24;
    if (sparse && !fake_torch_deviates("other_flags"))
        bits[0] |= UINT64_C(0x24) << 48;
    bits[1] = (device == META ? UINT64_C(1) << 15 : 1) | (sparse ? SPARSE : DENSE);
    if (fake_torch_deviates("other_keys"))
        bits[1] = 0;
    return tensor;
}

static void **new_handle_of(uint64_t *tensor)
{
    void **handle = malloc(sizeof *handle);
    *handle = tensor;
    return handle;
}

int32_t aoti_torch_empty_strided(int64_t dimensions, const int64_t *sizes, const int64_t *strides, int32_t type,
                                 int32_t device, int32_t index, void ***ret)
{
    (void)index;
    if (fake_torch_deviates("no_tensors"))
        return 1;
    *ret = new_handle_of(new_tensor((size_t)dimensions, sizes, strides, type, device, false));
    return 0;
}

int32_t aoti_torch_new_tensor_handle(void **handle, void ***ret)
{
    *ret = new_handle_of(*handle);
    return 0;
}

int32_t aoti_torch_delete_tensor_object(void **handle)
{
    free(handle); /* tensors stay: nobody counts references here */
    return 0;
}

int32_t torch_new_list_reserve_size(size_t count, struct stable_list **ret)
{
    (void)count;
    *ret = calloc(1, sizeof **ret);
    return 0;
}

int32_t torch_list_push_back(struct stable_list *list, uint64_t value)
{
    list->values[list->count++] = value;
    return 0;
}

int32_t aoti_torch_device_type_cpu(void)
{
    return CPU;
}

int32_t aoti_torch_device_type_meta(void)
{
    return META;
}

int32_t aoti_torch_dtype_float32(void)
{
    return 6;
}

int32_t aoti_torch_dtype_float64(void)
{
    return 7;
}

int32_t aoti_torch_dtype_int16(void)
{
    return 2;
}

int32_t aoti_torch_dtype_complex64(void)
{
    return 9;
}

const char *key_name(uint16_t key) __asm__("_ZN3c108toStringENS_11DispatchKeyE");
const char *key_name(uint16_t key)
{
    static const char *const names[] = {"Undefined", "Dense",  "FPGA",      "Vulkan",      "Metal", "Quantized", "CustomRNGKeyId",
                                        "MkldnnCPU", "Sparse", "SparseCsr", "NestedTensor"};
    return key < sizeof names / sizeof *names ? names[key] : "UNKNOWN_TENSOR_TYPE_ID";
}

const char *backend_name(uint8_t backend) __asm__("_ZN3c108toStringENS_16BackendComponentE");
const char *backend_name(uint8_t backend)
{
    return backend == 0 ? "InvalidBit" : backend == 1 ? "CPUBit" : backend == 16 ? "MetaBit"
           : backend < 16 ? "OtherBit" : "UNKNOWN_BACKEND_BIT";
}

const void **tensor_type(void) __asm__("_ZN3c1010TensorType3getEv");
const void **tensor_type(void)
{
    return &tensor_type_pointer;
}

static struct fake_value tensor_value(uint64_t handle)
{
    return (struct fake_value){(uintptr_t)*(void **)(uintptr_t)handle, TAG_TENSOR};
}

static struct fake_value int_value(uint64_t value)
{
    return (struct fake_value){value, fake_torch_deviates("other_tags") ? 2 : TAG_INT};
}

static struct fake_value list_value(uint64_t handle, bool tensors)
{
    const struct stable_list *from = (void *)(uintptr_t)handle;
    struct list *list = calloc(1, sizeof *list);
    list->begin = calloc(from->count, sizeof *list->begin);
    list->end = list->room = list->begin + from->count;
    list->type = tensors ? (const void *)&tensor_type_object : &int_type_object;
    if (fake_torch_deviates("other_lists"))
        list->end = list->room = list->begin;
    for (size_t i = 0; i < from->count; i++)
        list->begin[i] = tensors ? tensor_value(from->values[i]) : int_value(from->values[i]);
    return (struct fake_value){(uintptr_t)list, TAG_LIST};
}

int32_t aoti_torch_call_dispatcher(const char *name, const char *overload, uint64_t *stack)
{
    (void)overload;
    struct fake_value values[3] = {{0}};
    size_t count = 3;
    if (strcmp(name, "aten::sparse_coo_tensor") == 0) {
        const int64_t sizes[2] = {11, 17}, strides[2] = {0};
        stack[0] = (uintptr_t)new_handle_of(new_tensor(2, sizes, strides, 6, CPU, true));
        return 0;
    }
    if (strcmp(name, "aten::stack") == 0) {
        values[0] = list_value(stack[0], true);
        values[1] = int_value(stack[1]);
        count = 2;
    } else {
        values[0] = tensor_value(stack[0]);
        values[1] = int_value(stack[1]);
        values[2] = int_value(stack[2]);
    }
    if (strcmp(name, "aten::dropout") == 0) {
        values[1] = (struct fake_value){stack[1], TAG_DOUBLE};
        values[2] = (struct fake_value){stack[2], TAG_BOOL};
    } else if (strcmp(name, "aten::permute") == 0) {
        values[1] = list_value(stack[1], false);
        count = 2;
    }
    fake_torch_run_given(name, values, count);
    const int64_t none[1] = {0};
    stack[0] = (uintptr_t)new_handle_of(new_tensor(0, none, none, 6, META, false));
    return 0;
}

static struct fake_value given[1 + TAGS];

static void make_given(void) __attribute__((constructor));
static void make_given(void)
{
    static const int64_t sizes[2] = {2, 3}, strides[2] = {1, 2};
    static const struct {
        uint64_t head[2];
        double value[2];
    } number = {{0}, {1.5, -2}};
    static struct fake_value elements[2];
    static struct list list = {.begin = elements, .end = elements + 2, .room = elements + 2, .type = &int_type_object};
    for (uint64_t tag = 0; tag < TAGS; tag++)
        given[1 + tag] = (struct fake_value){0x10, tag};
    struct fake_value tensor = {(uintptr_t)new_tensor(2, sizes, strides, 6, CPU, false), TAG_TENSOR};
    given[0] = given[1 + TAG_TENSOR] = tensor;
    const double quarter = 0.25;
    memcpy(&given[1 + TAG_DOUBLE].payload, &quarter, sizeof quarter);
    given[1 + TAG_COMPLEX].payload = (uintptr_t)&number;
    given[1 + TAG_INT].payload = (uint64_t)-7;
    elements[0] = elements[1] = given[1 + TAG_INT];
    given[1 + TAG_LIST].payload = (uintptr_t)&list;
}

const struct fake_value *fake_values(size_t *ret_count)
{
    *ret_count = sizeof given / sizeof *given;
    return given;
}
