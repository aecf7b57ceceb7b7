#include "critical.h"

__thread struct tp_critical tp_critical __attribute__((tls_model("initial-exec")));

void tp_critical_end(void)
{
    __asm__ volatile("" ::: "memory");
    if (--tp_critical.depth > 0 || !tp_critical.signal)
        return;
    int number = tp_critical.signal;
    tp_critical.signal = 0;
    raise(number);
}
