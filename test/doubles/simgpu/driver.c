/* Driver API (libcuda.so.1): what PyTorch, Triton and NVRTC's users need of it. */
#include "sim_cuda.h"
#include "simgpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local CUcontext current[16];
static _Thread_local unsigned depth; /* of contexts that were pushed */

static CUcontext context_now(void)
{
    if (!current[depth] && sim_device_awake(sim_device()))
        return sim_context(sim_device());
    return current[depth];
}

CUresult sim_cuInit(unsigned flags)
{
    (void)flags;
    return sim_device_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* This driver logs nothing. */
CUresult sim_cuLogsRegisterCallback(CUlogsCallback callback, void *data, CUlogsCallbackHandle *handle)
{
    (void)callback, (void)data;
    if (handle)
        *handle = NULL;
    return CUDA_SUCCESS;
}

CUresult sim_cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
    (void)handle;
    return CUDA_SUCCESS;
}

CUresult sim_cuDriverGetVersion(int *version)
{
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetCount(int *count)
{
    *count = sim_device_count();
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal < 0 || ordinal >= sim_device_count() ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(char *name, int room, CUdevice device)
{
    (void)device;
    snprintf(name, (size_t)room, "%s", sim_device_name);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = sim_device_number((int)attribute);
    if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        *value += device;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = sim_device_memory;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    memcpy(uuid->bytes, "simulated gpu\0\0", 16);
    uuid->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = sim_device_awake(device);
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = sim_context(device);
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    return CUDA_SUCCESS;
}

static CUresult use(CUcontext context)
{
    current[depth] = context;
    if (context)
        sim_device_set(sim_context_device(context));
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCurrent(CUcontext *context)
{
    *context = context_now();
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(CUcontext context)
{
    return use(context);
}

CUresult sim_cuCtxPushCurrent_v2(CUcontext context)
{
    if (depth + 1 == sizeof current / sizeof *current)
        return CUDA_ERROR_OUT_OF_MEMORY;
    depth++;
    return use(context);
}

CUresult sim_cuCtxPopCurrent_v2(CUcontext *context)
{
    if (context)
        *context = current[depth];
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    return use(current[depth]);
}

CUresult sim_cuCtxGetDevice(CUdevice *device)
{
    *device = sim_device();
    return context_now() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_cuCtxSynchronize(void)
{
    sim_device_sync();
    return CUDA_SUCCESS;
}

CUresult sim_cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_SUCCESS ? "no error" : "an error of the simulated driver";
    return CUDA_SUCCESS;
}

CUresult sim_cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : error == CUDA_ERROR_NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED"
                                                                                      : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

/* A module is known by the code it was made from, and a function of it by its name, which lives on as the kernel's. */
CUresult sim_cuModuleLoadData(CUmodule *module, const void *code)
{
    *module = (CUmodule)code;
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleLoadDataEx(CUmodule *module, const void *code, unsigned count, CUjit_option *options, void **values)
{
    (void)count, (void)options, (void)values;
    return sim_cuModuleLoadData(module, code);
}

CUresult sim_cuModuleLoad(CUmodule *module, const char *path)
{
    *module = (CUmodule)strdup(path);
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleUnload(CUmodule module)
{
    (void)module;
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    *function = (CUfunction)strdup(name);
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 32 : 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    (void)function, (void)config;
    return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared)
{
    (void)function, (void)shared;
    if (threads < 1)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = 2048 / threads < 32 ? 2048 / threads : 32;
    return CUDA_SUCCESS;
}

CUresult sim_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **arguments, void **more)
{
    (void)arguments, (void)more;
    sim_kernel(sim_stream(stream), (const char *)function, (uint32_t[]){grid_x, grid_y, grid_z},
               (uint32_t[]){block_x, block_y, block_z}, shared);
    return CUDA_SUCCESS;
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments, void **more)
{
    return sim_cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                              config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, arguments, more);
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    *address = (CUdeviceptr)sim_allocate(bytes, SIM_DEVICE);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuMemFree_v2(CUdeviceptr address)
{
    return sim_free((void *)address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemGetInfo_v2(size_t *available, size_t *total)
{
    *total = sim_device_memory;
    *available = sim_device_memory - sim_memory_used(sim_device());
    return CUDA_SUCCESS;
}

CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    sim_copy(sim_stream(stream), (void *)to, from, bytes, 1, 0, 0, true);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    sim_copy(sim_stream(stream), to, (const void *)from, bytes, 1, 0, 0, true);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamSynchronize(CUstream stream)
{
    sim_stream_sync(sim_stream(stream));
    return CUDA_SUCCESS;
}

CUresult sim_cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct sim_allocation found;
    if (!sim_allocation_of((const void *)address, &found))
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)value = address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = found.memory == SIM_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = found.device;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sim_cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *result)
{
    (void)version, (void)flags;
    static const struct {
        const char *old, *now;
    } names[] = {SIM_DRIVER_NAMES};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].old, name) == 0) {
            name = names[i].now;
            break;
        }
    void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *function = self ? dlsym(self, name) : NULL;
    if (result)
        *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Undocumented tables, which only NVIDIA's own libraries ask for. */
CUresult sim_cuGetExportTable(const void **table, const CUuuid *id)
{
    (void)id;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
