/*
 * identity.h: who and where this process is: host, process, rank. Rank and world size come from RANK and WORLD_SIZE
 * (torchrun), SLURM_PROCID and SLURM_NTASKS, OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, in this order; else 0 of 1.
 *
 * Threads: read is called on a thread of the program (the environment may be changed by it alone), and its result is
 * copied from there.
 */
#ifndef TP_IDENTITY_H
#define TP_IDENTITY_H

#include "base.h"

struct tp_identity {
    char host[65];    /* gethostname() */
    char process[16]; /* comm, as in `ps` */
    uint32_t pid;
    uint64_t rank, world_size;
    bool rank_set; /* the rank was in the environment */
    char boot_id[40];
    char job_name[128], job_version[64], job_attempt[32]; /* PT_PROFILER_JOB_{NAME,VERSION,ATTEMPT_INDEX}; or "" */
};

void tp_identity_read(struct tp_identity *identity);

/* When the process began, in the kernel's own unit since boot: with its id it names the process. 0: there is none, or it
 * may not be looked at. */
uint64_t tp_identity_start_time(uint32_t pid);

/* Of this process: processes of another one have other ids. 0: not known. */
uint64_t tp_identity_pid_namespace(void);

/* True if one of the processes above this one has PyTorch and this library loaded: then this one is a child of a profiled
 * program. Reads /proc; false where it may not. */
bool tp_identity_is_child(void);

#endif
