/* bytes_from.h: bytes of memory as a source of tp_bytes_in, a few at a time. */
#ifndef TP_BYTES_FROM_H
#define TP_BYTES_FROM_H

#include <string.h>

#include "../../output/gzip_in.h"

struct bytes_from {
    const char *at;
    size_t left, piece;
};

static ssize_t bytes_from_read(void *context, void *bytes, size_t count)
{
    struct bytes_from *from = context;
    if (count > from->piece)
        count = from->piece;
    if (count > from->left)
        count = from->left;
    if (count > 0)
        memcpy(bytes, from->at, count);
    from->at += count;
    from->left -= count;
    return (ssize_t)count;
}

static inline struct tp_bytes_in bytes_from(struct bytes_from *from, const char *text, size_t length, size_t piece)
{
    *from = (struct bytes_from){text, length, piece};
    return (struct tp_bytes_in){bytes_from_read, from};
}

#endif
