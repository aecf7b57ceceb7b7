/* child.h: runs a program to its end and keeps what it says on stderr; its stdout and stdin are /dev/null. */
#ifndef TP_CHILD_H
#define TP_CHILD_H

#include <stddef.h>

/* Exit status, 128 + signal, or -errno (also of the start). text is cut at size - 1. */
int tp_child_run(const char *const *argv, char *text, size_t size);

#endif
