/*
 * tensor.h: the inputs of an operator into records (struct tp_inputs): sizes, strides and types of tensors, values of
 * numbers. Reads memory and writes ours; nothing else.
 */
#ifndef TP_TORCH_TENSOR_H
#define TP_TORCH_TENSOR_H

#include "../../agent/record.h"
#include "../../agent/thread.h"
#include "abi.h"

/* Finds out whether inputs can be read here; says so in one line where they cannot. */
bool tp_tensor_attach(struct tp_torch_abi *abi);

/* The flags of a tensor's sizes and strides (NULL: none) in a record. */
static inline unsigned tp_tensor_flags(const int64_t *sizes, const int64_t *strides, size_t dimensions)
{
    uint64_t bits = 0, expected = 1;
    bool contiguous = true;
    for (size_t i = dimensions; i-- > 0;) {
        uint64_t size = (uint64_t)sizes[i];
        bits |= size;
        if (strides)
            contiguous &= (uint64_t)strides[i] == expected;
        expected *= size > 1 ? size : 1;
    }
    for (size_t i = 0; strides && !contiguous && i < dimensions; i++)
        bits |= (uint64_t)strides[i];
    return (bits >> 32 ? TP_INPUT_WIDE : 0u) | (!strides ? TP_INPUT_UNSTRIDED : contiguous ? TP_INPUT_CONTIGUOUS : 0u);
}

/*
 * Writes the records of an operator's inputs to at, of which `room` words may be used; their times are set later
 * (tp_tensor_stamp). Returns how many words they take: 0 if the operator has no inputs, more than room if they did not
 * fit (what lies at `at` is then of no use). Never more than TP_TENSOR_WORDS_MAX. Their key is that of record_function.
 */
unsigned tp_tensor_write(const struct tp_torch_inputs *abi, const void *record_function, const struct tp_torch_values *values,
                         uint64_t *at, size_t room);

#define TP_TENSOR_WORDS_MAX (TP_INPUTS_PARTS_MAX * TP_RECORD_MAX_WORDS)

/*
 * The same where the next record of the thread goes, behind `ahead` words that its begin needs: space that nobody reads
 * before it is committed. Only the count matters if the begin then gets another place.
 */
unsigned tp_tensor_write_ahead(const struct tp_torch_inputs *abi, const void *record_function,
                               const struct tp_torch_values *values, struct tp_thread *thread, unsigned ahead);

static inline void tp_tensor_stamp(uint64_t *at, unsigned words, uint64_t time)
{
    for (const uint64_t *end = at + words; at < end; at += tp_record_words(*at))
        at[1] = time;
}

#endif
