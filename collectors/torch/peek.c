#include "peek.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int pipe_ends[2];

bool tp_peek_begin(void)
{
    return pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) == 0;
}

void tp_peek_end(void)
{
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* System calls and not the C library's functions: a sanitizer of the program would take a look behind the end of an
 * object for a fault. */
size_t tp_peek(uint64_t *to, const void *from, size_t words)
{
    long bytes = syscall(SYS_write, pipe_ends[1], from, words * 8);
    if (bytes <= 0 || syscall(SYS_read, pipe_ends[0], to, bytes) != bytes)
        return 0;
    return (size_t)bytes / 8;
}
