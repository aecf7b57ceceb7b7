/* NCCL: processes of this machine meet in shared memory and exchange real numbers; each call is a kernel on its stream. */
#include "library.h"
#include "sim_nccl.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum { PIECE = 1 << 20, THREADS = 640, BLOCKS = 24 };

struct meeting {
    pthread_barrier_t all;
    int made;
};

struct ncclComm {
    int rank, count, device;
    ncclUniqueId id;
    struct meeting *meeting;
    char *pieces; /* one of each rank */
    size_t bytes;
};

static ncclResult_t open_meeting(struct ncclComm *comm)
{
    char name[64], *to = name + sprintf(name, "/simgpu-");
    for (int i = 0; i < 16; i++)
        to += sprintf(to, "%02x", (unsigned char)comm->id.internal[i]);
    comm->bytes = sizeof(struct meeting) + (size_t)comm->count * PIECE;
    int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    bool first = file >= 0;
    for (int tries = 0; file < 0 && tries < 1000; tries++) {
        file = shm_open(name, O_RDWR, 0600);
        usleep(file < 0 ? 1000 : 0);
    }
    if (file < 0 || ftruncate(file, (off_t)comm->bytes))
        return ncclSystemError;
    comm->meeting = mmap(NULL, comm->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (comm->meeting == MAP_FAILED)
        return ncclSystemError;
    comm->pieces = (char *)(comm->meeting + 1);
    if (first) {
        pthread_barrierattr_t shared;
        pthread_barrierattr_init(&shared);
        pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&comm->meeting->all, &shared, (unsigned)comm->count);
        __atomic_store_n(&comm->meeting->made, 1, __ATOMIC_RELEASE);
    }
    while (!__atomic_load_n(&comm->meeting->made, __ATOMIC_ACQUIRE))
        usleep(100);
    pthread_barrier_wait(&comm->meeting->all);
    if (first)
        shm_unlink(name);
    return ncclSuccess;
}

static ncclResult_t join(ncclComm_t *to, int count, ncclUniqueId id, int rank)
{
    struct ncclComm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return ncclSystemError;
    comm->rank = rank;
    comm->count = count;
    comm->device = sim_device();
    comm->id = id;
    *to = comm;
    return open_meeting(comm);
}

ncclResult_t sim_ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t sim_ncclGetUniqueId(ncclUniqueId *id)
{
    return getrandom(id, sizeof *id, 0) == (ssize_t)sizeof *id ? ncclSuccess : ncclSystemError;
}

ncclResult_t sim_ncclCommInitRank(ncclComm_t *comm, int count, ncclUniqueId id, int rank)
{
    return join(comm, count, id, rank);
}

ncclResult_t sim_ncclCommInitRankConfig(ncclComm_t *comm, int count, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    (void)config;
    return join(comm, count, id, rank);
}

ncclResult_t sim_ncclCommInitRankScalable(ncclComm_t *comm, int count, int rank, int id_count, ncclUniqueId *ids, ncclConfig_t *config)
{
    (void)id_count, (void)config;
    return join(comm, count, ids[0], rank);
}

static ncclResult_t leave(ncclComm_t comm)
{
    munmap(comm->meeting, comm->bytes);
    free(comm);
    return ncclSuccess;
}

ncclResult_t sim_ncclCommFinalize(ncclComm_t comm)
{
    (void)comm;
    return ncclSuccess;
}

ncclResult_t sim_ncclCommDestroy(ncclComm_t comm)
{
    return leave(comm);
}

ncclResult_t sim_ncclCommAbort(ncclComm_t comm)
{
    return leave(comm);
}

ncclResult_t sim_ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm->count;
    return ncclSuccess;
}

ncclResult_t sim_ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t sim_ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    *device = comm->device;
    return ncclSuccess;
}

ncclResult_t sim_ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    (void)comm;
    *error = ncclSuccess;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t error)
{
    return error == ncclSuccess ? "no error" : "an error of the simulated NCCL";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

/* A call is done when it is made, so a group has nothing to hold back. */
ncclResult_t sim_ncclGroupStart(void)
{
    return ncclSuccess;
}

ncclResult_t sim_ncclGroupEnd(void)
{
    return ncclSuccess;
}

static size_t size_of(ncclDataType_t type)
{
    switch (type) {
    case ncclInt32: case ncclUint32: case ncclFloat32:
        return 4;
    case ncclInt64: case ncclUint64: case ncclFloat64:
        return 8;
    case ncclFloat16: case ncclBfloat16:
        return 2;
    default:
        return 1;
    }
}

#define COMBINE(number) \
    for (size_t i = 0; i < count; i++) { \
        number *into = (number *)sum + i, value = ((const number *)with)[i]; \
        *into = (number)(op == ncclProd ? *into * value \
                         : op == ncclMax ? (*into > value ? *into : value) \
                         : op == ncclMin ? (*into < value ? *into : value) : *into + value); \
    } \
    return true

static bool combine(void *sum, const void *with, size_t count, ncclDataType_t type, ncclRedOp_t op)
{
    switch (type) {
    case ncclInt8: COMBINE(int8_t);
    case ncclUint8: COMBINE(uint8_t);
    case ncclInt32: COMBINE(int32_t);
    case ncclUint32: COMBINE(uint32_t);
    case ncclInt64: COMBINE(int64_t);
    case ncclUint64: COMBINE(uint64_t);
    case ncclFloat32: COMBINE(float);
    case ncclFloat64: COMBINE(double);
    default: return false;
    }
}

static bool divide(void *sum, size_t count, ncclDataType_t type, int by)
{
    for (size_t i = 0; i < count; i++)
        if (type == ncclFloat32)
            ((float *)sum)[i] /= (float)by;
        else if (type == ncclFloat64)
            ((double *)sum)[i] /= by;
        else
            return false;
    return true;
}

/* Every rank lays down its piece; between the two meetings each may look at all of them. */
static void exchange(struct ncclComm *comm, const void *from, size_t bytes)
{
    if (bytes)
        memcpy(comm->pieces + (size_t)comm->rank * PIECE, from, bytes);
    pthread_barrier_wait(&comm->meeting->all);
}

static void seen(struct ncclComm *comm)
{
    pthread_barrier_wait(&comm->meeting->all);
}

static bool reduce(struct ncclComm *comm, const char *from, char *to, size_t count, ncclDataType_t type, ncclRedOp_t op)
{
    size_t size = size_of(type), most = PIECE / size;
    char *sum = malloc(PIECE);
    bool can = sum != NULL;
    for (size_t done = 0; can && done < count; done += most) {
        size_t now = count - done < most ? count - done : most;
        exchange(comm, from + done * size, now * size);
        memcpy(sum, comm->pieces, now * size);
        for (int rank = 1; rank < comm->count; rank++)
            can = combine(sum, comm->pieces + (size_t)rank * PIECE, now, type, op) && can;
        seen(comm);
        if (op == ncclAvg)
            can = divide(sum, now, type, comm->count) && can;
        if (to)
            memcpy(to + done * size, sum, now * size);
    }
    free(sum);
    return can;
}

static ncclResult_t kernel(const char *name, cudaStream_t stream)
{
    return sim_library_kernel(stream, name, BLOCKS, THREADS) ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t sim_ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream)
{
    return reduce(comm, from, to, count, type, op) ? kernel("ncclDevKernel_AllReduce_simgpu", stream) : ncclInvalidUsage;
}

ncclResult_t sim_ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
                            cudaStream_t stream)
{
    return reduce(comm, from, comm->rank == root ? to : NULL, count, type, op) ? kernel("ncclDevKernel_Reduce_simgpu", stream)
                                                                              : ncclInvalidUsage;
}

ncclResult_t sim_ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                   cudaStream_t stream)
{
    bool can = true;
    for (int rank = 0; rank < comm->count; rank++)
        can = reduce(comm, (const char *)from + (size_t)rank * count * size_of(type), rank == comm->rank ? to : NULL, count, type, op) && can;
    return can ? kernel("ncclDevKernel_ReduceScatter_simgpu", stream) : ncclInvalidUsage;
}

ncclResult_t sim_ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    size_t bytes = count * size_of(type);
    for (size_t done = 0; done < bytes; done += PIECE) {
        size_t now = bytes - done < PIECE ? bytes - done : PIECE;
        exchange(comm, (const char *)from + done, now);
        for (int rank = 0; rank < comm->count; rank++)
            memcpy((char *)to + (size_t)rank * bytes + done, comm->pieces + (size_t)rank * PIECE, now);
        seen(comm);
    }
    return kernel("ncclDevKernel_AllGather_simgpu", stream);
}

ncclResult_t sim_ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                               cudaStream_t stream)
{
    size_t bytes = count * size_of(type);
    for (size_t done = 0; done < bytes; done += PIECE) {
        size_t now = bytes - done < PIECE ? bytes - done : PIECE;
        exchange(comm, (const char *)from + done, comm->rank == root ? now : 0);
        memcpy((char *)to + done, comm->pieces + (size_t)root * PIECE, now);
        seen(comm);
    }
    return kernel("ncclDevKernel_Broadcast_simgpu", stream);
}
