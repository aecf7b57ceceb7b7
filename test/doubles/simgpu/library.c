#include "library.h"

#include <cupti_runtime_cbid.h>
#include <stdlib.h>

int sim_library_kernel(const void *stream, const char *name, uint32_t blocks, uint32_t threads)
{
    struct sim_call call = {
        .domain = SIM_RUNTIME, .name = "cudaLaunchKernelExC", .id = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060};
    if (sim_call_begins(&call))
        sim_kernel(sim_stream(stream), name, (uint32_t[]){blocks, 1, 1}, (uint32_t[]){threads, 1, 1}, 0);
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
