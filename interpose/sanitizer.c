/*
 * sanitizer.c: programs built with AddressSanitizer refuse to start where a preloaded library comes before its runtime,
 * since that might define malloc. We do not, so they are told not to mind: a compiler's or a test's child runs as it
 * would without us. A program's own answer, and ASAN_OPTIONS, come first.
 */
#include "../agent/base.h"

const char *__asan_default_options(void);

TP_EXPORT const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}
