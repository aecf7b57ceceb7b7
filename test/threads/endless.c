/*
 * endless.c: the whole agent over a fake libtorch, until somebody kills it: threads run nested operators and training steps
 * without end, and count in a shared file what they have begun, before and after: so a test can say, to the operator,
 * what a spool must hold.
 *
 * usage: endless FAKE_FOLDER COUNTS THREADS [close]
 *
 * COUNTS: a file of two 64-bit words a thread: begins tried, begins done. With `close`, the program closes all descriptors but
 * the standard ones when it has run a while, as daemons do.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../doubles/fake_torch.h"

#define MAX_THREADS 64
#define OPERATORS_A_STEP 100

void *initModule(void);

struct counts {
    _Alignas(64) volatile unsigned long tried; /* of its thread alone: stores in program order */
    volatile unsigned long done;
};

static struct counts *counts;
static void (*run_operator)(const char *, uint8_t, int64_t, uint64_t, void (*)(void *), void *);

static void begun(void *own)
{
    ((struct counts *)own)->done++;
}

static void run(struct counts *own, const char *name, uint8_t scope)
{
    own->tried++;
    run_operator(name, scope, -1, 0, begun, own);
}

static void outer_body(void *own)
{
    begun(own);
    run(own, "aten::inner", 0);
}

static void *train(void *own)
{
    bool is_leader = own == &counts[0];
    for (;;) {
        for (int i = 0; i < OPERATORS_A_STEP; i++) {
            ((struct counts *)own)->tried++;
            run_operator("aten::outer", 0, i, 0, outer_body, own);
        }
        if (is_leader)
            run(own, "Optimizer.step#SGD.step", 7);
    }
    return NULL;
}

static void *load(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* as Python opens them */
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return handle;
}

int main(int argc, char **argv)
{
    int threads = argc >= 4 ? atoi(argv[3]) : 0;
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    int file = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, MAX_THREADS * sizeof *counts) != 0)
        return 2;
    counts = mmap(NULL, MAX_THREADS * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (counts == MAP_FAILED)
        return 2;
    load(argv[1], "libtorch_python.so");
    *(void **)&run_operator = dlsym(load(argv[1], "libtorch_cpu.so"), "fake_torch_run");
    if (!initModule())
        return 2;
    for (int i = 1; i < threads; i++) {
        pthread_t one;
        pthread_create(&one, NULL, train, &counts[i]);
    }
    if (argc == 5 && strcmp(argv[4], "close") == 0)
        for (int descriptor = 3; descriptor < 4096; descriptor++)
            close(descriptor);
    train(&counts[0]);
    return 0;
}
