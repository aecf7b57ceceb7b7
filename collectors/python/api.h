/*
 * api.h: all knowledge of CPython's memory layout. The C API is found with dlsym (the interpreter exports it); what it does
 * not tell without the interpreter lock is found at attach, by looking for what the C API says of the frames that run then
 * in the memory of thread state, frames and code, and by checking that every frame of the stack agrees.
 *
 * A thread may read its own frames without the lock: they are changed by nobody else, they own their code objects, and
 * these own their file names. So a hook that runs inside a call into C can look at its own Python stack at any time.
 */
#ifndef TP_PYTHON_API_H
#define TP_PYTHON_API_H

#include "../../agent/base.h"

struct tp_python_frame {
    const void *instruction; /* the call that is going on; somewhere inside the code object */
    const char *file;        /* bytes of co_filename, not terminated; NULL: it is not plain ASCII */
    size_t file_bytes;
};

/* On a thread that holds the interpreter lock and runs Python code. NULL, or why this interpreter's frames cannot be read. */
const char *tp_python_api_attach(void);

/* The innermost frame of this thread, NULL when it runs no Python code; the frame that called a frame. */
const void *tp_python_innermost(void);
const void *tp_python_caller(const void *frame);

/* False for the interpreter's own frames, which have no code. */
bool tp_python_read(const void *frame, struct tp_python_frame *ret_frame);

#endif
