/* Runtime API: kernels and what registers them. */
#include "sim_cudart.h"
#include "simgpu.h"

#include <stdlib.h>
#include <string.h>

enum { NESTED = 64 };

/* What nvcc's code calls at load and at a launch; no header declares these. */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, uint3 *thread, uint3 *block,
                            dim3 *block_dim, dim3 *grid_dim, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes, int constant,
                       int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream);

struct configuration {
    dim3 grid, block;
    size_t shared;
    void *stream;
};

static _Thread_local struct configuration pushed[NESTED];
static _Thread_local unsigned depth;

void **__cudaRegisterFatBinary(void *binary)
{
    void **handle = malloc(sizeof *handle);
    *handle = binary;
    return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    free(handle);
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, uint3 *thread, uint3 *block,
                            dim3 *block_dim, dim3 *grid_dim, int *warp)
{
    (void)handle, (void)device, (void)limit, (void)thread, (void)block, (void)block_dim, (void)grid_dim, (void)warp;
    sim_function_add(host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes, int constant,
                       int global)
{
    (void)handle, (void)device, (void)name, (void)external, (void)constant, (void)global;
    sim_variable_add(host, bytes);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
    if (depth == NESTED)
        return 1;
    pushed[depth++] = (struct configuration){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (!depth)
        return cudaErrorMissingConfiguration;
    const struct configuration *last = &pushed[--depth];
    *grid = last->grid;
    *block = last->block;
    *shared = last->shared;
    *(void **)stream = last->stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    *kernel = (cudaKernel_t)function;
    return cudaSuccess;
}

cudaError_t sim_cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    return __cudaGetKernel(kernel, function);
}

static cudaError_t launch(const void *function, dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    const char *name = sim_function_name(function);
    if (!name)
        return cudaErrorInvalidDeviceFunction;
    if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z || block.x * block.y * block.z > 1024)
        return cudaErrorInvalidConfiguration;
    sim_kernel(sim_stream(stream), name, (uint32_t[]){grid.x, grid.y, grid.z}, (uint32_t[]){block.x, block.y, block.z},
               (uint32_t)shared);
    return cudaSuccess;
}

cudaError_t sim_cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
    (void)arguments;
    return launch(function, grid, block, shared, stream);
}

/* To CUPTI this is cudaLaunchKernel. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel((const void *)kernel, grid, block, arguments, shared, stream);
}

cudaError_t sim_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
    (void)arguments;
    return launch(function, config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
}

cudaError_t sim_cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                            cudaStream_t stream)
{
    (void)arguments;
    return launch(function, grid, block, shared, stream);
}

cudaError_t sim_cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    sim_host(sim_stream(stream), function, argument);
    return cudaSuccess;
}

cudaError_t sim_cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *argument, unsigned flags)
{
    struct sim_stream *on = sim_stream(stream);
    if (flags || on->capture)
        return cudaErrorInvalidValue;
    sim_clock_wait(on->ready);
    function(stream, cudaSuccess, argument);
    return cudaSuccess;
}

cudaError_t sim_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    if (!sim_function_name(function))
        return cudaErrorInvalidDeviceFunction;
    *attributes = (struct cudaFuncAttributes){
        .maxThreadsPerBlock = 1024, .numRegs = 32, .ptxVersion = 80, .binaryVersion = 80, .maxDynamicSharedSizeBytes = 49152};
    return cudaSuccess;
}

cudaError_t sim_cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    (void)attribute, (void)value;
    return sim_function_name(function) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t sim_cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int device)
{
    (void)device;
    return sim_cudaFuncSetAttribute((const void *)kernel, attribute, value);
}

cudaError_t sim_cudaFuncGetName(const char **name, const void *function)
{
    *name = sim_function_name(function);
    return *name ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t sim_cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    *function = (cudaFunction_t)symbol;
    return sim_function_name(symbol) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t sim_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                       size_t shared, unsigned flags)
{
    (void)function, (void)shared, (void)flags;
    if (threads < 1)
        return cudaErrorInvalidValue;
    *blocks = 2048 / threads < 32 ? 2048 / threads : 32;
    return cudaSuccess;
}

cudaError_t sim_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads, size_t shared)
{
    return sim_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

/* A library of kernels is known by the code it was made from, and a kernel of it by its name. */
cudaError_t sim_cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *options, void **values,
                                    unsigned count, enum cudaLibraryOption *library_options, void **library_values,
                                    unsigned library_count)
{
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    *library = (cudaLibrary_t)code;
    return cudaSuccess;
}

cudaError_t sim_cudaLibraryUnload(cudaLibrary_t library)
{
    (void)library;
    return cudaSuccess;
}

cudaError_t sim_cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    (void)library;
    char *own = strdup(name); /* the kernel itself, for the life of the process */
    sim_function_add(own, own);
    *kernel = (cudaKernel_t)own;
    return cudaSuccess;
}

cudaError_t sim_cudaGetSymbolAddress(void **address, const void *symbol)
{
    size_t bytes;
    *address = sim_variable(symbol, &bytes);
    return *address ? cudaSuccess : cudaErrorInvalidSymbol;
}

cudaError_t sim_cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    return sim_variable(symbol, bytes) ? cudaSuccess : cudaErrorInvalidSymbol;
}

cudaError_t sim_cudaMemcpyToSymbol(const void *symbol, const void *from, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
    (void)kind;
    size_t bytes;
    char *to = sim_variable(symbol, &bytes);
    if (!to || offset > bytes || count > bytes - offset)
        return cudaErrorInvalidSymbol;
    sim_copy(sim_stream(NULL), to + offset, from, count, 1, 0, 0, false);
    return cudaSuccess;
}
