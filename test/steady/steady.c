/*
 * steady.c: in steady state a recording thread meets no page fault and no system call of ours, while the kernel is made to
 * write back all it can (`sync` in a loop), with records in a shared file, in memory, and in a /dev/shm of 64 MB.
 *
 * A child process records through the real ring, drain and spool. Once warm, its recording thread runs under a seccomp
 * filter that traps every system call but getrusage, so that not one goes unseen.
 *
 * usage: steady [seconds]     exit 0: nothing seen; 1: something was; 77: the kernel cannot watch (no seccomp)
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../agent/clock.h"
#include "../../agent/hooks.h"
#include "../../agent/ring.h"
#include "../../agent/session.h"

struct result {
    volatile int done;
    volatile int kind; /* enum tp_spool_kind */
    volatile long system_calls, last_call;
    volatile long minor_faults, major_faults, waits;
    volatile unsigned long ranges, lost;
};

static struct result *result;

static void on_trapped_call(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    result->system_calls++;
    result->last_call = info->si_syscall;
}

static int trap_system_calls(void)
{
    struct sigaction action = {.sa_sigaction = on_trapped_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrusage, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* What a collector's hooks do for a range. */
static void record(struct tp_thread *thread, uint64_t key)
{
    uint64_t time = tp_clock_now();
    uint64_t *at = tp_ring_reserve_begin(thread, TP_BEGIN_WORDS, time);
    if (at) {
        struct tp_begin *begin = (struct tp_begin *)at;
        *begin = (struct tp_begin){.head = tp_record_head(TP_RECORD_BEGIN, TP_BEGIN_WORDS, key),
                                   .time = time,
                                   .name = tp_intern(tp_session.spool.names, "aten::add", 9),
                                   .sequence = -1};
        tp_ring_commit(thread, at + TP_BEGIN_WORDS);
    }
    at = tp_ring_reserve_end(thread);
    if (at) {
        at[0] = tp_record_head(TP_RECORD_END, TP_END_WORDS, key);
        at[1] = tp_clock_now();
        tp_ring_commit(thread, at + TP_END_WORDS);
    }
}

/* About half a microsecond of work between two ranges: faster than PyTorch's smallest operators. */
static void work(void)
{
    uint64_t until = tp_clock_now() + 1200;
    while (tp_clock_now() < until)
        ;
}

static int nothing_to_prepare(void)
{
    return 0;
}
static void no_step(uint64_t number, uint64_t begin, uint64_t end, enum tp_step_kind kind)
{
    (void)number, (void)begin, (void)end, (void)kind;
}
static void nobody_died(const _Atomic bool *stop)
{
    (void)stop;
}
static void no_cycle(struct tp_cycle *cycle)
{
    (void)cycle;
}
static void nothing(void)
{
}
static int attach(const struct tp_settings *settings, struct tp_error *error)
{
    (void)settings, (void)error;
    return tp_thread_init(NULL);
}
static int observe(enum tp_observe what)
{
    (void)what;
    return 0;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void record_in_child(const struct tp_settings *settings, double seconds)
{
    static const struct tp_session_outputs outputs = {.recover = nobody_died,
                                                      .prepare = nothing_to_prepare,
                                                      .step = no_step,
                                                      .cycle = no_cycle,
                                                      .finish = nothing,
                                                      .forget = nothing};
    static const struct tp_collector fake = {.name = "fake", .attach = attach, .observe = observe, .check = nothing};
    static const struct tp_collector *const collectors[] = {&fake, NULL};
    if (tp_session_attach(settings, collectors, &outputs) != 0)
        _exit(3);
    result->kind = tp_session.spool.kind;
    struct tp_thread *thread = tp_thread_enter();
    for (double until = seconds_now() + 1; seconds_now() < until;) {
        record(thread, 1);
        work();
    }
    if (trap_system_calls() != 0)
        _exit(77);
    struct rusage before, after;
    syscall(SYS_getrusage, RUSAGE_THREAD, &before);
    uint64_t ticks_per_second = tp_clock_is_tsc ? 0 : 1000000000;
    if (!ticks_per_second) {
        struct tp_clock_pair now = tp_clock_pair_now();
        ticks_per_second = (uint64_t)((double)(now.ticks - tp_session.attached.ticks) * 1e9 /
                                      (double)(now.monotonic_ns - tp_session.attached.monotonic_ns));
    }
    result->system_calls = 0;
    for (uint64_t until = tp_clock_now() + (uint64_t)(seconds * (double)ticks_per_second); tp_clock_now() < until;) {
        record(thread, 1);
        work();
        result->ranges++;
    }
    long calls = result->system_calls;
    syscall(SYS_getrusage, RUSAGE_THREAD, &after);
    result->system_calls = calls;
    result->minor_faults = after.ru_minflt - before.ru_minflt;
    result->major_faults = after.ru_majflt - before.ru_majflt;
    result->waits = after.ru_nvcsw - before.ru_nvcsw;
    result->lost = atomic_load(&thread->lost);
    result->done = 1;
    for (;;)
        ;
}

static int run(const char *what, const char *spool_dir, size_t budget, double seconds)
{
    struct tp_settings settings = {.enabled = true,
                                   .schedule = {.always = true, .active = 1},
                                   .schedule_set = true,
                                   .step = {.kind = TP_STEP_NONE},
                                   .spool_dir = spool_dir,
                                   .buffer_bytes = budget};
    memset(result, 0, sizeof *result);
    pid_t syncer = fork();
    if (syncer == 0)
        for (;;)
            sync();
    pid_t child = fork();
    if (child == 0)
        record_in_child(&settings, seconds);
    int status = 0;
    while (!result->done && waitpid(child, &status, WNOHANG) == 0)
        usleep(10000);
    kill(child, SIGKILL);
    kill(syncer, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    if (!result->done) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
            printf("%-28s not watched: no seccomp here\n", what);
            return 77;
        }
        printf("%-28s the recording process ended early (status %x)\n", what, (unsigned)status);
        return 1;
    }
    static const char *const kinds[] = {"shared", "disk", "memory"};
    printf("%-28s %-6s %9lu ranges  %ld system calls (last %ld)  %ld minor %ld major faults  %ld waits  %lu lost\n", what,
           kinds[result->kind], result->ranges, result->system_calls, result->last_call, result->minor_faults,
           result->major_faults, result->waits, result->lost);
    return result->system_calls || result->minor_faults || result->major_faults || result->waits || result->lost;
}

/* A /dev/shm of 64 MB of our own, where we may: a container's. */
static bool small_shm(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") == 0;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 3;
    result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int worst = 0, one;
#define RUN(...) \
    if ((one = run(__VA_ARGS__)) && worst != 1) \
    worst = one
    RUN("default", NULL, 64 << 20, seconds);
    RUN("memory", "/nowhere/at/all", 64 << 20, seconds);
    if (small_shm()) {
        RUN("64 MB /dev/shm, fits", NULL, 32 << 20, seconds);
        RUN("64 MB /dev/shm, too small", NULL, 256 << 20, seconds);
        RUN("64 MB /dev/shm, asked for", "/dev/shm", 256 << 20, seconds);
    } else {
        printf("64 MB /dev/shm: skipped, needs root\n");
    }
    return worst;
}
