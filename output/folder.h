/*
 * folder.h: the folder that output files go to: TPROF_DIR with its escapes, made with its parents if missing.
 *
 * A relative folder means the working directory at attach: programs change theirs later.
 */
#ifndef TP_FOLDER_H
#define TP_FOLDER_H

#include "../agent/base.h"
#include "../agent/error.h"
#include "names.h"

#define TP_FOLDER_PATH 4096

/* Notes the working directory in front of a relative pattern, into absolute[TP_FOLDER_PATH]. */
void tp_folder_absolute(const char *pattern, char *absolute);

/* Expands the escapes, makes what is missing, opens. The descriptor (O_DIRECTORY, O_CLOEXEC), with the path in
 * path[TP_FOLDER_PATH]; or -errno with error set. */
int tp_folder_open(const char *absolute, const struct tp_name_values *values, char *path, struct tp_error *error);

/* Removes what sinks left of this file when their processes died, and of other files of this worker what that process left.
 * Only for a file that no living process writes. worker NULL: those of this file alone. */
void tp_folder_remove_temporaries(int folder, const char *name, const char *worker, uint32_t pid, uint64_t died_at_ns);

#endif
