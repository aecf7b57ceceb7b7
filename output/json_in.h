/*
 * json_in.h: JSON, token by token, from a stream: strict (RFC 8259, valid UTF-8, surrogates in pairs), in fixed memory
 * whatever the length of a text or a file. A long text is read and checked to its end, but only its beginning is given;
 * its hash is that of the whole.
 */
#ifndef TP_JSON_IN_H
#define TP_JSON_IN_H

#include "../agent/arena.h"
#include "../agent/base.h"
#include "gzip_in.h"

enum tp_json_token {
    TP_JSON_FAILED, /* see the fields below; every further call gives this again */
    TP_JSON_END,    /* one whole value, and nothing behind it */
    TP_JSON_OBJECT,
    TP_JSON_OBJECT_END,
    TP_JSON_ARRAY,
    TP_JSON_ARRAY_END,
    TP_JSON_KEY,
    TP_JSON_STRING,
    TP_JSON_NUMBER,
    TP_JSON_TRUE,
    TP_JSON_FALSE,
    TP_JSON_NULL,
};

#define TP_JSON_IN_DEPTH 512
#define TP_JSON_IN_TEXT (64 * 1024)
#define TP_JSON_IN_BUFFER (64 * 1024)

struct tp_json_in {
    /* Of the last token. */
    const char *text;     /* key and string: decoded; number: as it stands. NUL-terminated; until the next token */
    size_t text_bytes;    /* of text; */
    uint64_t full_bytes;  /* of the whole text, if it is longer */
    uint64_t offset;      /* of the token's first byte in the stream */
    /* Of the failure. */
    const char *flaw;     /* what is wrong */
    int status;           /* -EINVAL: the text; else the source's failure */
    bool ends_between;    /* the text ends where a value was due, or behind one: nothing was cut in two */
    uint64_t flaw_offset; /* where, counted from 0; */
    uint64_t flaw_line, flaw_column; /* and from 1, in bytes */
    /* Private. */
    struct tp_bytes_in source;
    int state;
    bool passing;         /* texts are checked, not kept */
    uint64_t beyond;      /* hash of what was not kept */
    unsigned depth;
    uint64_t forms[TP_JSON_IN_DEPTH / 64]; /* a bit per depth: object */
    uint64_t buffer_offset, line, line_offset;
    size_t at, end;
    unsigned char *buffer;
    char *text_buffer;
};

struct tp_json_in *tp_json_in_new(struct tp_bytes_in source, struct tp_arena *arena); /* NULL: out of memory */
enum tp_json_token tp_json_in_next(struct tp_json_in *in);

/* A hash of the last token's text, the whole of it. */
uint64_t tp_json_in_hash(const struct tp_json_in *in);

/* Reads on to the end of the form that was just opened. False: it failed. */
bool tp_json_in_skip(struct tp_json_in *in);

/* Reads the next value whole, and checks it, without giving its texts: the fastest way past it. False: it failed. */
bool tp_json_in_pass(struct tp_json_in *in);

#endif
