#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "clock.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define TMPFS_MAGIC_NUMBER 0x01021994
#define LOG_STEP (4u << 20)       /* the log is backed in steps of this size */
#define POOL_FIRST 64             /* chunks that are ready from the start */
#define NAMES_AHEAD (256u << 10)  /* text memory that is kept ready */
#define NAMES_AHEAD_LARGE (2u << 20)
#define BUDGET_MIN (4u << 20)

/* Our descriptors stay out of the low numbers, which programs count on. */
static int move_high(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

/* The file's descriptor: opened once more where the thread's table does not have it, or the program closed it. */
static bool have_file(struct tp_spool *spool)
{
    if (spool->path[0] == '\0')
        return false;
    if (spool->file >= 0 && tp_file_is(spool->file, &spool->id))
        return true;
    int fd = open(spool->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && !tp_file_is(fd, &spool->id)) { /* another lies at its path */
        close(fd);
        fd = -1;
    }
    spool->file = fd < 0 ? -1 : move_high(fd);
    if (fd >= 0)
        flock(spool->file, LOCK_EX | LOCK_NB);
    return fd >= 0;
}

/* Makes memory ours to touch: backing first, then a write to each page, all on the calling (background) thread. */
static int back(struct tp_spool *spool, bool in_file, char *memory, size_t bytes, off_t offset)
{
    if (in_file) {
        if (!have_file(spool))
            return -EBADF;
        int error;
        do
            error = posix_fallocate(spool->file, offset, (off_t)bytes);
        while (error == EINTR);
        if (error)
            return -error;
    }
    if (madvise(memory, bytes, MADV_POPULATE_WRITE) != 0)
        for (size_t at = 0; at < bytes; at += TP_PAGE)
            ((volatile char *)memory)[at] = 0;
    atomic_fetch_add_explicit(&spool->held, bytes, memory_order_relaxed);
    return 0;
}

static bool is_memory_file_system(int folder)
{
    struct statfs fs;
    return fstatfs(folder, &fs) == 0 && fs.f_type == TMPFS_MAGIC_NUMBER;
}

static void set_path(struct tp_spool *spool, const char *folder, const char *name)
{
    char here[sizeof spool->path] = "";
    if (folder[0] != '/' && !getcwd(here, sizeof here)) /* programs change theirs later */
        here[0] = '\0';
    int length = snprintf(spool->path, sizeof spool->path, "%s%s%s/%s", here, here[0] ? "/" : "", folder, name);
    if (length >= (int)sizeof spool->path)
        spool->path[0] = '\0';
}

static int make_file(struct tp_spool *spool, const char *folder, bool must_hold_budget, struct tp_error *note)
{
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        tp_error_set(note, "spool", NULL, "%s: %s; records wait in memory and do not outlive the process", folder, strerror(errno));
        return -errno;
    }
    struct statvfs space;
    if (must_hold_budget && (fstatvfs(dir, &space) != 0 || (uint64_t)space.f_bavail * space.f_frsize < spool->budget)) {
        tp_error_set(note, "spool", NULL, "%s has no room for %zu MB; records wait in memory and do not outlive the process",
                     folder, spool->budget >> 20);
        close(dir);
        return -ENOSPC;
    }
    char name[64];
    struct tp_clock_pair now = tp_clock_pair_now();
    snprintf(name, sizeof name, "tprof.%d.%llx.spool", (int)getpid(), (unsigned long long)now.realtime_ns);
    set_path(spool, folder, name);
    int fd = spool->path[0] ? openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    int error = spool->path[0] ? errno : ENAMETOOLONG;
    bool memory_fs = is_memory_file_system(dir);
    close(dir);
    if (fd < 0) {
        spool->path[0] = '\0';
        tp_error_set(note, "spool", NULL, "%s: %s; records wait in memory and do not outlive the process", folder, strerror(error));
        return -error;
    }
    spool->file = move_high(fd);
    spool->kind = memory_fs ? TP_SPOOL_SHARED : TP_SPOOL_DISK;
    spool->id = tp_file_id(spool->file);
    flock(spool->file, LOCK_EX | LOCK_NB);
    return 0;
}

static void close_file(struct tp_spool *spool)
{
    if (spool->file >= 0)
        tp_file_close(spool->file, &spool->id);
    spool->file = -1;
}

static void drop_file(struct tp_spool *spool)
{
    close_file(spool);
    if (spool->path[0])
        unlink(spool->path);
    spool->path[0] = '\0';
    spool->kind = TP_SPOOL_MEMORY;
}

static char *map(size_t bytes, int file, off_t offset)
{
    int flags = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, offset);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_DONTFORK); /* a child must not write into its parent's records */
    return memory;
}

static void unmap(struct tp_spool *spool)
{
    if (spool->work)
        munmap(spool->work, spool->work_bytes);
    if (spool->log_memory)
        munmap(spool->log_memory, spool->log_bytes);
    if (spool->names)
        munmap(spool->names, tp_intern_size());
    spool->work = spool->log_memory = NULL;
    spool->names = NULL;
    spool->state = NULL;
}

/* What a stranger needs to read the log of a dead process. */
static void describe_log(struct tp_spool *spool)
{
    const struct tp_log *log = &spool->log;
    struct tp_spool_header *header = &spool->state->header;
    header->base = log->base;
    header->capacity = log->capacity;
    header->tail = log->tail;
    header->head = log->head;
}

#define STATE_BYTES tp_round_up(sizeof(struct tp_spool_state), TP_PAGE)

/* One way of the three. */
static int lay_out(struct tp_spool *spool)
{
    size_t budget = spool->budget;
    size_t pool_bytes = tp_round_up(budget / 8, TP_CHUNK_BYTES);
    spool->names_bytes = tp_round_up(budget / 16, TP_PAGE);
    spool->work_bytes = STATE_BYTES + spool->names_bytes + pool_bytes;
    spool->log_bytes = tp_round_up(budget - spool->work_bytes, TP_PAGE) - TP_PAGE;
    bool work_in_file = spool->kind == TP_SPOOL_SHARED;
    bool log_in_file = spool->kind != TP_SPOOL_MEMORY;
    if (spool->file >= 0 && ftruncate(spool->file, (off_t)(spool->work_bytes + spool->log_bytes)) != 0)
        return -errno;
    spool->work = map(spool->work_bytes, work_in_file ? spool->file : -1, 0);
    spool->log_memory = map(spool->log_bytes, log_in_file ? spool->file : -1, (off_t)spool->work_bytes);
    spool->names = (struct tp_intern *)map(tp_intern_size(), -1, 0);
    if (!spool->work || !spool->log_memory || !spool->names)
        return -ENOMEM;
    atomic_store(&spool->held, 0);
    int error = back(spool, work_in_file, spool->work, STATE_BYTES, 0);
    if (error)
        return error;
    spool->state = (struct tp_spool_state *)spool->work;
    char *names = spool->work + STATE_BYTES;
    tp_intern_init(spool->names, names, spool->names_bytes);
    tp_pool_init(&spool->pool, names + spool->names_bytes, pool_bytes, &spool->state->header.chunkless_lost);
    struct tp_log *log = &spool->log;
    log->memory = spool->log_memory;
    log->capacity = log->full_capacity = spool->log_bytes;
    log->backed = 0;
    log->base = log->head = log->tail = 0;
    spool->names_backed = 0;
    spool->state->header = (struct tp_spool_header){
        .magic = TP_SPOOL_MAGIC,
        .state_bytes = sizeof *spool->state,
        .chunk_bytes = TP_CHUNK_BYTES,
        .block_header_bytes = sizeof(struct tp_block),
        .cycle_bytes = sizeof(struct tp_cycle),
        .names_offset = STATE_BYTES,
        .names_bytes = spool->names_bytes,
        .pool_offset = STATE_BYTES + spool->names_bytes,
        .pool_bytes = pool_bytes,
        .log_offset = spool->work_bytes,
        .log_bytes = spool->log_bytes,
    };
    spool->state->process.start_time = tp_identity_start_time((uint32_t)getpid());
    spool->state->process.pid_namespace = tp_identity_pid_namespace();
    describe_log(spool);
    tp_spool_tend(spool);
    return tp_pool_free_count(&spool->pool) > 0 ? 0 : -ENOSPC;
}

int tp_spool_open(struct tp_spool *spool, const struct tp_spool_options *options, struct tp_error *note,
                  struct tp_error *error)
{
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    *spool = (struct tp_spool){.kind = TP_SPOOL_MEMORY, .file = -1, .budget = options->budget, .log.lock = unlocked};
    if (spool->budget < BUDGET_MIN)
        spool->budget = BUDGET_MIN;
    if (make_file(spool, options->folder ? options->folder : TP_SPOOL_FOLDER, !options->folder, note) == 0) {
        int failed = lay_out(spool);
        if (!failed) {
            close_file(spool); /* the background thread opens it in its own table */
            return 0;
        }
        tp_error_set(note, "spool", NULL, "%s: %s; records wait in memory and do not outlive the process", spool->path, strerror(-failed));
        unmap(spool);
        drop_file(spool);
    }
    /* Where the address space is limited (RLIMIT_AS) a smaller budget is better than none. */
    for (; spool->budget >= BUDGET_MIN; spool->budget /= 2) {
        if (lay_out(spool) == 0) {
            if (spool->budget < options->budget)
                tp_error_set(note, "spool", NULL, "only %zu MB of memory could be had", spool->budget >> 20);
            return 0;
        }
        unmap(spool);
    }
    tp_error_set(error, "spool", NULL, "no memory for records");
    return -ENOMEM;
}

static void tend_names(struct tp_spool *spool)
{
    size_t ahead = spool->names_bytes >= 4 * NAMES_AHEAD_LARGE ? NAMES_AHEAD_LARGE : NAMES_AHEAD;
    size_t wanted = tp_round_up(tp_intern_used(spool->names) + ahead, TP_PAGE);
    if (wanted > spool->names_bytes)
        wanted = spool->names_bytes;
    if (wanted <= spool->names_backed)
        return;
    off_t offset = (off_t)(STATE_BYTES + spool->names_backed);
    if (back(spool, spool->kind == TP_SPOOL_SHARED, spool->work + offset, wanted - spool->names_backed, offset) != 0)
        return;
    spool->names_backed = wanted;
    tp_intern_prepare(spool->names, wanted);
}

static void tend_pool(struct tp_spool *spool)
{
    struct tp_pool *pool = &spool->pool;
    uint32_t more = pool->grown == 0                                   ? POOL_FIRST
                    : tp_pool_free_count(pool) < (pool->grown + 1) / 2 ? pool->grown / 4 + 1
                                                                       : 0;
    if (more > pool->capacity - pool->grown)
        more = pool->capacity - pool->grown;
    if (more == 0)
        return;
    size_t place = (size_t)(pool->memory - spool->work) + (size_t)pool->grown * TP_CHUNK_BYTES;
    if (back(spool, spool->kind == TP_SPOOL_SHARED, spool->work + place, (size_t)more * TP_CHUNK_BYTES, (off_t)place) == 0)
        tp_pool_grow(pool, more);
    if (spool->kind == TP_SPOOL_SHARED)
        spool->state->header.pool_chunks = pool->grown;
}

static void put_bytes(const struct tp_spool *spool, const char *bytes, size_t from, size_t until)
{
    while (from < until) {
        ssize_t n = pwrite(spool->file, bytes, until - from, (off_t)from);
        if (n <= 0 && errno != EINTR)
            return; /* a full disk: what is lost then is what a dead process would have left */
        bytes += n > 0 ? n : 0;
        from += n > 0 ? (size_t)n : 0;
    }
}

static void put(const struct tp_spool *spool, size_t from, size_t until)
{
    put_bytes(spool, spool->work + from, from, until);
}

static uint64_t hash_of(const void *bytes, size_t count)
{
    uint64_t hash = 0;
    for (const uint64_t *at = bytes; count >= sizeof *at; at++, count -= sizeof *at)
        hash = (hash ^ *at) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
    return hash;
}

/* State and names into a file that is not mapped here. */
static void write_down(struct tp_spool *spool)
{
    struct tp_spool_state *state = spool->state;
    if (!have_file(spool))
        return;
    /* A name that is just being stored is written again next time. */
    size_t used = tp_intern_used(spool->names);
    if (used > spool->written.names)
        put(spool, STATE_BYTES + spool->written.names, STATE_BYTES + used);
    spool->written.names = spool->written.names_seen;
    spool->written.names_seen = used;
    uint64_t steps = atomic_load_explicit(&state->header.steps, memory_order_acquire); /* pairs with tp_spool_add_step */
    if (steps - spool->written.steps > TP_SPOOL_STEPS)
        spool->written.steps = steps - TP_SPOOL_STEPS;
    for (; spool->written.steps < steps; spool->written.steps++) {
        size_t at = offsetof(struct tp_spool_state, steps[spool->written.steps % TP_SPOOL_STEPS]);
        put(spool, at, at + sizeof(struct tp_spool_step));
    }
    size_t process = offsetof(struct tp_spool_state, process), behind = offsetof(struct tp_spool_state, steps);
    uint64_t hash = hash_of(&state->process, behind - process);
    if (hash != spool->written.hash)
        put(spool, process, behind);
    spool->written.hash = hash;
    /* The header last, and with the steps that are there: the program may have made more meanwhile. */
    struct tp_spool_header header = state->header;
    header.steps = steps;
    put_bytes(spool, (const char *)&header, 0, sizeof header);
}

void tp_spool_add_step(struct tp_spool *spool, const struct tp_spool_step *step)
{
    struct tp_spool_state *state = spool->state;
    uint64_t count = atomic_load_explicit(&state->header.steps, memory_order_relaxed);
    state->steps[count % TP_SPOOL_STEPS] = *step;
    /* Release: the process may be killed at any point, and the background thread writes down what is counted. */
    atomic_store_explicit(&state->header.steps, count + 1, memory_order_release);
}

void tp_spool_tend(struct tp_spool *spool)
{
    tend_names(spool);
    tend_pool(spool);
    spool->state->header.names_used = tp_intern_used(spool->names);
    spool->state->header.last = tp_clock_pair_now();
    if (spool->kind == TP_SPOOL_DISK)
        write_down(spool);
}

void tp_spool_retire(struct tp_spool *spool)
{
    drop_file(spool);
}

void tp_spool_close(struct tp_spool *spool)
{
    unmap(spool);
    drop_file(spool);
}

void tp_spool_forget(struct tp_spool *spool)
{
    close_file(spool);
    /* The table proper was MADV_DONTFORK too: nothing of it is mapped here. */
    *spool = (struct tp_spool){.kind = TP_SPOOL_MEMORY, .file = -1};
}

size_t tp_spool_held(const struct tp_spool *spool)
{
    return atomic_load_explicit(&spool->held, memory_order_relaxed);
}

static size_t offset_of(const struct tp_log *log, uint64_t position)
{
    return (size_t)((position - log->base) % log->capacity);
}

/* Where a block of this size would begin: one that does not fit before the end of the ring begins the next lap. */
static uint64_t place_for(const struct tp_log *log, uint64_t position, size_t bytes)
{
    size_t rest = log->capacity - offset_of(log, position);
    return rest < bytes ? position + rest : position;
}

static bool grow_log(struct tp_spool *spool, size_t needed)
{
    struct tp_log *log = &spool->log;
    size_t most = LOG_STEP;
    while (log->backed < needed) {
        size_t step = log->capacity - log->backed < most ? log->capacity - log->backed : most;
        off_t offset = (off_t)(spool->work_bytes + log->backed);
        if (back(spool, spool->kind != TP_SPOOL_MEMORY, log->memory + log->backed, step, offset) == 0)
            log->backed += step;
        else if ((most /= 2) < TP_CHUNK_BYTES) /* the last of a full file system comes in small pieces */
            return false;
    }
    return true;
}

/* Room for a block: its place, or -ENOSPC, -EFBIG. */
static int make_room(struct tp_spool *spool, size_t bytes, uint64_t *ret_place)
{
    struct tp_log *log = &spool->log;
    if (bytes > log->capacity)
        return -EFBIG;
    uint64_t place = place_for(log, log->head, bytes);
    uint64_t end = place + bytes - log->base;
    /* In its first lap the ring grows; where it cannot, it becomes as large as it is. */
    if (end <= log->capacity && end > log->backed && !grow_log(spool, (size_t)end)) {
        log->capacity = log->backed;
        if (bytes > log->capacity)
            return -EFBIG;
        place = place_for(log, log->head, bytes);
    }
    if (place + bytes - log->tail > log->capacity)
        return -ENOSPC;
    *ret_place = place;
    return 0;
}

int tp_log_append(struct tp_spool *spool, const struct tp_block *header, const void *records)
{
    struct tp_log *log = &spool->log;
    size_t bytes = sizeof *header + header->bytes;
    pthread_mutex_lock(&log->lock);
    uint64_t place;
    int result = make_room(spool, bytes, &place);
    if (result == 0) {
        if (place - log->head >= sizeof(uint64_t))
            memset(log->memory + offset_of(log, log->head), 0, sizeof(uint64_t)); /* no magic: the lap ends here */
        char *at = log->memory + offset_of(log, place);
        memcpy(at, header, sizeof *header);
        memcpy(at + sizeof *header, records, header->bytes);
        log->head = place + bytes;
        describe_log(spool);
    }
    pthread_mutex_unlock(&log->lock);
    return result;
}

struct tp_block *tp_log_at(struct tp_log *log, uint64_t *position)
{
    pthread_mutex_lock(&log->lock);
    struct tp_block *block = NULL;
    if (*position < log->tail)
        *position = log->tail;
    while (*position < log->head) {
        size_t rest = log->capacity - offset_of(log, *position);
        block = (struct tp_block *)(log->memory + offset_of(log, *position));
        if (rest >= sizeof *block && block->magic == TP_BLOCK_MAGIC)
            break;
        block = NULL;
        *position += rest;
    }
    pthread_mutex_unlock(&log->lock);
    return block;
}

uint64_t tp_log_head(struct tp_log *log)
{
    pthread_mutex_lock(&log->lock);
    uint64_t head = log->head;
    pthread_mutex_unlock(&log->lock);
    return head;
}

uint64_t tp_log_tail(struct tp_log *log)
{
    pthread_mutex_lock(&log->lock);
    uint64_t tail = log->tail;
    pthread_mutex_unlock(&log->lock);
    return tail;
}

/* Between two cycles nothing is held. */
static void give_back(struct tp_spool *spool)
{
    struct tp_log *log = &spool->log;
    if (log->backed <= LOG_STEP)
        return;
    if (madvise(log->memory, log->backed, spool->kind == TP_SPOOL_MEMORY ? MADV_DONTNEED : MADV_REMOVE) != 0)
        return;
    atomic_fetch_sub_explicit(&spool->held, log->backed, memory_order_relaxed);
    log->backed = 0;
    log->capacity = log->full_capacity;
    log->base = log->head; /* positions go on growing: a cycle may have noted this one as its begin */
}

void tp_log_release(struct tp_spool *spool, uint64_t position)
{
    struct tp_log *log = &spool->log;
    pthread_mutex_lock(&log->lock);
    if (position > log->tail)
        log->tail = position < log->head ? position : log->head;
    if (log->tail == log->head)
        give_back(spool);
    describe_log(spool);
    pthread_mutex_unlock(&log->lock);
}
