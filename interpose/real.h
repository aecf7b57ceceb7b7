/*
 * real.h: the functions behind the names that we take.
 *
 * Those of the C library are looked up once, by the constructor, since they may be called where dlsym must not be: in signal
 * handlers and in children of vfork. A call that comes before the constructor looks its own up.
 */
#ifndef TP_REAL_H
#define TP_REAL_H

#include <signal.h>

#include "../agent/base.h"

struct tp_real {
    int (*sigaction)(int, const struct sigaction *, struct sigaction *);
    void (*(*signal)(int, void (*)(int)))(int);
    void (*exit_now)(int); /* _exit */
    int (*execve)(const char *, char *const[], char *const[]);
    int (*execv)(const char *, char *const[]);
    int (*execvp)(const char *, char *const[]);
    int (*execvpe)(const char *, char *const[], char *const[]);
    int (*fexecve)(int, char *const[], char *const[]);
    int (*execveat)(int, const char *, char *const[], char *const[], int);
};

const struct tp_real *tp_real(void);

/* A function of a library that was opened RTLD_LOCAL; NULL when it is not loaded or has no such name. */
void *tp_real_in(const char *library, const char *name);

#endif
