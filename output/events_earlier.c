#include "events_earlier.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "gzip_in.h"

#define EVENT "{\"id\":"
#define PIECE (32 * 1024)

struct copy {
    struct tp_sink *sink; /* NULL: lines are counted alone */
    uint64_t *count;
    size_t at;       /* of the line's bytes, as far as they tell what it is */
    bool is_event;
    bool comma_due;  /* one that may be the line's last byte */
};

static ssize_t read_file(void *context, void *bytes, size_t count)
{
    ssize_t got;
    while ((got = read(*(int *)context, bytes, count)) < 0 && errno == EINTR)
        ;
    return got < 0 ? -errno : got;
}

static void put(const struct copy *copy, const char *bytes, size_t count)
{
    if (copy->sink)
        tp_sink_put(copy->sink, bytes, count);
}

/* Up to the line's end; where in the bytes it goes on. */
static size_t take_line(struct copy *copy, const char *bytes, size_t count)
{
    const char *newline = memchr(bytes, '\n', count);
    size_t length = newline ? (size_t)(newline - bytes) : count, at = 0;
    for (; !copy->is_event && copy->at < sizeof EVENT - 1 && at < length; at++, copy->at++) {
        if (bytes[at] != EVENT[copy->at]) {
            copy->at = sizeof EVENT; /* of another kind */
            break;
        }
        if (copy->at + 1 == sizeof EVENT - 1) {
            copy->is_event = true;
            const char *before = (*copy->count)++ ? ",\n" : "\n";
            put(copy, before, strlen(before));
            put(copy, EVENT, sizeof EVENT - 1);
        }
    }
    if (copy->is_event && at < length) {
        if (copy->comma_due)
            put(copy, ",", 1);
        copy->comma_due = bytes[length - 1] == ',';
        put(copy, bytes + at, length - at - copy->comma_due);
    }
    if (!newline)
        return count;
    copy->at = 0;
    copy->is_event = copy->comma_due = false;
    return length + 1;
}

static int copy_lines(const char *path, struct tp_sink *sink, uint64_t *count, struct tp_arena *arena)
{
    struct copy copy = {.sink = sink, .count = count};
    char *bytes = tp_arena_alloc(arena, PIECE);
    int file = bytes ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (file < 0)
        return bytes ? -errno : -ENOMEM;
    struct tp_gzip_in *gzip = tp_gzip_in_new((struct tp_bytes_in){read_file, &file}, arena);
    ssize_t got = -ENOMEM;
    if (gzip) {
        struct tp_bytes_in in = tp_gzip_in_bytes(gzip);
        while ((got = in.read(in.context, bytes, PIECE)) > 0)
            for (size_t at = 0; at < (size_t)got;)
                at += take_line(&copy, bytes + at, (size_t)got - at);
    }
    close(file);
    return got < 0 ? (int)got : copy.is_event ? -EBADMSG : 0;
}

/* A sink takes nothing back: what is damaged shows before anything is put. */
int tp_events_copy(const char *path, struct tp_sink *sink, uint64_t *count, struct tp_arena *arena)
{
    uint64_t unused = 0;
    int failed = copy_lines(path, NULL, &unused, arena);
    return failed ? failed : copy_lines(path, sink, count, arena);
}
