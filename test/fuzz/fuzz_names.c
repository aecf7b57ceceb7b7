/*
 * Texts with escapes: TPROF_DIR, TPROF_TRACE_ID, the worker's name. The first two bytes give the room and the numbers,
 * the rest is the pattern. Nothing leaves its room, and a worker's name is one component of a path.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "../../output/folder.h"
#include "../../output/names.h"
#include "../../agent/identity.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    char *pattern = malloc(size - 1);
    must(pattern);
    memcpy(pattern, data + 2, size - 2);
    pattern[size - 2] = '\0';
    struct tp_identity identity = {.pid = data[0], .rank = UINT64_MAX, .rank_set = data[1] & 1};
    memset(identity.host, data[1], sizeof identity.host - 1);
    struct tp_name_values values = {&identity, UINT64_MAX - data[0], UINT64_MAX, data[1]};

    size_t room = 1 + data[0] * 20u;
    char *text = malloc(room), line[800];
    must(text);
    struct tp_error error = {0};
    int status = tp_names_expand(pattern, &values, text, room, &error);
    must(status == 0 || status == -EINVAL || status == -ENAMETOOLONG);
    must((status == 0) == !error.set);
    if (status == 0)
        must(strlen(text) < room);
    else
        must(tp_error_line(&error, line, sizeof line) == strlen(line));
    free(text);

    char worker[NAME_MAX + 1], file[NAME_MAX + 1];
    tp_names_worker(pattern, &values, worker, sizeof worker);
    must(worker[0] && worker[0] != '.' && !strchr(worker, '/') && !strchr(worker, '\n'));
    const char *dot = strrchr(worker, '.'); /* TensorBoard takes a last part of digits for the time */
    must(!dot || !dot[1] || strspn(dot + 1, "0123456789") < strlen(dot + 1));
    tp_names_file(worker, UINT64_MAX, "memory_timeline.raw.json", true, file, sizeof file);
    must(strlen(file) <= NAME_MAX && strcmp(file + strlen(file) - 3, ".gz") == 0);

    char folder[TP_FOLDER_PATH];
    tp_folder_absolute(pattern, folder);
    must(strlen(folder) < sizeof folder);
    free(pattern);
    return 0;
}
