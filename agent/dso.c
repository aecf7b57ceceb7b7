#include "dso.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct search {
    const char *name;
    char path[4096];
};

/* Runs under the loader's lock: only notes the path. */
static int note_path(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct search *search = argument;
    const char *path = info->dlpi_name ? info->dlpi_name : "";
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    if (strncmp(file, search->name, strlen(search->name)) != 0 || strlen(path) >= sizeof search->path)
        return 0;
    snprintf(search->path, sizeof search->path, "%s", path);
    return 1;
}

void *tp_dso_open(const char *name)
{
    struct search search = {.name = name};
    if (!dl_iterate_phdr(note_path, &search))
        return NULL;
    return dlopen(search.path, RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);
}
