#include "dir.h"

#include <sys/syscall.h>
#include <unistd.h>

struct linux_dirent64 {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

void tp_dir_each(int folder, void (*entry)(void *, int, const char *), void *context)
{
    _Alignas(struct linux_dirent64) char entries[8192];
    long bytes;
    lseek(folder, 0, SEEK_SET);
    while ((bytes = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        const struct linux_dirent64 *at;
        for (long offset = 0; offset < bytes; offset += at->bytes) {
            at = (const struct linux_dirent64 *)(entries + offset);
            entry(context, folder, at->name);
        }
    }
}
