/*
 * record.h: every event record, the contract of the house. Collectors write them, the model reads them, nothing else
 * passes between the two.
 *
 * A record is a run of 64-bit words in native byte order. Word 0 is the head: kind in bits 0..7, size in words in bits
 * 8..15, key in bits 16..63. Word 1 is the time in clock ticks (clock.h). A reader skips a kind that it does not know
 * by its size.
 *
 * Within a thread, records stand in the order in which they were written. The key joins an end to its begin: it is the
 * address of the observed object (user-space addresses fit 48 bits), unique while the range is open and free to be used
 * again after. Normally an end closes the newest open range of its own thread; where the key says otherwise it closes
 * a range that another thread opened, or one that lies deeper.
 */
#ifndef TP_RECORD_H
#define TP_RECORD_H

#include "base.h"

enum tp_record_kind {
    TP_RECORD_NONE = 0, /* never written: unused space in a chunk reads as this */
    TP_RECORD_BEGIN = 1, /* a range opens: an operator, a user range */
    TP_RECORD_END = 2,   /* a range closes: head and time only */
    TP_RECORD_LOSS = 3,  /* begins that found no room: see struct tp_loss */
};

/* What kind of range. The numbers are those of at::RecordScope (ATen/record_function.h), which this house took over. */
enum tp_scope {
    TP_SCOPE_FUNCTION = 0,
    TP_SCOPE_BACKWARD_FUNCTION = 1,
    TP_SCOPE_TORCHSCRIPT_FUNCTION = 2,
    TP_SCOPE_KERNEL_FUNCTION_DTYPE = 3,
    TP_SCOPE_CUSTOM_CLASS = 4,
    TP_SCOPE_BUILD_FEATURE = 5,
    TP_SCOPE_LITE_INTERPRETER = 6,
    TP_SCOPE_USER_SCOPE = 7,
    TP_SCOPE_STATIC_RUNTIME_OP = 8,
    TP_SCOPE_STATIC_RUNTIME_MODEL = 9,
    TP_SCOPE_COUNT = 10,
};

enum tp_begin_flag {
    TP_BEGIN_FORWARD_THREAD = 1, /* word forward_thread is there */
    TP_BEGIN_TEXT = 2,           /* name is 0 and its text follows the last word */
    TP_BEGIN_TEXT_CUT = 4,       /* the text is only the beginning of the name */
    TP_BEGIN_ASYNC = 8,          /* the program said that this range may end on another thread */
};

/* TP_RECORD_BEGIN. Words 0..4 are always there; then forward_thread if flagged; then text_bytes of name, padded with
 * zero bytes to a word, if flagged. */
struct tp_begin {
    uint64_t head;
    uint64_t time;
    uint32_t name;       /* id of intern.h; 0: the text follows */
    uint8_t scope;       /* enum tp_scope */
    uint8_t flags;       /* enum tp_begin_flag */
    uint16_t text_bytes; /* without a NUL */
    int64_t sequence;    /* autograd sequence number; -1: none */
    uint64_t id;         /* record function id; 0: none was given */
};

/* TP_RECORD_LOSS: count begins, the first and the last at these times, were not recorded; nor were their ends. */
struct tp_loss {
    uint64_t head;
    uint64_t time; /* of the first */
    uint64_t count;
    uint64_t last_time;
};

#define TP_RECORD_MAX_WORDS 255
#define TP_BEGIN_WORDS 5
#define TP_END_WORDS 2
#define TP_LOSS_WORDS 4
/* Longest name that a begin can carry itself. */
#define TP_BEGIN_TEXT_MAX ((TP_RECORD_MAX_WORDS - TP_BEGIN_WORDS - 1) * 8)

_Static_assert(sizeof(struct tp_begin) == TP_BEGIN_WORDS * 8, "begin: five words");
_Static_assert(sizeof(struct tp_loss) == TP_LOSS_WORDS * 8, "loss: four words");

#define TP_KEY_MASK ((UINT64_C(1) << 48) - 1)

static inline uint64_t tp_record_head(enum tp_record_kind kind, unsigned words, uint64_t key)
{
    return (uint64_t)kind | (uint64_t)words << 8 | (key & TP_KEY_MASK) << 16;
}

static inline enum tp_record_kind tp_record_kind(uint64_t head)
{
    return (enum tp_record_kind)(head & 0xff);
}

static inline unsigned tp_record_words(uint64_t head)
{
    return (unsigned)(head >> 8 & 0xff);
}

static inline uint64_t tp_record_key(uint64_t head)
{
    return head >> 16;
}

/* How many begins a record stands for. */
static inline uint64_t tp_record_begins(const uint64_t *record)
{
    enum tp_record_kind kind = tp_record_kind(*record);
    return kind == TP_RECORD_BEGIN ? 1 : kind == TP_RECORD_LOSS ? ((const struct tp_loss *)record)->count : 0;
}

/* The optional words of a begin, in their order. */
static inline uint64_t tp_begin_forward_thread(const struct tp_begin *begin)
{
    return begin->flags & TP_BEGIN_FORWARD_THREAD ? ((const uint64_t *)begin)[TP_BEGIN_WORDS] : 0;
}

static inline const char *tp_begin_text(const struct tp_begin *begin)
{
    unsigned words = TP_BEGIN_WORDS + (begin->flags & TP_BEGIN_FORWARD_THREAD ? 1 : 0);
    return (const char *)((const uint64_t *)begin + words);
}

/*
 * A block is what the background thread keeps: a stretch of one thread's records, whole ones only, with what a reader
 * must know of the thread, so that a block can be understood alone.
 */
struct tp_thread_info {
    uint64_t serial;     /* 1, 2, ... in this process, never used twice (OS thread ids are) */
    uint64_t logical_id; /* at::RecordFunction::currentThreadId(): 1, 2, ... */
    uint32_t os_id;      /* gettid() */
    uint32_t reserved;
    char name[16];       /* comm, NUL-terminated */
};

struct tp_block {
    uint32_t magic;       /* TP_BLOCK_MAGIC */
    uint32_t bytes;       /* of the records behind this header; a multiple of 8 */
    uint64_t first_time;  /* of the first and of the last record */
    uint64_t last_time;
    uint64_t begins;      /* TP_RECORD_BEGIN in it */
    uint64_t lost;        /* sum of the counts of TP_RECORD_LOSS in it */
    uint64_t link;        /* for the keeper of the blocks; readers leave it alone */
    struct tp_thread_info thread;
};

#define TP_BLOCK_MAGIC UINT32_C(0x4b425054) /* "TPBK" */

#endif
