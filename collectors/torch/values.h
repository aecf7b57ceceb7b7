/*
 * values.h: what an operator is given and gives back, into records for execution traces (struct tp_values). Reads
 * memory and writes ours; a schema's text apart (schema.h), nothing of PyTorch is called but what counts inputs and
 * outputs.
 */
#ifndef TP_TORCH_VALUES_H
#define TP_TORCH_VALUES_H

#include "../../agent/base.h"

struct tp_thread;
struct tp_torch_abi;

/* Finds out whether they can be read here; says so in one line where they cannot. Inputs can. */
bool tp_values_attach(struct tp_torch_abi *abi);

/* Behind its begin, and before its end, by the thread that records those (NULL: none); time is that of either. */
void tp_values_given(const struct tp_torch_abi *abi, struct tp_thread *thread, const void *record_function,
                     uint64_t time);
void tp_values_returned(const struct tp_torch_abi *abi, struct tp_thread *thread, const void *record_function,
                        uint64_t time);

#endif
