/* recover.c: `tprof recover`: writes the files of processes that died, from their spools. */
#include "commands.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../output/recover.h"

static const char help[] =
    "usage: tprof recover SPOOL...\n"
    "\n"
    "A process that was killed, or that crashed, leaves its spool: tprof.PID.TIME.spool in TPROF_SPOOL_DIR, else in\n"
    "/dev/shm. This writes what the process would have written, to its own TPROF_DIR, and removes the spool. The next\n"
    "process under tprof in that folder does the same by itself.\n"
    "\n"
    "SPOOL is such a file, or a folder: then all that lie in it and whose process is dead.\n"
    "\n"
    "  --help   this text\n"
    "\n"
    "Exit status: 0 done, 1 a spool could not be read or a file not written, 2 wrong use.\n";

/* 0 or 1. In a folder, what belongs to living processes is no fault. */
static int recover_one(int folder, const char *name, bool is_one_of_many)
{
    char line[5120];
    struct tp_recovered recovered;
    struct tp_error error = {0};
    int failed = tp_recover(folder, name, NULL, &recovered, &error);
    if (failed == -ENODATA) {
        printf("%s: its process died before there was anything in it\n", name);
        return TP_DONE;
    }
    if (failed) {
        tp_error_line(&error, line, sizeof line);
        fprintf(stderr, "tprof recover: %s\n", line);
        return failed == -EBUSY && is_one_of_many ? TP_DONE : TP_FAILED;
    }
    if (recovered.unwanted)
        snprintf(line, sizeof line, "%s: of %s (%s, process %u), a child that did not train: nothing to write (TPROF_CHILDREN)", name,
                 recovered.process, recovered.host, recovered.pid);
    else
        tp_recovered_line(&recovered, name, line, sizeof line);
    puts(line);
    return TP_DONE;
}

static int recover_all(const char *path)
{
    DIR *entries = opendir(path);
    if (!entries) {
        fprintf(stderr, "tprof recover: %s: %s\n", path, strerror(errno));
        return TP_FAILED;
    }
    int status = TP_DONE;
    struct dirent *entry;
    while ((entry = readdir(entries)))
        if (tp_recover_is_name(entry->d_name) && recover_one(dirfd(entries), entry->d_name, true) != TP_DONE)
            status = TP_FAILED;
    closedir(entries);
    return status;
}

static int recover_path(const char *path)
{
    struct stat found;
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return recover_all(path);
    char folder[PATH_MAX], file[PATH_MAX];
    if (strlen(path) >= sizeof folder) {
        fprintf(stderr, "tprof recover: %s: %s\n", path, strerror(ENAMETOOLONG));
        return TP_FAILED;
    }
    strcpy(folder, path); /* dirname and basename may write to what they get */
    strcpy(file, path);
    int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        fprintf(stderr, "tprof recover: %s: %s\n", path, strerror(errno));
        return TP_FAILED;
    }
    int status = recover_one(fd, basename(file), false);
    close(fd);
    return status;
}

int tp_command_recover(int argc, char **argv)
{
    int first = 1;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return TP_DONE;
    }
    if (argc > 1 && strcmp(argv[1], "--") == 0) {
        first = 2;
    } else if (argc > 1 && argv[1][0] == '-') {
        fprintf(stderr, "tprof recover: unknown option %s; there is --help\n", argv[1]);
        return TP_WRONG_USE;
    }
    if (first >= argc) {
        fprintf(stderr, "tprof recover: which spool? (tprof recover --help)\n");
        return TP_WRONG_USE;
    }
    int status = TP_DONE;
    for (int i = first; i < argc; i++)
        if (recover_path(argv[i]) != TP_DONE)
            status = TP_FAILED;
    return status;
}
