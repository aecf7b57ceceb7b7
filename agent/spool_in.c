#include "spool_in.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "heap_sort.h"

#define MAX_PIECES 8192 /* chunks that threads held */
#define DESCRIPTOR_MIN 200
#define YOUNG_S 10
#define MAX_UNTOLD (UINT64_C(1) << 40) /* begins a thread may have lost: more is damage */

bool tp_spool_in_is_name(const char *name)
{
    size_t length = strlen(name);
    return strncmp(name, "tprof.", 6) == 0 && length > 12 && strcmp(name + length - 6, ".spool") == 0;
}

/* A living process has its file mapped for writing, even where the program closed our descriptor and with it the lock: then
 * the kernel grants no read lease. Should somebody open the file for writing just then, the signal of that goes to this
 * thread alone, where it is blocked. */
static bool has_writer(int file, bool *ret_known)
{
    sigset_t signal, before;
    sigemptyset(&signal);
    sigaddset(&signal, SIGIO);
    pthread_sigmask(SIG_BLOCK, &signal, &before);
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    int result = fcntl(file, F_SETOWN_EX, &owner) == 0 ? fcntl(file, F_SETLEASE, F_RDLCK) : -1;
    *ret_known = result == 0 || errno == EAGAIN;
    if (result == 0)
        fcntl(file, F_SETLEASE, F_UNLCK);
    struct timespec now = {0};
    sigtimedwait(&signal, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return *ret_known && result != 0;
}

static bool lives(const struct tp_spool_process *process)
{
    uint64_t space = tp_identity_pid_namespace();
    if (!process->start_time || !space || space != process->pid_namespace)
        return false; /* a process that cannot be seen from here: its lock is all that is known */
    return tp_identity_start_time(process->identity.pid) == process->start_time;
}

static int refuse(struct tp_error *error, const char *name, int status, const char *why)
{
    tp_error_set(error, name, NULL, "%s", why);
    return status;
}

static bool is_inside(uint64_t offset, uint64_t bytes, uint64_t file_bytes)
{
    return offset <= file_bytes && bytes <= file_bytes - offset && offset % TP_PAGE == 0;
}

static bool is_apart(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a + a_bytes <= b || b + b_bytes <= a;
}

/* The log is written to while it is read: nothing else may lie in it. */
static bool is_sound(const struct tp_spool_header *h, uint64_t file_bytes)
{
    return is_inside(h->names_offset, h->names_bytes, file_bytes) && h->names_used <= h->names_bytes &&
           is_inside(h->pool_offset, h->pool_bytes, file_bytes) && h->pool_chunks <= h->pool_bytes / TP_CHUNK_BYTES &&
           is_inside(h->log_offset, h->log_bytes, file_bytes) && h->capacity <= h->log_bytes && h->tail >= h->base &&
           h->head >= h->tail && h->head - h->tail <= h->capacity && h->head < UINT64_MAX / 2 &&
           (h->capacity > 0 || h->head == h->tail) && (h->base | h->capacity | h->head | h->tail) % 8 == 0 &&
           is_apart(h->log_offset, h->log_bytes, 0, sizeof(struct tp_spool_state)) &&
           is_apart(h->log_offset, h->log_bytes, h->names_offset, h->names_bytes) &&
           is_apart(h->log_offset, h->log_bytes, h->pool_offset, h->pool_bytes);
}

/* A byte that is neither 0 nor 1 may not be read as a bool. */
static void settle_bool(bool *place)
{
    unsigned char byte;
    memcpy(&byte, place, 1);
    *place = byte != 0;
}

static void settle_bools(struct tp_spool_state *state)
{
    struct tp_spool_process *p = &state->process;
    bool *of_process[] = {&p->identity.rank_set, &p->child, &p->saw_backward, &p->settings_cut};
    for (size_t i = 0; i < TP_COUNT(of_process); i++)
        settle_bool(of_process[i]);
    for (size_t i = 0; i < TP_SPOOL_CYCLES; i++) {
        struct tp_cycle *c = &state->cycles[i];
        bool *of_cycle[] = {&c->provisional, &c->save, &c->partial, &c->steps_by_program, &c->log_begun};
        for (size_t k = 0; k < TP_COUNT(of_cycle); k++)
            settle_bool(of_cycle[k]);
    }
    for (size_t i = 0; i < TP_SPOOL_STEPS && i < state->header.steps; i++)
        settle_bool(&state->steps[i].by_program);
}

static void end_texts(struct tp_spool_process *p)
{
    p->identity.host[sizeof p->identity.host - 1] = p->identity.process[sizeof p->identity.process - 1] = '\0';
    p->identity.boot_id[sizeof p->identity.boot_id - 1] = p->identity.job_name[sizeof p->identity.job_name - 1] = '\0';
    p->identity.job_version[sizeof p->identity.job_version - 1] = '\0';
    p->identity.job_attempt[sizeof p->identity.job_attempt - 1] = '\0';
    p->pytorch[sizeof p->pytorch - 1] = p->observed[sizeof p->observed - 1] = '\0';
    p->command[sizeof p->command - 1] = p->folder[sizeof p->folder - 1] = '\0';
    p->settings[sizeof p->settings - 2] = p->settings[sizeof p->settings - 1] = '\0';
}

static int map_file(struct tp_spool_in *in, const char *name, bool is_surely_dead, struct tp_error *error)
{
    struct stat found;
    if (fstat(in->file, &found) != 0)
        return refuse(error, name, -errno, strerror(errno));
    if (!S_ISREG(found.st_mode))
        return refuse(error, name, -EINVAL, "is no spool of tprof");
    if (found.st_uid != geteuid())
        return refuse(error, name, -EPERM, "is the spool of another user's process");
    /* Made, but not begun: by a process that was killed just then, or, where that cannot be told, that is just about to. */
    bool may_live = !is_surely_dead && found.st_ctime + YOUNG_S > time(NULL);
    int not_begun = may_live ? -EBUSY : -ENODATA;
    if ((uint64_t)found.st_size < sizeof(struct tp_spool_state))
        return found.st_size == 0 ? refuse(error, name, not_begun, "holds nothing yet")
                                  : refuse(error, name, -EINVAL, "is no spool of tprof");
    in->bytes = (size_t)found.st_size;
    in->memory = mmap(NULL, in->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, in->file, 0);
    if (in->memory == MAP_FAILED) {
        in->memory = NULL;
        return refuse(error, name, -ENOMEM, "there is no memory to map it");
    }
    madvise(in->memory, in->bytes, MADV_DONTFORK);
    in->state = (struct tp_spool_state *)in->memory;
    const struct tp_spool_header *h = &in->state->header;
    if (h->magic == 0)
        return refuse(error, name, not_begun, "holds nothing yet");
    if (h->magic != TP_SPOOL_MAGIC)
        return refuse(error, name, -EINVAL, "is no spool of this version of tprof");
    if (h->state_bytes != sizeof *in->state || h->chunk_bytes != TP_CHUNK_BYTES ||
        h->block_header_bytes != sizeof(struct tp_block) || h->cycle_bytes != sizeof(struct tp_cycle) ||
        !is_sound(h, in->bytes))
        return refuse(error, name, -EINVAL, "is of another version of tprof, or damaged");
    if (!atomic_load(&in->state->process.is_described))
        return refuse(error, name, not_begun, "holds nothing yet");
    settle_bools(in->state);
    end_texts(&in->state->process);
    return 0;
}

/* Whole records up to the first that cannot be one; their bytes. */
static uint32_t whole_records(const uint64_t *words, size_t count)
{
    size_t at = 0;
    while (at + 1 < count && words[at] != 0 && tp_record_words(words[at]) >= 2 && tp_record_words(words[at]) <= count - at)
        at += tp_record_words(words[at]);
    return (uint32_t)(at * 8);
}

/* No block is larger than the chunk that it was in; so a search for one takes no more than a chunk at each place. */
static bool is_block(const struct tp_block *block, size_t rest)
{
    return rest >= sizeof *block && block->magic == TP_BLOCK_MAGIC && block->bytes % 8 == 0 && block->bytes > 0 &&
           block->bytes <= TP_CHUNK_DATA_BYTES && block->bytes <= rest - sizeof *block &&
           whole_records((const uint64_t *)(block + 1), block->bytes / 8) == block->bytes;
}

static void note_time(struct tp_spool_in *in, uint64_t ticks)
{
    in->last_time = ticks > in->last_time ? ticks : in->last_time;
}

/* Walks the log as its readers will; where something is no block the rest of the lap is searched for the next one, and
 * the gap becomes a block without threads' records, which readers pass over. */
static void check_log(struct tp_spool_in *in)
{
    struct tp_log *log = &in->spool.log;
    uint64_t position = log->tail;
    while (position < log->head) {
        size_t offset = (size_t)((position - log->base) % log->capacity), rest = log->capacity - offset;
        if (rest > log->head - position)
            rest = (size_t)(log->head - position);
        struct tp_block *block = (struct tp_block *)(log->memory + offset);
        if (is_block(block, rest)) {
            block->thread.name[sizeof block->thread.name - 1] = '\0';
            note_time(in, block->last_time);
            position += sizeof *block + block->bytes;
            continue;
        }
        bool lap_ends = rest < sizeof *block || block->magic == 0;
        size_t gap = 8;
        while (!lap_ends && gap < rest && !is_block((struct tp_block *)(log->memory + offset + gap), rest - gap))
            gap += 8;
        if (lap_ends || gap >= rest) {
            in->damaged += !lap_ends;
            if (rest >= sizeof(uint64_t))
                memset(block, 0, sizeof(uint64_t));
            position += log->capacity - offset < log->head - position ? log->capacity - offset : log->head - position;
            continue;
        }
        in->damaged++;
        if (gap < sizeof *block) { /* too small for a header of its own: the log begins anew behind it */
            log->tail = position + gap;
        } else {
            *block = (struct tp_block){.magic = TP_BLOCK_MAGIC, .bytes = (uint32_t)(gap - sizeof *block)};
        }
        position += gap;
    }
}

/* The rest of a chunk that the background thread had not taken. */
struct piece {
    const struct tp_chunk *chunk;
    uint32_t from, bytes;
};

static bool goes_before(const void *one, const void *other)
{
    const struct piece *a = one, *b = other;
    if (a->chunk->thread.serial != b->chunk->thread.serial)
        return a->chunk->thread.serial < b->chunk->thread.serial;
    return atomic_load(&a->chunk->sequence) < atomic_load(&b->chunk->sequence);
}

/* The newest block of this thread in the log. */
static const struct tp_block *newest_of(struct tp_spool_in *in, uint64_t serial)
{
    struct tp_log *log = &in->spool.log;
    uint64_t position = log->tail;
    const struct tp_block *found = NULL, *block;
    while ((block = tp_log_at(log, &position))) {
        if (block->thread.serial == serial)
            found = block;
        position = tp_log_after(position, block);
    }
    return found;
}

/* A process that was killed between the log and the chunk has the same records in both. */
static void skip_what_is_in_the_log(struct tp_spool_in *in, struct piece *piece)
{
    const struct tp_block *block = newest_of(in, piece->chunk->thread.serial);
    const char *records = (const char *)piece->chunk->data + piece->from;
    if (!block || block->bytes > piece->bytes || memcmp(block + 1, records, block->bytes) != 0)
        return;
    piece->from += block->bytes;
    piece->bytes -= block->bytes;
}

static void count_dropped(struct tp_spool_in *in, const struct tp_block *block, uint64_t until)
{
    for (size_t i = 0; i < in->cycle_count; i++)
        if (block->last_time >= in->cycles[i].begin && block->first_time < in->cycles[i].end)
            tp_cycle_dropped(&in->cycles[i], block->begins + block->lost, 0, until);
}

static void append(struct tp_spool_in *in, const struct piece *piece)
{
    const uint64_t *words = (const uint64_t *)((const char *)piece->chunk->data + piece->from);
    struct tp_block block = {.magic = TP_BLOCK_MAGIC, .bytes = piece->bytes, .thread = piece->chunk->thread};
    block.thread.name[sizeof block.thread.name - 1] = '\0';
    block.first_time = words[1];
    for (const uint64_t *at = words; at < words + block.bytes / 8; at += tp_record_words(*at)) {
        block.last_time = at[1];
        block.begins += tp_record_kind(*at) == TP_RECORD_BEGIN;
        if (tp_record_kind(*at) == TP_RECORD_LOSS && tp_record_words(*at) >= TP_LOSS_WORDS)
            block.lost += ((const struct tp_loss *)at)->count;
    }
    struct tp_log *log = &in->spool.log;
    int failed;
    while ((failed = tp_log_append(&in->spool, &block, words)) == -ENOSPC) {
        uint64_t position = log->tail;
        const struct tp_block *oldest = tp_log_at(log, &position);
        if (!oldest)
            break;
        count_dropped(in, oldest, oldest->last_time);
        log->tail = tp_log_after(position, oldest);
    }
    note_time(in, block.last_time);
    if (failed)
        count_dropped(in, &block, 0);
    else
        in->from_chunks += block.begins;
}

static size_t find_pieces(struct tp_spool_in *in, struct piece *pieces)
{
    const struct tp_spool_header *h = &in->state->header;
    size_t count = 0;
    in->untold = h->chunkless_lost < MAX_UNTOLD ? h->chunkless_lost : 0;
    for (uint64_t i = 0; i < h->pool_chunks && count < MAX_PIECES; i++) {
        const struct tp_chunk *chunk = (const struct tp_chunk *)(in->memory + h->pool_offset + i * TP_CHUNK_BYTES);
        uint32_t used = atomic_load(&chunk->used), taken = chunk->taken;
        in->untold += atomic_load(&chunk->untold) < MAX_UNTOLD ? atomic_load(&chunk->untold) : 0;
        if (used > TP_CHUNK_DATA_BYTES || used % 8 || taken % 8 || taken >= used || chunk->thread.serial == 0)
            continue;
        uint32_t bytes = whole_records(&chunk->data[taken / 8], (used - taken) / 8);
        if (bytes > 0)
            pieces[count++] = (struct piece){chunk, taken, bytes};
    }
    tp_heap_sort(pieces, count, sizeof *pieces, goes_before);
    return count;
}

/* Windows first: what is let go for want of room is counted in them. */
static void find_cycles(struct tp_spool_in *in)
{
    for (size_t i = 0; i < TP_SPOOL_CYCLES; i++) {
        const struct tp_cycle *found = &in->state->cycles[i];
        bool is_open = found->state == TP_CYCLE_OPEN;
        if (!is_open && found->state != TP_CYCLE_CLOSED && found->state != TP_CYCLE_WHOLE)
            continue;
        if ((is_open ? found->provisional : !found->save) || (!is_open && found->end <= found->begin))
            continue;
        size_t at = in->cycle_count++;
        for (; at > 0 && in->cycles[at - 1].begin > found->begin; at--)
            in->cycles[at] = in->cycles[at - 1];
        in->cycles[at] = *found;
        in->cycles[at].partial |= is_open;
        in->cycles[at].end = is_open ? UINT64_MAX : found->end;
        in->cycles[at].edge_count = 0;
    }
}

static const struct tp_spool_step *step_at(const struct tp_spool_in *in, uint64_t n)
{
    return &in->state->steps[n % TP_SPOOL_STEPS];
}

/* The oldest of the ring may be newer ones already: a step is stored before it is counted. */
static uint64_t first_step(const struct tp_spool_in *in)
{
    uint64_t steps = in->state->header.steps, first = steps > TP_SPOOL_STEPS ? steps - TP_SPOOL_STEPS : 0, at = steps;
    while (at > first && (at == steps || step_at(in, at - 1)->end <= step_at(in, at)->end))
        at--;
    return at;
}

static int finish_cycles(struct tp_spool_in *in, struct tp_arena *arena)
{
    uint64_t steps = in->state->header.steps, first = first_step(in), next = 0;
    in->first_step = first;
    for (uint64_t n = first; n < steps; n++)
        note_time(in, step_at(in, n)->end);
    for (size_t i = 0; i < in->cycle_count; i++) {
        struct tp_cycle *cycle = &in->cycles[i];
        if (cycle->state == TP_CYCLE_OPEN) {
            cycle->end = (in->last_time > cycle->begin ? in->last_time : cycle->begin) + 1;
            cycle->untold += in->untold; /* of a closed one they are counted already */
        }
        cycle->log_begin = in->spool.log.tail;
        cycle->log_end = in->spool.log.head;
        cycle->clock_begin = in->state->process.attached;
        cycle->clock_end = in->state->header.last;
        next = cycle->number + 1 > next ? cycle->number + 1 : next;
        cycle->edges = tp_arena_alloc(arena, (size_t)(steps - first + 1) * sizeof *cycle->edges);
        if (!cycle->edges)
            return -ENOMEM;
        for (uint64_t n = first; n < steps; n++) {
            const struct tp_spool_step *step = step_at(in, n);
            if (step->end <= cycle->begin || step->end > cycle->end)
                continue;
            if (cycle->edge_count == 0)
                cycle->first_step = step->number;
            cycle->edges[cycle->edge_count++] = (struct tp_cycle_edge){.time = step->end,
                                                                       .number = step->number,
                                                                       .thread = step->thread,
                                                                       .os_thread = step->os_thread,
                                                                       .kind = (enum tp_step_kind)(step->kind % 4)};
            cycle->steps_by_program |= step->by_program;
        }
    }
    return 0;
}

static int read_records(struct tp_spool_in *in, struct tp_arena *arena)
{
    const struct tp_spool_header *h = &in->state->header;
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    in->spool = (struct tp_spool){.kind = TP_SPOOL_MEMORY,
                                  .file = -1,
                                  .state = in->state,
                                  .log = {.lock = unlocked,
                                          .memory = in->memory + h->log_offset,
                                          .capacity = h->capacity,
                                          .full_capacity = h->capacity,
                                          .backed = h->capacity,
                                          .base = h->base,
                                          .head = h->head,
                                          .tail = h->tail}};
    void *table = mmap(NULL, tp_intern_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct piece *pieces = tp_arena_alloc(arena, MAX_PIECES * sizeof *pieces);
    if (table == MAP_FAILED || !pieces)
        return -ENOMEM;
    in->spool.names = table;
    /* The header is brought up to date now and then. Where the names themselves are in the file, all of it may hold some: a
     * name was whole before a record bore its id. */
    tp_intern_adopt(in->spool.names, in->memory + h->names_offset, h->pool_chunks > 0 ? h->names_bytes : h->names_used);
    find_cycles(in);
    check_log(in);
    size_t count = find_pieces(in, pieces);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || pieces[i].chunk->thread.serial != pieces[i - 1].chunk->thread.serial)
            skip_what_is_in_the_log(in, &pieces[i]);
        if (pieces[i].bytes > 0)
            append(in, &pieces[i]);
    }
    in->chunks_lost = h->pool_chunks == 0;
    return finish_cycles(in, arena);
}

int tp_spool_in_open(struct tp_spool_in *in, int folder, const char *name, struct tp_arena *arena, struct tp_error *error)
{
    memset(in, 0, sizeof *in);
    in->file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (in->file < 0)
        return refuse(error, name, -errno, strerror(errno));
    int high = fcntl(in->file, F_DUPFD_CLOEXEC, DESCRIPTOR_MIN);
    if (high >= 0) {
        close(in->file);
        in->file = high;
    }
    bool is_known = false;
    int failed = -EBUSY;
    if (flock(in->file, LOCK_EX | LOCK_NB) == 0 && !has_writer(in->file, &is_known))
        failed = map_file(in, name, is_known, error);
    /* Where there are no leases, the process id must do. */
    if (!failed && !is_known && lives(&in->state->process))
        failed = -EBUSY;
    if (failed == -EBUSY && !error->set)
        refuse(error, name, failed, "is in use: its process lives, or its records are just being written");
    if (!failed) {
        failed = read_records(in, arena);
        if (failed)
            refuse(error, name, failed, "there is no memory to read it");
    }
    if (failed)
        tp_spool_in_close(in, folder, name, failed == -ENODATA);
    return failed;
}

void tp_spool_in_close(struct tp_spool_in *in, int folder, const char *name, bool remove)
{
    if (remove)
        unlinkat(folder, name, 0);
    if (in->memory)
        munmap(in->memory, in->bytes);
    if (in->spool.names)
        munmap(in->spool.names, tp_intern_size());
    if (in->file >= 0)
        close(in->file);
    in->memory = NULL;
    in->spool.names = NULL;
    in->file = -1;
}
