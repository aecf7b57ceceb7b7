/* ranges.h: the functions through which PyTorch's ranges pass (ranges.c). */
#ifndef TP_RANGES_H
#define TP_RANGES_H

#include <stdbool.h>

/* Looks the program's own functions up, for whoever is told next that PyTorch is loaded. False: that was done before. */
bool tp_ranges_look_up(void);

#endif
