/*
 * fail.c: preloaded behind libtprof.so; makes a call fail that libtprof.so makes (by the return address), and no other.
 *
 *     FAIL=write:3      the third call of write fails, later ones do not
 *     FAIL=write:3+     it and all later ones
 *     FAIL_MARK=FILE    is made when a call was failed: without it, the run made fewer calls
 *     FAIL_IN=children  calls of forked children alone, in each of which counting begins anew
 *     FAIL_ERRNO=122    errno, in place of the usual one
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
int __cxa_atexit(void (*)(void *), void *, void *);

static uintptr_t begin, end; /* of libtprof.so */
static const char *name;
static long number;
static bool and_later, waits_for_fork;
static int other_errno;
static _Atomic long calls;

static int find(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (!strstr(info->dlpi_name, "libtprof.so"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, until = from + info->dlpi_phdr[i].p_memsz;
            begin = begin && begin < from ? begin : from;
            end = end > until ? end : until;
        }
    return 1;
}

/* Called before the handlers of libtprof.so: a library that is behind it is initialised, and registers its own, first. */
static void in_child(void)
{
    waits_for_fork = false;
    calls = 0;
}

__attribute__((constructor)) static void read_order(void)
{
    static char text[64];
    const char *order = getenv("FAIL");
    char *colon = order ? strncpy(text, order, sizeof text - 1), strchr(text, ':') : NULL;
    if (!colon)
        return;
    dl_iterate_phdr(find, NULL);
    *colon = '\0';
    char *rest;
    number = strtol(colon + 1, &rest, 10);
    and_later = *rest == '+';
    name = text;
    const char *in = getenv("FAIL_IN"), *error = getenv("FAIL_ERRNO");
    waits_for_fork = in && strcmp(in, "children") == 0;
    if (waits_for_fork)
        pthread_atfork(NULL, NULL, in_child);
    other_errno = error ? atoi(error) : 0;
}

static bool must_fail(const char *function, const void *caller)
{
    if (!name || waits_for_fork || (uintptr_t)caller < begin || (uintptr_t)caller >= end || strcmp(name, function) != 0)
        return false;
    long now = ++calls;
    if (now < number || (now > number && !and_later))
        return false;
    const char *mark = getenv("FAIL_MARK");
    if (now == number && mark)
        syscall(SYS_close, (int)syscall(SYS_openat, AT_FDCWD, mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    return true;
}

static void set_errno(int usual)
{
    errno = other_errno ? other_errno : usual;
}

static void *real(const char *function)
{
    void *(*find_in)(void *, const char *);
    *(void **)&find_in = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return find_in(RTLD_NEXT, function);
}

/* One row a function: what it gives when it fails, and errno. */
#define FAILS(type, function, parameters, arguments, result, error) \
    type function parameters \
    { \
        static type (*next) parameters; \
        if (must_fail(#function, __builtin_return_address(0))) { \
            set_errno(error); \
            return result; \
        } \
        if (!next) \
            *(void **)&next = real(#function); \
        return next arguments; \
    }

FAILS(void *, malloc, (size_t bytes), (bytes), NULL, ENOMEM)
FAILS(void *, mmap, (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
      (at, bytes, protection, flags, fd, offset), MAP_FAILED, ENOMEM)
FAILS(int, munmap, (void *at, size_t bytes), (at, bytes), -1, ENOMEM)
FAILS(int, madvise, (void *at, size_t bytes, int advice), (at, bytes, advice), -1, ENOMEM)
FAILS(int, ftruncate, (int fd, off_t bytes), (fd, bytes), -1, ENOSPC)
FAILS(int, posix_fallocate, (int fd, off_t offset, off_t bytes), (fd, offset, bytes), ENOSPC, 0)
FAILS(ssize_t, write, (int fd, const void *bytes, size_t count), (fd, bytes, count), -1, ENOSPC)
FAILS(ssize_t, pwrite, (int fd, const void *bytes, size_t count, off_t offset), (fd, bytes, count, offset), -1, ENOSPC)
FAILS(ssize_t, read, (int fd, void *bytes, size_t count), (fd, bytes, count), -1, EIO)
FAILS(int, fstat, (int fd, struct stat *status), (fd, status), -1, EIO)
FAILS(int, fstatat, (int folder, const char *path, struct stat *status, int flags), (folder, path, status, flags), -1,
      EIO)
FAILS(int, fstatvfs, (int fd, struct statvfs *status), (fd, status), -1, EIO)
FAILS(int, fstatfs, (int fd, struct statfs *status), (fd, status), -1, EIO)
FAILS(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
FAILS(int, unlink, (const char *path), (path), -1, EIO)
FAILS(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), -1, EIO)
FAILS(int, flock, (int fd, int operation), (fd, operation), -1, ENOLCK)
FAILS(char *, getcwd, (char *path, size_t size), (path, size), NULL, ENOENT)
FAILS(ssize_t, getrandom, (void *bytes, size_t count, unsigned flags), (bytes, count, flags), -1, ENOSYS)
FAILS(int, pthread_create, (pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument),
      (thread, attributes, body, argument), EAGAIN, 0)
FAILS(int, pthread_key_create, (pthread_key_t *key, void (*destructor)(void *)), (key, destructor), EAGAIN, 0)
FAILS(int, __register_atfork, (void (*before)(void), void (*parent)(void), void (*child)(void), void *handle),
      (before, parent, child, handle), ENOMEM, 0)
FAILS(int, __cxa_atexit, (void (*function)(void *), void *argument, void *handle), (function, argument, handle), -1,
      ENOMEM)
FAILS(void *, dlopen, (const char *path, int flags), (path, flags), NULL, 0)
FAILS(int, dlinfo, (void *handle, int request, void *ret), (handle, request, ret), -1, 0)

/* The real one tells its caller by the return address: behind libtprof.so the next one after us is the same. */
void *dlsym(void *handle, const char *symbol)
{
    static void *(*next)(void *, const char *);
    if (must_fail("dlsym", __builtin_return_address(0)))
        return NULL;
    if (!next)
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return next(handle, symbol);
}

/* It closes all the same, as Linux does. */
int close(int fd)
{
    bool fails = must_fail("close", __builtin_return_address(0));
    int result = (int)syscall(SYS_close, fd);
    if (fails)
        set_errno(EIO);
    return fails ? -1 : result;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (must_fail("open", __builtin_return_address(0))) {
        set_errno(EMFILE);
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (must_fail("openat", __builtin_return_address(0))) {
        set_errno(EMFILE);
        return -1;
    }
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

int fcntl(int fd, int command, ...)
{
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (must_fail("fcntl", __builtin_return_address(0))) {
        set_errno(EMFILE);
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

/* Raw calls of ours: close_range, pidfd_open, pidfd_getfd, getdents64, execveat, renameat2, which has a name of its own here;
 * and those that do not fail: gettid, exit_group, clock_gettime, and futex, whose words are ours. */
long syscall(long call, ...)
{
    va_list more;
    va_start(more, call);
    long a[6];
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    const char *called = call == SYS_renameat2 ? "renameat2" : "syscall";
    bool cannot_fail = call == SYS_exit_group || call == SYS_gettid || call == SYS_clock_gettime || call == SYS_futex;
    if (!cannot_fail && must_fail(called, __builtin_return_address(0))) {
        set_errno(call == SYS_renameat2 ? EINVAL : ENOSYS);
        return -1;
    }
    static long (*next)(long, ...);
    if (!next)
        *(void **)&next = real("syscall");
    return next(call, a[0], a[1], a[2], a[3], a[4], a[5]);
}
