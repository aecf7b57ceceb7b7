/*
 * dso.h: libraries that are loaded already. Python opens PyTorch's with RTLD_LOCAL, so RTLD_NEXT does not see them: the
 * path is found among the loaded objects, and opened again without loading anything.
 */
#ifndef TP_DSO_H
#define TP_DSO_H

#include "base.h"

/* Handle for dlsym of the loaded library whose file name begins with `name` ("libtorch_cpu.so"); NULL: it is not loaded. */
void *tp_dso_open(const char *name);

/* The address of a function that a loaded library exports, from the library's own tables: the loader's functions need
 * memory, and where there is none the program's call must still reach the function whose name we took. NULL: not found. */
void *tp_dso_find(const char *library, const char *symbol);

#endif
