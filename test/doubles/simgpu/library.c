#include "library.h"

#include <cupti_runtime_cbid.h>
#include <stdlib.h>

int sim_library_kernel(const void *stream, const char *name, uint32_t blocks, uint32_t threads)
{
    return sim_library_compute(stream, name, blocks, threads, NULL, NULL, 0);
}

int sim_library_compute(const void *stream, const char *name, uint32_t blocks, uint32_t threads, void (*work)(void *),
                        const void *argument, size_t bytes)
{
    struct sim_call call = {
        .domain = SIM_RUNTIME, .name = "cudaLaunchKernelExC", .id = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060};
    if (sim_call_begins(&call))
        sim_kernel_work(sim_stream(stream), name, (uint32_t[]){blocks, 1, 1}, (uint32_t[]){threads, 1, 1}, 0, work, argument, bytes);
    return sim_call_ends(&call);
}

int sim_make(void **descriptor)
{
    *descriptor = calloc(1, SIM_BYTES);
    return *descriptor == NULL;
}

int sim_end(void *descriptor)
{
    free(descriptor);
    return 0;
}
