/* ranges.h: the functions through which PyTorch's ranges pass (ranges.c). */
#ifndef TP_RANGES_H
#define TP_RANGES_H

/* Looks the program's own functions up, for whoever is told next that PyTorch is loaded. */
void tp_ranges_look_up(void);

#endif
