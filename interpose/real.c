#include "real.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "../agent/dso.h"
#include "../agent/process.h"

static struct tp_real real;
static _Atomic bool known;

/* The loader may lack memory just then; the program's own call must not fail of that. */
static void *libc_function(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    return function ? function : tp_dso_find("libc.so", name);
}

const struct tp_real *tp_real(void)
{
    if (TP_LIKELY(atomic_load_explicit(&known, memory_order_acquire)))
        return &real;
    /* Several threads may come here at once: all of them write the same. */
    *(void **)&real.sigaction = libc_function("sigaction");
    *(void **)&real.signal = libc_function("signal");
    *(void **)&real.exit_now = libc_function("_exit");
    *(void **)&real.execve = libc_function("execve");
    *(void **)&real.execv = libc_function("execv");
    *(void **)&real.execvp = libc_function("execvp");
    *(void **)&real.execvpe = libc_function("execvpe");
    *(void **)&real.fexecve = libc_function("fexecve");
    *(void **)&real.execveat = libc_function("execveat");
    atomic_store_explicit(&known, true, memory_order_release);
    return &real;
}

__attribute__((constructor)) static void look_up_early(void)
{
    tp_process_real_sigaction = tp_real()->sigaction;
}

void *tp_real_in(const char *library, const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (function)
        return function;
    void *handle = tp_dso_open(library);
    function = handle ? dlsym(handle, name) : NULL;
    return function ? function : tp_dso_find(library, name);
}
