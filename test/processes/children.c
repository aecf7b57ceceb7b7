/* children.c: processes that make others, or become another program. */
#include "processes.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

extern char **environ;

/* The parent's records are neither mapped here nor open. */
static bool sees_records_of(pid_t process)
{
    char name[64], line[512], path[64], target[512];
    snprintf(name, sizeof name, "/tprof.%d.", (int)process);
    FILE *maps = fopen("/proc/self/maps", "r");
    bool found = false;
    while (fgets(line, sizeof line, maps))
        found = found || strstr(line, name);
    fclose(maps);
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        found = found || strstr(target, name);
    }
    return found;
}

static int fork_once(void)
{
    operators(100);
    parent = getpid();
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        made = 0;
        EXPECT(!sees_records_of(parent));
        if (strcmp(argument, "trains") == 0)
            train(3);
        operators(10);
        tell();
        if (strcmp(argument, "_exit") == 0)
            _exit(7);
        if (strcmp(argument, "SIGTERM") == 0)
            raise(SIGTERM);
        exit(7);
    }
    EXPECT(status_of(child) == (strcmp(argument, "SIGTERM") == 0 ? -SIGTERM : 7));
    operators(100);
    tell();
    return 0;
}

static int fork_1000(void)
{
    begin_threads();
    for (int i = 0; i < 1000; i++) {
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            made = 0;
            if (i % 100 == 0) {
                operators(5);
                tell();
            }
            if (i % 2)
                _exit(i % 7);
            exit(i % 7);
        }
        EXPECT(status_of(child) == i % 7);
    }
    end_threads();
    tell();
    return 0;
}

static void fork_here(void *unused)
{
    (void)unused;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        made = 0;
        operators(10);
        return; /* and the operator that is open ends in the child too */
    }
    EXPECT(status_of(child) == 0);
}

static int fork_in_operator(void)
{
    parent = getpid();
    operators(20);
    made++;
    run_operator("aten::forks", 0, -1, 0, fork_here, NULL);
    if (getpid() == parent)
        operators(20);
    tell();
    return 0;
}

static void *fork_in_this_thread(void *unused)
{
    operators(10);
    fork_here(NULL);
    if (getpid() != parent) {
        tell();
        exit(0);
    }
    return unused;
}

static int fork_in_thread(void)
{
    parent = getpid();
    operators(10);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, fork_in_this_thread, NULL) == 0);
    pthread_join(thread, NULL);
    tell();
    return 0;
}

/* The first child makes no operator, as a shell or a daemon's middle process. */
static int fork_in_fork(void)
{
    operators(10);
    pid_t child = fork();
    if (child == 0) {
        made = 0;
        pid_t grandchild = fork();
        if (grandchild == 0) {
            operators(15);
            tell();
            _exit(3);
        }
        _exit(status_of(grandchild) == 3 ? 4 : 5);
    }
    EXPECT(status_of(child) == 4);
    tell();
    return 0;
}

static _Atomic int forks;

static void fork_in_handler(int number)
{
    (void)number;
    int saved = errno;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    EXPECT(status_of(child) == 0);
    forks++;
    errno = saved;
}

static int fork_in_signal_handler(void)
{
    signal(SIGALRM, fork_in_handler);
    while (forks < 400) {
        int before = forks;
        ualarm(300, 0);
        while (forks == before)
            train(5);
    }
    tell();
    return 0;
}

static _Noreturn void be_a_clone(void)
{
    made = 0;
    operators(10); /* no handler has run here: nobody sees them, and nothing breaks */
    if (strcmp(argument, "pthread_exit") == 0)
        pthread_exit(NULL);
    if (strcmp(argument, "fork") == 0) {
        pid_t child = fork();
        if (child == 0)
            _exit(2);
        EXPECT(status_of(child) == 2);
    }
    if (strcmp(argument, "exec") == 0)
        execl("/bin/true", "true", (char *)NULL);
    exit(0);
}

static int raw(pid_t (*clone_now)(void))
{
    operators(10); /* on this thread too, which is the only one in the child */
    begin_threads();
    for (int i = 0; i < 50; i++) {
        pid_t child = clone_now();
        EXPECT(child >= 0);
        if (child == 0)
            be_a_clone();
        EXPECT(status_of(child) == 0);
    }
    end_threads();
    tell();
    return 0;
}

static pid_t clone_by_number(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static int raw_clone(void)
{
    return raw(clone_by_number);
}

static int fork_without_handlers(void)
{
    pid_t (*clone_now)(void);
    *(void **)&clone_now = dlsym(RTLD_DEFAULT, "_Fork");
    return clone_now ? raw(clone_now) : raw(clone_by_number);
}

static int be_executed(void *fails)
{
    char *arguments[] = {(char *)"true", NULL};
    execv(fails ? "/none/such" : "/bin/true", arguments);
    _exit(127);
}

static pid_t by_vfork(void *fails)
{
    pid_t child = vfork();
    if (child == 0)
        be_executed(fails);
    return child;
}

static void *make_children(void *how)
{
    char *arguments[] = {(char *)"true", NULL};
    char *stack = malloc(65536);
    for (int i = 0; i < 250; i++) {
        bool fails = i % 5 == 0;
        pid_t child = -1;
        if (strcmp(how, "vfork") == 0) {
            child = by_vfork(fails ? how : NULL);
        } else if (strcmp(how, "clone") == 0) {
            child = clone(be_executed, stack + 65536, CLONE_VM | CLONE_VFORK | SIGCHLD, fails ? how : NULL);
        } else if (posix_spawnp(&child, fails ? "/none/such" : "true", NULL, NULL, arguments, environ) != 0) {
            EXPECT(fails);
            child = 0;
        }
        EXPECT(child >= 0);
        if (child > 0)
            EXPECT(status_of(child) == (fails ? 127 : 0));
        operators(10);
    }
    free(stack);
    return NULL;
}

/* A thousand children that share our memory until they execute, from four threads that record. */
static int share_memory(void)
{
    for (int i = 0; i < 4; i++)
        EXPECT(pthread_create(&threads[i], NULL, make_children, (void *)argument) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    operators(10);
    tell();
    return 0;
}

static int execute(const char *how, const char *path, const char *name)
{
    char *arguments[] = {(char *)"echo", (char *)"executed", NULL};
    if (strcmp(how, "execv") == 0)
        return execv(path, arguments);
    if (strcmp(how, "execve") == 0)
        return execve(path, arguments, environ);
    if (strcmp(how, "execvp") == 0)
        return execvp(name, arguments);
    if (strcmp(how, "execvpe") == 0)
        return execvpe(name, arguments, environ);
    if (strcmp(how, "execl") == 0)
        return execl(path, "echo", "executed", (char *)NULL);
    if (strcmp(how, "execlp") == 0)
        return execlp(name, "echo", "executed", (char *)NULL);
    if (strcmp(how, "execle") == 0)
        return execle(path, "echo", "executed", (char *)NULL, environ);
    if (strcmp(how, "execveat") == 0)
        return execveat(AT_FDCWD, path, arguments, environ, 0);
    if (strcmp(how, "fexecve") == 0)
        return fexecve(open(path, O_RDONLY | O_CLOEXEC), arguments, environ);
    say("%s is not known\n", how);
    return 1;
}

static int exec(void)
{
    operators(50);
    tell();
    execute(argument, "/bin/echo", "echo");
    return 1;
}

/* The attempt fails, and the program goes on. */
static int exec_fails(void)
{
    operators(50);
    EXPECT(execute(argument, "/none/such", "no-such-program") == -1);
    EXPECT(errno == ENOENT || errno == EBADF || errno == EINVAL);
    EXPECT(execute(argument, "/etc/passwd", "/etc/passwd") == -1 && errno == EACCES);
    EXPECT(execute(argument, "/", "/") == -1 && (errno == EACCES || errno == EISDIR));
    operators(50);
    tell();
    return 0;
}

static int become_daemon(void)
{
    operators(50);
    tell();
    EXPECT(daemon(1, 1) == 0);
    made = 0;
    train(3);
    tell();
    return 0;
}

/* Every descriptor is closed, as daemons do, and the numbers are used again. */
static int close_everything(void)
{
    operators(50);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    int fds[300], count_of = 0;
    while (count_of < 300 && (fds[count_of] = open("/dev/null", O_RDWR)) >= 0)
        count_of++;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < count_of; i++)
            EXPECT(fcntl(fds[i], F_GETFD) >= 0);
        made = 0;
        train(2);
        for (int i = 0; i < count_of; i++)
            EXPECT(fcntl(fds[i], F_GETFD) >= 0);
        tell();
        exit(0);
    }
    EXPECT(status_of(child) == 0);
    operators(50);
    tell();
    return 0;
}

const struct situation children[] = {
    {"fork", fork_once},
    {"fork_1000", fork_1000},
    {"fork_in_operator", fork_in_operator},
    {"fork_in_thread", fork_in_thread},
    {"fork_in_fork", fork_in_fork},
    {"fork_in_signal_handler", fork_in_signal_handler},
    {"raw_clone", raw_clone},
    {"_Fork", fork_without_handlers},
    {"share_memory", share_memory},
    {"exec", exec},
    {"exec_fails", exec_fails},
    {"daemon", become_daemon},
    {"close_everything", close_everything},
    {NULL, NULL},
};
