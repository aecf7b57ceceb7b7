#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include "../agent/descriptors.h"

#define BUFFER (256 * 1024)
#define RESERVE_MAX (64 * 1024)
#define NAME_ATTEMPTS 1000
/* Programs close or reuse low descriptors (daemonize, subprocess); ours lies above where it can. */
#define DESCRIPTOR_MIN 200

struct tp_sink {
    const struct tp_sink_system *system;
    int folder, descriptor;
    struct tp_file_id id; /* of the file: its number may become the program's (agent/descriptors.h) */
    int status;   /* 0 or the first failure */
    const char *doing; /* what failed */
    size_t used;  /* of buffer */
    uint64_t written;
    bool gzip;
    z_stream deflater;
    char *buffer, *compressed;
    char name[NAME_MAX + 1], temporary[NAME_MAX + 1];
};

/* By number: a preloaded library that asks for a name which another C library lacks keeps musl's programs from starting. */
static int real_rename(int from, const char *old, int to, const char *new, unsigned flags)
{
    return (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

static int real_open(int folder, const char *name, int flags, mode_t mode)
{
    return openat(folder, name, flags, mode);
}

static const struct tp_sink_system real_system = {
    .open = real_open,
    .write = write,
    .close = close,
    .rename = real_rename,
    .link = linkat,
};

static void fail(struct tp_sink *sink, int status, const char *doing)
{
    if (sink->status == 0) {
        sink->status = status;
        sink->doing = doing;
    }
}

static void write_all(struct tp_sink *sink, const char *bytes, size_t count)
{
    if (count > 0 && sink->status == 0 && !tp_file_is(sink->descriptor, &sink->id))
        fail(sink, -EBADF, "writing");
    while (count > 0 && sink->status == 0) {
        ssize_t n = sink->system->write(sink->descriptor, bytes, count);
        if (n > 0) {
            bytes += n;
            count -= (size_t)n;
            sink->written += (uint64_t)n;
        } else if (n == 0) {
            fail(sink, -EIO, "writing"); /* no progress and no reason: never loop on it */
        } else if (errno != EINTR) {
            fail(sink, -errno, "writing");
        }
    }
}

static void deflate_buffer(struct tp_sink *sink, int mode)
{
    z_stream *deflater = &sink->deflater;
    deflater->next_in = (Bytef *)sink->buffer;
    deflater->avail_in = (uInt)sink->used;
    int result;
    do {
        deflater->next_out = (Bytef *)sink->compressed;
        deflater->avail_out = BUFFER;
        result = deflate(deflater, mode);
        if (result == Z_STREAM_ERROR) {
            fail(sink, -EIO, "compressing");
            return;
        }
        write_all(sink, sink->compressed, BUFFER - deflater->avail_out);
    } while (sink->status == 0 && (mode == Z_FINISH ? result != Z_STREAM_END : deflater->avail_out == 0));
}

static void flush(struct tp_sink *sink, int mode)
{
    if (sink->status == 0) {
        if (sink->gzip)
            deflate_buffer(sink, mode);
        else
            write_all(sink, sink->buffer, sink->used);
    }
    sink->used = 0; /* after a failure the buffer is a place to write to and nothing else */
}

static voidpf zlib_alloc(voidpf arena, uInt items, uInt size)
{
    return tp_arena_alloc(arena, (size_t)items * size);
}

static void zlib_free(voidpf arena, voidpf piece)
{
    (void)arena;
    (void)piece; /* goes with the arena */
}

/* Creates the temporary file. A stale one, of a process that died and had our pid, is left alone. */
static int create(struct tp_sink *sink)
{
    static _Atomic unsigned counter;
    for (unsigned attempt = 0; attempt < NAME_ATTEMPTS; attempt++) {
        char tail[48];
        int length = snprintf(tail, sizeof tail, ".tmp.%ld.%u", (long)getpid(),
                              atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed));
        snprintf(sink->temporary, sizeof sink->temporary, ".%.*s%s", NAME_MAX - 1 - length, sink->name, tail);
        int descriptor = sink->system->open(sink->folder, sink->temporary,
                                            O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (descriptor >= 0) {
            sink->id = tp_file_id(descriptor);
            int high = fcntl(descriptor, F_DUPFD_CLOEXEC, DESCRIPTOR_MIN);
            if (high >= 0)
                tp_file_close(descriptor, &sink->id);
            return high >= 0 ? high : descriptor;
        }
        if (errno != EEXIST && errno != EINTR)
            return -errno;
    }
    return -EEXIST;
}

bool tp_sink_is_temporary(const char *entry, const char *name)
{
    const char *tail = strstr(entry, ".tmp.");
    size_t length = tail ? (size_t)(tail - entry) : 0; /* of "." and the name, which may be cut */
    return length > 1 && entry[0] == '.' && strncmp(entry + 1, name, length - 1) == 0 &&
           (strlen(name) == length - 1 || strlen(entry) >= NAME_MAX - 1);
}

bool tp_sink_is_temporary_of(const char *entry, const char *worker, uint32_t pid)
{
    char tail[32];
    size_t length = strlen(worker), tail_length = (size_t)snprintf(tail, sizeof tail, ".tmp.%u.", pid);
    if (entry[0] != '.' || strncmp(entry + 1, worker, length) != 0 || entry[1 + length] != '.')
        return false;
    const char *found = strstr(entry + 1 + length, tail);
    return found && found[tail_length] && strspn(found + tail_length, "0123456789") == strlen(found + tail_length);
}

static bool exists(const struct tp_sink *sink)
{
    struct stat status;
    return fstatat(sink->folder, sink->name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Untranslated, because a translation would be loaded into the job's heap. */
static const char *reason(int error)
{
    switch (error) {
    case EACCES: return "permission denied";
    case EBADF: return "the program closed the file";
    case EDQUOT: return "disk quota exceeded";
    case EEXIST: return "a file of that name exists";
    case EFBIG: return "file size limit reached";
    case EINVAL: return "not a file name, or no gzip level from 0 to 9";
    case EIO: return "input/output error";
    case EMFILE: return "too many open files in this process";
    case ENAMETOOLONG: return "the name is too long";
    case ENOENT: return "the folder was removed";
    case ENOMEM: return "the memory limit (TPROF_BUFFER_MB) is reached";
    case ENOSPC: return "no space left on the device";
    case EROFS: return "read-only file system";
    default: return NULL;
    }
}

static struct tp_sink *refuse(struct tp_error *error, const char *name, int status, const char *doing)
{
    const char *why = reason(-status);
    if (why)
        tp_error_set(error, name, NULL, "%s: %s", doing, why);
    else
        tp_error_set(error, name, NULL, "%s: errno %d", doing, -status);
    errno = -status;
    return NULL;
}

struct tp_sink *tp_sink_open(const struct tp_sink_options *options, struct tp_arena *arena, struct tp_error *error)
{
    size_t length = strlen(options->name);
    if (length > NAME_MAX)
        return refuse(error, options->name, -ENAMETOOLONG, "creating");
    if (length == 0 || strchr(options->name, '/') || options->gzip_level < 0 || options->gzip_level > 9)
        return refuse(error, options->name, -EINVAL, "creating");
    struct tp_sink *sink = tp_arena_alloc(arena, sizeof *sink);
    char *buffer = tp_arena_alloc(arena, BUFFER);
    if (!sink || !buffer)
        return refuse(error, options->name, -ENOMEM, "creating");
    sink->system = options->system ? options->system : &real_system;
    sink->folder = options->folder;
    sink->buffer = buffer;
    memcpy(sink->name, options->name, length + 1);
    if (options->gzip_level > 0) {
        sink->gzip = true;
        sink->deflater = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free, .opaque = arena};
        sink->compressed = tp_arena_alloc(arena, BUFFER);
        /* 16: a gzip header, which zlib leaves without name and time, so that equal content makes equal files. */
        if (!sink->compressed || deflateInit2(&sink->deflater, options->gzip_level, Z_DEFLATED, 16 + MAX_WBITS, 8,
                                              Z_DEFAULT_STRATEGY) != Z_OK)
            return refuse(error, options->name, -ENOMEM, "creating");
    }
    if (exists(sink)) /* said now, before the work; close will make sure */
        return refuse(error, options->name, -EEXIST, "creating");
    sink->descriptor = create(sink);
    if (sink->descriptor < 0)
        return refuse(error, options->name, sink->descriptor, "creating");
    return sink;
}

void tp_sink_put(struct tp_sink *sink, const void *bytes, size_t count)
{
    const char *from = bytes;
    while (count > BUFFER - sink->used) {
        size_t room = BUFFER - sink->used;
        memcpy(sink->buffer + sink->used, from, room);
        sink->used = BUFFER;
        from += room;
        count -= room;
        flush(sink, Z_NO_FLUSH);
    }
    memcpy(sink->buffer + sink->used, from, count);
    sink->used += count;
}

char *tp_sink_reserve(struct tp_sink *sink, size_t bytes)
{
    if (bytes > BUFFER - sink->used)
        flush(sink, Z_NO_FLUSH);
    return sink->buffer + sink->used;
}

void tp_sink_advance(struct tp_sink *sink, size_t bytes)
{
    sink->used += bytes;
}

int tp_sink_status(const struct tp_sink *sink)
{
    return sink->status;
}

/* Temporary name to final name, without overwriting what another process may have put there meanwhile. */
static int publish(struct tp_sink *sink)
{
    int folder = sink->folder;
    if (sink->system->rename(folder, sink->temporary, folder, sink->name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return -errno;
    /* An old kernel, or a file system without that flag (some network ones). */
    if (sink->system->link(folder, sink->temporary, folder, sink->name, 0) == 0) {
        unlinkat(folder, sink->temporary, 0);
        return 0;
    }
    if (errno == EEXIST || exists(sink))
        return -EEXIST;
    /* No links either (FAT): what remains is a check that is not atomic. */
    return sink->system->rename(folder, sink->temporary, folder, sink->name, 0) == 0 ? 0 : -errno;
}

/* Ends the descriptor. EINTR: Linux has closed it all the same. */
static void close_descriptor(struct tp_sink *sink)
{
    if (!tp_file_is(sink->descriptor, &sink->id))
        fail(sink, -EBADF, "closing");
    else if (sink->system->close(sink->descriptor) < 0 && errno != EINTR)
        fail(sink, -errno, "closing");
    sink->descriptor = -1;
}

int tp_sink_close(struct tp_sink *sink, uint64_t *ret_bytes, struct tp_error *error)
{
    flush(sink, Z_FINISH);
    close_descriptor(sink);
    if (sink->status == 0) {
        int result = publish(sink);
        if (result < 0)
            fail(sink, result, "renaming to the final name");
    }
    if (sink->status < 0) {
        unlinkat(sink->folder, sink->temporary, 0);
        refuse(error, sink->name, sink->status, sink->doing);
        return sink->status;
    }
    if (ret_bytes)
        *ret_bytes = sink->written;
    return 0;
}

void tp_sink_abandon(struct tp_sink *sink)
{
    close_descriptor(sink);
    unlinkat(sink->folder, sink->temporary, 0);
}
