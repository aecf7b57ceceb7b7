#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static void become(const char *const *argv, int errors, int failure)
{
    int null = open("/dev/null", O_RDWR);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
        dup2(errors, STDERR_FILENO) >= 0)
        execvp(argv[0], (char *const *)argv);
    int why = errno;
    if (write(failure, &why, sizeof why) < 0)
        _exit(126);
    _exit(127);
}

static size_t read_all(int from, char *text, size_t size)
{
    size_t used = 0;
    for (;;) {
        char beyond[4096];
        bool room = used < size;
        ssize_t n = read(from, room ? text + used : beyond, room ? size - used : sizeof beyond);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return used;
        used += room ? (size_t)n : 0;
    }
}

int tp_child_run(const char *const *argv, char *text, size_t size)
{
    int errors[2], failure[2], why = 0, status;
    text[0] = '\0';
    if (pipe2(errors, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(failure, O_CLOEXEC) < 0) {
        why = errno;
        close(errors[0]);
        close(errors[1]);
        return -why;
    }
    pid_t pid = fork();
    if (pid == 0)
        become(argv, errors[1], failure[1]);
    int fork_failed = pid < 0 ? errno : 0;
    close(errors[1]);
    close(failure[1]);
    text[read_all(errors[0], text, size - 1)] = '\0';
    bool never_began = read(failure[0], &why, sizeof why) == (ssize_t)sizeof why;
    close(errors[0]);
    close(failure[0]);
    if (fork_failed)
        return -fork_failed;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (never_began)
        return -why;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
