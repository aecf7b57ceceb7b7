/* ends.c: every way out, of the program and of the first process. */
#include "processes.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void nothing_to_do(void)
{
    operators(1);
}

static int leave(void)
{
    begin_threads(); /* which are in operators when it ends */
    operators(100);
    const char *way = argument;
    if (strcmp(way, "exit") == 0)
        exit(3);
    if (strcmp(way, "exit in a handler") == 0) {
        atexit(nothing_to_do);
        exit(3);
    }
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(3);
    if (strcmp(way, "_exit") == 0)
        _exit(3);
    if (strcmp(way, "_Exit") == 0)
        _Exit(3);
    if (strcmp(way, "exit_group") == 0)
        syscall(SYS_exit_group, 3);
    if (strcmp(way, "abort") == 0)
        abort();
    if (strcmp(way, "segv") == 0)
        *(volatile int *)(uintptr_t)getpid() = 0;
    if (strncmp(way, "signal ", 7) == 0)
        raise(atoi(way + 7));
    return 3;
}

/* The process goes on until its last thread has ended. */
static void *last_thread(void *unused)
{
    usleep(300000);
    operators(10);
    tell();
    return unused;
}

static int leave_main_thread(void)
{
    operators(10);
    EXPECT(pthread_create(&threads[0], NULL, last_thread, NULL) == 0);
    pthread_exit(NULL);
}

static void *fork_all_the_time(void *unused)
{
    for (;;) {
        pid_t child = fork();
        if (child == 0) /* as the parent is dying: this one must not wait for that */
            exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
    }
    return unused;
}

/* A signal ends the process, which writes files for a while; meanwhile another thread forks. */
static int fork_while_dying(void)
{
    operators(200000);
    EXPECT(pthread_create(&threads[0], NULL, fork_all_the_time, NULL) == 0);
    usleep(50000);
    raise(SIGTERM);
    return 1;
}

/* Process 1 of its namespace: signals at their default do not end it. */
static int be_first(void)
{
    EXPECT(getpid() == 1);
    operators(50);
    if (strcmp(argument, "signal") == 0) {
        raise(SIGTERM);
        raise(SIGINT);
        say("lives\n");
    }
    pid_t child = fork();
    if (child == 0) {
        made = 0;
        train(2);
        exit(4);
    }
    EXPECT(status_of(child) == 4);
    tell();
    return 5;
}

const struct situation ends[] = {
    {"leave", leave},
    {"leave_main_thread", leave_main_thread},
    {"fork_while_dying", fork_while_dying},
    {"first", be_first},
    {NULL, NULL},
};
