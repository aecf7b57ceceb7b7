/* Runtime API: devices, versions, errors, and the way to the driver. */
#include "sim_cudart.h"
#include "simgpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { VERSION = CUDART_VERSION };

cudaError_t sim_cudaGetDeviceCount(int *count)
{
    *count = sim_device_count();
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t sim_cudaGetDevice(int *device)
{
    *device = sim_device();
    return cudaSuccess;
}

cudaError_t sim_cudaSetDevice(int device)
{
    if (!sim_device_set(device))
        return cudaErrorInvalidDevice;
    sim_context(device);
    return cudaSuccess;
}

cudaError_t sim_cudaInitDevice(int device, unsigned flags, unsigned more)
{
    (void)flags, (void)more;
    if (device < 0 || device >= sim_device_count())
        return cudaErrorInvalidDevice;
    sim_context(device);
    return cudaSuccess;
}

cudaError_t sim_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    *value = sim_device_number(attribute);
    if (attribute == cudaDevAttrPciBusId)
        *value += device;
    return device < 0 || device >= sim_device_count() ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t sim_cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    if (device < 0 || device >= sim_device_count())
        return cudaErrorInvalidDevice;
#define NUMBER(attribute) sim_device_number(cudaDevAttr##attribute)
    *properties = (struct cudaDeviceProp){
        .totalGlobalMem = sim_device_memory,
        .sharedMemPerBlock = (size_t)NUMBER(MaxSharedMemoryPerBlock),
        .sharedMemPerMultiprocessor = (size_t)NUMBER(MaxSharedMemoryPerMultiprocessor),
        .sharedMemPerBlockOptin = (size_t)NUMBER(MaxSharedMemoryPerBlockOptin),
        .regsPerBlock = NUMBER(MaxRegistersPerBlock),
        .regsPerMultiprocessor = NUMBER(MaxRegistersPerMultiprocessor),
        .warpSize = NUMBER(WarpSize),
        .maxThreadsPerBlock = NUMBER(MaxThreadsPerBlock),
        .maxThreadsPerMultiProcessor = NUMBER(MaxThreadsPerMultiProcessor),
        .maxBlocksPerMultiProcessor = NUMBER(MaxBlocksPerMultiprocessor),
        .maxThreadsDim = {NUMBER(MaxBlockDimX), NUMBER(MaxBlockDimY), NUMBER(MaxBlockDimZ)},
        .maxGridSize = {NUMBER(MaxGridDimX), NUMBER(MaxGridDimY), NUMBER(MaxGridDimZ)},
        .totalConstMem = (size_t)NUMBER(TotalConstantMemory),
        .major = NUMBER(ComputeCapabilityMajor),
        .minor = NUMBER(ComputeCapabilityMinor),
        .multiProcessorCount = NUMBER(MultiProcessorCount),
        .concurrentKernels = NUMBER(ConcurrentKernels),
        .ECCEnabled = NUMBER(EccEnabled),
        .pciBusID = NUMBER(PciBusId) + device,
        .asyncEngineCount = NUMBER(AsyncEngineCount),
        .unifiedAddressing = NUMBER(UnifiedAddressing),
        .memoryBusWidth = NUMBER(GlobalMemoryBusWidth),
        .l2CacheSize = NUMBER(L2CacheSize),
        .streamPrioritiesSupported = NUMBER(StreamPrioritiesSupported),
        .managedMemory = NUMBER(ManagedMemory),
        .cooperativeLaunch = NUMBER(CooperativeLaunch),
        .memoryPoolsSupported = NUMBER(MemoryPoolsSupported),
        .canMapHostMemory = 1,
    };
#undef NUMBER
    snprintf(properties->name, sizeof properties->name, "%s", sim_device_name);
    memcpy(properties->uuid.bytes, "simulated gpu", 13);
    properties->uuid.bytes[15] = (char)device;
    return cudaSuccess;
}

cudaError_t sim_cudaDeviceGetPCIBusId(char *text, int room, int device)
{
    snprintf(text, (size_t)room, "0000:%02x:00.0", (unsigned)(sim_device_number(cudaDevAttrPciBusId) + device));
    return cudaSuccess;
}

cudaError_t sim_cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return cudaSuccess;
}

cudaError_t sim_cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t sim_cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void)flags;
    return peer == sim_device() ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t sim_cudaDeviceSynchronize(void)
{
    sim_device_sync();
    return cudaSuccess;
}

cudaError_t sim_cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value)
{
    (void)device, (void)attribute;
    *(uint64_t *)value = 0; /* graphs allocate nothing here */
    return cudaSuccess;
}

cudaError_t sim_cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value)
{
    (void)device, (void)attribute, (void)value;
    return cudaSuccess;
}

cudaError_t sim_cudaDriverGetVersion(int *version)
{
    *version = VERSION;
    return cudaSuccess;
}

cudaError_t sim_cudaRuntimeGetVersion(int *version)
{
    *version = VERSION;
    return cudaSuccess;
}

cudaError_t sim_cudaProfilerStart(void)
{
    return cudaSuccess;
}

cudaError_t sim_cudaProfilerStop(void)
{
    return cudaSuccess;
}

cudaError_t sim_cudaGetLastError(void)
{
    sim_call_now()->answer = true;
    return (cudaError_t)sim_last_error(true);
}

cudaError_t sim_cudaPeekAtLastError(void)
{
    sim_call_now()->answer = true;
    return (cudaError_t)sim_last_error(false);
}

/* A program may print these: the few that the simulated GPU returns by itself. */
static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
#define ERROR(name, text) {name, #name, text}
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorNotSupported, "operation not supported"),
#undef ERROR
};

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            return errors[i].text;
    return "an error that was asked for";
}

cudaError_t sim_cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags,
                                                 enum cudaDriverEntryPointQueryResult *result)
{
    (void)version, (void)flags;
    typedef int get_address(const char *, void **, int, uint64_t, int *);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    get_address *get = driver ? (get_address *)(uintptr_t)dlsym(driver, "cuGetProcAddress_v2") : NULL;
    *function = NULL;
    if (get)
        get(name, function, VERSION, 0, NULL);
    if (result)
        *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
