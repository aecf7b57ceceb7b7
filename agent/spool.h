/*
 * spool.h: all memory that holds records, within one budget, and what makes sense of them should the process die:
 *
 *     state   the process, its windows and steps (struct tp_spool_state)
 *     names   text of interned names (intern.h)
 *     pool    chunks that threads fill (pool.h)
 *     log     blocks that are kept (record.h), a ring: positions only grow, the place is (position - base) % capacity
 *
 * A spool is a file in a memory file system (normally /dev/shm), mapped shared, so that it outlives the process; where that
 * cannot hold the budget, anonymous memory, which does not. In a folder on a disk only the log is mapped: stores into a
 * page that is being written back would stall the training thread. There the background thread writes state and names
 * to the file each time it looks; what lies in chunks then dies with the process. The file is private (0600), locked
 * (flock) as long as its process lives (the mapping holds the lock, no descriptor does), and removed at the end.
 * spool_in.h reads one whose process died.
 *
 * Memory is mapped whole and backed step by step, by the background thread, before anyone touches it: posix_fallocate, then
 * one write a page. A full file system ends the growth, never the job (a page without backing would be SIGBUS).
 *
 * File format (native byte order, this build's structs): struct tp_spool_state at 0; names, pool and log at the offsets
 * that its header names.
 *
 * Threads: the log belongs to the drain and the worker, under the log's lock; append and drop are the drain's. Process and
 * steps are the session's, under its lock; cycles those of cycle.h.
 */
#ifndef TP_SPOOL_H
#define TP_SPOOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base.h"
#include "cycle.h"
#include "descriptors.h"
#include "error.h"
#include "identity.h"
#include "intern.h"
#include "pool.h"
#include "record.h"

#define TP_SPOOL_MAGIC UINT64_C(0x324c4f4f50535054) /* "TPSPOOL2" */

struct tp_spool_header {
    uint64_t magic;
    uint32_t state_bytes, chunk_bytes;
    uint32_t block_header_bytes, cycle_bytes; /* of this build: another's is not read */
    uint64_t names_offset, names_bytes, names_used;
    uint64_t pool_offset, pool_bytes, pool_chunks; /* 0 chunks: the pool is not in the file */
    uint64_t log_offset, log_bytes;
    uint64_t base, capacity, head, tail; /* of the log */
    _Atomic uint64_t chunkless_lost; /* pool.h */
    _Atomic uint64_t steps; /* how many there were; the newest are in the ring */
    struct tp_clock_pair last; /* when the background thread last looked */
};

#define TP_SPOOL_TEXT 4096

/* Written at attach, but for what changes. */
struct tp_spool_process {
    struct tp_identity identity;
    uint64_t start_time;            /* of the process, as /proc/PID/stat tells it; 0: not known */
    uint64_t pid_namespace;         /* inode of /proc/self/ns/pid; 0: not known */
    struct tp_clock_pair attached;
    bool child, saw_backward;       /* the latter as of then */
    char pytorch[32], observed[16]; /* "" not known */
    char command[TP_SPOOL_TEXT], folder[TP_SPOOL_TEXT];
    char settings[2 * TP_SPOOL_TEXT]; /* NAME=value of those given, each with its NUL; an empty one at the end */
    bool settings_cut;
    _Atomic uint8_t is_described; /* all of the above is there, but for what changes */
};

struct tp_spool_step {
    uint64_t begin, end, number;
    uint64_t thread; /* serial of the one that made the mark */
    uint32_t os_thread;
    uint8_t kind; /* enum tp_step_kind */
    bool by_program;
};

#define TP_SPOOL_CYCLES 32
#define TP_SPOOL_STEPS 4096

struct tp_spool_state {
    struct tp_spool_header header;
    struct tp_spool_process process;
    struct tp_cycle cycles[TP_SPOOL_CYCLES];    /* in no order; pointers in them mean nothing to another process */
    struct tp_spool_step steps[TP_SPOOL_STEPS]; /* step n at n % TP_SPOOL_STEPS */
};

enum tp_spool_kind { TP_SPOOL_SHARED, TP_SPOOL_DISK, TP_SPOOL_MEMORY };

struct tp_log {
    pthread_mutex_t lock;
    char *memory;
    size_t capacity; /* shrinks to what could be backed, while the ring is in its first lap */
    size_t full_capacity;
    size_t backed;
    uint64_t base; /* position of the ring's first byte in the first lap */
    uint64_t head, tail;
};

struct tp_spool {
    enum tp_spool_kind kind;
    int file; /* of the background thread; -1: none, or not open now */
    struct tp_file_id id; /* to know our descriptor again: the program may close and reuse numbers */
    char path[512]; /* absolute; "" for memory */
    char *work;                       /* state, names and pool */
    size_t work_bytes;
    char *log_memory;
    size_t log_bytes;
    struct tp_spool_state *state;
    struct tp_intern *names;
    size_t names_bytes, names_backed;
    atomic_size_t held; /* bytes backed now, of all parts: the writing thread asks while the background thread backs more */
    struct {                     /* what a file on a disk has already */
        size_t names, names_seen; /* bytes; those of the look before, since then surely whole */
        uint64_t steps, hash;     /* hash of the state without steps */
    } written;
    struct tp_pool pool;
    struct tp_log log;
    size_t budget;
};

#define TP_SPOOL_FOLDER "/dev/shm"

struct tp_spool_options {
    const char *folder; /* NULL: TP_SPOOL_FOLDER, where it can hold the budget */
    size_t budget;      /* bytes for all that the spool holds */
};

/* What was chosen is in spool->kind; why another was not, is in note (may be unset). -errno with error set: no memory. */
int tp_spool_open(struct tp_spool *spool, const struct tp_spool_options *options, struct tp_error *note,
                  struct tp_error *error);

/* Backs more of names and pool when they run low, and brings the file up to date. Background thread. */
void tp_spool_tend(struct tp_spool *spool);

void tp_spool_add_step(struct tp_spool *spool, const struct tp_spool_step *step);

/* Removes the file. The memory stays mapped: a hook may be in the middle of a record while the process ends. */
void tp_spool_retire(struct tp_spool *spool);

/* Unmaps and removes everything. No thread may use it any more. */
void tp_spool_close(struct tp_spool *spool);

/* In a forked child: forgets the parent's spool (its memory is not there). */
void tp_spool_forget(struct tp_spool *spool);

size_t tp_spool_held(const struct tp_spool *spool); /* bytes backed now; any thread */

/* Appends one block. -ENOSPC: drop older ones first; -EFBIG: it can never fit. */
int tp_log_append(struct tp_spool *spool, const struct tp_block *header, const void *records);

/* The block at or after the position, which moves on to it; NULL at the head. Valid until its position is released. */
struct tp_block *tp_log_at(struct tp_log *log, uint64_t *position);
static inline uint64_t tp_log_after(uint64_t position, const struct tp_block *block)
{
    return position + sizeof *block + block->bytes;
}

uint64_t tp_log_head(struct tp_log *log);
uint64_t tp_log_tail(struct tp_log *log);
/* Everything before the position may be overwritten. A log that is empty then gives its memory back to the kernel. */
void tp_log_release(struct tp_spool *spool, uint64_t position);

#endif
