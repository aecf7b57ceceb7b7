/*
 * processes.c: a program that makes operators on a fake libtorch (test/doubles) and does with processes and signals
 * what programs do. It knows nothing of the agent, which is preloaded, or not: then its output is the same.
 *
 * usage: processes FAKE_FOLDER SITUATION [ARGUMENT]
 *
 * Each process that made operators prints "made PID COUNT" before its end. What went wrong is a line, and status 1.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8

extern char **environ;

static void (*run_operator)(const char *, uint8_t, int64_t, uint64_t, void (*)(void *), void *);
static _Atomic long made; /* operators and ranges of this process */
static const char *argument = "";
static pid_t parent;

static void say(const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(9);
}

static void tell(void)
{
    say("made %d %ld\n", (int)getpid(), made);
}

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            say("line %d: %s does not hold (%s)\n", __LINE__, #condition, strerror(errno)); \
            _exit(1); \
        } \
    } while (0)

static void nothing(void *unused)
{
    (void)unused;
}

static void make(const char *name, uint8_t scope, void (*body)(void *))
{
    made++;
    run_operator(name, scope, -1, 0, body ? body : nothing, NULL);
}

static void operators(int count)
{
    for (int i = 0; i < count; i++)
        make("aten::add", 0, NULL);
}

static void train(int steps)
{
    for (int i = 0; i < steps; i++) {
        make("Optimizer.zero_grad#SGD.zero_grad", 7, NULL);
        operators(3);
        make("AddBackward0", 1, NULL);
        make("Optimizer.step#SGD.step", 7, NULL);
    }
}

/* Threads that make operators all the time. */
static pthread_t threads[THREADS];
static _Atomic bool stop;

static void *record(void *unused)
{
    while (!stop) {
        operators(20);
        usleep(200);
    }
    return unused;
}

static void begin_threads(void)
{
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, record, NULL) == 0);
}

static void end_threads(void)
{
    stop = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static int status_of(pid_t child)
{
    int status;
    pid_t done;
    while ((done = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    EXPECT(done == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

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

static void nothing_to_do(void)
{
    operators(1);
}

static int leave(void)
{
    begin_threads(); /* which are in operators when it ends */
    operators(100);
    const char *way = argument;
    if (strcmp(way, "exit") == 0)
        exit(3);
    if (strcmp(way, "exit in a handler") == 0) {
        atexit(nothing_to_do);
        exit(3);
    }
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(3);
    if (strcmp(way, "_exit") == 0)
        _exit(3);
    if (strcmp(way, "_Exit") == 0)
        _Exit(3);
    if (strcmp(way, "exit_group") == 0)
        syscall(SYS_exit_group, 3);
    if (strcmp(way, "abort") == 0)
        abort();
    if (strcmp(way, "segv") == 0)
        *(volatile int *)(uintptr_t)getpid() = 0;
    if (strncmp(way, "signal ", 7) == 0)
        raise(atoi(way + 7));
    return 3;
}

/* The process goes on until its last thread has ended. */
static void *last_thread(void *unused)
{
    usleep(300000);
    operators(10);
    tell();
    return unused;
}

static int leave_main_thread(void)
{
    operators(10);
    EXPECT(pthread_create(&threads[0], NULL, last_thread, NULL) == 0);
    pthread_exit(NULL);
}

static void *fork_all_the_time(void *unused)
{
    for (;;) {
        pid_t child = fork();
        if (child == 0) /* as the parent is dying: this one must not wait for that */
            exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
    }
    return unused;
}

/* A signal ends the process, which writes files for a while; meanwhile another thread forks. */
static int fork_while_dying(void)
{
    operators(200000);
    EXPECT(pthread_create(&threads[0], NULL, fork_all_the_time, NULL) == 0);
    usleep(50000);
    raise(SIGTERM);
    return 1;
}

/* Process 1 of its namespace: signals at their default do not end it. */
static int be_first(void)
{
    EXPECT(getpid() == 1);
    operators(50);
    if (strcmp(argument, "signal") == 0) {
        raise(SIGTERM);
        raise(SIGINT);
        say("lives\n");
    }
    pid_t child = fork();
    if (child == 0) {
        made = 0;
        train(2);
        exit(4);
    }
    EXPECT(status_of(child) == 4);
    tell();
    return 5;
}

#define SIGNALS 10000
static _Atomic int terminations, queued;

static void count(int number)
{
    if (number == SIGTERM)
        terminations++;
    else if (number == SIGRTMIN)
        queued++;
}

static void *wait_for_signals(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    if (strcmp(argument, "signalfd") == 0) {
        int fd = signalfd(-1, &all, SFD_CLOEXEC);
        struct signalfd_siginfo info;
        do
            EXPECT(read(fd, &info, sizeof info) == sizeof info);
        while (count((int)info.ssi_signo), info.ssi_signo != (uint32_t)SIGRTMAX);
    } else {
        int number;
        do
            EXPECT(sigwait(&all, &number) == 0);
        while (count(number), number != SIGRTMAX);
    }
    return unused;
}

/* All signals are blocked in all threads; one of them takes them. */
static int take_signals(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_t waiting;
    EXPECT(pthread_create(&waiting, NULL, wait_for_signals, NULL) == 0);
    begin_threads();
    int sent = 0;
    for (int i = 0; i < SIGNALS; i++) {
        static const int numbers[] = {SIGTERM, SIGUSR1, SIGHUP, SIGINT, SIGALRM, SIGPROF};
        int number = i % 2 ? SIGRTMIN : numbers[i / 2 % 6];
        while (sigqueue(getpid(), number, (union sigval){0}) != 0)
            EXPECT(errno == EAGAIN && usleep(1000) == 0); /* the queue is full */
        sent += number == SIGRTMIN;
    }
    kill(getpid(), SIGRTMAX); /* of those that are queued the highest number comes last */
    pthread_join(waiting, NULL);
    end_threads();
    EXPECT(queued == sent && terminations > 0);
    tell();
    return 0;
}

static _Atomic int ticks;

static void tick(int number)
{
    (void)number;
    ticks++;
}

/* Timers of the program, whose handlers interrupt system calls: as often as they run, and not once more. */
static int use_timers(void)
{
    struct sigaction action = {.sa_handler = tick};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGPROF, &action, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    begin_threads();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    struct itimerval every = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &every, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    int interrupted = 0;
    for (int i = 0; i < 300; i++) {
        struct timespec t = {.tv_nsec = 3000000};
        int before_sleep = ticks;
        if (nanosleep(&t, NULL) != 0) {
            EXPECT(errno == EINTR && ticks > before_sleep);
            interrupted++;
        }
        operators(10);
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    end_threads();
    EXPECT(interrupted > 0);
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

static int plain(void)
{
    begin_threads();
    train(20);
    usleep(100000);
    end_threads();
    tell();
    return 3;
}

static const struct {
    const char *name;
    int (*run)(void);
} situations[] = {
    {"plain", plain},
    {"fork", fork_once},
    {"fork_1000", fork_1000},
    {"fork_in_operator", fork_in_operator},
    {"fork_in_thread", fork_in_thread},
    {"fork_in_fork", fork_in_fork},
    {"fork_in_signal_handler", fork_in_signal_handler},
    {"fork_while_dying", fork_while_dying},
    {"raw_clone", raw_clone},
    {"_Fork", fork_without_handlers},
    {"share_memory", share_memory},
    {"exec", exec},
    {"exec_fails", exec_fails},
    {"daemon", become_daemon},
    {"leave", leave},
    {"leave_main_thread", leave_main_thread},
    {"first", be_first},
    {"signals", take_signals},
    {"timers", use_timers},
    {"close_everything", close_everything},
};

static void load(const char *folder)
{
    static const char *const libraries[] = {"libtorch_cpu.so", "libtorch_python.so"};
    void *handle[2];
    for (int i = 0; i < 2; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, libraries[i]);
        handle[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* as Python opens them */
        if (!handle[i]) {
            fprintf(stderr, "%s\n", dlerror());
            exit(2);
        }
    }
    *(void **)&run_operator = dlsym(handle[0], "fake_torch_run");
    /* Through the global scope, as torch/_C does: a preloaded library comes first. */
    void *(*init)(void);
    *(void **)&init = dlsym(RTLD_DEFAULT, "initModule");
    if (!init)
        *(void **)&init = dlsym(handle[1], "initModule");
    if (!init())
        exit(2);
}

int main(int argc, char **argv)
{
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    for (size_t i = 0; argc > 2 && i < sizeof situations / sizeof situations[0]; i++)
        if (strcmp(situations[i].name, argv[2]) == 0) {
            argument = argc > 3 ? argv[3] : "";
            load(argv[1]);
            return situations[i].run();
        }
    return 2;
}
