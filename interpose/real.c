#include "real.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "../agent/dso.h"
#include "../agent/process.h"

static struct tp_real real;
static _Atomic bool known;

const struct tp_real *tp_real(void)
{
    if (TP_LIKELY(atomic_load_explicit(&known, memory_order_acquire)))
        return &real;
    /* Several threads may come here at once: all of them write the same. */
    *(void **)&real.sigaction = dlsym(RTLD_NEXT, "sigaction");
    *(void **)&real.signal = dlsym(RTLD_NEXT, "signal");
    *(void **)&real.exit_now = dlsym(RTLD_NEXT, "_exit");
    *(void **)&real.execve = dlsym(RTLD_NEXT, "execve");
    *(void **)&real.execv = dlsym(RTLD_NEXT, "execv");
    *(void **)&real.execvp = dlsym(RTLD_NEXT, "execvp");
    *(void **)&real.execvpe = dlsym(RTLD_NEXT, "execvpe");
    *(void **)&real.fexecve = dlsym(RTLD_NEXT, "fexecve");
    *(void **)&real.execveat = dlsym(RTLD_NEXT, "execveat");
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
    return handle ? dlsym(handle, name) : NULL;
}
