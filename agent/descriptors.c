#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1u << 1)
#endif

/* The thread sanitizer takes a number to mean the same in every thread, and reports races where it does not. */
#if defined(__SANITIZE_THREAD__)
#define ONE_TABLE true
#elif defined(__has_feature)
#define ONE_TABLE __has_feature(thread_sanitizer)
#else
#define ONE_TABLE false
#endif

/* Asked with arguments that are wrong: what is forbidden or unknown says so, and nothing else happens. There is no way
 * back once the table is another. */
static bool is_possible(void)
{
    return syscall(SYS_close_range, 1u, 0u, 0u) < 0 && errno == EINVAL && syscall(SYS_pidfd_open, -1, 0u) < 0 &&
           errno == EINVAL && syscall(SYS_pidfd_getfd, -1, 0, 0u) < 0 && errno == EBADF;
}

bool tp_descriptors_own(void)
{
    if (ONE_TABLE || !is_possible() || syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE) != 0)
        return false;
    /* The three standard numbers are taken, so that nothing which is meant for them gets into a file. */
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0u);
    for (int number = process + 1; process >= 0 && number <= STDERR_FILENO; number++)
        fcntl(process, F_DUPFD_CLOEXEC, number);
    tp_log_through(process);
    return true;
}

struct tp_file_id tp_file_id(int descriptor)
{
    struct stat now;
    if (fstat(descriptor, &now) != 0)
        return (struct tp_file_id){0};
    return (struct tp_file_id){now.st_dev, now.st_ino};
}

bool tp_file_is(int descriptor, const struct tp_file_id *id)
{
    struct tp_file_id now = tp_file_id(descriptor);
    return id->inode && now.inode == id->inode && now.device == id->device;
}

bool tp_file_close(int descriptor, const struct tp_file_id *id)
{
    if (!tp_file_is(descriptor, id))
        return false;
    close(descriptor);
    return true;
}
