/*
 * peek.h: memory that may not be there, read by the kernel, so that a wrong guess about PyTorch's objects is no crash.
 * For calibration, on one thread.
 */
#ifndef TP_TORCH_PEEK_H
#define TP_TORCH_PEEK_H

#include "../../agent/base.h"

bool tp_peek_begin(void); /* false: there is no pipe for it */
void tp_peek_end(void);

/* Up to `words` words; how many could be read. */
size_t tp_peek(uint64_t *to, const void *from, size_t words);

#endif
