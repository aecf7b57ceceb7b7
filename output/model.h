/*
 * model.h: from blocks of records to finished events. A stream: segments of events come out while blocks go in; what is
 * held between two segments is the ranges that are open, one cursor a thread, and one bounded segment, whatever the
 * number of records.
 *
 * Records of all threads are merged by time, of equal times those of the smaller serial first. Within a thread the
 * nanosecond stamps are made to rise strictly (a coarse clock may stand still: then each stamp is one nanosecond after
 * the one before), so that slices of a thread nest strictly, without ties. Only ranges that begin inside the window
 * count. One that is still open when the window ends, or whose end was lost, ends there and is marked unfinished: with
 * the window, or with the range around it. Of several that end so, one inside the other, the outermost of the window
 * ends with the window, each one inside a nanosecond before the one around it, as far as earlier stamps leave room.
 *
 * A range that the program called asynchronous, or that ends on another thread, does not nest: its times are what the
 * clock said, and it has no depth, no parent and no self time. If that shows only when it ends, what began inside it
 * keeps it as parent; the time of what ended inside it then counts as of children of the range around it.
 *
 * An end belongs to the innermost open range of its thread if the key agrees; else to the newest one with this key that
 * the thread began; else to the newest one with this key of any thread; else it is passed over.
 *
 * Within a segment events stand in the order of their index, that is of their begin. A range that stays open longer
 * than a segment can wait comes in a later segment than the ranges inside it.
 *
 * Inputs belong to the range whose begin stands before them, and so do the values that an execution trace tells; those
 * that an operator gave back stand before its end. Where the memory does not suffice for them, the event comes without,
 * as a cut one.
 *
 * Damaged blocks are read up to the damage: a record that is empty or larger than what is left, a time that falls (only
 * a record of losses may be late). A record of a kind that is not known here is passed over.
 */
#ifndef TP_MODEL_H
#define TP_MODEL_H

#include "../agent/arena.h"
#include "../agent/base.h"
#include "../agent/record.h"

/* Where blocks come from. next gives the blocks of one thread one after another, call by call, in their order; a block
 * and its records must stay readable until the model asks for that thread's next one. Texts of names stay where they
 * are. */
struct tp_source {
    void *context;
    /* The threads of this cycle: serials in ret_threads (up to capacity); returns how many there are. */
    size_t (*threads)(void *context, uint64_t *ret_threads, size_t capacity);
    /* The next block of the thread, or NULL at its end. */
    const struct tp_block *(*next)(void *context, uint64_t thread);
    /* Text of an interned name; length in *ret_bytes. Never NULL. */
    const char *(*name)(void *context, uint32_t id, size_t *ret_bytes);
    /* Clock ticks to nanoseconds since the epoch (CLOCK_REALTIME). */
    uint64_t (*nanoseconds)(void *context, uint64_t ticks);
};

struct tp_window {
    uint64_t begin, end; /* clock ticks; begins in [begin, end) count */
};

enum tp_event_flag {
    TP_EVENT_UNFINISHED = 1, /* end_ns is the window's end, or that of the range around it */
    TP_EVENT_ASYNC = 2,      /* ended on another thread, or said to be asynchronous */
    TP_EVENT_NAME_CUT = 4,   /* the name was longer than what could be kept */
    TP_EVENT_INPUTS_CUT = 8, /* there were more inputs, or values, than what could be kept */
    TP_EVENT_WRAPS = 16,     /* sequence and forward_thread are those of the backward function inside it */
};

/* What an operator was given, or gave back, for execution traces. */
struct tp_event_values {
    uint32_t schema; /* id of intern.h; 0: none */
    uint32_t count;  /* values: sound ones (values.h) */
    uint32_t flags;  /* enum tp_values_flag */
    uint32_t words;
    uint32_t room; /* in words */
    uint64_t items[];
};

struct tp_event {
    uint64_t start_ns, end_ns; /* since the epoch; end_ns > start_ns */
    uint64_t self_ns;          /* without the time of direct children; 0 if asynchronous */
    uint64_t index;            /* 0, 1, ... in the order of begins over all threads: Ev Idx */
    uint64_t parent;           /* index of the range around it on its thread; UINT64_MAX: none, or asynchronous */
    const char *name;          /* valid until the segment call returns */
    uint32_t name_bytes;
    uint32_t name_id;          /* of intern.h, or 0 */
    uint32_t depth;            /* 0: outermost on its thread; UINT32_MAX if asynchronous */
    uint8_t scope;             /* enum tp_scope, or a newer one that is not known here */
    uint8_t flags;             /* enum tp_event_flag */
    int64_t sequence;          /* as shown: an evaluate_function wrapper has that of the backward function inside it */
    uint64_t forward_thread;   /* logical id; 0: none. As shown, likewise */
    uint64_t id;               /* record function id; 0: none */
    const uint64_t *inputs;    /* items (inputs.h), sound ones; valid until the segment call returns */
    uint16_t input_words;
    uint16_t input_count;      /* 0: none were recorded. There may be fewer items: the rest was cut */
    const struct tp_event_values *given, *returned; /* NULL: none were recorded; valid as inputs are */
    const char *schema;        /* what PyTorch says of the operator, "" if nothing was recorded; valid as the name is */
    uint32_t schema_bytes;
    uint64_t forward_parent;   /* index of the innermost range of the forward thread at the begin; UINT64_MAX: none */
    uint64_t end_index;        /* 0, 1, ... in the order of ends over all threads; without gaps in a segment */
    uint64_t end_thread;       /* serial of the thread that ended it; of its own if unfinished */
    const struct tp_thread_info *thread; /* where it began; valid as long as tp_model_options.keep */
};

struct tp_model_counts {
    uint64_t kept;       /* events delivered */
    uint64_t lost;       /* begins inside the window that found no room, as told by loss records */
    uint64_t unwritten;  /* begins that were recorded, but not reached when memory or time ran out; for the caller to set */
    uint64_t unfinished; /* of the kept ones */
    uint64_t names_cut;  /* of the kept ones */
    uint64_t inputs_cut; /* of the kept ones; values likewise */
    uint64_t damaged;    /* blocks that could not be read and were passed over */
    uint64_t segments;
};

struct tp_model;

struct tp_model_options {
    struct tp_source source;
    struct tp_window window;
    size_t memory_limit; /* bytes that the model may hold at most; at least 1 MiB */
    struct tp_arena *keep; /* where thread infos live, which events point at and writers keep; NULL: gone with the run */
    /* Takes one segment. A negative value stops the model, which returns it. */
    int (*segment)(void *context, const struct tp_event *events, size_t count);
    void *context;
};

/*
 * Runs the whole stream. 0, or a negative errno: -ENOMEM when open ranges alone pass the limit (what was complete is
 * delivered, and the counts say how far it came), or what segment returned. ret_counts is always filled.
 */
int tp_model_run(const struct tp_model_options *options, struct tp_model_counts *ret_counts);

#endif
