#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../agent/dir.h"
#include "sink.h"

void tp_folder_absolute(const char *pattern, char *absolute)
{
    char here[TP_FOLDER_PATH];
    while (pattern[0] == '.' && pattern[1] == '/') {
        pattern += 2;
        while (*pattern == '/')
            pattern++;
    }
    /* The escapes of the pattern are expanded later: a '%' of the working directory must stay one. */
    size_t length = 0;
    if (pattern[0] != '/' && getcwd(here, sizeof here)) {
        for (const char *c = here; *c && length < TP_FOLDER_PATH - 3; c++) {
            if (*c == '%')
                absolute[length++] = '%';
            absolute[length++] = *c;
        }
        absolute[length++] = '/';
    }
    snprintf(absolute + length, TP_FOLDER_PATH - length, "%s", pattern);
}

/* mkdir -p; what exists already is fine, also when another process was quicker. */
static int make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(path, 0777) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES ? -errno : 0;
        *slash = '/';
        if (failed)
            return failed;
    }
    return mkdir(path, 0777) != 0 && errno != EEXIST ? -errno : 0;
}

int tp_folder_open(const char *absolute, const struct tp_name_values *values, char *path, struct tp_error *error)
{
    int failed = tp_names_expand(absolute, values, path, TP_FOLDER_PATH, error);
    if (failed)
        return failed;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        failed = make_folders(path);
        if (!failed)
            fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0) {
        failed = failed ? failed : -errno;
        tp_error_set(error, "TPROF_DIR", "a folder that can be made or written", "%s: %s", path, strerror(-failed));
        return failed;
    }
    return fd;
}

struct stale {
    const char *name, *worker;
    uint32_t pid;
    uint64_t died_at_ns;
};

static void remove_stale(void *context, int folder, const char *entry)
{
    const struct stale *stale = context;
    struct stat found;
    bool of_process = stale->worker && tp_sink_is_temporary_of(entry, stale->worker, stale->pid) &&
                      fstatat(folder, entry, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
                      (uint64_t)found.st_mtime <= stale->died_at_ns / 1000000000 + 1; /* a number may be a living one's by now */
    if (of_process || tp_sink_is_temporary(entry, stale->name))
        unlinkat(folder, entry, 0);
}

void tp_folder_remove_temporaries(int folder, const char *name, const char *worker, uint32_t pid, uint64_t died_at_ns)
{
    struct stale stale = {name, worker, pid, died_at_ns};
    tp_dir_each(folder, remove_stale, &stale);
}
