/*
 * abi.h: all knowledge of PyTorch's memory layout and of the mangled names that are called. Filled and checked once, at
 * attach, by driving the real code with sentinels (calibrate.c); nothing depends on a version number.
 */
#ifndef TP_TORCH_ABI_H
#define TP_TORCH_ABI_H

#include <string.h>

#include "../../agent/base.h"
#include "../../agent/error.h"
#include "abi_inputs.h"
#include "abi_values.h"

/* at::RecordFunctionCallback (ATen/record_function.h), passed by value. */
struct tp_record_function_callback {
    void *(*start)(void **ret_context, const void *record_function);
    void (*end)(const void *record_function, void *context);
    double sampling_probability;
    uint8_t scopes[10];
    uint8_t needs_inputs, needs_outputs, needs_ids;
};

/* Offsets in at::RecordFunction; 0: not known. */
struct tp_record_function_offsets {
    uint16_t sequence, id, forward_thread;
};

struct tp_torch_abi {
    char version[32];
    void *library; /* for dlsym */
    uint64_t (*add_global_callback)(struct tp_record_function_callback);
    void (*remove_callback)(uint64_t);
    bool (*has_global_callbacks)(void);
    const char *(*name)(const void *record_function);
    const char *(*overload_name)(const void *record_function); /* NULL: not exported here */
    bool (*is_async)(const void *record_function);
    uint64_t (*current_thread_id)(void);
    struct tp_record_function_offsets at;
    struct tp_torch_inputs inputs;
    struct tp_torch_value_places values;
    uint32_t needs; /* enum tp_torch_need: what our observation asks for */
};

/* On the thread that loaded PyTorch, before any operator ran. -errno with error set: nothing of ours stays registered. */
int tp_torch_abi_attach(struct tp_torch_abi *abi, struct tp_error *error);

/* Finds abi->at; the functions and the library are set. -ENOTSUP with error set. */
int tp_torch_calibrate(struct tp_torch_abi *abi, struct tp_error *error);

/* Finds abi->inputs. -ENOTSUP with error set: they are not known, and all else goes on. */
int tp_torch_calibrate_inputs(struct tp_torch_abi *abi, struct tp_error *error);

/* Finds abi->values; abi->inputs is set. -ENOTSUP with error set: they are not known, and all else goes on. */
int tp_torch_calibrate_values(struct tp_torch_abi *abi, struct tp_error *error);

enum tp_torch_need { TP_TORCH_NEED_IDS = 1, TP_TORCH_NEED_INPUTS = 2, TP_TORCH_NEED_OUTPUTS = 4 };

uint64_t tp_torch_abi_add(const struct tp_torch_abi *abi, void *(*start)(void **, const void *),
                          void (*end)(const void *, void *), uint32_t scopes, uint32_t needs);

static inline uint64_t tp_torch_word(const void *record_function, uint16_t offset)
{
    uint64_t word;
    memcpy(&word, (const char *)record_function + offset, sizeof word);
    return word;
}

static inline int64_t tp_torch_sequence(const struct tp_torch_abi *abi, const void *record_function)
{
    return (int64_t)tp_torch_word(record_function, abi->at.sequence);
}

static inline uint64_t tp_torch_id(const struct tp_torch_abi *abi, const void *record_function)
{
    return tp_torch_word(record_function, abi->at.id);
}

static inline uint64_t tp_torch_forward_thread(const struct tp_torch_abi *abi, const void *record_function)
{
    return abi->at.forward_thread ? tp_torch_word(record_function, abi->at.forward_thread) : 0;
}

/* The forward thread's place is inferred from its neighbours: the first backward function shows whether it holds a
 * thread number; if not, it is not read any more, and one line says so. */
void tp_torch_abi_check_backward(struct tp_torch_abi *abi, const void *record_function);

#endif
