/*
 * exit.c: the ways out that run no exit handlers: _exit (os._exit, the end of a multiprocessing child) and exec. A child of
 * vfork comes here too, before its exec: nothing of this allocates, locks or writes memory of its parent
 * (tp_process_leave returns at once there).
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../agent/process.h"
#include "real.h"

static _Noreturn void leave(int status)
{
    tp_process_leave("_exit");
    const struct tp_real *real = tp_real();
    if (real->exit_now)
        real->exit_now(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

TP_EXPORT void _exit(int status)
{
    leave(status);
}

TP_EXPORT void _Exit(int status)
{
    leave(status);
}

static int cannot(void)
{
    errno = ENOSYS;
    return -1;
}

TP_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    tp_process_leave("exec");
    return tp_real()->execve ? tp_real()->execve(path, arguments, environment) : cannot();
}

TP_EXPORT int execv(const char *path, char *const arguments[])
{
    tp_process_leave("exec");
    return tp_real()->execv ? tp_real()->execv(path, arguments) : cannot();
}

TP_EXPORT int execvp(const char *file, char *const arguments[])
{
    tp_process_leave("exec");
    return tp_real()->execvp ? tp_real()->execvp(file, arguments) : cannot();
}

TP_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    tp_process_leave("exec");
    return tp_real()->execvpe ? tp_real()->execvpe(file, arguments, environment) : cannot();
}

TP_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
    tp_process_leave("exec");
    return tp_real()->fexecve ? tp_real()->fexecve(fd, arguments, environment) : cannot();
}
