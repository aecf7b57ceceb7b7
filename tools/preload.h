/* preload.h: where libtprof.so is, and how a program gets it. */
#ifndef TP_PRELOAD_H
#define TP_PRELOAD_H

#include "../agent/base.h"
#include "../agent/error.h"

#define TP_PRELOAD_PATH 4096

/* Beside the command (a build folder), or in ../lib of it (installed). 0, or -errno with error set. */
int tp_preload_find(char path[TP_PRELOAD_PATH], struct tp_error *error);

/* Puts the library in front of LD_PRELOAD in this process's environment, and keeps what is there. Likewise. */
int tp_preload_set(const char *path, struct tp_error *error);

#endif
