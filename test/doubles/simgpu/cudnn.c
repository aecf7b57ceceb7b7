/* cuDNN: handles; the rest stands in cudnn.def. */
#include "library.h"
#include "sim_cudnn.h"

#include <stdlib.h>

cudnnStatus_t sim_cudnnCreate(cudnnHandle_t *handle)
{
    *handle = calloc(1, sizeof(struct sim_handle));
    return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t sim_cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t sim_cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    ((struct sim_handle *)handle)->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t sim_cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
    *stream = (cudaStream_t)(uintptr_t)((struct sim_handle *)handle)->stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t sim_cudnnGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION ? CUDNN_MAJOR : type == MINOR_VERSION ? CUDNN_MINOR : CUDNN_PATCHLEVEL;
    return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion(void)
{
    return CUDART_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "an error of the simulated cuDNN";
}

void cudnnGetLastErrorString(char *message, size_t room)
{
    if (room)
        *message = 0;
}
