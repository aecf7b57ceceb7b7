#include "identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The whole of a small file, NUL-terminated; its length, or 0. */
static size_t read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    if (fd >= 0) {
        ssize_t n;
        while (length < size - 1 && (n = read(fd, text + length, size - 1 - length)) > 0)
            length += (size_t)n;
        close(fd);
    }
    text[length] = '\0';
    return length;
}

static bool number_from(const char *variable, uint64_t *ret_number)
{
    const char *text = getenv(variable);
    if (!text || text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (*end)
        return false;
    *ret_number = number;
    return true;
}

static void read_text(const char *variable, char *text, size_t size)
{
    const char *value = getenv(variable);
    snprintf(text, size, "%s", value ? value : "");
}

static void read_rank(struct tp_identity *identity)
{
    static const char *const names[][2] = {
        {"RANK", "WORLD_SIZE"},
        {"SLURM_PROCID", "SLURM_NTASKS"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    };
    identity->rank = 0;
    identity->world_size = 1;
    identity->rank_set = false;
    for (size_t i = 0; i < TP_COUNT(names) && !identity->rank_set; i++)
        if (number_from(names[i][0], &identity->rank)) {
            identity->rank_set = true;
            if (!number_from(names[i][1], &identity->world_size) || identity->world_size <= identity->rank)
                identity->world_size = identity->rank + 1;
        }
}

void tp_identity_read(struct tp_identity *identity)
{
    if (gethostname(identity->host, sizeof identity->host) != 0)
        snprintf(identity->host, sizeof identity->host, "localhost");
    identity->host[sizeof identity->host - 1] = '\0';
    size_t n = read_file("/proc/self/comm", identity->process, sizeof identity->process);
    while (n > 0 && identity->process[n - 1] == '\n')
        identity->process[--n] = '\0';
    n = read_file("/proc/sys/kernel/random/boot_id", identity->boot_id, sizeof identity->boot_id);
    while (n > 0 && identity->boot_id[n - 1] == '\n')
        identity->boot_id[--n] = '\0';
    identity->pid = (uint32_t)getpid();
    read_rank(identity);
    read_text("PT_PROFILER_JOB_NAME", identity->job_name, sizeof identity->job_name);
    read_text("PT_PROFILER_JOB_VERSION", identity->job_version, sizeof identity->job_version);
    read_text("PT_PROFILER_JOB_ATTEMPT_INDEX", identity->job_attempt, sizeof identity->job_attempt);
}

/* /proc/PID/stat behind the process's name, which stands in parentheses and may hold anything; NULL: there is none. */
static const char *stat_of(uint32_t pid, char text[512])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    return read_file(path, text, 512) ? strrchr(text, ')') : NULL;
}

uint64_t tp_identity_start_time(uint32_t pid)
{
    char text[512];
    const char *after = stat_of(pid, text);
    unsigned long long start;
    /* Field 22; the state is field 3. */
    bool found = after && sscanf(after, ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                                 &start) == 1;
    return found ? start : 0;
}

uint64_t tp_identity_pid_namespace(void)
{
    struct stat found;
    return stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

static int parent_of(int pid)
{
    char text[512];
    const char *after = stat_of((uint32_t)pid, text);
    int parent = 0;
    if (!after || sscanf(after, ") %*c %d", &parent) != 1)
        return 0;
    return parent;
}

/* Looks for both names in the process's list of mappings, in pieces that overlap. */
static bool is_profiled(int pid)
{
    char path[64], piece[8192 + 64];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool us = false, torch = false;
    size_t carried = 0;
    ssize_t n;
    while (!(us && torch) && (n = read(fd, piece + carried, sizeof piece - 1 - carried)) > 0) {
        size_t length = carried + (size_t)n;
        piece[length] = '\0';
        us = us || strstr(piece, "libtprof.so");
        torch = torch || strstr(piece, "libtorch_cpu.so");
        carried = length < 32 ? length : 32;
        memmove(piece, piece + length - carried, carried);
    }
    close(fd);
    return us && torch;
}

bool tp_identity_is_child(void)
{
    int pid = getppid();
    for (int generation = 0; pid > 1 && generation < 32; generation++) {
        if (is_profiled(pid))
            return true;
        pid = parent_of(pid);
    }
    return pid == 1 && is_profiled(1);
}
