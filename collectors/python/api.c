#include "api.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct object PyObject;

#define STATE_WORDS 40 /* of the thread state are looked at */
#define FRAME_WORDS 12 /* of a frame */
#define CODE_WORDS 32  /* of a code object */
#define MAX_FRAMES 16  /* of the stack at attach */
#define MIN_FRAMES 3
#define MAX_HIDDEN 3   /* frames in a row that the C API does not show */

enum { TYPE_WORD = 1, LENGTH_WORD = 2 }; /* PyObject.ob_type; the length of a str (Include/cpython/unicodeobject.h) */

/* What the C API says of a frame. */
struct known {
    PyObject *code, *file;
    const char *text;
    size_t bytes;
    int64_t byte_of_code; /* f_lasti */
};

static struct {
    PyObject *(*innermost_frame)(void);             /* PyEval_GetFrame, borrowed */
    PyObject *(*frame_caller)(PyObject *);          /* PyFrame_GetBack, new */
    PyObject *(*frame_code)(PyObject *);            /* PyFrame_GetCode, new */
    int (*frame_byte)(PyObject *);                  /* PyFrame_GetLasti */
    PyObject *(*attribute)(PyObject *, const char *);
    const char *(*text)(PyObject *, intptr_t *);    /* PyUnicode_AsUTF8AndSize */
    void (*unref)(PyObject *);
    void (*clear_error)(void);
    int (*is_locked)(void);                         /* PyGILState_Check */
    const void *(*thread_state)(void);              /* PyGILState_GetThisThreadState: needs no lock */
    const void *code_type, *text_type;
} python;

static struct {
    bool known;
    bool through_cframe; /* 3.11 and 3.12: the thread state points at a struct that points at the frame */
    unsigned state, cframe, code, caller, instruction, file; /* words */
    size_t text;                                             /* bytes */
} at;

static const void *word(const void *object, unsigned index)
{
    const void *value;
    memcpy(&value, (const char *)object + index * sizeof value, sizeof value);
    return value;
}

const void *tp_python_innermost(void)
{
    const void *state = at.known ? python.thread_state() : NULL;
    if (!state)
        return NULL;
    const void *top = word(state, at.state);
    return top && at.through_cframe ? word(top, at.cframe) : top;
}

const void *tp_python_caller(const void *frame)
{
    return word(frame, at.caller);
}

bool tp_python_read(const void *frame, struct tp_python_frame *ret_frame)
{
    const void *code = word(frame, at.code);
    if (!code || word(code, TYPE_WORD) != python.code_type)
        return false;
    *ret_frame = (struct tp_python_frame){.instruction = word(frame, at.instruction)};
    const void *file = word(code, at.file);
    if (file && word(file, TYPE_WORD) == python.text_type) {
        /* Text that is not ASCII lies further behind, so that as many bytes as it has characters can be read here too. */
        ret_frame->file = (const char *)file + at.text;
        ret_frame->file_bytes = (size_t)(uintptr_t)word(file, LENGTH_WORD);
    }
    return true;
}

static bool find_functions(void)
{
    static const struct {
        const char *name;
        void *where;
    } names[] = {
        {"PyEval_GetFrame", &python.innermost_frame},
        {"PyFrame_GetBack", &python.frame_caller},
        {"PyFrame_GetCode", &python.frame_code},
        {"PyFrame_GetLasti", &python.frame_byte},
        {"PyObject_GetAttrString", &python.attribute},
        {"PyUnicode_AsUTF8AndSize", &python.text},
        {"Py_DecRef", &python.unref},
        {"PyErr_Clear", &python.clear_error},
        {"PyGILState_Check", &python.is_locked},
        {"PyGILState_GetThisThreadState", &python.thread_state},
        {"PyCode_Type", &python.code_type},
        {"PyUnicode_Type", &python.text_type},
    };
    for (size_t i = 0; i < TP_COUNT(names); i++) {
        void *address = dlsym(RTLD_DEFAULT, names[i].name);
        if (!address)
            return false;
        memcpy(names[i].where, &address, sizeof address);
    }
    return true;
}

/* The stack as the C API tells it, innermost first. Code objects and names stay alive as long as their frames run. */
static unsigned ask(struct known known[MAX_FRAMES])
{
    unsigned count = 0;
    PyObject *frame = python.innermost_frame(), *held = NULL;
    while (frame && count < MAX_FRAMES) {
        struct known *k = &known[count];
        k->code = python.frame_code(frame);
        k->file = k->code ? python.attribute(k->code, "co_filename") : NULL;
        intptr_t bytes = 0;
        k->text = k->file ? python.text(k->file, &bytes) : NULL;
        k->bytes = (size_t)bytes;
        k->byte_of_code = python.frame_byte(frame);
        if (k->file)
            python.unref(k->file);
        if (k->code)
            python.unref(k->code);
        PyObject *caller = python.frame_caller(frame);
        if (held)
            python.unref(held);
        held = frame = caller;
        if (!k->text) {
            python.clear_error();
            break;
        }
        count++;
    }
    if (held)
        python.unref(held);
    return count;
}

/* Memory of which nothing is known may not be readable: the kernel says so, where a load would be the end. */
struct probe {
    int ends[2];
};

static bool can_read(const struct probe *probe, const void *address, size_t bytes)
{
    char buffer[STATE_WORDS * sizeof(void *)];
    uintptr_t value = (uintptr_t)address;
    if (value < 4096 || value % sizeof(void *) || bytes > sizeof buffer || write(probe->ends[1], address, bytes) < 0)
        return false;
    return read(probe->ends[0], buffer, bytes) == (ssize_t)bytes;
}

/* The next shown frame after `frame`: one whose code is this. */
static const void *next_with_code(const struct probe *probe, const void *frame, const PyObject *code)
{
    for (int hidden = 0; hidden <= MAX_HIDDEN; hidden++) {
        if (!can_read(probe, frame, FRAME_WORDS * sizeof(void *)))
            return NULL;
        if (word(frame, at.code) == code)
            return frame;
        frame = word(frame, at.caller);
    }
    return NULL;
}

/* Follows the whole stack with at.code and at.caller; fills frames. */
static bool follow(const struct probe *probe, const void *frame, const struct known *known, unsigned count,
                   const void *frames[MAX_FRAMES])
{
    for (unsigned i = 0; i < count; i++) {
        frame = next_with_code(probe, frame, known[i].code);
        if (!frame)
            return false;
        frames[i] = frame;
        frame = word(frame, at.caller);
    }
    return true;
}

static bool is_top(const struct probe *probe, const void *frame, const struct known *known, unsigned count,
                   const void *frames[MAX_FRAMES])
{
    if (!can_read(probe, frame, FRAME_WORDS * sizeof(void *)))
        return false;
    for (at.code = 0; at.code < FRAME_WORDS; at.code++)
        for (at.caller = 0; word(frame, at.code) == known[0].code && at.caller < FRAME_WORDS; at.caller++)
            if (at.caller != at.code && follow(probe, frame, known, count, frames))
                return true;
    return false;
}

static bool find_top(const struct probe *probe, const struct known *known, unsigned count, const void *frames[MAX_FRAMES])
{
    const void *state = python.thread_state();
    if (!can_read(probe, state, STATE_WORDS * sizeof(void *)))
        return false;
    for (at.state = 0; at.state < STATE_WORDS; at.state++) {
        const void *top = word(state, at.state);
        at.through_cframe = false;
        if (is_top(probe, top, known, count, frames))
            return true;
        at.through_cframe = true;
        for (at.cframe = 0; at.cframe < 3 && can_read(probe, top, 3 * sizeof(void *)); at.cframe++)
            if (is_top(probe, word(top, at.cframe), known, count, frames))
                return true;
    }
    return false;
}

/* In every frame as far behind the start of its code object as the C API says, with one constant in between. */
static bool find_instruction(const void *const frames[MAX_FRAMES], const struct known *known, unsigned count)
{
    for (at.instruction = 0; at.instruction < FRAME_WORDS; at.instruction++) {
        intptr_t start = 0;
        bool fits = at.instruction != at.code && at.instruction != at.caller;
        for (unsigned i = 0; i < count && fits; i++) {
            intptr_t behind = (intptr_t)((uintptr_t)word(frames[i], at.instruction) - (uintptr_t)known[i].code) -
                              (intptr_t)known[i].byte_of_code;
            start = i == 0 ? behind : start;
            fits = behind == start && behind > 0 && behind < 512;
        }
        if (fits)
            return true;
    }
    return false;
}

static bool find_file(const struct probe *probe, const struct known *known, unsigned count)
{
    for (at.file = 0; at.file < CODE_WORDS; at.file++) {
        bool fits = true;
        for (unsigned i = 0; i < count && fits; i++)
            fits = can_read(probe, known[i].code, CODE_WORDS * sizeof(void *)) &&
                   word(known[i].code, TYPE_WORD) == python.code_type && word(known[i].code, at.file) == known[i].file;
        if (fits)
            return true;
    }
    return false;
}

static bool find_text(const struct known *known, unsigned count)
{
    at.text = 0;
    for (unsigned i = 0; i < count; i++) {
        size_t behind = (size_t)((uintptr_t)known[i].text - (uintptr_t)known[i].file);
        if (word(known[i].file, TYPE_WORD) != python.text_type)
            return false;
        if ((size_t)(uintptr_t)word(known[i].file, LENGTH_WORD) != known[i].bytes)
            continue; /* not ASCII: the text is a copy elsewhere */
        if (behind < 24 || behind > 128 || (at.text && at.text != behind))
            return false;
        at.text = behind;
    }
    return at.text > 0;
}

const char *tp_python_api_attach(void)
{
    if (!find_functions())
        return "it lacks functions of the C API";
    if (!python.is_locked())
        return "its lock is not held here";
    struct known known[MAX_FRAMES];
    const void *frames[MAX_FRAMES];
    unsigned count = ask(known);
    if (count < MIN_FRAMES)
        return "its stack is not deep enough to learn from";
    struct probe probe;
    if (pipe2(probe.ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return "no pipe to look at memory with";
    const char *problem = NULL;
    if (!find_top(&probe, known, count, frames))
        problem = "its frames were not found";
    else if (!find_instruction(frames, known, count))
        problem = "the place of a frame's instruction was not found";
    else if (!find_file(&probe, known, count) || !find_text(known, count))
        problem = "the place of a file name was not found";
    close(probe.ends[0]);
    close(probe.ends[1]);
    at.known = !problem;
    return problem;
}
