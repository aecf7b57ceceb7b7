/* processes.h: what the situations of processes.c have in common. */
#ifndef TP_PROCESSES_H
#define TP_PROCESSES_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define THREADS 8

struct situation {
    const char *name;
    int (*run)(void);
};

/* Each with a last one that has no name. */
extern const struct situation children[], ends[], signals[];

extern void (*run_operator)(const char *, uint8_t, int64_t, uint64_t, void (*)(void *), void *);
extern _Atomic long made; /* operators and ranges of this process */
extern const char *argument;
extern pid_t parent;

void say(const char *format, ...);
void tell(void);

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            say("%s:%d: %s does not hold (%s)\n", __FILE__, __LINE__, #condition, strerror(errno)); \
            _exit(1); \
        } \
    } while (0)

void operators(int count);
void train(int steps);

/* Threads that make operators all the time. */
extern pthread_t threads[THREADS];
void begin_threads(void);
void end_threads(void);

int status_of(pid_t child);

#endif
