/* dir.h: the entries of a folder, without the heap (readdir allocates on the job's). */
#ifndef TP_DIR_H
#define TP_DIR_H

#include "base.h"

/* Calls entry with each name, from the folder's first on. entry may remove it. */
void tp_dir_each(int folder, void (*entry)(void *context, int folder, const char *name), void *context);

#endif
