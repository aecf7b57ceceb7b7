/*
 * sink.h: where the bytes of one output file go: a buffer, gzip or not, a temporary name in the same folder, at the
 * end a rename to the final name. Writers know nothing of this.
 *
 * The first failure (full disk, quota, EFBIG) is remembered: later puts do nothing, and close removes the temporary
 * file and returns that failure. SIGXFSZ and SIGPIPE do not reach the job: the threads that write have all signals
 * blocked. No memory of the job's heap is used; zlib works in the sink's arena.
 */
#ifndef TP_SINK_H
#define TP_SINK_H

#include "../agent/arena.h"
#include "../agent/base.h"
#include "../agent/error.h"

#include <sys/types.h>

struct tp_sink;

/* The system calls of a sink that can fail; a test gives its own. All as in the C library. */
struct tp_sink_system {
    int (*open)(int folder, const char *name, int flags, mode_t mode);
    ssize_t (*write)(int descriptor, const void *bytes, size_t count);
    int (*close)(int descriptor);
    int (*rename)(int old_folder, const char *old_name, int new_folder, const char *new_name, unsigned flags);
    int (*link)(int old_folder, const char *old_name, int new_folder, const char *new_name, int flags);
};

struct tp_sink_options {
    int folder;       /* descriptor of the folder (openat); the program may chdir */
    const char *name; /* final name inside it; must not exist (created exclusively) */
    int gzip_level;   /* 0: plain; 1 to 9 */
    const struct tp_sink_system *system; /* NULL: the real one */
};

/* NULL with error and errno set when the file cannot be made (EEXIST: the name is taken, pick another). The sink
 * lives in the arena until closed. */
struct tp_sink *tp_sink_open(const struct tp_sink_options *options, struct tp_arena *arena, struct tp_error *error);

void tp_sink_put(struct tp_sink *sink, const void *bytes, size_t count);

/* Direct access for a writer's inner loop: room for at least `bytes` (at most 64 KiB) at the returned address; advance
 * says how many of them were used. */
char *tp_sink_reserve(struct tp_sink *sink, size_t bytes);
void tp_sink_advance(struct tp_sink *sink, size_t bytes);

int tp_sink_status(const struct tp_sink *sink); /* 0 or the first failure as -errno */

/* Flushes, closes, renames. 0, or the first failure with error set; then no file is left under either name.
 * ret_bytes (may be NULL): size of the file on disk. */
int tp_sink_close(struct tp_sink *sink, uint64_t *ret_bytes, struct tp_error *error);

/* Is this entry a temporary file of a sink for `name`? */
bool tp_sink_is_temporary(const char *entry, const char *name);

/* Is it one that the process `pid` made for a file of this worker? */
bool tp_sink_is_temporary_of(const char *entry, const char *worker, uint32_t pid);

/* Gives up: no file is left. */
void tp_sink_abandon(struct tp_sink *sink);

#endif
