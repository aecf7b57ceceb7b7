/*
 * processes.c: a program that makes operators on a fake libtorch (test/doubles) and does with processes and signals
 * what programs do. It knows nothing of the agent, which is preloaded, or not: then its output is the same.
 *
 * usage: processes FAKE_FOLDER SITUATION [ARGUMENT]
 *
 * Each process that made operators prints "made PID COUNT" before its end. What went wrong is a line, and status 1.
 */
#include "processes.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

void (*run_operator)(const char *, uint8_t, int64_t, uint64_t, void (*)(void *), void *);
_Atomic long made;
const char *argument = "";
pid_t parent;

void say(const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(9);
}

void tell(void)
{
    say("made %d %ld\n", (int)getpid(), made);
}

static void nothing(void *unused)
{
    (void)unused;
}

static void make(const char *name, uint8_t scope, void (*body)(void *))
{
    made++;
    run_operator(name, scope, -1, 0, body ? body : nothing, NULL);
}

void operators(int count)
{
    for (int i = 0; i < count; i++)
        make("aten::add", 0, NULL);
}

void train(int steps)
{
    for (int i = 0; i < steps; i++) {
        make("Optimizer.zero_grad#SGD.zero_grad", 7, NULL);
        operators(3);
        make("AddBackward0", 1, NULL);
        make("Optimizer.step#SGD.step", 7, NULL);
    }
}

pthread_t threads[THREADS];
static _Atomic bool stop;

static void *record(void *unused)
{
    while (!stop) {
        operators(20);
        usleep(200);
    }
    return unused;
}

void begin_threads(void)
{
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, record, NULL) == 0);
}

void end_threads(void)
{
    stop = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int status_of(pid_t child)
{
    int status;
    pid_t done;
    while ((done = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    EXPECT(done == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
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

static const struct situation here[] = {
    {"plain", plain},
    {NULL, NULL},
};

static const struct situation *const all[] = {here, children, ends, signals};

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
    for (size_t i = 0; argc > 2 && i < sizeof all / sizeof all[0]; i++)
        for (const struct situation *situation = all[i]; situation->name; situation++)
            if (strcmp(situation->name, argv[2]) == 0) {
                argument = argc > 3 ? argv[3] : "";
                load(argv[1]);
                return situation->run();
            }
    return 2;
}
