#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "held.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#define SHARED (-2) /* the thread's stderr is the process's */

static _Atomic int current_level = TP_LOG_WARN;
static __thread int through = SHARED;

void tp_log_through(int process)
{
    through = process;
}

/* In a table of our own the number of stderr is taken by the pidfd's copy; what is borrowed comes in its place, so that
 * one is free even where the process may open no more. */
static int borrow_stderr(void)
{
    if (through < 0)
        return through == SHARED ? STDERR_FILENO : -1;
    close(STDERR_FILENO);
    return (int)syscall(SYS_pidfd_getfd, through, STDERR_FILENO, 0u);
}

static void return_stderr(int borrowed)
{
    if (through < 0)
        return;
    if (borrowed >= 0)
        close(borrowed);
    fcntl(through, F_DUPFD_CLOEXEC, STDERR_FILENO);
}

void tp_log_set_level(enum tp_log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed); /* one word, nothing hangs on its order */
}

enum tp_log_level tp_log_get_level(void)
{
    return (enum tp_log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

void tp_log_text(enum tp_log_level level, const char *text, size_t bytes)
{
    if (level > tp_log_get_level())
        return;
    struct tp_held held;
    int saved = errno, descriptor = borrow_stderr();
    tp_held_begin(&held);
    while (bytes > 0) {
        ssize_t n = write(descriptor, text, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* stderr is closed or full: there is nobody to tell */
        text += n;
        bytes -= (size_t)n;
    }
    tp_held_end(&held);
    return_stderr(descriptor);
    errno = saved;
}

void tp_log(enum tp_log_level level, const char *format, ...)
{
    if (level > tp_log_get_level())
        return;
    int saved = errno;
    char line[1024] = "tprof: ";
    size_t prefix = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line + prefix, sizeof line - prefix - 1, format, arguments);
    va_end(arguments);
    size_t length = prefix + (n < 0 ? 0 : (size_t)n);
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    for (size_t i = prefix; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?'; /* one line stays one line, whatever a setting or a name holds */
    line[length++] = '\n';
    tp_log_text(level, line, length);
    errno = saved;
}
