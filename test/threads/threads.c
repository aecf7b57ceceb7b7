/*
 * threads.c: the whole agent over a fake libtorch: attaches through initModule, eight threads run nested operators and training
 * steps while windows open and close, short threads come and go; files are written. Built with the thread sanitizer, it
 * shows races; plain, it counts.
 *
 * usage: threads FAKE_FOLDER     prints "operators N"; everything else is the agent's
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../doubles/fake_torch.h"

#define THREADS 8
#define STEPS 40
#define OPERATORS 300

void *initModule(void);

static void (*run_operator)(const char *, uint8_t, int64_t, uint64_t, void (*)(void *), void *);
static _Atomic long operators;

static void inner(void *depth)
{
    if ((long)depth > 0) {
        operators++;
        run_operator("aten::inner", 0, -1, 0, inner, (void *)((long)depth - 1));
    }
}

static void nothing(void *unused)
{
    (void)unused;
}

static uint64_t (*logical_thread)(void);

static void *train(void *is_leader)
{
    uint64_t self = logical_thread();
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < OPERATORS; i++) {
            operators += 2;
            int64_t sequence = step * OPERATORS + i;
            run_operator("aten::outer", 0, sequence, 0, inner, (void *)(long)(i % 4));
            run_operator("OuterBackward0", 1, sequence, self, nothing, NULL);
        }
        if (is_leader) {
            operators += 2;
            run_operator("Optimizer.zero_grad#SGD.zero_grad", 7, -1, 0, nothing, NULL);
            run_operator("Optimizer.step#SGD.step", 7, -1, 0, nothing, NULL);
        }
    }
    return NULL;
}

static void *be_short(void *unused)
{
    (void)unused;
    operators++;
    run_operator("aten::short", 0, -1, 0, nothing, NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    static const char *const libraries[] = {"libtorch_cpu.so", "libtorch_python.so"};
    void *handle = NULL;
    for (int i = 1; i >= 0; i--) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], libraries[i]);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* as Python opens them */
        if (!handle) {
            fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
    }
    *(void **)&run_operator = dlsym(handle, "fake_torch_run");
    *(void **)&logical_thread = dlsym(handle, "_ZN2at14RecordFunction15currentThreadIdEv");
    if (!initModule())
        return 2;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, train, i == 0 ? &threads : NULL);
    for (int i = 0; i < 200; i++) {
        pthread_t one;
        pthread_create(&one, NULL, be_short, NULL);
        pthread_join(one, NULL);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int (*callbacks)(void);
    *(void **)&callbacks = dlsym(handle, "fake_torch_callbacks");
    printf("operators %ld\ncallbacks %d\n", operators, callbacks());
    return 0;
}
