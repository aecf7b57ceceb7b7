/* scratch.h: a folder for the files of one test, removed with what is in it; whole files into memory. */
#ifndef TP_SCRATCH_H
#define TP_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

extern int scratch_folder; /* descriptor, between setup and teardown */
extern char scratch_path[64];

void scratch_setup(void);
void scratch_teardown(void);
size_t scratch_files(void); /* how many names are in the folder, hidden ones too */
/* The file, gunzipped if it is gzip, NUL-terminated; the caller frees it. NULL: it cannot be read. */
char *scratch_read(const char *name, size_t *ret_bytes);

#endif
