/*
 * catch.h: calls of C++ that may throw, from C. The frame of tp_catch has a personality (Itanium C++ ABI: Exception
 * Handling, level I) that handles every exception, so that what PyTorch began is unwound as by a catch (...) of its own.
 */
#ifndef TP_TORCH_CATCH_H
#define TP_TORCH_CATCH_H

#include "../../agent/base.h"

/* False: what is needed of the C++ runtime is not there, or this machine is another than x86-64. `library` is for dlsym. */
bool tp_catch_find(void *library);

/* False: it threw; the exception is gone. */
bool tp_catch(void (*body)(void *argument), void *argument);

#endif
