#include "error.h"

#include <stdarg.h>
#include <stdio.h>

void tp_error_set(struct tp_error *error, const char *where, const char *accepted, const char *format, ...)
{
    if (!error || error->set)
        return;
    error->set = true;
    snprintf(error->where, sizeof error->where, "%s", where ? where : "");
    snprintf(error->accepted, sizeof error->accepted, "%s", accepted ? accepted : "");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->what, sizeof error->what, format, arguments);
    va_end(arguments);
}

size_t tp_error_line(const struct tp_error *error, char *line, size_t size)
{
    int n = snprintf(line, size, "%s%s%s%s%s", error->where, error->where[0] ? ": " : "", error->what,
                     error->accepted[0] ? "; accepted: " : "", error->accepted);
    size_t length = n < 0 ? 0 : (size_t)n >= size ? size - 1 : (size_t)n;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?'; /* one line stays one line, whatever a value holds */
    return length;
}
