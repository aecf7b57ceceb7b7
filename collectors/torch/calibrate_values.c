/*
 * calibrate_values.c: finds where PyTorch keeps outputs and schema of an operator, and the storage of a tensor.
 * Tensors are made over memory of ours, at offsets that we choose, and an operator that changes nothing is run on one
 * (sentinels.h); an observer of ours looks at it. An offset counts only if exactly one place fits all.
 */
#include <dlfcn.h>
#include <errno.h>

#include "../../agent/log.h"
#include "abi.h"
#include "peek.h"
#include "schema.h"
#include "sentinels.h"

#define TENSOR_WORDS 24
#define STORAGE_WORDS 12
#define FUNCTION_WORDS 64
#define STRINGS 2 /* of libstdc++, whose place the schema's address shares */
#define DEVICES 3

/* What else is called of PyTorch. */
static struct {
    size_t (*input_count)(const void *), (*output_count)(const void *);
} torch;

static bool find_names(void *library)
{
    *(void **)&torch.input_count = dlsym(library, "_ZNK2at14RecordFunction10num_inputsEv");
    *(void **)&torch.output_count = dlsym(library, "_ZNK2at14RecordFunction11num_outputsEv");
    return torch.input_count && torch.output_count;
}

/* Two tensors over our memory, and one on another device. */
static const int64_t sizes[] = {31, 29}, strides[] = {29, 1}, offsets[] = {1013, 1019};
static float memory[2][2048];
static struct {
    void *handle;
    uint64_t words[TENSOR_WORDS];
    size_t count;
} made[3];

static bool make_all(void)
{
    for (unsigned i = 0; i < TP_COUNT(made); i++) {
        bool good;
        if (i < 2)
            good = tp_sentinel_from_blob(memory[i], 2, sizes, strides, offsets[i], &made[i].handle);
        else
            good = tp_sentinel_empty(2, sizes, strides, tp_sentinel_types.float32, tp_sentinel_types.meta,
                                     &made[i].handle);
        if (!good)
            return false;
        made[i].count = tp_peek(made[i].words, *(void **)made[i].handle, TENSOR_WORDS);
    }
    return true;
}

static bool find_offset(struct tp_torch_value_places *at)
{
    unsigned found = 0;
    for (size_t w = 1; w < made[0].count && w < made[1].count; w++)
        if (made[0].words[w] == (uint64_t)offsets[0] && made[1].words[w] == (uint64_t)offsets[1]) {
            at->offset = (uint16_t)(w * 8);
            found++;
        }
    return found == 1;
}

/* A word that leads to one that is the address of our memory. */
static bool find_storage(struct tp_torch_value_places *at)
{
    unsigned found = 0;
    for (size_t w = 1; w < made[0].count && w < made[1].count; w++) {
        uint64_t storages[2][STORAGE_WORDS];
        size_t counts[2] = {0};
        for (unsigned i = 0; i < 2; i++)
            if (made[i].words[w] % 8 == 0)
                counts[i] = tp_peek(storages[i], (void *)(uintptr_t)made[i].words[w], STORAGE_WORDS);
        for (size_t s = 1; s < counts[0] && s < counts[1]; s++)
            if (storages[0][s] == (uintptr_t)memory[0] && storages[1][s] == (uintptr_t)memory[1]) {
                at->storage = (uint16_t)(w * 8);
                at->data = (uint16_t)(s * 8);
                found++;
                break; /* who frees the data may be known by the same address, behind */
            }
    }
    return found == 1;
}

/* Behind the element type: type, index, and whether there is one. */
static bool find_device(const struct tp_torch_inputs *inputs, struct tp_torch_value_places *at)
{
    const int32_t expected[DEVICES] = {tp_sentinel_types.cpu, tp_sentinel_types.cpu, tp_sentinel_types.meta};
    at->device = (uint16_t)(inputs->type + 2);
    for (unsigned i = 0; i < DEVICES; i++) {
        const uint8_t *bytes = (const uint8_t *)made[i].words + at->device;
        if (at->device + 3u > made[i].count * 8 || bytes[0] != expected[i] || bytes[2] != 1)
            return false;
    }
    return true;
}

#define OVERLOAD 0x746e69 /* "int", and its end */
static const uint16_t string_bytes[STRINGS] = {32, 8};

/* The observer. */
static struct {
    const struct tp_torch_abi *abi;
    const char *name; /* NULL: seen already */
    const void *watched;
    uint16_t schema, string, outputs[FUNCTION_WORDS];
    unsigned schemas, output_places;
    uint64_t output[FUNCTION_WORDS]; /* the first payload at each place */
    bool schemas_are_texts, counts_are_right, schema_is_right;
} seen;

/* Behind what is as large as a string is said that it is no string; the second string of it is the overload. */
static bool is_schema(const void *schema, const uint64_t *words, size_t said, size_t count, size_t string)
{
    uint64_t overload, text = 0;
    return said < count && (uint8_t)words[said] == 1 && tp_peek(&overload, (const char *)schema + string, 1) == 1 &&
           tp_peek(&text, (void *)(uintptr_t)overload, 1) == 1 && (text & 0xffffffff) == OVERLOAD;
}

static void *on_start(void **ret_context, const void *record_function)
{
    *ret_context = NULL;
    const char *name = seen.abi->name(record_function);
    if (!seen.name || strcmp(name, seen.name) != 0)
        return ret_context;
    seen.name = NULL; /* only the operator itself, not what it calls */
    seen.watched = record_function;
    uint64_t words[FUNCTION_WORDS], first;
    size_t count = tp_peek(words, record_function, FUNCTION_WORDS);
    for (size_t w = 1; w < count; w++)
        if (tp_peek(&first, (void *)(uintptr_t)words[w], 1) == 1 && first == (uintptr_t)name)
            for (size_t i = 0; i < STRINGS && seen.schema != w * 8; i++)
                if (is_schema((void *)(uintptr_t)words[w], words, w + string_bytes[i] / 8, count, string_bytes[i])) {
                    seen.schema = (uint16_t)(w * 8);
                    seen.string = string_bytes[i];
                    seen.schemas++;
                }
    if (seen.schemas == 1)
        seen.schema_is_right =
            !seen.schemas_are_texts ||
            tp_schema_begins_with(tp_torch_pointer(record_function, seen.schema), "aten::transpose.int(");
    seen.counts_are_right = torch.input_count(record_function) == 3 && torch.output_count(record_function) == 1;
    return ret_context;
}

static void on_end(const void *record_function, void *context)
{
    (void)context;
    if (record_function != seen.watched)
        return;
    seen.watched = NULL;
    uint64_t words[FUNCTION_WORDS], value[TP_TORCH_VALUE_BYTES / 8];
    size_t count = tp_peek(words, record_function, FUNCTION_WORDS);
    for (size_t w = 1; w + 2 < count; w++)
        if (words[w + 1] - words[w] == TP_TORCH_VALUE_BYTES && words[w + 2] >= words[w + 1] &&
            tp_peek(value, (void *)(uintptr_t)words[w], TP_COUNT(value)) == TP_COUNT(value) &&
            tp_torch_kind(&seen.abi->inputs, (const char *)value) == TP_TORCH_TENSOR) {
            seen.outputs[seen.output_places] = (uint16_t)(w * 8);
            seen.output[seen.output_places++] = value[0];
        }
}

/* Runs an operator that gives a view of its tensor. */
static bool watch(const struct tp_torch_abi *abi, struct tp_torch_value_places *at)
{
    memset(&seen, 0, sizeof seen);
    seen.abi = abi;
    seen.name = "aten::transpose";
    seen.schemas_are_texts = at->schemas_are_texts;
    void *handle;
    uint64_t observer = tp_torch_abi_add(abi, on_start, on_end, 1, TP_TORCH_NEED_INPUTS | TP_TORCH_NEED_OUTPUTS);
    bool ran = tp_sentinel_transpose(made[2].handle, 0, 1, &handle);
    abi->remove_callback(observer);
    if (!ran)
        return false;
    uint64_t result = (uintptr_t)*(void **)handle;
    tp_sentinel_delete(handle);
    unsigned found = 0;
    for (unsigned i = 0; i < seen.output_places; i++)
        if (seen.output[i] == result) {
            at->outputs = seen.outputs[i];
            found++;
        }
    at->schema = seen.schema;
    at->string = seen.string;
    at->has_schema = (uint16_t)(seen.schema + seen.string);
    return found == 1 && seen.schema_is_right && seen.counts_are_right;
}

/* ATen/core/ivalue.h: tags from None on, as enum tp_value_kind has them. The inputs' calibration has seen that four of
 * them stand so. */
static bool find_tags(const struct tp_torch_inputs *inputs, struct tp_torch_value_places *at)
{
    unsigned tensor = 0;
    while (tensor < TP_TORCH_TAGS && inputs->kinds[tensor] != TP_TORCH_TENSOR)
        tensor++;
    unsigned none = tensor - (TP_VALUE_TENSOR - TP_VALUE_NONE);
    unsigned list = none + TP_VALUE_LIST - TP_VALUE_NONE - !inputs->has_uint;
    at->none = (uint8_t)none;
    at->held = inputs->list_values;
    return tensor >= 1 && list < TP_TORCH_TAGS && inputs->kinds[list] == TP_TORCH_LIST;
}

static const char *find_all(const struct tp_torch_abi *abi, struct tp_torch_value_places *at)
{
    if (!find_names(abi->library) )
        return "it lacks functions that would show them";
    at->schemas_are_texts = tp_schema_attach(abi->library);
    if (!find_tags(&abi->inputs, at))
        return "its values are numbered in another way";
    if (!make_all())
        return "its tensors cannot be made";
    if (!find_offset(at) || !find_storage(at))
        return "the place of its tensors' storage was not found";
    if (!find_device(&abi->inputs, at))
        return "the place of its tensors' device was not found";
    if (!watch(abi, at))
        return "the place of its operators' outputs and schemas was not found";
    at->input_count = torch.input_count;
    at->output_count = torch.output_count;
    return NULL;
}

int tp_torch_calibrate_values(struct tp_torch_abi *abi, struct tp_error *error)
{
    const char *problem = "there is no pipe to look at them with";
    struct tp_torch_value_places at = {0};
    if (tp_peek_begin()) {
        problem = find_all(abi, &at);
        for (size_t i = 0; i < TP_COUNT(made); i++)
            if (made[i].handle)
                tp_sentinel_delete(made[i].handle);
        memset(made, 0, sizeof made);
        tp_peek_end();
    }
    if (problem) {
        tp_error_set(error, "PyTorch", NULL, "execution traces cannot be made of PyTorch %s: %s", abi->version,
                     problem);
        return -ENOTSUP;
    }
    if (!at.schemas_are_texts)
        tp_log(TP_LOG_WARN, "operators' schemas are not known in PyTorch %s", abi->version);
    abi->values = at;
    return 0;
}
