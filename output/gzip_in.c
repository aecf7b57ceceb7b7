#include "gzip_in.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#define BUFFER (64 * 1024)

enum state { START, PLAIN, MEMBER, BETWEEN, FAILED };

struct tp_gzip_in {
    struct tp_bytes_in source;
    enum state state;
    const char *flaw;
    bool source_ended;
    unsigned char *at;
    size_t left;
    z_stream inflater;
    unsigned char buffer[BUFFER];
};

static voidpf zlib_alloc(voidpf arena, uInt items, uInt size)
{
    return tp_arena_alloc(arena, (size_t)items * size);
}

static void zlib_free(voidpf arena, voidpf piece)
{
    (void)arena;
    (void)piece; /* goes with the arena */
}

struct tp_gzip_in *tp_gzip_in_new(struct tp_bytes_in source, struct tp_arena *arena)
{
    struct tp_gzip_in *in = tp_arena_alloc(arena, sizeof *in);
    if (!in)
        return NULL;
    in->source = source;
    in->at = in->buffer;
    in->inflater.zalloc = zlib_alloc;
    in->inflater.zfree = zlib_free;
    in->inflater.opaque = arena;
    return inflateInit2(&in->inflater, 15 + 16) == Z_OK ? in : NULL;
}

/* At least `wanted` bytes in the buffer, fewer only at the end. 0, or the source's failure. */
static ssize_t fill(struct tp_gzip_in *in, size_t wanted)
{
    if (in->left >= wanted || in->source_ended)
        return 0;
    memmove(in->buffer, in->at, in->left);
    in->at = in->buffer;
    while (in->left < wanted) {
        ssize_t n = in->source.read(in->source.context, in->buffer + in->left, BUFFER - in->left);
        if (n < 0)
            return n;
        if (n == 0) {
            in->source_ended = true;
            break;
        }
        in->left += (size_t)n;
    }
    return 0;
}

static ssize_t fail(struct tp_gzip_in *in, const char *flaw)
{
    in->state = FAILED;
    in->flaw = flaw;
    return -EBADMSG;
}

static bool at_magic(const struct tp_gzip_in *in)
{
    return in->left >= 2 && in->at[0] == 0x1f && in->at[1] == 0x8b;
}

/* What was inflated: more than 0, or 0 at the end of a member, or a failure. */
static ssize_t inflate_some(struct tp_gzip_in *in, void *bytes, size_t count)
{
    z_stream *inflater = &in->inflater;
    inflater->next_out = bytes;
    inflater->avail_out = count > UINT32_MAX ? UINT32_MAX : (uInt)count;
    uInt room = inflater->avail_out;
    while (inflater->avail_out == room) {
        ssize_t status = fill(in, 1);
        if (status < 0)
            return status;
        inflater->next_in = in->at;
        inflater->avail_in = (uInt)in->left;
        int result = inflate(inflater, Z_NO_FLUSH);
        in->at += in->left - inflater->avail_in;
        in->left = inflater->avail_in;
        if (result == Z_STREAM_END) {
            in->state = BETWEEN;
            break;
        }
        if (result == Z_MEM_ERROR)
            return -ENOMEM;
        if (result == Z_BUF_ERROR) /* nothing came in, and all that had come in before is out */
            return fail(in, "the gzip data ends early");
        if (result != Z_OK) {
            ssize_t failed = fail(in, "the gzip data is damaged");
            /* What was whole comes first. */
            return inflater->avail_out < room ? (ssize_t)(room - inflater->avail_out) : failed;
        }
    }
    return (ssize_t)(room - inflater->avail_out);
}

static ssize_t gzip_read(void *context, void *bytes, size_t count)
{
    struct tp_gzip_in *in = context;
    for (;;) {
        ssize_t status = in->state == MEMBER || in->state == FAILED ? 0 : fill(in, 2);
        if (status < 0)
            return status;
        switch (in->state) {
        case START:
            in->state = at_magic(in) ? MEMBER : PLAIN;
            break;
        case PLAIN:
            if (in->left == 0)
                return 0;
            if (count > in->left)
                count = in->left;
            memcpy(bytes, in->at, count);
            in->at += count;
            in->left -= count;
            return (ssize_t)count;
        case MEMBER:
            status = inflate_some(in, bytes, count);
            if (status != 0)
                return status;
            break;
        case BETWEEN:
            if (in->left == 0)
                return 0;
            if (!at_magic(in))
                return fail(in, "there are bytes behind the gzip data");
            if (inflateReset(&in->inflater) != Z_OK)
                return fail(in, "the gzip data is damaged");
            in->state = MEMBER;
            break;
        case FAILED:
            return -EBADMSG;
        }
    }
}

struct tp_bytes_in tp_gzip_in_bytes(struct tp_gzip_in *in)
{
    return (struct tp_bytes_in){gzip_read, in};
}

const char *tp_gzip_in_flaw(const struct tp_gzip_in *in)
{
    return in->flaw;
}
