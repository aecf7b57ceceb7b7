/*
 * error.h: why something could not be done, told so that a person can act on it.
 *
 * The caller owns the struct and may pass NULL. The first error wins: tp_error_set on an error that is already set
 * does nothing, so a caller may go on and report once. Used at the edges (settings, files, commands); inside,
 * functions return 0 or -errno.
 */
#ifndef TP_ERROR_H
#define TP_ERROR_H

#include "base.h"

struct tp_error {
    bool set;
    char where[96];    /* the variable, file or function */
    char what[320];    /* what is wrong with it, the value included */
    char accepted[320]; /* what would be right; empty where there is no choice */
};

void tp_error_set(struct tp_error *error, const char *where, const char *accepted, const char *format, ...)
    TP_PRINTF(4, 5);

/* The one line that is printed: "where: what; accepted: ...". Returns the length written, cut at size - 1.
 * Control characters, which a value may hold, become '?'. */
size_t tp_error_line(const struct tp_error *error, char *line, size_t size);

#endif
