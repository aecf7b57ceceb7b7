#include "scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

int scratch_folder;
char scratch_path[64];

void scratch_setup(void)
{
    strcpy(scratch_path, "/tmp/tprof-test-XXXXXX");
    scratch_folder = mkdtemp(scratch_path) ? open(scratch_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

static size_t each_file(bool remove)
{
    DIR *dir = opendir(scratch_path);
    size_t count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        if (remove)
            unlinkat(scratch_folder, entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
    return count;
}

size_t scratch_files(void)
{
    return each_file(false);
}

void scratch_teardown(void)
{
    each_file(true);
    close(scratch_folder);
    rmdir(scratch_path);
}

char *scratch_read(const char *name, size_t *ret_bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch_path, name);
    gzFile file = gzopen(path, "rb");
    if (!file)
        return NULL;
    size_t used = 0, size = 1 << 20;
    char *text = malloc(size + 1);
    for (int n; (n = gzread(file, text + used, (unsigned)(size - used))) > 0;) {
        used += (size_t)n;
        if (used == size)
            text = realloc(text, (size *= 2) + 1);
    }
    int status = gzclose(file);
    text[used] = '\0';
    if (ret_bytes)
        *ret_bytes = used;
    if (status == Z_OK)
        return text;
    free(text);
    return NULL;
}
