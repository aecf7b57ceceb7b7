/*
 * sentinels.h: the tensors of known shape that calibration has PyTorch make, and the few operators that it runs on them
 * while an observer of ours looks. Where PyTorch's C shims have all that is needed (from 2.10 on) these are used: an
 * exception comes back as false. Before, the operators' own C++ functions are called (catch.h); their signatures are part
 * of the names that are looked up, so that another signature is a missing function.
 *
 * A handle is the address of an at::Tensor, whose first word is the address of the TensorImpl.
 */
#ifndef TP_TORCH_SENTINELS_H
#define TP_TORCH_SENTINELS_H

#include "../../agent/base.h"

/* What is there to choose from; the numbers are PyTorch's. Known after tp_sentinels_find. */
struct tp_sentinel_types {
    int32_t cpu, meta;
    int32_t float32, float64, int16, complex64;
};
extern struct tp_sentinel_types tp_sentinel_types;

/* Before all else. False: this PyTorch lacks functions that are needed. `library` is for dlsym. */
bool tp_sentinels_find(void *library);

/* All of these: false and *ret_handle NULL where PyTorch refused. */
bool tp_sentinel_empty(size_t dimensions, const int64_t *sizes, const int64_t *strides, int32_t type, int32_t device,
                       void **ret_handle);
/* On the processor, over memory of the caller's. */
bool tp_sentinel_from_blob(void *memory, size_t dimensions, const int64_t *sizes, const int64_t *strides, int64_t offset,
                           void **ret_handle);
bool tp_sentinel_sparse(const int64_t *sizes, size_t dimensions, void **ret_handle); /* on the processor, in COO layout */
/* What torch.func.functionalize wraps a tensor into. */
bool tp_sentinel_functional(void *tensor, void **ret_handle);
void tp_sentinel_delete(void *handle);

/* The operators of these names, of the overload "int" for transpose, else of the one without a name. */
bool tp_sentinel_transpose(void *tensor, int64_t first, int64_t second, void **ret_handle);
bool tp_sentinel_dropout(void *tensor, double probability, bool train, void **ret_handle);
bool tp_sentinel_permute(void *tensor, const int64_t *order, size_t dimensions, void **ret_handle);
bool tp_sentinel_stack(void *const *tensors, size_t count, int64_t dimension, void **ret_handle);

#endif
