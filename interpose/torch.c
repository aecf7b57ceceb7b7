/*
 * torch.c: the door into PyTorch under Python. torch/_C is a stub whose PyInit__C calls initModule of libtorch_python.so
 * through its PLT; a preloaded library's initModule comes first. When the real one returns, PyTorch is wholly loaded, the
 * interpreter lock is held, and no operator has run: the moment to attach.
 */
#include "../agent/hooks.h"
#include "ranges.h"
#include "real.h"

void *initModule(void);

TP_EXPORT void *initModule(void)
{
    void *(*real)(void);
    *(void **)&real = tp_real_in("libtorch_python.so", "initModule");
    if (!real || real == initModule)
        return NULL; /* Python raises ImportError, as for any module that cannot be made */
    void *module = real();
    if (module && tp_hooks_library_loaded) {
        tp_ranges_look_up();
        tp_hooks_library_loaded();
    }
    return module;
}
