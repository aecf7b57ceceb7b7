/* signals.c: programs that take signals, and have timers. */
#include "processes.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/time.h>

#define SIGNALS 10000
static _Atomic int terminations, queued;

static void count(int number)
{
    if (number == SIGTERM)
        terminations++;
    else if (number == SIGRTMIN)
        queued++;
}

static void *wait_for_signals(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    if (strcmp(argument, "signalfd") == 0) {
        int fd = signalfd(-1, &all, SFD_CLOEXEC);
        struct signalfd_siginfo info;
        do
            EXPECT(read(fd, &info, sizeof info) == sizeof info);
        while (count((int)info.ssi_signo), info.ssi_signo != (uint32_t)SIGRTMAX);
    } else {
        int number;
        do
            EXPECT(sigwait(&all, &number) == 0);
        while (count(number), number != SIGRTMAX);
    }
    return unused;
}

/* All signals are blocked in all threads; one of them takes them. */
static int take_signals(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_t waiting;
    EXPECT(pthread_create(&waiting, NULL, wait_for_signals, NULL) == 0);
    begin_threads();
    int sent = 0;
    for (int i = 0; i < SIGNALS; i++) {
        static const int numbers[] = {SIGTERM, SIGUSR1, SIGHUP, SIGINT, SIGALRM, SIGPROF};
        int number = i % 2 ? SIGRTMIN : numbers[i / 2 % 6];
        while (sigqueue(getpid(), number, (union sigval){0}) != 0)
            EXPECT(errno == EAGAIN && usleep(1000) == 0); /* the queue is full */
        sent += number == SIGRTMIN;
    }
    kill(getpid(), SIGRTMAX); /* of those that are queued the highest number comes last */
    pthread_join(waiting, NULL);
    end_threads();
    EXPECT(queued == sent && terminations > 0);
    tell();
    return 0;
}

static _Atomic int ticks;

static void tick(int number)
{
    (void)number;
    ticks++;
}

/* Timers of the program, whose handlers interrupt system calls: as often as they run, and not once more. */
static int use_timers(void)
{
    struct sigaction action = {.sa_handler = tick};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGPROF, &action, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    begin_threads();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    struct itimerval every = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &every, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    int interrupted = 0;
    for (int i = 0; i < 300; i++) {
        struct timespec t = {.tv_nsec = 3000000};
        int before_sleep = ticks;
        if (nanosleep(&t, NULL) != 0) {
            EXPECT(errno == EINTR && ticks > before_sleep);
            interrupted++;
        }
        operators(10);
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    end_threads();
    EXPECT(interrupted > 0);
    tell();
    return 0;
}

const struct situation signals[] = {
    {"signals", take_signals},
    {"timers", use_timers},
    {NULL, NULL},
};
