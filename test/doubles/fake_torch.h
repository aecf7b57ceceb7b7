/*
 * fake_torch.h: stands in for libtorch_cpu.so, with the names that the agent calls and the behaviour that it counts on, in C.
 * FAKE_TORCH in the environment picks how it deviates: shifted (members lie elsewhere), no_ids, no_sequence, no_vtable,
 * wrong_name, silent (callbacks are never called), huge (the object is larger): there nothing is observed. And, where objects
 * can be observed but not made by others: hidden_counter (ids come from a counter that is not found), nameless (an operator's
 * name is elsewhere), restless (no two objects are alike), bound (destroying does not call what others see as the end). And, of
 * what operators are given: no_inputs (the object does not tell), no_tensors (none can be made), other_sizes, no_strides,
 * other_types, other_keys, other_flags, other_tags, other_lists (kept in another way).
 */
#ifndef FAKE_TORCH_H
#define FAKE_TORCH_H

#include <stdbool.h>
#include <stdint.h>

bool fake_torch_deviates(const char *how);

/* One operator: begin, body, end, with every callback that is registered for its scope. */
void fake_torch_run(const char *name, uint8_t scope, int64_t sequence, uint64_t forward_thread, void (*body)(void *),
                    void *argument);

int fake_torch_callbacks(void); /* registered now */

#endif
