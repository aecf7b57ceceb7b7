/*
 * A file that may be compressed, from any bytes. The first byte says in what pieces it comes. However it is cut, it has
 * the same contents and the same flaw.
 */
#include <errno.h>
#include <string.h>

#include "../unit/bytes_from.h"
#include "must.h"

#define ENOUGH (1u << 18) /* of what a small file may become */

struct contents {
    uint64_t bytes, hash;
    ssize_t status;
    const char *flaw;
};

static struct contents read_all(const uint8_t *data, size_t size, size_t piece, size_t count)
{
    struct tp_arena arena;
    struct bytes_from from;
    struct contents contents = {.hash = 1};
    unsigned char buffer[4096];
    tp_arena_init(&arena, 16u << 20);
    struct tp_gzip_in *gzip = tp_gzip_in_new(bytes_from(&from, (const char *)data, size, piece), &arena);
    must(gzip);
    struct tp_bytes_in in = tp_gzip_in_bytes(gzip);
    while (contents.bytes < ENOUGH && (contents.status = in.read(in.context, buffer, count)) > 0) {
        must((size_t)contents.status <= count);
        for (ssize_t i = 0; i < contents.status && contents.bytes < ENOUGH; i++, contents.bytes++)
            contents.hash = (contents.hash ^ buffer[i]) * UINT64_C(0x100000001b3);
    }
    contents.flaw = tp_gzip_in_flaw(gzip);
    if (contents.bytes < ENOUGH) {
        must(contents.status == 0 || contents.status == -EBADMSG);
        must((contents.status == 0) == (contents.flaw == NULL));
        must(in.read(in.context, buffer, count) == contents.status); /* and so it stays */
    }
    tp_arena_free(&arena);
    return contents;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct contents whole = read_all(data + 1, size - 1, size, 4096),
                    pieces = read_all(data + 1, size - 1, data[0] % 16 + 1, data[0] / 16 * 5 + 1);
    must(whole.bytes == pieces.bytes && whole.hash == pieces.hash);
    must(whole.bytes == ENOUGH || (whole.status == pieces.status && whole.flaw == pieces.flaw));
    return 0;
}
