/* library.h: what cuBLAS, cuDNN and NCCL share. */
#pragma once

#include "simgpu.h"

/* The first of what a handle points at. */
struct sim_handle {
    const void *stream;
};

/* A kernel that a library launches: to CUPTI it is a call of cudaLaunchKernelExC, of the runtime that is linked into the library. */
int sim_library_kernel(const void *stream, const char *name, uint32_t blocks, uint32_t threads);
/* One that does something: now, or at each replay where it is captured. */
int sim_library_compute(const void *stream, const char *name, uint32_t blocks, uint32_t threads, void (*work)(void *),
                        const void *argument, size_t bytes);

/* What exports.py makes of a word. */
enum { SIM_BYTES = 1024 };
int sim_make(void **descriptor);
int sim_end(void *descriptor);
#define SIM_ONE_ALGORITHM(count, results) (*(count) = 1, (results)[0] = (__typeof__(*(results))){.algo = 1, .determinism = 1}, 0)
