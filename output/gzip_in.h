/*
 * gzip_in.h: bytes of a file as they were before compression. What begins with gzip's magic bytes is inflated, member
 * after member; anything else is given as it is. zlib works in the arena.
 */
#ifndef TP_GZIP_IN_H
#define TP_GZIP_IN_H

#include <sys/types.h>

#include "../agent/arena.h"
#include "../agent/base.h"

/* Where bytes come from: more than 0 of them, 0 at the end, or a negative errno. */
struct tp_bytes_in {
    ssize_t (*read)(void *context, void *bytes, size_t count);
    void *context;
};

struct tp_gzip_in;

struct tp_gzip_in *tp_gzip_in_new(struct tp_bytes_in source, struct tp_arena *arena); /* NULL: out of memory */

/* Reads through it; its failures are those of the source, and -EBADMSG when the gzip data is damaged or ends early. */
struct tp_bytes_in tp_gzip_in_bytes(struct tp_gzip_in *in);

/* What is wrong with the gzip data, or NULL. */
const char *tp_gzip_in_flaw(const struct tp_gzip_in *in);

/* zlib's own memory goes with the arena; nothing to close. */

#endif
