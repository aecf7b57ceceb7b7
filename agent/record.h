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
    TP_RECORD_INPUTS = 4, /* what an operator was given: see struct tp_inputs */
    TP_RECORD_VALUES = 5, /* what an operator was given or gave back, for execution traces: see struct tp_values */
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
    TP_BEGIN_VALUES = 16,        /* what it was given follows, and what it gave back stands before its end: struct tp_values */
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

/*
 * TP_RECORD_INPUTS: what an operator was given, in words of items (below). It stands right behind the begin of its range,
 * with the key and the time of that; where the items need more than one record, behind each other. Joined, the words of
 * all are the items.
 */
struct tp_inputs {
    uint64_t head;
    uint64_t time;
    uint16_t count;  /* inputs of the operator, up to TP_INPUTS_COUNT_MAX */
    uint16_t words;  /* of all its records together, without their heads */
    uint16_t offset; /* where those of this record go */
    uint8_t flags;   /* enum tp_inputs_flag */
    uint8_t reserved;
};

enum tp_inputs_flag {
    TP_INPUTS_CUT = 1, /* what did not fit is left out: there are fewer items than inputs */
};

/*
 * One input is one item: a word, then what its kind says. The word has the kind in bits 0..7 and, by kind, an element
 * type in 8..15, a number of dimensions in 16..23, enum tp_input_flag in 24..31, a small number in 32..63. Nothing in an
 * item is a pointer, and none holds an object of the program.
 */
enum tp_input_kind {
    TP_INPUT_NONE = 0, /* no item: unused words read as this */
    TP_INPUT_OTHER,    /* something that is not shown: None, a string, a device, an object */
    TP_INPUT_UNDEFINED, /* a tensor whose sizes are not to be had: undefined, nested, symbolic */
    TP_INPUT_TENSOR,   /* sizes, then strides: 64 bits each, or two in a word where TP_INPUT_WIDE is not set */
    TP_INPUT_INT,      /* in the small number, sign extended, or in a word where TP_INPUT_WIDE is set */
    TP_INPUT_DOUBLE,   /* a word */
    TP_INPUT_COMPLEX,  /* two words: real, imaginary */
    TP_INPUT_BOOL,     /* the small number */
    TP_INPUT_SYMBOL,   /* a number that PyTorch does not know yet */
    TP_INPUT_TENSORS,  /* a list of tensors: how many in the small number; then so many items, unless TP_INPUT_LONG */
    TP_INPUT_SCALARS,  /* a list of numbers: as many items as the small number says */
    TP_INPUT_KINDS,
};

enum tp_input_flag {
    TP_INPUT_WIDE = 1,
    TP_INPUT_UNSTRIDED = 2,  /* a tensor that has no strides: another layout */
    TP_INPUT_CONTIGUOUS = 4, /* strides are left out: they follow from the sizes */
    TP_INPUT_LONG = 8,       /* a list of which torch shows nothing: its items are left out */
};

/* torch shows no list of more elements than this (TENSOR_LIST_DISPLAY_LENGTH_LIMIT, SCALAR_LIST_LENGTH_LIMIT). */
#define TP_INPUT_LIST_MAX 30

/* kind: enum tp_input_kind, enum tp_value_kind. */
static inline uint64_t tp_input_word(unsigned kind, unsigned type, unsigned dimensions, unsigned flags,
                                     uint32_t small)
{
    return (uint64_t)kind | (uint64_t)type << 8 | (uint64_t)dimensions << 16 | (uint64_t)flags << 24 |
           (uint64_t)small << 32;
}

/*
 * TP_RECORD_VALUES: what an operator was given, or gave back, whole: as an execution trace tells it. Those that it was
 * given stand behind its begin, those that it gave back before its end, with the key of both and the time of the record
 * that they belong to. They may be more than one record; joined, the words of all are the values.
 */
struct tp_values {
    uint64_t head;
    uint64_t time;
    uint32_t offset; /* where the words of this record go */
    uint32_t schema; /* id of intern.h: the operator's schema as text; 0: none */
    uint32_t count;  /* values; in the last record all of them */
    uint32_t flags;  /* enum tp_values_flag */
};

enum tp_values_flag {
    TP_VALUES_OUTPUTS = 1, /* what it gave back */
    TP_VALUES_MORE = 2,    /* another record follows */
    TP_VALUES_CUT = 4,     /* the rest is left out, maybe in the middle of a value; count is that of the whole ones */
    TP_VALUES_COMMS = 8,   /* in the last record: the last value is a tuple as of enum tp_values_comms */
};

/* What an operation between processes tells of itself: strings, ints, and lists of ints where it says so. */
enum tp_values_comms {
    TP_VALUES_COLLECTIVE,
    TP_VALUES_DTYPE, /* c10::ScalarType */
    TP_VALUES_IN_ELEMENTS,
    TP_VALUES_OUT_ELEMENTS,
    TP_VALUES_IN_SPLIT,  /* a list */
    TP_VALUES_OUT_SPLIT, /* a list */
    TP_VALUES_RANK_START,
    TP_VALUES_RANK_STRIDE,
    TP_VALUES_GROUP_NAME,
    TP_VALUES_GROUP_DESCRIPTION,
    TP_VALUES_GROUP_SIZE,
    TP_VALUES_IS_ASYNC,
    TP_VALUES_COMMS_COUNT,
};

/*
 * One value is a word like an item's above, then what its kind says. The kinds are the tags of c10::IValue
 * (ATen/core/ivalue.h), one up. Addresses are identities: what lies there is never read again.
 */
enum tp_value_kind {
    TP_VALUE_END = 0, /* no value: unused words read as this */
    TP_VALUE_NONE,
    TP_VALUE_TENSOR,  /* device (below) in the small number. Its address; where TP_VALUE_STORED is set, that of its data
                       * and its offset in them; sizes and strides as of TP_INPUT_TENSOR */
    TP_VALUE_STORAGE,
    TP_VALUE_DOUBLE,  /* a word */
    TP_VALUE_COMPLEX_DOUBLE,
    TP_VALUE_INT,     /* as TP_INPUT_INT */
    TP_VALUE_UINT,
    TP_VALUE_SYM_INT,
    TP_VALUE_SYM_FLOAT,
    TP_VALUE_SYM_BOOL,
    TP_VALUE_BOOL,    /* the small number */
    TP_VALUE_TUPLE,   /* as many values as the small number says */
    TP_VALUE_STRING,  /* as many bytes as the small number says, in whole words */
    TP_VALUE_BLOB,
    TP_VALUE_LIST,    /* as TP_VALUE_TUPLE */
    TP_VALUE_DICT,
    TP_VALUE_FUTURE,
    TP_VALUE_AWAIT,
    TP_VALUE_DEVICE,  /* the small number */
    TP_VALUE_STREAM,
    TP_VALUE_OBJECT,
    TP_VALUE_PY_OBJECT,
    TP_VALUE_UNINITIALIZED,
    TP_VALUE_CAPSULE,
    TP_VALUE_RREF,
    TP_VALUE_QUANTIZER,
    TP_VALUE_GENERATOR,
    TP_VALUE_ENUM,
    TP_VALUE_KINDS,
};

/* Beside those of enum tp_input_flag. */
enum tp_value_flag {
    TP_VALUE_STORED = 16,  /* a tensor that has a storage */
    TP_VALUE_UNTYPED = 32, /* the undefined tensor */
};

/* A device: c10::DeviceType in bits 0..7, its index in 8..15, 255 for none. */
static inline uint32_t tp_value_device(uint8_t type, uint8_t index)
{
    return (uint32_t)type | (uint32_t)index << 8;
}

/* Torch tells of no more elements of a list (kMaxNumElements and one). */
#define TP_VALUE_LIST_MAX 4097
#define TP_VALUE_DEPTH_MAX 16 /* of lists in lists */

#define TP_RECORD_MAX_WORDS 255
#define TP_BEGIN_WORDS 5
#define TP_END_WORDS 2
#define TP_LOSS_WORDS 4
#define TP_INPUTS_WORDS 3 /* the head of each record */
#define TP_VALUES_WORDS 4 /* likewise */
#define TP_VALUES_ITEMS_MAX 65528 /* words */
#define TP_INPUTS_PARTS_MAX 4
#define TP_INPUTS_ITEMS_MAX (TP_INPUTS_PARTS_MAX * (TP_RECORD_MAX_WORDS - TP_INPUTS_WORDS)) /* words */
#define TP_INPUTS_COUNT_MAX 1024
/* Longest name that a begin can carry itself. */
#define TP_BEGIN_TEXT_MAX ((TP_RECORD_MAX_WORDS - TP_BEGIN_WORDS - 1) * 8)

_Static_assert(sizeof(struct tp_begin) == TP_BEGIN_WORDS * 8, "begin: five words");
_Static_assert(sizeof(struct tp_loss) == TP_LOSS_WORDS * 8, "loss: four words");
_Static_assert(sizeof(struct tp_inputs) == TP_INPUTS_WORDS * 8, "inputs: three words");
_Static_assert(sizeof(struct tp_values) == TP_VALUES_WORDS * 8, "values: four words");

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
