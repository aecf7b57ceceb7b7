/* Runtime API: memory, copies and sets. */
#include "sim_cudart.h"
#include "simgpu.h"

#include <string.h>

static cudaError_t allocate(void **address, size_t bytes, enum sim_memory memory)
{
    *address = bytes ? sim_allocate(bytes, memory) : NULL;
    return *address || !bytes ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t give_back(void *address)
{
    return !address || sim_free(address) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t sim_cudaMalloc(void **address, size_t bytes)
{
    return allocate(address, bytes, SIM_DEVICE);
}

cudaError_t sim_cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return allocate(address, bytes, SIM_DEVICE);
}

cudaError_t sim_cudaMallocManaged(void **address, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(address, bytes, SIM_MANAGED);
}

cudaError_t sim_cudaHostAlloc(void **address, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(address, bytes, SIM_PINNED);
}

cudaError_t sim_cudaMallocHost(void **address, size_t bytes)
{
    return allocate(address, bytes, SIM_PINNED);
}

cudaError_t sim_cudaFree(void *address)
{
    sim_context(sim_device()); /* cudaFree(0) is how many programs make one */
    return give_back(address);
}

cudaError_t sim_cudaFreeAsync(void *address, cudaStream_t stream)
{
    sim_clock_wait(sim_stream(stream)->ready);
    return give_back(address);
}

cudaError_t sim_cudaFreeHost(void *address)
{
    return give_back(address);
}

cudaError_t sim_cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
    (void)flags;
    return sim_register(address, bytes, SIM_PINNED) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t sim_cudaHostUnregister(void *address)
{
    return sim_unregister(address) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}

cudaError_t sim_cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    (void)flags;
    *device = host;
    return sim_memory_of(host) == SIM_PAGEABLE ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t sim_cudaMemGetInfo(size_t *available, size_t *total)
{
    sim_context(sim_device());
    *total = sim_device_memory;
    *available = sim_device_memory - sim_memory_used(sim_device());
    return cudaSuccess;
}

cudaError_t sim_cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    struct sim_allocation found;
    void *pointer = (void *)(uintptr_t)address;
    if (!sim_allocation_of(address, &found)) {
        *attributes = (struct cudaPointerAttributes){
            .type = cudaMemoryTypeUnregistered, .device = cudaInvalidDeviceId, .hostPointer = pointer};
        return cudaSuccess;
    }
    *attributes = (struct cudaPointerAttributes){
        .type = found.memory == SIM_DEVICE ? cudaMemoryTypeDevice
                : found.memory == SIM_MANAGED ? cudaMemoryTypeManaged : cudaMemoryTypeHost,
        .device = found.device,
        .devicePointer = pointer,
        .hostPointer = found.memory == SIM_DEVICE ? NULL : pointer,
    };
    return cudaSuccess;
}

static cudaError_t copy(void *to, const void *from, size_t bytes, cudaStream_t stream, bool async)
{
    if (bytes)
        sim_copy(sim_stream(stream), to, from, bytes, 1, 0, 0, async);
    return cudaSuccess;
}

cudaError_t sim_cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    return copy(to, from, bytes, NULL, false);
}

cudaError_t sim_cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    return copy(to, from, bytes, stream, true);
}

cudaError_t sim_cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    (void)to_device, (void)from_device;
    return copy(to, from, bytes, NULL, false);
}

cudaError_t sim_cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream)
{
    (void)to_device, (void)from_device;
    return copy(to, from, bytes, stream, true);
}

cudaError_t sim_cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                                  enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    if (width > to_pitch || width > from_pitch)
        return cudaErrorInvalidPitchValue;
    sim_copy(sim_stream(stream), to, from, width, height, to_pitch, from_pitch, true);
    return cudaSuccess;
}

cudaError_t sim_cudaMemset(void *to, int value, size_t bytes)
{
    sim_set(sim_stream(NULL), to, value, bytes, false);
    return cudaSuccess;
}

cudaError_t sim_cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    sim_set(sim_stream(stream), to, value, bytes, true);
    return cudaSuccess;
}

/* Pools: each device has one, which keeps nothing. */
cudaError_t sim_cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    *pool = (cudaMemPool_t)sim_context(device);
    return cudaSuccess;
}

cudaError_t sim_cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    bool in_use = attribute == cudaMemPoolAttrReservedMemCurrent || attribute == cudaMemPoolAttrUsedMemCurrent;
    *(uint64_t *)value = in_use ? sim_memory_used(sim_context_device(pool)) : 0;
    return cudaSuccess;
}

cudaError_t sim_cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return cudaSuccess;
}

cudaError_t sim_cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t count)
{
    (void)pool, (void)access, (void)count;
    return cudaSuccess;
}

cudaError_t sim_cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    (void)pool, (void)keep;
    return cudaSuccess;
}
