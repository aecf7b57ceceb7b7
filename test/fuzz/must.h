/* must.h: what a fuzz target promises. A broken promise is a crash, which every engine reports. */
#ifndef TP_FUZZ_MUST_H
#define TP_FUZZ_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include "../../agent/base.h"

#define must(condition) ((condition) ? (void)0 : broken(__FILE__, __LINE__, #condition))

static inline _Noreturn void broken(const char *file, int line, const char *promise)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, promise);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
