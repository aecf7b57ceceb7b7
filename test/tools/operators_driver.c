/*
 * operators_driver.c: operators of a fake libtorch, so many, on one thread; for counting instructions. The agent is
 * preloaded, or is not there.
 *
 * usage: operators_driver FAKE_FOLDER COUNT
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *load(const char *folder, const char *library)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, library);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return handle;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    void *python = load(argv[1], "libtorch_python.so"), *torch = load(argv[1], "libtorch_cpu.so");
    void *(*init)(void);
    void (*run)(const char *, uint8_t, int64_t, uint64_t, void (*)(void *), void *);
    *(void **)&init = dlsym(RTLD_DEFAULT, "initModule"); /* the agent's, where it is preloaded */
    if (!init)
        *(void **)&init = dlsym(python, "initModule");
    *(void **)&run = dlsym(torch, "fake_torch_run");
    if (!init || !run || !init())
        return 2;
    for (int i = atoi(argv[2]); i > 0; i--)
        run("aten::add", 0, 7, 0, NULL, NULL);
    return 0;
}
