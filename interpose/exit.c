/*
 * exit.c: the ways out that run no exit handlers: _exit (os._exit, the end of a multiprocessing child), exec, and
 * daemon, whose parent leaves inside the C library. A child of vfork comes here too, before its exec: nothing of this
 * allocates, locks or writes memory of its parent (tp_process_is_recorded is false there).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../agent/log.h"
#include "../agent/process.h"
#include "real.h"

extern char **environ;

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

/* The files are written before exec, as there is nobody to write them after it; not where it is sure to fail, as the
 * attempts along PATH do: then the program goes on, and is recorded on. */
static bool leave_for(const struct stat *file)
{
    bool leaves = S_ISREG(file->st_mode) && file->st_mode & (S_IXUSR | S_IXGRP | S_IXOTH);
    if (leaves)
        tp_process_leave("exec");
    return leaves;
}

static bool leave_for_file(int folder, const char *path)
{
    struct stat found;
    return tp_process_is_recorded() && fstatat(folder, path, &found, 0) == 0 && leave_for(&found);
}

static bool leave_for_descriptor(int fd)
{
    struct stat found;
    return tp_process_is_recorded() && fstat(fd, &found) == 0 && leave_for(&found);
}

static bool leave_for_name(const char *name)
{
    if (!tp_process_is_recorded())
        return false;
    if (strchr(name, '/'))
        return leave_for_file(AT_FDCWD, name);
    const char *folders = getenv("PATH");
    bool left = false;
    for (const char *at = folders ? folders : "/bin:/usr/bin"; at && !left;) {
        char path[PATH_MAX];
        int length = (int)strcspn(at, ":");
        if (snprintf(path, sizeof path, "%.*s%s%s", length, at, length > 0 ? "/" : "", name) < PATH_MAX)
            left = leave_for_file(AT_FDCWD, path);
        at = at[length] ? at + length + 1 : NULL;
    }
    return left;
}

/* It failed all the same. */
static int came_back(bool left, int result)
{
    if (left)
        tp_log(TP_LOG_WARN, "an exec failed (%s); the files were written before it, and what follows is not recorded",
               strerror(errno));
    return result;
}

TP_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    bool left = leave_for_file(AT_FDCWD, path);
    return came_back(left, tp_real()->execve ? tp_real()->execve(path, arguments, environment) : cannot());
}

TP_EXPORT int execv(const char *path, char *const arguments[])
{
    bool left = leave_for_file(AT_FDCWD, path);
    return came_back(left, tp_real()->execv ? tp_real()->execv(path, arguments) : cannot());
}

TP_EXPORT int execvp(const char *file, char *const arguments[])
{
    bool left = leave_for_name(file);
    return came_back(left, tp_real()->execvp ? tp_real()->execvp(file, arguments) : cannot());
}

TP_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    bool left = leave_for_name(file);
    return came_back(left, tp_real()->execvpe ? tp_real()->execvpe(file, arguments, environment) : cannot());
}

TP_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
    bool left = leave_for_descriptor(fd);
    return came_back(left, tp_real()->fexecve ? tp_real()->fexecve(fd, arguments, environment) : cannot());
}

TP_EXPORT int execveat(int folder, const char *path, char *const arguments[], char *const environment[], int flags)
{
    bool is_descriptor = !*path; /* with AT_EMPTY_PATH */
    bool left = is_descriptor ? leave_for_descriptor(folder) : leave_for_file(folder, path);
    const struct tp_real *real = tp_real();
    return came_back(left, real->execveat ? real->execveat(folder, path, arguments, environment, flags) : cannot());
}

/* How many arguments there are, the first one among them. */
static size_t count_of(const char *first, va_list rest)
{
    size_t count = 0;
    for (const char *at = first; at; at = va_arg(rest, const char *))
        count++;
    return count;
}

/* The list as an array, with its NULL; what comes behind that in the list is next. */
static char **fill(char **arguments, const char *first, va_list rest)
{
    size_t count = 0;
    for (const char *at = first; at; at = va_arg(rest, const char *))
        arguments[count++] = (char *)at;
    arguments[count] = NULL;
    return arguments;
}

TP_EXPORT int execl(const char *path, const char *first, ...)
{
    va_list rest;
    va_start(rest, first);
    char **arguments = __builtin_alloca((count_of(first, rest) + 1) * sizeof *arguments);
    va_end(rest);
    va_start(rest, first);
    fill(arguments, first, rest);
    va_end(rest);
    return execve(path, arguments, environ);
}

TP_EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list rest;
    va_start(rest, first);
    char **arguments = __builtin_alloca((count_of(first, rest) + 1) * sizeof *arguments);
    va_end(rest);
    va_start(rest, first);
    fill(arguments, first, rest);
    va_end(rest);
    return execvp(file, arguments);
}

TP_EXPORT int execle(const char *path, const char *first, ...)
{
    va_list rest;
    va_start(rest, first);
    char **arguments = __builtin_alloca((count_of(first, rest) + 1) * sizeof *arguments);
    va_end(rest);
    va_start(rest, first);
    fill(arguments, first, rest);
    char *const *environment = va_arg(rest, char *const *);
    va_end(rest);
    return execve(path, arguments, environment);
}

/* As the C library's, whose parent leaves by an _exit that nobody can take. */
TP_EXPORT int daemon(int keep_folder, int keep_streams)
{
    pid_t child = fork();
    if (child > 0)
        leave(0);
    if (child < 0 || setsid() < 0 || (!keep_folder && chdir("/") != 0))
        return -1;
    if (keep_streams)
        return 0;
    int null = open("/dev/null", O_RDWR);
    if (null < 0)
        return -1;
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    return 0;
}
