#include "preload.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int tp_preload_find(char path[TP_PRELOAD_PATH], struct tp_error *error)
{
    static const char *const places[] = {"libtprof.so", "../lib/libtprof.so"};
    char self[PATH_MAX - 32], place[PATH_MAX], found[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        slash[1] = '\0';
    for (size_t i = 0; slash && i < TP_COUNT(places); i++) {
        snprintf(place, sizeof place, "%s%s", self, places[i]);
        if (realpath(place, found)) {
            snprintf(path, TP_PRELOAD_PATH, "%s", found);
            return 0;
        }
    }
    tp_error_set(error, "libtprof.so", NULL, "is neither in %s nor in %s../lib", self, self);
    return -ENOENT;
}

int tp_preload_set(const char *path, struct tp_error *error)
{
    if (strpbrk(path, ": ")) { /* they separate the libraries of LD_PRELOAD */
        tp_error_set(error, path, "a folder without blank and colon",
                     "the dynamic loader takes no library from such a folder");
        return -EINVAL;
    }
    const char *old = getenv("LD_PRELOAD");
    size_t size = strlen(path) + (old ? strlen(old) : 0) + 2;
    char *value = malloc(size);
    if (!value) {
        tp_error_set(error, "LD_PRELOAD", NULL, "%s", strerror(ENOMEM));
        return -ENOMEM;
    }
    snprintf(value, size, "%s%s%s", path, old && *old ? ":" : "", old ? old : "");
    int failed = setenv("LD_PRELOAD", value, 1) ? errno : 0;
    free(value);
    if (failed)
        tp_error_set(error, "LD_PRELOAD", NULL, "%s", strerror(failed));
    return -failed;
}
