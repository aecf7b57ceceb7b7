/*
 * trace_in.h: reads a Chrome trace (Trace Event Format), ours, torch's or another's, as a stream: each event once, in
 * the order of the file, in fixed memory. Both forms are read: an object with traceEvents, and a bare array of events,
 * which the format allows to end without its bracket.
 *
 * The reader says what stands there and what is odd about a single event; what events mean together is the caller's.
 */
#ifndef TP_TRACE_IN_H
#define TP_TRACE_IN_H

#include "json_in.h"

/* A text of the file, cut here; hash and bytes are of the whole. Numbers and strings of equal text are different. */
#define TP_TRACE_TEXT 4096
struct tp_trace_text {
    bool there;
    bool is_string;
    uint64_t hash;
    uint64_t bytes;
    uint32_t kept; /* bytes of text */
    char text[TP_TRACE_TEXT + 1];
};

enum tp_trace_flaw {
    TP_TRACE_NOT_OBJECT = 1, /* the event is no object; then nothing else is known of it */
    TP_TRACE_TWICE = 2,      /* a member stands in it twice */
    TP_TRACE_BAD_PHASE = 4,  /* ph is missing, or no single character */
    TP_TRACE_BAD_TIME = 8,   /* ts or dur is no number */
    TP_TRACE_FAR_TIME = 16,  /* ts or dur lies beyond what nanoseconds in 63 bits can hold */
    TP_TRACE_BAD_TEXT = 32,  /* name or cat is no string */
    TP_TRACE_BAD_PLACE = 64, /* pid, tid or id is neither number nor string */
};

struct tp_trace_event {
    uint64_t number; /* 0, 1, ... in the file */
    uint64_t offset; /* of its first byte (after decompression) */
    unsigned flaws;  /* enum tp_trace_flaw */
    char phase;      /* 0 if it is bad */
    bool has_ts, has_dur, encloses; /* encloses: "bp":"e" */
    int64_t ts_ns, dur_ns;
    struct tp_trace_text name, cat, pid, tid, id; /* id: that of id2, if there is one */
    bool id_is_local; /* id2 with "local": of its process alone */
    /* Of args. */
    bool has_args, has_correlation;
    int64_t correlation; /* of a call and the device's work that it asked for */
    bool has_index, has_sequence, has_forward_thread, unfinished;
    int64_t index, sequence, forward_thread; /* Ev Idx, Sequence number, Fwd thread id */
};

/* The callbacks may be NULL; a negative result stops the reading and is given back. */
struct tp_trace_in_options {
    struct tp_bytes_in source; /* not compressed */
    void *context;
    int (*event)(void *context, const struct tp_trace_event *event);
    /* A number, string, true, false or null outside traceEvents: path is its member names, joined by '/'. Not those
     * inside of arrays. */
    int (*member)(void *context, const char *path, enum tp_json_token token, const struct tp_json_in *json);
    /* A member of the outermost object that stands in it twice. */
    int (*twice)(void *context, const char *path, uint64_t offset);
    /* A member of args that is none of the above: json stands behind its key (json->text), and the call reads its value
     * whole. The event is as far as it is known by now. Without this callback the value is passed over. */
    int (*arg)(void *context, const struct tp_trace_event *event, struct tp_json_in *json);
};

struct tp_trace_in_result {
    uint64_t events;    /* whole ones */
    bool found_events;  /* there was a traceEvents, or an array */
    bool is_open;       /* an array that ends without its bracket */
    const char *flaw;   /* what is wrong with the JSON, or NULL; */
    uint64_t offset, line, column; /* and where */
};

/* 0; -EINVAL with a flaw; -ENOMEM; the source's failure with a flaw; or what a callback gave. */
int tp_trace_in_read(const struct tp_trace_in_options *options, struct tp_arena *arena, struct tp_trace_in_result *ret);

/* A JSON number of microseconds in nanoseconds, rounded to the nearest. False: out of range. */
bool tp_trace_nanoseconds(const char *text, size_t bytes, int64_t *ret);
/* A JSON number that is whole, as 5 or 5.0 or 5e0. False: it is not, or out of range. */
bool tp_trace_integer(const char *text, size_t bytes, int64_t *ret);

#endif
