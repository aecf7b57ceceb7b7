/*
 * job.c: a program that "trains" on a fake libtorch and does to its place what its command line says, in order:
 *
 *     train N            N steps of operators, each with an optimizer's step
 *     names N            N operators, each with a name of its own
 *     fill FILE          writes until the file system is full
 *     remove FILE
 *     await FILE TEXT    until the text stands in the file (at most half a minute)
 *     settle FOLDER N    until N files or more lie in the folder, all whole (at most half a minute)
 *     chdir FOLDER       or "gone": into a folder that it then removes
 *     close              every number from 3 to 4096
 *     own FOLDER         opens files of its own on numbers 3 to 40 and 200 to 240; at the end they must be as they were
 *     churn FOLDER N     N times: close every number, open files of its own, write, train a step
 *     limit NAME N       setrlimit: fsize, as (N MB more than now), nofile
 *     nap                2 ms
 *     measure            one line about itself
 *     fork               the rest is a child's, whose status becomes ours
 *     exit N
 *
 * usage: job FAKE_FOLDER WORD...    prints "operators N" and what the words print
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../doubles/fake_torch.h"

#define OPERATORS 40
#define HIGHEST 4096
#define WAIT_MS 30000

static void (*run_operator)(const char *, uint8_t, int64_t, uint64_t, void (*)(void *), void *);
static long operators;
static int status;

static _Noreturn void give_up(const char *what)
{
    printf("cannot %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(99);
}

static void inner(void *name)
{
    operators++;
    run_operator(name, 0, -1, 0, NULL, NULL);
}

static void train(long steps)
{
    for (long step = 0; step < steps; step++) {
        for (int i = 0; i < OPERATORS; i++) {
            operators++;
            run_operator("aten::linear", 0, i, 0, inner, (void *)"aten::addmm");
        }
        operators++;
        run_operator("Optimizer.step#SGD.step", 7, -1, 0, inner, (void *)"aten::add_");
    }
}

static void use_names(long count)
{
    for (long i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "aten::name%ld", i);
        inner(name);
    }
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void fill(const char *path)
{
    static char zeros[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up("fill");
    while (write(fd, zeros, sizeof zeros) > 0)
        ;
    close(fd);
}

static void await(const char *path, const char *text)
{
    static char seen[1 << 20];
    for (int ms = 0; ms < WAIT_MS; ms += 2, nap()) {
        FILE *file = fopen(path, "re");
        size_t n = file ? fread(seen, 1, sizeof seen - 1, file) : 0;
        seen[n] = '\0';
        if (file)
            fclose(file);
        if (strstr(seen, text))
            return;
    }
    errno = ETIMEDOUT;
    give_up("await the text");
}

static void settle(const char *path, long wanted)
{
    for (int ms = 0; ms < WAIT_MS; ms += 2, nap()) {
        DIR *folder = opendir(path);
        long count = 0, halves = 0;
        for (struct dirent *entry; folder && (entry = readdir(folder));) {
            count += entry->d_name[0] != '.';
            halves += strstr(entry->d_name, ".tmp.") != NULL;
        }
        if (folder)
            closedir(folder);
        if (count >= wanted && halves == 0)
            return;
    }
    errno = ETIMEDOUT;
    give_up("see the files");
}

static void enter(const char *folder)
{
    char gone[] = "/tmp/tprof-gone-XXXXXX";
    bool away = strcmp(folder, "gone") == 0;
    if (away && !mkdtemp(gone))
        give_up("make a folder");
    if (chdir(away ? gone : folder) != 0 || (away && rmdir(gone) != 0))
        give_up("enter");
}

static void close_all(void)
{
    for (int fd = 3; fd <= HIGHEST; fd++)
        close(fd);
}

static struct {
    bool ours;
    ino_t inode;
    char path[512];
} own[HIGHEST + 1];

static void open_own(const char *folder, int from, int until)
{
    for (int number = from; number <= until; number++) {
        if (fcntl(number, F_GETFD) >= 0)
            continue;
        snprintf(own[number].path, sizeof own[number].path, "%s/own.%d", folder, number);
        int fd = open(own[number].path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        struct stat made;
        if (fd < 0 || write(fd, "mine\n", 5) != 5 || fstat(fd, &made) != 0)
            give_up("write a file of its own");
        if (fd != number) {
            dup2(fd, number);
            close(fd);
        }
        own[number].ours = true;
        own[number].inode = made.st_ino;
    }
}

static void check_own(void)
{
    int count = 0;
    for (int number = 0; number <= HIGHEST; number++) {
        if (!own[number].ours)
            continue;
        struct stat now;
        char text[16] = "";
        if (fstat(number, &now) != 0)
            printf("number %d was closed\n", number);
        else if (now.st_ino != own[number].inode)
            printf("number %d is another file\n", number);
        else if (pread(number, text, sizeof text - 1, 0) != 5 || strcmp(text, "mine\n") != 0)
            printf("number %d was written to\n", number);
        else
            count++;
    }
    if (count)
        printf("own files %s\n", "are as they were");
}

static void churn(const char *folder, long times)
{
    for (long i = 0; i < times; i++) {
        check_own();
        close_all();
        memset(own, 0, sizeof own);
        open_own(folder, 3, 6);
        train(1);
    }
}

static void limit(const char *name, rlim_t value)
{
    int resource = strcmp(name, "fsize") == 0 ? RLIMIT_FSIZE : strcmp(name, "as") == 0 ? RLIMIT_AS : RLIMIT_NOFILE;
    if (resource == RLIMIT_AS) {
        long pages = 0;
        FILE *file = fopen("/proc/self/statm", "re");
        if (!file || fscanf(file, "%ld", &pages) != 1)
            give_up("read statm");
        fclose(file);
        value = (value << 20) + (rlim_t)pages * 4096;
    }
    if (setrlimit(resource, &(struct rlimit){value, value}) != 0)
        give_up("set the limit");
}

static long entries(const char *path, const char *with)
{
    DIR *folder = opendir(path);
    long count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        count += entry->d_name[0] != '.' && strstr(entry->d_name, with);
    if (folder)
        closedir(folder);
    return count;
}

static void go_on_in_child(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        give_up("fork");
    int how;
    if (child > 0 && waitpid(child, &how, 0) == child)
        exit(WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how));
}

static void measure(void)
{
    char line[512], spool[64];
    long resident = 0, size = 0, threads = 0, maps = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "VmRSS: %ld", &resident);
        sscanf(line, "VmSize: %ld", &size);
        sscanf(line, "Threads: %ld", &threads);
    }
    if (file)
        fclose(file);
    file = fopen("/proc/self/maps", "re");
    while (file && fgets(line, sizeof line, file))
        maps += strchr(line, '\n') != NULL;
    if (file)
        fclose(file);
    long numbers = 0; /* of our threads too: they may have tables of their own */
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char path[512];
        snprintf(path, sizeof path, "/proc/self/task/%s/fd", entry->d_name);
        numbers += entry->d_name[0] != '.' ? entries(path, "") : 0;
    }
    if (tasks)
        closedir(tasks);
    snprintf(spool, sizeof spool, "tprof.%d.", (int)getpid());
    const char *folder = getenv("TPROF_SPOOL_DIR");
    printf("measured resident %ld size %ld threads %ld maps %ld numbers %ld spools %ld\n", resident, size, threads, maps,
           numbers, entries(folder ? folder : "/dev/shm", spool));
}

static void attach(const char *folder)
{
    static const char *const libraries[] = {"libtorch_cpu.so", "libtorch_python.so"};
    void *handle[2];
    for (int i = 1; i >= 0; i--) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, libraries[i]);
        handle[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* as Python opens them */
        if (!handle[i]) {
            fprintf(stderr, "%s\n", dlerror());
            exit(2);
        }
    }
    *(void **)&run_operator = dlsym(handle[0], "fake_torch_run");
    /* A preloaded library's comes first, as it does for torch/_C. */
    void *found = dlsym(RTLD_DEFAULT, "initModule");
    void *(*initModule)(void);
    *(void **)&initModule = found ? found : dlsym(handle[1], "initModule");
    if (!initModule())
        exit(2);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    attach(argv[1]);
    for (char **word = argv + 2; *word; word++) {
        const char *what = word[0];
        if (strcmp(what, "train") == 0)
            train(atol(*++word));
        else if (strcmp(what, "names") == 0)
            use_names(atol(*++word));
        else if (strcmp(what, "fill") == 0)
            fill(*++word);
        else if (strcmp(what, "remove") == 0)
            unlink(*++word);
        else if (strcmp(what, "await") == 0)
            await(word[1], word[2]), word += 2;
        else if (strcmp(what, "settle") == 0)
            settle(word[1], atol(word[2])), word += 2;
        else if (strcmp(what, "chdir") == 0)
            enter(*++word);
        else if (strcmp(what, "close") == 0)
            close_all();
        else if (strcmp(what, "own") == 0)
            open_own(*++word, 3, 40), open_own(*word, 200, 240);
        else if (strcmp(what, "churn") == 0)
            churn(word[1], atol(word[2])), word += 2;
        else if (strcmp(what, "limit") == 0)
            limit(word[1], strtoul(word[2], NULL, 10)), word += 2;
        else if (strcmp(what, "nap") == 0)
            nap();
        else if (strcmp(what, "measure") == 0)
            measure();
        else if (strcmp(what, "fork") == 0)
            go_on_in_child();
        else if (strcmp(what, "exit") == 0)
            status = atoi(*++word);
        else
            return 2;
    }
    check_own();
    printf("operators %ld\n", operators);
    fflush(stdout);
    return status;
}
