/* fake_tensors.h: what operators of the fake libtorch are given. */
#ifndef FAKE_TENSORS_H
#define FAKE_TENSORS_H

#include <stddef.h>
#include <stdint.h>

struct fake_value { /* c10::IValue */
    uint64_t payload, tag;
};

/* A tensor, then one value of each tag, those of tags that hold objects with an address that is none. */
const struct fake_value *fake_values(size_t *ret_count);

/* Like fake_torch_run, for an operator that is given these. */
void fake_torch_run_given(const char *name, const struct fake_value *values, size_t count);

#endif
