#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic int current_level = TP_LOG_WARN;

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
    int saved = errno;
    while (bytes > 0) {
        ssize_t n = write(STDERR_FILENO, text, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* stderr is closed or full: there is nobody to tell */
        text += n;
        bytes -= (size_t)n;
    }
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
